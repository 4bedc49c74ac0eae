// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationWire

extension Limits {
  package struct Fault: Error, Hashable, CustomStringConvertible {
    package let limit: String
    /// For people: what is wrong and what would be right.
    package let description: String
  }

  /// Free levels that a frame needs around a state, for the results that carry states.
  package static let depthAroundState = 8

  /// The defaults, overridden by the members of `object`.
  package init(overriding object: JSONObject) throws(Fault) {
    self.init()
    for (name, value) in object.members {
      guard let limit = Limit.all.first(where: { $0.name == name }) else {
        throw Fault(limit: name, description: "unknown limit \(name); see Protocol/limits.md")
      }
      guard let number = value.integer, let chosen = Int(exactly: number), limit.range.contains(chosen) else {
        throw Fault(
          limit: name,
          description: "\(name) is not an integer from \(limit.range.lowerBound) to \(limit.range.upperBound)"
        )
      }
      self[keyPath: limit.keyPath] = chosen
    }
    try checkAgainstEachOther()
  }

  private func checkAgainstEachOther() throws(Fault) {
    guard stateDepthMax + Self.depthAroundState <= depthMax else {
      throw Fault(
        limit: "stateDepthMax",
        description: "stateDepthMax is not \(Self.depthAroundState) or more below depthMax (\(depthMax))"
      )
    }
    guard stateBytesMax <= frameBytesMax / 2 else {
      throw Fault(
        limit: "stateBytesMax",
        description: "stateBytesMax is more than half of frameBytesMax (\(frameBytesMax))"
      )
    }
  }
}
