// SPDX-License-Identifier: Apache-2.0

extension String {
  /// Two for wide characters, none for marks that join the character before.
  var columns: Int {
    if utf8.allSatisfy({ $0 < 0x80 }) { return utf8.count }
    return reduce(0) { $0 + $1.columns }
  }

  /// The text with numbers in place of characters that control a terminal, turn the direction of writing or are
  /// invisible. Names come from applications, and must not move the reader's cursor.
  var printable: String {
    if utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7f }) { return self }
    var text = String.UnicodeScalarView()
    for scalar in unicodeScalars {
      if scalar.steersTerminal {
        text.append(contentsOf: "\\u{\(String(scalar.value, radix: 16))}".unicodeScalars)
      } else {
        text.append(scalar)
      }
    }
    return String(text)
  }

  /// The same for JSON text: characters in its strings are escaped as in JSON, so that the value stays the same.
  var printableJSON: String {
    if utf8.allSatisfy({ $0 < 0x7f }) { return self }
    var text = String.UnicodeScalarView()
    for scalar in unicodeScalars {
      if scalar.steersTerminal, scalar.value > 0x20 {
        for unit in String(scalar).utf16 {
          let digits = String(unit, radix: 16)
          text.append(contentsOf: ("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).unicodeScalars)
        }
      } else {
        text.append(scalar)
      }
    }
    return String(text)
  }

  /// Where the mark for omitted text goes.
  enum Cut {
    case middle
    case begin
  }

  func shortened(to width: Int, _ cut: Cut = .middle) -> String {
    guard columns > width else { return self }
    let mark = Terminal.isUTF8 ? "…" : "..."
    let room = width - mark.columns
    guard room > 0 else { return String(mark.prefix(max(0, width))) }
    let head = cut == .begin ? 0 : room / 2
    return first(head) + mark + last(room - head)
  }

  /// The longest beginning that fits into `width` columns.
  func first(_ width: Int) -> String {
    var left = width
    return String(
      prefix { character in
        left -= character.columns
        return left >= 0
      }
    )
  }

  private func last(_ width: Int) -> String {
    var left = width
    var start = endIndex
    while start > startIndex {
      let index = self.index(before: start)
      left -= self[index].columns
      guard left >= 0 else { break }
      start = index
    }
    return String(self[start...])
  }
}

extension Character {
  fileprivate var columns: Int {
    guard let scalar = unicodeScalars.first else { return 0 }
    if scalar.value < 0x300 { return 1 }
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: break
    }
    if unicodeScalars.contains(where: { $0.value == 0xfe0f }) { return 2 }
    return Self.wide.contains { $0.contains(scalar.value) } ? 2 : 1
  }

  /// Blocks whose characters are two columns wide (Unicode's East Asian Width, W and F).
  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115f, 0x2e80...0x303e, 0x3041...0x33ff, 0x3400...0x4dbf, 0x4e00...0x9fff, 0xa000...0xa4cf,
    0xa960...0xa97f, 0xac00...0xd7a3, 0xf900...0xfaff, 0xfe30...0xfe6f, 0xff00...0xff60, 0xffe0...0xffe6,
    0x1f300...0x1f64f, 0x1f680...0x1f6ff, 0x1f900...0x1f9ff, 0x20000...0x3fffd,
  ]
}

extension Unicode.Scalar {
  /// Control characters, line and paragraph separators, direction marks and invisible characters, including letters
  /// such as the fillers of Hangul. Joiners and variation selectors, which some words and emoji need, are excluded.
  fileprivate var steersTerminal: Bool {
    if value < 0x7f { return value < 0x20 }
    if value <= 0x9f || value == 0x2028 || value == 0x2029 { return true }
    // Invisible characters without that property: marks around annotations, and a Braille pattern without dots.
    let isInvisible = properties.isDefaultIgnorableCodePoint || (0xfff9...0xfffb).contains(value) || value == 0x2800
    return isInvisible && !properties.isVariationSelector && value != 0x200c && value != 0x200d
  }
}
