// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A point in time in RFC 3339, UTC, with milliseconds: `2026-02-28T09:05:00.042Z`.
public struct Timestamp: Hashable, Sendable, Comparable, CustomStringConvertible, JSONWritable {
  /// 0000-01-01T00:00:00.000Z to 9999-12-31T23:59:59.999Z, the years of four digits.
  package static let range: ClosedRange<Int64> = -62_167_219_200_000...253_402_300_799_999

  /// 0001-01-01T00:00:00.000Z: other time libraries begin here.
  private static let yearOne: Int64 = -62_135_596_800_000

  /// Since 1970-01-01T00:00:00Z, without leap seconds, inside `range`.
  public let milliseconds: Int64

  /// Clamped to `range`.
  public init(milliseconds: Int64) {
    self.milliseconds = min(max(milliseconds, Self.range.lowerBound), Self.range.upperBound)
  }

  /// Accepts exactly the form of `description`; otherwise `nil`.
  package init?(_ text: String) {
    let bytes = Array(text.utf8)
    guard bytes.count == Self.form.count else { return nil }
    for (byte, form) in zip(bytes, Self.form) {
      let isDigit = byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
      guard form == UInt8(ascii: "0") ? isDigit : byte == form else { return nil }
    }
    func number(_ range: Range<Int>) -> Int64 { bytes[range].reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) } }
    let (year, month, day) = (number(0..<4), number(5..<7), number(8..<10))
    let (hour, minute, second) = (number(11..<13), number(14..<16), number(17..<19))
    let days = Self.days(year: year, month: month, day: day)
    guard (1...12).contains(month), (1...31).contains(day), Self.date(days: days) == (year, month, day),
      hour < 24, minute < 60, second < 60
    else { return nil }
    self.milliseconds = ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1_000 + number(20..<23)
  }

  /// Accepts RFC 3339 with any offset, and any fraction, truncated to milliseconds. `nil` for other texts and before
  /// the year 1.
  package init?(rfc3339 text: String) {
    let second = text.prefix(19)
    var zone = text[second.endIndex...]
    var fraction: Substring = ""
    if zone.first == "." {
      fraction = zone.dropFirst().prefix { $0.isASCII && $0.isWholeNumber }
      zone = zone[fraction.endIndex...]
      guard !fraction.isEmpty else { return nil }
    }
    guard let utc = Timestamp("\(second).\((fraction + "000").prefix(3))Z"), let offset = Self.minutes(of: zone) else {
      return nil
    }
    milliseconds = utc.milliseconds - offset * 60_000
    guard (Self.yearOne...Self.range.upperBound).contains(milliseconds) else { return nil }
  }

  /// East of UTC.
  private static func minutes(of zone: Substring) -> Int64? {
    if zone == "Z" { return 0 }
    guard let sign = zone.first, sign == "+" || sign == "-",
      let clock = Timestamp("1970-01-01T\(zone.dropFirst()):00.000Z")
    else { return nil }
    return (sign == "-" ? -1 : 1) * clock.milliseconds / 60_000
  }

  public var description: String {
    var text = Self.form
    put(into: &text, at: 0)
    return String(decoding: text, as: UTF8.self)
  }

  package static var length: Int { form.count }

  /// Writes the time over `length` bytes that already have its form.
  package func put(into bytes: inout [UInt8], at start: Int) {
    let day = Int64(86_400_000)
    let days = milliseconds >= 0 ? milliseconds / day : (milliseconds - day + 1) / day
    let rest = milliseconds - days * day
    let (year, month, date) = Self.date(days: days)
    bytes.withUnsafeMutableBufferPointer { text in
      func put(_ value: Int64, at range: Range<Int>) {
        var value = UInt32(truncatingIfNeeded: value)
        for index in range.reversed() {
          text[start + index] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value % 10)
          value /= 10
        }
      }
      put(year, at: 0..<4)
      put(month, at: 5..<7)
      put(date, at: 8..<10)
      put(rest / 3_600_000, at: 11..<13)
      put(rest / 60_000 % 60, at: 14..<16)
      put(rest / 1_000 % 60, at: 17..<19)
      put(rest % 1_000, at: 20..<23)
    }
  }

  public static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }

  package func writeJSON(to writer: inout JSONWriter) { writer.string(description) }

  /// Each 0 stands for a digit.
  private static let form = Array("0000-00-00T00:00:00.000Z".utf8)

  /// Days since 1970-01-01 of a date of the proleptic Gregorian calendar.
  ///
  /// Years begin in March here, so that the leap day is the last day of a year.
  private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
    let shifted = month > 2 ? year : year - 1
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * 146_097 + dayOfEra - 719_468
  }

  private static func date(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
  }
}
