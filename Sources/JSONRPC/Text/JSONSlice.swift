// SPDX-License-Identifier: Apache-2.0

/// One JSON value inside scanned text. Cheap to copy, but it keeps the whole text of its frame in memory: store
/// `compactText.detached()` for longer than the frame.
///
/// The upper levels of a frame are found by the notes of the scan, deeper ones by walking the text on demand. If a name
/// occurs twice below the checked levels, the first counts.
package struct JSONSlice: Sendable {
  let storage: FrameStorage
  let start: Int32
  let end: Int32
  /// The index of this value on the tape, or −1.
  let entry: Int32

  package let kind: JSONKind

  init(storage: FrameStorage, entry: Int) {
    let noted = storage.tape[entry]
    self.storage = storage
    self.start = noted.start
    self.end = noted.end
    self.entry = Int32(entry)
    self.kind = noted.kind
  }

  init(storage: FrameStorage, range: Range<Int>, kind: JSONKind) {
    self.storage = storage
    self.start = Int32(range.lowerBound)
    self.end = Int32(range.upperBound)
    self.entry = -1
    self.kind = kind
  }

  var range: Range<Int> { Int(start)..<Int(end) }

  package var text: ArraySlice<UInt8> { storage.bytes[range] }

  /// The bytes without insignificant white space; copied only if there is some.
  package var compactText: JSONText {
    mayHoldWhiteSpace
      ? JSONText(validated: JSONWalk.compact(storage.bytes, in: range).text) : JSONText(validated: text)
  }

  /// The nesting of the value: 0 for a scalar, 1 for `{}`.
  package var depth: Int {
    entry >= 0 ? Int(storage.tape[Int(entry)].depth) : JSONWalk.depth(of: storage.bytes, in: range)
  }

  var mayHoldWhiteSpace: Bool { kind.isContainer && storage.tape[max(0, Int(entry))].flags.contains(.whiteSpace) }
}

// Scalars; each is `nil` if the value is of another kind.
extension JSONSlice {
  /// The string with its escapes resolved.
  package func string() -> String? {
    kind == .string ? JSONEscape.decode(storage.bytes[Int(start) + 1..<Int(end) - 1]) : nil
  }

  /// The same, without a new string if it is the `expected` one.
  package func string(expecting expected: String) -> String? {
    guard kind == .string else { return nil }
    let body = SliceName(range: Int(start) + 1..<Int(end) - 1, escaped: false)
    // A backslash in the text would begin an escape.
    guard body.isEqual(to: expected, in: storage.bytes), !storage.bytes[body.range].contains(UInt8(ascii: "\\")) else {
      return string()
    }
    return expected
  }

  /// `nil` also if it exceeds 64 bits.
  package func integer() -> Int64? {
    guard kind == .integer else { return nil }
    var index = Int(start)
    let negative = storage.bytes[index] == UInt8(ascii: "-")
    if negative { index += 1 }
    var value: Int64 = 0
    while index < Int(end) {
      let digit = Int64(storage.bytes[index] & 15)
      let (shifted, overflows) = value.multipliedReportingOverflow(by: 10)
      let (sum, overflowsToo) =
        negative
        ? shifted.subtractingReportingOverflow(digit) : shifted.addingReportingOverflow(digit)
      if overflows || overflowsToo { return nil }
      value = sum
      index += 1
    }
    return value
  }

  /// Infinite if it exceeds the range.
  package func real() -> Double? {
    kind == .integer || kind == .real ? Double(String(decoding: text, as: UTF8.self)) : nil
  }

  package func bool() -> Bool? { kind == .bool ? storage.bytes[Int(start)] == UInt8(ascii: "t") : nil }

  package var isNull: Bool { kind == .null }

  /// The value as a tree, made by jansson. Fails on what jansson cannot hold: numbers beyond 64 bits or a double, a NUL
  /// in a member name, a name given twice.
  package func value() throws(JSONError) -> JSONValue { try JSONCodec.parse(scanned: self) }
}

extension JSONSlice {
  package var elements: [JSONSlice]? {
    guard kind == .array else { return nil }
    var elements: [JSONSlice] = []
    forEachChild { _, element in
      elements.append(element)
      return true
    }
    return elements
  }

  /// `nil` unless this is an array of strings.
  package var strings: [String]? {
    guard kind == .array else { return nil }
    var strings: [String] = []
    var areAll = true
    forEachChild { _, element in
      guard let string = element.string() else {
        areAll = false
        return false
      }
      strings.append(string)
      return true
    }
    return areAll ? strings : nil
  }

  /// In the order of the text; `nil` if this is not an object.
  package var members: [(name: String, value: JSONSlice)]? {
    guard kind == .object else { return nil }
    var members: [(name: String, value: JSONSlice)] = []
    forEachChild { name, value in
      members.append((name.string(in: storage.bytes), value))
      return true
    }
    return members
  }

  /// The member of that name, if this is an object with one.
  @_disfavoredOverload
  package subscript(name: String) -> JSONSlice? {
    var name = name
    return name.withUTF8 { member($0) }
  }

  /// The same, for a name in the source code.
  package subscript(name: StaticString) -> JSONSlice? { name.withUTF8Buffer { member($0) } }

  private func member(_ name: UnsafeBufferPointer<UInt8>) -> JSONSlice? {
    guard kind == .object else { return nil }
    if entry >= 0, storage.tape[Int(entry)].flags.contains(.children) { return notedMember(name) }
    var found: JSONSlice?
    forEachChild { candidate, value in
      guard candidate.isEqual(to: name, in: storage.bytes) else { return true }
      found = value
      return false
    }
    return found
  }

  private func notedMember(_ name: UnsafeBufferPointer<UInt8>) -> JSONSlice? {
    let index = storage.tape.withUnsafeBufferPointer { tape in
      var index = Int(entry) + 1
      let end = Int(tape[Int(entry)].next)
      while index < end, !SliceName(tape[index]).isEqual(to: name, in: storage.bytes) { index = Int(tape[index].next) }
      return index < end ? index : nil
    }
    return index.map { JSONSlice(storage: storage, entry: $0) }
  }

  /// The number of members; `nil` if the scan has not noted them.
  package var notedMemberCount: Int? {
    guard kind == .object, entry >= 0, storage.tape[Int(entry)].flags.contains(.children) else { return nil }
    return storage.tape.withUnsafeBufferPointer { tape in
      var (count, index) = (0, Int(entry) + 1)
      let end = Int(tape[Int(entry)].next)
      while index < end { (count, index) = (count + 1, Int(tape[index].next)) }
      return count
    }
  }

  /// The first name that occurs twice; `nil` if there is none.
  package var duplicateName: String? {
    guard kind == .object, mayHaveRepeatedNames else { return nil }
    var names: [SliceName] = []
    forEachChild { name, _ in
      names.append(name)
      return true
    }
    return SliceName.firstDuplicate(of: names, in: storage.bytes)?.string(in: storage.bytes)
  }

  /// False only when the scan knows that the names in this object differ.
  private var mayHaveRepeatedNames: Bool {
    guard entry >= 0 else { return true }
    let flags = storage.tape[Int(entry)].flags
    return !flags.contains(.children) || flags.contains(.repeatedNames)
  }

  /// Calls `body` with each member or element in the order of the text until it returns false.
  func forEachChild(_ body: (SliceName, JSONSlice) -> Bool) {
    guard kind.isContainer else { return }
    if entry >= 0, storage.tape[Int(entry)].flags.contains(.children) {
      var index = Int(entry) + 1
      let end = Int(storage.tape[Int(entry)].next)
      while index < end {
        let noted = storage.tape[index]
        guard body(SliceName(noted), JSONSlice(storage: storage, entry: index)) else { return }
        index = Int(noted.next)
      }
    } else {
      walkChildren(body)
    }
  }

  private func walkChildren(_ body: (SliceName, JSONSlice) -> Bool) {
    var walk = JSONWalk(bytes: storage.bytes, index: Int(start) + 1)
    walk.skipWhiteSpace()
    while walk.index < Int(end) - 1 {
      var name = SliceName.none
      if kind == .object {
        let (range, escaped) = walk.skipString()
        name = SliceName(range: range, escaped: escaped)
        walk.skipWhiteSpace()
        walk.index += 1
        walk.skipWhiteSpace()
      }
      let valueStart = walk.index
      let valueKind = walk.skipValue()
      let value = JSONSlice(storage: storage, range: valueStart..<walk.index, kind: valueKind)
      guard body(name, value) else { return }
      walk.skipWhiteSpace()
      walk.index += 1
      walk.skipWhiteSpace()
    }
  }
}

extension JSONSlice: CustomStringConvertible {
  package var description: String { String(decoding: text, as: UTF8.self) }
}

package enum JSONKind: UInt8, Sendable {
  case object, array, string
  /// A number without `.`, `e` and `E`.
  case integer
  case real
  case bool, null

  package var isContainer: Bool { self == .object || self == .array }
}

/// Why text is not acceptable JSON.
package struct JSONError: Error, Equatable, Sendable {
  /// One sentence without a full stop, for people.
  package let message: String

  /// Offset in bytes, from the start of the text, of the first invalid byte.
  package let position: Int

  package init(message: String, position: Int) { (self.message, self.position) = (message, position) }
}
