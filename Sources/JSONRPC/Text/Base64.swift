// SPDX-License-Identifier: Apache-2.0

/// The base 64 encoding of RFC 4648, section 4, with padding.
package enum Base64 {
  private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let padding = UInt8(ascii: "=")
  /// The value of each digit; 255 for other bytes.
  private static let values = digits.enumerated().reduce(into: [UInt8](repeating: 255, count: 256)) { values, digit in
    values[Int(digit.element)] = UInt8(digit.offset)
  }

  package static func text(of bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    append(bytes, to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Appends the text of the bytes.
  package static func append(_ bytes: [UInt8], to text: inout [UInt8]) {
    text.reserveCapacity(text.count + (bytes.count + 2) / 3 * 4)
    let whole = bytes.count - bytes.count % 3
    digits.withUnsafeBufferPointer { digits in
      bytes.withUnsafeBufferPointer { bytes in
        var index = 0
        while index < whole {
          let bits = Int(bytes[index]) << 16 | Int(bytes[index + 1]) << 8 | Int(bytes[index + 2])
          text.append(digits[bits >> 18])
          text.append(digits[bits >> 12 & 63])
          text.append(digits[bits >> 6 & 63])
          text.append(digits[bits & 63])
          index += 3
        }
      }
    }
    guard whole < bytes.count else { return }
    let bits = Int(bytes[whole]) << 16 | (whole + 1 < bytes.count ? Int(bytes[whole + 1]) << 8 : 0)
    let third = whole + 1 < bytes.count ? digits[bits >> 6 & 63] : padding
    text += [digits[bits >> 18], digits[bits >> 12 & 63], third, padding]
  }

  /// `nil` if the text is not base 64.
  package static func bytes(of text: String) -> [UInt8]? { bytes(of: Array(text.utf8)[...]) }

  /// `nil` if the text is not base 64.
  package static func bytes(of text: ArraySlice<UInt8>) -> [UInt8]? {
    guard text.count % 4 == 0 else { return nil }
    let missing = text.suffix(2).reversed().prefix { $0 == padding }.count
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count / 4 * 3)
    var bits = 0
    // Has a bit above the lowest six if a byte was no digit.
    var seen: UInt8 = 0
    values.withUnsafeBufferPointer { values in
      text.withUnsafeBufferPointer { text in
        for index in 0..<text.count - missing {
          let value = values[Int(text[index])]
          seen |= value
          bits = (bits << 6 | Int(value)) & 0xFF_FFFF
          if index & 3 > 0 { bytes.append(UInt8(truncatingIfNeeded: bits >> (6 - 2 * (index & 3)))) }
        }
      }
    }
    return seen < 64 ? bytes : nil
  }
}
