// SPDX-License-Identifier: Apache-2.0

/// The base 64 encoding of RFC 4648, section 4, with padding.
enum Base64 {
  private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let padding = UInt8(ascii: "=")
  /// The value of each digit; 255 for other bytes.
  private static let values = digits.enumerated().reduce(into: [UInt8](repeating: 255, count: 256)) { values, digit in
    values[Int(digit.element)] = UInt8(digit.offset)
  }

  static func text(of bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
      for index in 0..<4 {
        text.append(index <= group.count ? digits[bits >> (18 - 6 * index) & 63] : padding)
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// `nil` if the text is not base 64.
  static func bytes(of text: String) -> [UInt8]? {
    let digits = Array(text.utf8)
    guard digits.count % 4 == 0 else { return nil }
    let missing = digits.reversed().prefix(2).prefix { $0 == padding }.count
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count / 4 * 3)
    var bits = 0
    for (index, digit) in digits.dropLast(missing).enumerated() {
      guard values[Int(digit)] < 64 else { return nil }
      bits = bits << 6 | Int(values[Int(digit)])
      if index % 4 > 0 { bytes.append(UInt8(truncatingIfNeeded: bits >> (6 - 2 * (index % 4)))) }
    }
    return bytes
  }
}
