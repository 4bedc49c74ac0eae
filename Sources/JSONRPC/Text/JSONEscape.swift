// SPDX-License-Identifier: Apache-2.0

/// The escapes of JSON strings, in both directions.
enum JSONEscape {
  /// Appends the UTF-8 text with `"`, `\` and control characters escaped.
  static func append(_ text: UnsafeBufferPointer<UInt8>, to bytes: inout [UInt8]) {
    var plain = 0
    for index in 0..<text.count where needsEscape(text[index]) {
      bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[plain..<index]))
      appendEscape(of: text[index], to: &bytes)
      plain = index + 1
    }
    bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[plain...]))
  }

  private static func needsEscape(_ byte: UInt8) -> Bool {
    byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
  }

  private static func appendEscape(of byte: UInt8, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\\"))
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
    case 0x08: bytes.append(UInt8(ascii: "b"))
    case 0x09: bytes.append(UInt8(ascii: "t"))
    case 0x0A: bytes.append(UInt8(ascii: "n"))
    case 0x0C: bytes.append(UInt8(ascii: "f"))
    case 0x0D: bytes.append(UInt8(ascii: "r"))
    default:
      bytes.append(contentsOf: "u00".utf8)
      bytes.append(hexadecimal(byte >> 4))
      bytes.append(hexadecimal(byte & 15))
    }
  }

  /// The text between the quotes of a validated JSON string.
  static func decode(_ body: ArraySlice<UInt8>) -> String {
    body.contains(UInt8(ascii: "\\"))
      ? String(decoding: decodeBytes(body), as: UTF8.self) : String(decoding: body, as: UTF8.self)
  }

  /// The UTF-8 text between the quotes of a validated JSON string.
  static func decodeBytes(_ body: ArraySlice<UInt8>) -> [UInt8] {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(body.count)
    var index = body.startIndex
    while index < body.endIndex {
      guard body[index] == UInt8(ascii: "\\") else {
        decoded.append(body[index])
        index += 1
        continue
      }
      index += 2
      switch body[index - 1] {
      case UInt8(ascii: "b"): decoded.append(0x08)
      case UInt8(ascii: "f"): decoded.append(0x0C)
      case UInt8(ascii: "n"): decoded.append(0x0A)
      case UInt8(ascii: "r"): decoded.append(0x0D)
      case UInt8(ascii: "t"): decoded.append(0x09)
      case UInt8(ascii: "u"): append(scalar(in: body, at: &index), to: &decoded)
      case let byte: decoded.append(byte)
      }
    }
    return decoded
  }

  /// The scalar whose four hexadecimal digits begin at `index`, with the second half of a surrogate pair.
  private static func scalar(in body: ArraySlice<UInt8>, at index: inout Int) -> UInt32 {
    let first = unit(in: body, at: index)
    index += 4
    guard first & 0xFC00 == 0xD800 else { return first }
    let second = unit(in: body, at: index + 2)
    index += 6
    return 0x10000 + (first & 0x3FF) << 10 + (second & 0x3FF)
  }

  private static func unit(in body: ArraySlice<UInt8>, at index: Int) -> UInt32 {
    body[index..<index + 4].reduce(0) { unit, digit in
      unit << 4 | UInt32(digit <= UInt8(ascii: "9") ? digit & 15 : (digit & 7) + 9)
    }
  }

  private static func append(_ scalar: UInt32, to bytes: inout [UInt8]) {
    switch scalar {
    case 0..<0x80:
      bytes.append(UInt8(truncatingIfNeeded: scalar))
      return
    case 0x80..<0x800:
      bytes.append(UInt8(truncatingIfNeeded: 0xC0 | scalar >> 6))
    case 0x800..<0x10000:
      bytes.append(UInt8(truncatingIfNeeded: 0xE0 | scalar >> 12))
      bytes.append(UInt8(truncatingIfNeeded: 0x80 | scalar >> 6 & 0x3F))
    default:
      bytes.append(UInt8(truncatingIfNeeded: 0xF0 | scalar >> 18))
      bytes.append(UInt8(truncatingIfNeeded: 0x80 | scalar >> 12 & 0x3F))
      bytes.append(UInt8(truncatingIfNeeded: 0x80 | scalar >> 6 & 0x3F))
    }
    bytes.append(UInt8(truncatingIfNeeded: 0x80 | scalar & 0x3F))
  }

  private static func hexadecimal(_ digit: UInt8) -> UInt8 {
    digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
  }
}
