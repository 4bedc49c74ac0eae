// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RestorationClient
internal import RestorationWire

enum Quantity {
  /// In binary units, with one digit after the point: `512 B`, `1.5 KiB`.
  static func bytes(_ count: Int) -> String {
    var unit = 0
    var whole = count
    var tenths = 0
    while whole >= 1_024, unit < units.count - 1 {
      tenths = whole % 1_024 * 10 / 1_024
      whole /= 1_024
      unit += 1
    }
    return unit == 0 ? "\(whole) B" : "\(whole).\(tenths) \(units[unit])"
  }

  /// In its two largest units: `3 d 4 h`, `12 min 5 s`, `7 s`.
  static func span(_ duration: Duration) -> String {
    let parts = parts(duration.components.seconds)
    return (parts.prefix(1) + parts.dropFirst().prefix(1).filter { $0.0 > 0 }).map { "\($0.0) \($0.1)" }
      .joined(separator: " ")
  }

  /// In its largest unit: `3 d`, `7 s`. Never negative, even if the clock was set back.
  static func age(_ milliseconds: Int64) -> String {
    parts(max(0, milliseconds) / 1_000).prefix(1).map { "\($0.0) \($0.1)" }.joined()
  }

  /// A number and a noun in singular or plural: `1 object`, `2 objects`.
  static func count(_ count: Int, _ name: String) -> String { "\(count) \(name)\(count == 1 ? "" : "s")" }

  /// A remark after a question or a result: ` 2 sessions are live.` Empty for 0.
  static func remark(_ count: Int, _ name: String, _ predicate: String) -> String {
    count == 0 ? "" : " \(Self.count(count, name)) \(count == 1 ? "is" : "are") \(predicate)."
  }

  private static func parts(_ seconds: Int64) -> ArraySlice<(Int64, String)> {
    let parts = [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")]
    return parts[(parts.firstIndex { $0.0 > 0 } ?? parts.count - 1)...]
  }

  private static let units = ["B", "KiB", "MiB", "GiB", "TiB"]
}

enum Clock {
  /// Milliseconds since 1970, by the broker's clock.
  static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// In the time zone of this process: `10:05:00`.
  static var timeOfDay: String { text(of: now, "%H:%M:%S") }

  /// In the time zone of this process, formatted by `strftime`; milliseconds since 1970.
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
  /// In the time zone of this process: `2026-02-28 10:05:00 CET`.
  var local: String { Clock.text(of: milliseconds, "%Y-%m-%d %H:%M:%S %Z") }
}
