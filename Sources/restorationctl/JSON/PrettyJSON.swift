// SPDX-License-Identifier: Apache-2.0

/// Formats compact JSON over several lines. Strings, numbers and members stay unchanged, even duplicate members, and
/// any depth is accepted.
enum PrettyJSON {
  /// One member or element a line, indented by two columns.
  static func lay(out compactText: String) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(compactText.utf8.count * 2)
    var depth = 0
    var isString = false
    var isEscaped = false
    var previous: UInt8 = 0

    func breakLine() {
      text.append(UInt8(ascii: "\n"))
      text.append(contentsOf: repeatElement(UInt8(ascii: " "), count: 2 * depth))
    }

    for byte in compactText.utf8 {
      if isString {
        text.append(byte)
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
          isString = false
        }
        previous = byte
        continue
      }
      let closes = byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]")
      let wasOpened = previous == UInt8(ascii: "{") || previous == UInt8(ascii: "[")
      if closes {
        depth -= 1
        if !wasOpened { breakLine() }
      } else if wasOpened || previous == UInt8(ascii: ",") {
        breakLine()
      }
      text.append(byte)
      switch byte {
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: ":"): text.append(UInt8(ascii: " "))
      case UInt8(ascii: "\""): isString = true
      default: break
      }
      // A quote must not be taken for a bracket.
      previous = byte
    }
    return String(decoding: text, as: UTF8.self)
  }
}
