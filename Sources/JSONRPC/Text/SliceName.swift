// SPDX-License-Identifier: Apache-2.0

/// The place of a member's name in scanned text. Names are compared with their escapes resolved.
struct SliceName: Sendable {
  /// The offsets between the quotes.
  let range: Range<Int>
  let escaped: Bool

  /// The name of an array's element.
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

  @inline(__always)
  func isEqual(to name: UnsafeBufferPointer<UInt8>, in bytes: [UInt8]) -> Bool {
    if escaped { return JSONEscape.decodeBytes(bytes[range]).elementsEqual(name) }
    return range.count == name.count
      && bytes.withUnsafeBufferPointer { name.isEqual(to: UnsafeBufferPointer(rebasing: $0[range])) }
  }

  private func resolved(in bytes: [UInt8]) -> ArraySlice<UInt8> {
    escaped ? JSONEscape.decodeBytes(bytes[range])[...] : bytes[range]
  }

  /// The first name that repeats an earlier one. Fast for any names.
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

extension UnsafeBufferPointer<UInt8> {
  /// Whether the bytes are equal. Compares words, because every message has names; `elementsEqual` takes several steps
  /// for each byte.
  package func isEqual(to other: Self) -> Bool {
    guard count == other.count else { return false }
    let (left, right) = (UnsafeRawBufferPointer(self), UnsafeRawBufferPointer(other))
    var at = 0
    while at &+ 8 <= count {
      let word = left.loadUnaligned(fromByteOffset: at, as: UInt64.self)
      guard word == right.loadUnaligned(fromByteOffset: at, as: UInt64.self) else { return false }
      at &+= 8
    }
    while at < count, left[at] == right[at] { at &+= 1 }
    return at == count
  }
}
