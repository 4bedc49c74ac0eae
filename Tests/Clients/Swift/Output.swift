// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Standard output.
enum Output {
  static func flush() { fflush(nil) }

  /// Ends the process with the status by which shells tell of SIGABRT.
  static func crash() { _exit(134) }
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
