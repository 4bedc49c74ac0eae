// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The time of day where this process runs.
enum LocalTime {
  /// Such as `14:03:12.482`.
  static var now: String {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    var parts = tm()
    localtime_r(&time.tv_sec, &parts)
    let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { digits(Int($0), 2) }.joined(separator: ":")
    return clock + "." + digits(Int(time.tv_nsec) / 1_000_000, 3)
  }

  private static func digits(_ number: Int, _ count: Int) -> String {
    let text = String(number)
    return String(repeating: "0", count: max(0, count - text.count)) + text
  }
}
