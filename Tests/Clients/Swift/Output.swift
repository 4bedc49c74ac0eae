// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Standard output.
enum Output {
  static func flush() { fflush(nil) }

  /// Ends the process as a crash does.
  static func crash() { kill(getpid(), SIGKILL) }
}

/// The clock that all processes of the machine share.
enum Clock {
  /// Milliseconds; never goes back.
  static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
  }
}
