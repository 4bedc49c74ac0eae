// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A moment of the monotonic clock, in microseconds.
struct MonotonicTime: Comparable, Sendable {
  let microseconds: UInt64

  static var now: MonotonicTime {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return MonotonicTime(microseconds: UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1_000)
  }

  static func < (left: MonotonicTime, right: MonotonicTime) -> Bool { left.microseconds < right.microseconds }

  func after(milliseconds: Int) -> MonotonicTime {
    MonotonicTime(microseconds: microseconds + UInt64(max(0, milliseconds)) * 1_000)
  }

  /// 0 if the moment has passed.
  var remainingMicroseconds: UInt64 {
    let now = Self.now.microseconds
    return microseconds > now ? microseconds - now : 0
  }

  /// The same for `poll`, rounded up.
  var remainingMilliseconds: Int32 { Int32(clamping: (remainingMicroseconds + 999) / 1_000) }
}
