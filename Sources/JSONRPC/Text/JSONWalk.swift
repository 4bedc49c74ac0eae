// SPDX-License-Identifier: Apache-2.0

/// Steps over text that a scan has validated; checks nothing again.
struct JSONWalk {
  let bytes: [UInt8]
  var index: Int

  static func isWhiteSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 }

  mutating func skipWhiteSpace() { while index < bytes.count, Self.isWhiteSpace(bytes[index]) { index += 1 } }

  /// Steps over the string that begins here; returns the offsets between its quotes and whether it has escapes.
  mutating func skipString() -> (body: Range<Int>, escaped: Bool) {
    let (quote, backslash) = (UInt8(ascii: "\""), UInt8(ascii: "\\"))
    let start = index + 1
    var escaped = false
    // By a pointer: in an unoptimised build each access to the array is a call, and strings can be long.
    index = bytes.withUnsafeBufferPointer { text in
      guard let byte = text.baseAddress else { return start + 1 }
      let count = text.count
      var index = start
      while index < count, byte[index] != quote {
        if byte[index] == backslash {
          escaped = true
          index += 1
        }
        index += 1
      }
      return index + 1
    }
    return (start..<index - 1, escaped)
  }

  /// Steps over the value that begins here and returns its kind.
  mutating func skipValue() -> JSONKind {
    switch bytes[index] {
    case UInt8(ascii: "\""):
      _ = skipString()
      return .string
    case UInt8(ascii: "{"):
      skipContainer()
      return .object
    case UInt8(ascii: "["):
      skipContainer()
      return .array
    case UInt8(ascii: "t"), UInt8(ascii: "n"):
      defer { index += 4 }
      return bytes[index] == UInt8(ascii: "t") ? .bool : .null
    case UInt8(ascii: "f"):
      index += 5
      return .bool
    default:
      return skipNumber()
    }
  }

  private mutating func skipNumber() -> JSONKind {
    var kind = JSONKind.integer
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"): break
      case UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"): kind = .real
      default: return kind
      }
      index += 1
    }
    return kind
  }

  private mutating func skipContainer() {
    var nesting = 0
    repeat {
      switch bytes[index] {
      case UInt8(ascii: "\""):
        _ = skipString()
        continue
      case UInt8(ascii: "{"), UInt8(ascii: "["): nesting += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"): nesting -= 1
      default: break
      }
      index += 1
    } while nesting > 0 && index < bytes.count
  }
}

extension JSONWalk {
  /// The nesting of the value in `range`: 0 for a scalar, 1 for `{}`.
  static func depth(of bytes: [UInt8], in range: Range<Int>) -> Int {
    var walk = JSONWalk(bytes: bytes, index: range.lowerBound)
    var nesting = 0
    var deepest = 0
    while walk.index < range.upperBound {
      switch bytes[walk.index] {
      case UInt8(ascii: "\""):
        _ = walk.skipString()
        continue
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        nesting += 1
        deepest = max(deepest, nesting)
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        nesting -= 1
      default: break
      }
      walk.index += 1
    }
    return deepest
  }

  /// The text in `range` without insignificant white space, and the new positions of the ascending offsets `marks`.
  static func compact(_ bytes: [UInt8], in range: Range<Int>, marks: [Int] = []) -> (text: [UInt8], marks: [Int]) {
    var walk = JSONWalk(bytes: bytes, index: range.lowerBound)
    var text: [UInt8] = []
    text.reserveCapacity(range.count)
    var moved: [Int] = []
    moved.reserveCapacity(marks.count)
    while walk.index < range.upperBound {
      while moved.count < marks.count, marks[moved.count] <= walk.index { moved.append(text.count) }
      let start = walk.index
      if bytes[start] == UInt8(ascii: "\"") {
        _ = walk.skipString()
        text.append(contentsOf: bytes[start..<walk.index])
      } else {
        if !isWhiteSpace(bytes[start]) { text.append(bytes[start]) }
        walk.index += 1
      }
    }
    while moved.count < marks.count { moved.append(text.count) }
    return (text, moved)
  }
}
