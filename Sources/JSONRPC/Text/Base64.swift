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

  package static func append(_ bytes: [UInt8], to text: inout [UInt8]) {
    text.append(addingCapacity: (bytes.count + 2) / 3 * 4) { text in
      let whole = bytes.count - bytes.count % 3
      // Without checks for each digit: this loop takes most of the time of a large text.
      text.withUnsafeMutableBufferPointer { text, count in
        encode(bytes[..<whole], into: text)
        count = whole / 3 * 4
      }
      guard whole < bytes.count else { return }
      let bits = Int(bytes[whole]) << 16 | (whole + 1 < bytes.count ? Int(bytes[whole + 1]) << 8 : 0)
      text.append(digits[bits >> 18])
      text.append(digits[bits >> 12 & 63])
      text.append(whole + 1 < bytes.count ? digits[bits >> 6 & 63] : padding)
      text.append(padding)
    }
  }

  /// - Parameter bytes: a multiple of three.
  private static func encode(_ bytes: ArraySlice<UInt8>, into text: UnsafeMutableBufferPointer<UInt8>) {
    digits.withUnsafeBufferPointer { digits in
      bytes.withUnsafeBufferPointer { bytes in
        var (index, place) = (0, 0)
        while index < bytes.count {
          let bits = Int(bytes[index]) << 16 | Int(bytes[index + 1]) << 8 | Int(bytes[index + 2])
          text[place] = digits[bits >> 18]
          text[place + 1] = digits[bits >> 12 & 63]
          text[place + 2] = digits[bits >> 6 & 63]
          text[place + 3] = digits[bits & 63]
          (index, place) = (index + 3, place + 4)
        }
      }
    }
  }

  package static func bytes(of text: String) -> [UInt8]? { bytes(of: Array(text.utf8)[...]) }

  /// `nil` if the text is not base 64.
  package static func bytes(of text: ArraySlice<UInt8>) -> [UInt8]? {
    guard text.count % 4 == 0 else { return nil }
    let missing = text.suffix(2).reversed().prefix { $0 == padding }.count
    // Has a bit above the lowest six if a byte was no digit.
    var seen: UInt8 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: text.count / 4 * 3) { bytes, count in
      values.withUnsafeBufferPointer { values in
        text.withUnsafeBufferPointer { text in
          var (index, place) = (0, 0)
          while index < text.count {
            let absent = index + 4 < text.count ? 0 : missing
            let first = values[Int(text[index])]
            let second = values[Int(text[index + 1])]
            let third = absent > 1 ? 0 : values[Int(text[index + 2])]
            let fourth = absent > 0 ? 0 : values[Int(text[index + 3])]
            seen |= first | second | third | fourth
            let bits = Int(first) << 18 | Int(second) << 12 | Int(third) << 6 | Int(fourth)
            bytes[place] = UInt8(truncatingIfNeeded: bits >> 16)
            bytes[place + 1] = UInt8(truncatingIfNeeded: bits >> 8)
            bytes[place + 2] = UInt8(truncatingIfNeeded: bits)
            (index, place) = (index + 4, place + 3)
          }
          count = place - missing
        }
      }
    }
    return seen < 64 ? bytes : nil
  }
}
