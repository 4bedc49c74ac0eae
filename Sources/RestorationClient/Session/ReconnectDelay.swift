// SPDX-License-Identifier: Apache-2.0

/// The waits before each try to reconnect: none at first, then twice as long each time.
package struct ReconnectDelay: Equatable {
  /// The first wait; all are in milliseconds.
  package static let shortest: Int64 = 5
  /// While calls wait for the broker.
  package static let longestWithWork: Int64 = 100
  /// While nothing waits, and only the ownership of objects is to be resumed.
  package static let longestIdle: Int64 = 1_000
  /// While no broker has come yet: nothing can wait for it.
  package static let longestAlone: Int64 = 5_000

  private var failures = 0

  package init() {}

  /// A connection was useful: after the next loss, the session reconnects at once.
  package mutating func reset() { failures = 0 }

  package var isReset: Bool { failures == 0 }

  /// Milliseconds before the next try; counts one more failure.
  package mutating func next(hasWork: Bool, isAlone: Bool = false) -> Int64 {
    defer { failures = min(failures + 1, 16) }
    guard failures > 0 else { return 0 }
    let longest = isAlone ? Self.longestAlone : hasWork ? Self.longestWithWork : Self.longestIdle
    return min(Self.shortest << (failures - 1), longest)
  }
}
