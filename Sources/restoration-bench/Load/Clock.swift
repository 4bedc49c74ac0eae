// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Clocks of the system, in nanoseconds.
enum Clock {
  static var now: UInt64 { read(CLOCK_MONOTONIC) }
  /// CPU time of this process.
  static var ownCPU: UInt64 { read(CLOCK_PROCESS_CPUTIME_ID) }

  /// CPU time of other processes together; `nil` if one of them is unknown.
  static func cpu(of processes: [Int32]) -> UInt64? {
    var sum: UInt64 = 0
    for process in processes {
      var clock = clockid_t()
      var time = timespec()
      guard clock_getcpuclockid(process, &clock) == 0, clock_gettime(clock, &time) == 0 else { return nil }
      sum += nanoseconds(time)
    }
    return processes.isEmpty ? nil : sum
  }

  private static func read(_ clock: clockid_t) -> UInt64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return nanoseconds(time)
  }

  private static func nanoseconds(_ time: timespec) -> UInt64 {
    UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}
