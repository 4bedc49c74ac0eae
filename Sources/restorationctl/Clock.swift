// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RestorationClient
internal import RestorationWire

/// The time of day.
enum Clock {
  /// Milliseconds since 1970, by the same clock as the broker's.
  static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// The time of day in the time zone of this process: `10:05:00`.
  static var timeOfDay: String {
    text(of: now, "%H:%M:%S")
  }

  /// A point in time, since 1970 in milliseconds, in the time zone of this process, as `strftime` formats it.
  static func text(of milliseconds: Int64, _ format: String) -> String {
    var seconds = time_t(milliseconds / 1_000)
    var parts = tm()
    localtime_r(&seconds, &parts)
    var buffer = [CChar](repeating: 0, count: 64)
    let count = strftime(&buffer, buffer.count, format, &parts)
    return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

extension Timestamp {
  /// In the time zone of who looks at it: `2026-02-28 10:05:00 CET`.
  var local: String {
    Clock.text(of: milliseconds, "%Y-%m-%d %H:%M:%S %Z")
  }
}
