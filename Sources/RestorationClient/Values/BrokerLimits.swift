// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// What the broker holds its clients to. A limit passes at its value and fails at one more.
public struct BrokerLimits: Hashable, Sendable {
  /// One limit.
  public struct Entry: Hashable, Sendable {
    /// The name, as errors and configurations have it.
    public let name: String
    /// In the limit's unit.
    public let value: Int
    /// `bytes`, `milliseconds`, `levels` or `count`.
    public let unit: String
    /// What is counted and what happens beyond it.
    public let summary: String
  }

  let wire: Limits

  init(_ wire: Limits) {
    self.wire = wire
  }

  /// Every limit, in the protocol's order.
  public var all: [Entry] {
    Limit.all.map {
      Entry(name: $0.name, value: wire[keyPath: $0.keyPath], unit: $0.unit.rawValue, summary: $0.summary)
    }
  }

  /// The value of the limit of this name; nil where there is none.
  public subscript(name: String) -> Int? {
    Limit.all.first { $0.name == name }.map { wire[keyPath: $0.keyPath] }
  }

  /// Bytes of one object's state with its elements.
  public var stateBytesMax: Int { wire.stateBytesMax }

  /// Bytes of one message.
  public var frameBytesMax: Int { wire.frameBytesMax }
}
