// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// What the broker holds its clients to. A limit passes at its value and fails at one more.
///
/// Wire and configuration names equal the property names; `Limit.all` says what each counts, and is the list that the
/// method `limits`, the configuration and `Protocol/limits.md` share.
public struct Limits: Hashable, Sendable {
  public package(set) var frameBytesMax = 4 << 20
  public package(set) var depthMax = 64
  public package(set) var stateDepthMax = 56
  public package(set) var valuesPerFrameMax = 65_536
  public package(set) var keysPerObjectMax = 4_096
  public package(set) var batchMax = 256
  public package(set) var inFlightMax = 128
  public package(set) var parkedMax = 1_024
  public package(set) var subscriptionsMax = 64
  public package(set) var connectionsMax = 1_024
  public package(set) var connectionsPerApplicationMax = 256
  public package(set) var sessionsPerApplicationMax = 1_024
  public package(set) var objectsPerApplicationMax = 16_384
  public package(set) var stateBytesMax = 256 << 10
  public package(set) var pathBytesMax = 4_096
  public package(set) var referencesPerStateMax = 1_024
  public package(set) var archiveBytesMax = 64 << 20
  public package(set) var applicationsMax = 1_024
  public package(set) var allArchivesBytesMax = 1 << 30
  public package(set) var openArchivesMax = 64
  public package(set) var replyBytesPause = 1 << 20
  public package(set) var outQueueBytesMax = 8 << 20
  public package(set) var eventBytesMax = 1 << 20
  public package(set) var partialFrameMilliseconds = 30_000
  public package(set) var roundQuietMilliseconds = 15_000
  public package(set) var roundIntervalMilliseconds = 300_000
  public package(set) var stopRoundMilliseconds = 5_000
  public package(set) var descriptorsAccepted = 0

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
  /// The value of a limit.
  public subscript(limit: Limit) -> Int { self[keyPath: limit.keyPath] }

  /// The value of the limit of this name; nil if there is none.
  public subscript(name: String) -> Int? {
    Limit.all.first { $0.name == name }.map { self[$0] }
  }

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
