// SPDX-License-Identifier: Apache-2.0

/// Numbers as people read them.
enum Quantity {
  /// Bytes in binary units, with one digit after the point: `512 B`, `1.5 KiB`.
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

  /// A time span by its two largest units: `3 d 4 h`, `12 min 5 s`, `7 s`.
  static func span(_ duration: Duration) -> String {
    let parts = parts(duration.components.seconds)
    return (parts.prefix(1) + parts.dropFirst().prefix(1).filter { $0.0 > 0 }).map { "\($0.0) \($0.1)" }
      .joined(separator: " ")
  }

  /// How long ago something was, by its largest unit: `3 d`, `7 s`; a clock that was put back makes nothing negative.
  static func age(_ milliseconds: Int64) -> String {
    parts(max(0, milliseconds) / 1_000).prefix(1).map { "\($0.0) \($0.1)" }.joined()
  }

  /// A number of things, whose name gets an s where it needs one: `1 object`, `2 objects`.
  static func count(_ count: Int, _ name: String) -> String {
    "\(count) \(name)\(count == 1 ? "" : "s")"
  }

  private static func parts(_ seconds: Int64) -> ArraySlice<(Int64, String)> {
    let parts = [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")]
    return parts[(parts.firstIndex { $0.0 > 0 } ?? parts.count - 1)...]
  }

  private static let units = ["B", "KiB", "MiB", "GiB", "TiB"]
}
