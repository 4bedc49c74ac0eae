// SPDX-License-Identifier: Apache-2.0

/// The part of a number that was read last.
enum NumberPhase: UInt8 {
  case start
  case sign
  case zero
  case integer
  case point
  case fraction
  case exponent
  case exponentSign
  case exponentDigits

  var isReal: Bool { rawValue >= NumberPhase.point.rawValue }

  /// Whether a number may end here.
  var isWhole: Bool { self == .zero || takesDigits }

  /// Whether any digit may follow without changing the phase.
  var takesDigits: Bool { self == .integer || self == .fraction || self == .exponentDigits }
}

/// The parts of a scan inside one token. The byte at `end`, and seven after it, are zero.
enum ScanToken {
  enum Step {
    case forward(Int)
    case needsBytes
    case fault(ScanFault)
  }

  /// Searches eight bytes of a string in one word: sets a high bit in the lowest byte that is a quote, a backslash, a
  /// control character or not ASCII; higher bits are undefined.
  @inline(always)
  static func special(_ word: UInt64) -> UInt64 {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let quote = word ^ (ones &* 0x22)
    let backslash = word ^ (ones &* 0x5C)
    return ((quote &- ones) & ~quote | (backslash &- ones) & ~backslash | (word &- ones &* 0x20) & ~word | word)
      & (ones &* 0x80)
  }

  @inline(always)
  static func word(_ base: UnsafePointer<UInt8>, _ at: Int) -> UInt64 {
    UInt64(littleEndian: UnsafeRawPointer(base + at).loadUnaligned(as: UInt64.self))
  }

  @inline(never)
  static func endOfWhiteSpace(_ base: UnsafePointer<UInt8>, _ at: Int) -> Int {
    var at = at
    while JSONWalk.isWhiteSpace(base[at]) { at &+= 1 }
    return at
  }

  /// Reads one escape, one character beyond ASCII, or an invalid control character.
  @inline(never)
  static func specialCharacter(_ base: UnsafePointer<UInt8>, _ at: Int, _ end: Int) -> Step {
    let byte = base[at]
    if byte == UInt8(ascii: "\\") { return escape(base, at, end) }
    if byte >= 0x80 { return multibyte(base, at, end) }
    return at >= end ? .needsBytes : .fault(.controlCharacter)
  }

  private static func multibyte(_ base: UnsafePointer<UInt8>, _ at: Int, _ end: Int) -> Step {
    let length: Int
    // RFC 3629: no overlong forms, no surrogates, nothing beyond U+10FFFF; the second byte decides.
    let second: ClosedRange<UInt8>
    switch base[at] {
    case 0xC2...0xDF: (length, second) = (2, 0x80...0xBF)
    case 0xE0: (length, second) = (3, 0xA0...0xBF)
    case 0xED: (length, second) = (3, 0x80...0x9F)
    case 0xE1...0xEF: (length, second) = (3, 0x80...0xBF)
    case 0xF0: (length, second) = (4, 0x90...0xBF)
    case 0xF1...0xF3: (length, second) = (4, 0x80...0xBF)
    case 0xF4: (length, second) = (4, 0x80...0x8F)
    default: return .fault(.invalidUTF8)
    }
    for offset in 1..<length {
      if at + offset >= end { return .needsBytes }
      let byte = base[at + offset]
      guard offset == 1 ? second ~= byte : byte & 0xC0 == 0x80 else { return .fault(.invalidUTF8) }
    }
    return .forward(length)
  }

  private static func escape(_ base: UnsafePointer<UInt8>, _ at: Int, _ end: Int) -> Step {
    if at + 1 >= end { return .needsBytes }
    switch base[at + 1] {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      return .forward(2)
    case UInt8(ascii: "u"):
      return unicodeEscape(base, at, end)
    default:
      return .fault(.invalidEscape)
    }
  }

  /// `\u` with four digits; the first half of a surrogate pair together with the second.
  private static func unicodeEscape(_ base: UnsafePointer<UInt8>, _ at: Int, _ end: Int) -> Step {
    var unit = 0
    for offset in 2..<6 {
      if at + offset >= end { return .needsBytes }
      guard let digit = hexadecimal(base[at + offset]) else { return .fault(.invalidEscape) }
      unit = unit << 4 | digit
      if offset == 3, unit >= 0xDC, unit <= 0xDF { return .fault(.loneSurrogate) }
    }
    guard unit & 0xFC00 == 0xD800 else { return .forward(6) }
    for offset in 6..<12 {
      if at + offset >= end { return .needsBytes }
      let byte = base[at + offset]
      let fits =
        switch offset {
        case 6: byte == UInt8(ascii: "\\")
        case 7: byte == UInt8(ascii: "u")
        case 8: byte | 0x20 == UInt8(ascii: "d")
        case 9: hexadecimal(byte).map { $0 >= 0xC } ?? false
        default: hexadecimal(byte) != nil
        }
      guard fits else { return .fault(.loneSurrogate) }
    }
    return .forward(12)
  }

  private static func hexadecimal(_ byte: UInt8) -> Int? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte & 15)
    case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"): Int(byte & 7) + 9
    default: nil
    }
  }

  @inline(always)
  static func endOfDigits(_ base: UnsafePointer<UInt8>, _ at: Int) -> Int {
    var at = at
    while base[at] &- UInt8(ascii: "0") < 10 { at &+= 1 }
    return at
  }

  /// Scans the number: returns the first byte after it, and the phase reached.
  @inline(never)
  static func number(_ base: UnsafePointer<UInt8>, _ at: Int, _ phase: NumberPhase) -> (at: Int, phase: NumberPhase) {
    var at = at
    var phase = phase
    while true {
      if phase.takesDigits { at = endOfDigits(base, at) }
      guard let next = numberPhase(phase, after: base[at]) else { return (at, phase) }
      phase = next
      at &+= 1
    }
  }

  /// The phase after one more byte; `nil` if the byte cannot follow.
  @inline(always)
  private static func numberPhase(_ phase: NumberPhase, after byte: UInt8) -> NumberPhase? {
    let isDigit = byte &- UInt8(ascii: "0") < 10
    switch phase {
    case .start where byte == UInt8(ascii: "-"): return .sign
    case .start, .sign: return isDigit ? (byte == UInt8(ascii: "0") ? .zero : .integer) : nil
    case .zero, .integer:
      if byte == UInt8(ascii: ".") { return .point }
      return byte | 0x20 == UInt8(ascii: "e") ? .exponent : nil
    case .point: return isDigit ? .fraction : nil
    case .fraction: return byte | 0x20 == UInt8(ascii: "e") ? .exponent : nil
    case .exponent where byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-"): return .exponentSign
    case .exponent, .exponentSign: return isDigit ? .exponentDigits : nil
    case .exponentDigits: return nil
    }
  }
}
