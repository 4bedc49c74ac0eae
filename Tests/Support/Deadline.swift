// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A point of the monotonic clock up to which an event is waited for. Reaching it fails the test; no test waits for it.
package struct Deadline: Sendable {
  /// Long enough for a busy machine; a test that meets it has found a fault.
  package static let usual: Duration = .seconds(20)

  private let end: Int64

  package init(_ duration: Duration = Deadline.usual) { end = Self.now + duration.milliseconds }

  /// Milliseconds of a clock that never goes back.
  package static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// Milliseconds that are left, for `poll`.
  package var milliseconds: Int32 { Int32(clamping: max(0, end - Self.now)) }

  package var isOver: Bool { end <= Self.now }
}

extension Duration {
  /// Whole milliseconds.
  package var milliseconds: Int64 { components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000 }
}
