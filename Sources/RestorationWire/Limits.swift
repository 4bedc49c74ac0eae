// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// What the broker holds its clients to. A limit passes at its value and fails at one more.
///
/// Wire and configuration names equal the property names; `Limit.all` says what each counts, and is the list that the
/// method `limits`, the configuration and `Protocol/limits.md` share.
package struct Limits: Hashable, Sendable {
  package var frameBytesMax = 4 << 20
  package var depthMax = 64
  package var stateDepthMax = 56
  package var valuesPerFrameMax = 65_536
  package var keysPerObjectMax = 4_096
  package var batchMax = 256
  package var inFlightMax = 128
  package var parkedMax = 1_024
  package var subscriptionsMax = 64
  package var connectionsMax = 1_024
  package var connectionsPerApplicationMax = 256
  package var sessionsPerApplicationMax = 1_024
  package var objectsPerApplicationMax = 16_384
  package var stateBytesMax = 256 << 10
  package var pathBytesMax = 4_096
  package var referencesPerStateMax = 1_024
  package var archiveBytesMax = 64 << 20
  package var applicationsMax = 1_024
  package var allArchivesBytesMax = 1 << 30
  package var openArchivesMax = 64
  package var replyBytesPause = 1 << 20
  package var outQueueBytesMax = 8 << 20
  package var eventBytesMax = 1 << 20
  package var partialFrameMilliseconds = 30_000
  package var roundQuietMilliseconds = 15_000
  package var roundIntervalMilliseconds = 300_000
  package var stopRoundMilliseconds = 5_000
  package var descriptorsAccepted = 0

  package init() {}
}

extension Limits: WireValue {
  package static let schema = Schema.shared(
    "Limits",
    .object(
      Limit.all.map { limit in
        let range = Int64(limit.range.lowerBound)...Int64(limit.range.upperBound)
        return .required(limit.name, .integer(range), limit.summary)
      }
    )
  )

  package static let expected = "an object of limits"

  /// What an earlier broker does not report has its default.
  package init(wire slice: JSONSlice) throws(Misfit) {
    guard slice.kind == .object else { throw Misfit(Self.expected) }
    self.init()
    for limit in Limit.all {
      guard let member = slice[limit.name] else { continue }
      guard let value = try? Int(wire: member) else { throw Misfit(Int.expected, at: limit.name) }
      self[keyPath: limit.keyPath] = value
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      for limit in Limit.all {
        writer.key(limit.name)
        writer.integer(self[keyPath: limit.keyPath])
      }
    }
  }
}

extension Limits {
  /// Why limits of a configuration cannot be used.
  package struct Fault: Error, Hashable, CustomStringConvertible {
    /// The limit it is about.
    package let limit: String
    /// For people: what is wrong and what would be right.
    package let description: String
  }

  /// Free levels that a frame needs around a state, for the results that carry states.
  package static let depthAroundState = 8

  /// The defaults, with the members of `object` in their place.
  package init(overriding object: JSONObject) throws(Fault) {
    self.init()
    for (name, value) in object.members {
      guard let limit = Limit.all.first(where: { $0.name == name }) else {
        throw Fault(limit: name, description: "\(name) is no limit; Protocol/limits.md lists them")
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
