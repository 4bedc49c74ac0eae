// SPDX-License-Identifier: Apache-2.0

/// The place of a member's name in scanned text. Names are compared with their escapes resolved.
struct SliceName: Sendable {
  /// The offsets between the quotes.
  let range: Range<Int>
  let escaped: Bool

  /// Stands for the name of an array's element.
  static let none = SliceName(range: 0..<0, escaped: false)

  init(range: Range<Int>, escaped: Bool) { (self.range, self.escaped) = (range, escaped) }

  init(_ entry: TapeEntry) {
    range = Int(entry.nameStart)..<Int(entry.nameEnd)
    escaped = entry.flags.contains(.escapedName)
  }

  func string(in bytes: [UInt8]) -> String {
    escaped ? JSONEscape.decode(bytes[range]) : String(decoding: bytes[range], as: UTF8.self)
  }

  func isEqual(to name: String, in bytes: [UInt8]) -> Bool {
    var name = name
    return name.withUTF8 { isEqual(to: $0, in: bytes) }
  }

  /// On plain memory, because a string's own view takes several steps for each byte.
  @inline(__always)
  func isEqual(to name: UnsafeBufferPointer<UInt8>, in bytes: [UInt8]) -> Bool {
    if escaped { return JSONEscape.decodeBytes(bytes[range]).elementsEqual(name) }
    guard range.count == name.count else { return false }
    return bytes.withUnsafeBufferPointer { bytes in
      for index in 0..<name.count where name[index] != bytes[range.lowerBound + index] { return false }
      return true
    }
  }

  private func resolved(in bytes: [UInt8]) -> ArraySlice<UInt8> {
    escaped ? JSONEscape.decodeBytes(bytes[range])[...] : bytes[range]
  }

  /// The first name that repeats an earlier one. No choice of names makes it slow.
  static func firstDuplicate(of names: [SliceName], in bytes: [UInt8]) -> SliceName? {
    guard names.count > 1 else { return nil }
    let sorted = names.map { (name: $0, text: $0.resolved(in: bytes)) }
      .sorted { left, right in
        left.text.lexicographicallyPrecedes(right.text)
          || left.text.elementsEqual(right.text) && left.name.range.lowerBound < right.name.range.lowerBound
      }
    var first: SliceName?
    for index in 1..<sorted.count where sorted[index].text.elementsEqual(sorted[index - 1].text) {
      let name = sorted[index].name
      if first.map({ name.range.lowerBound < $0.range.lowerBound }) ?? true { first = name }
    }
    return first
  }
}
