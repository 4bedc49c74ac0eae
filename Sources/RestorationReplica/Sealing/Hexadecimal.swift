// SPDX-License-Identifier: Apache-2.0

/// Bytes as hexadecimal digits. They may be a key, so only the result holds a copy.
enum Hexadecimal {
  static func digits(_ bytes: [UInt8]) -> [UInt8] {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    text.reserveCapacity(2 * bytes.count)
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return text
  }

  /// `nil` unless the text consists of two digits a byte.
  static func bytes(_ digits: some Collection<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count / 2)
    var rest = digits[...]
    while let high = rest.popFirst() {
      guard let low = rest.popFirst(), let high = value(high), let low = value(low) else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    Character(UnicodeScalar(digit)).hexDigitValue.map(UInt8.init)
  }
}
