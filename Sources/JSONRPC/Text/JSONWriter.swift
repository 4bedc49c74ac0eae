// SPDX-License-Identifier: Apache-2.0

/// Writes compact JSON on one line, with commas. The caller pairs begin and end and writes a key before each member.
package struct JSONWriter: Sendable {
  package private(set) var bytes: [UInt8]
  private var needsComma = false

  package init() { bytes = [] }

  package init(reserving capacity: Int) {
    bytes = []
    bytes.reserveCapacity(capacity)
  }

  /// Continues at the end of `bytes`, which are not examined.
  package init(appendingTo bytes: consuming [UInt8]) { self.bytes = bytes }

  /// Writes at the end of `bytes` without copying them.
  package static func append(to bytes: inout [UInt8], _ body: (inout JSONWriter) -> Void) {
    var writer = JSONWriter()
    swap(&writer.bytes, &bytes)
    body(&writer)
    swap(&writer.bytes, &bytes)
  }

  package mutating func beginObject() { begin(UInt8(ascii: "{")) }
  package mutating func endObject() { end(UInt8(ascii: "}")) }
  package mutating func beginArray() { begin(UInt8(ascii: "[")) }
  package mutating func endArray() { end(UInt8(ascii: "]")) }

  /// Writes a member name that needs no escaping.
  package mutating func key(_ name: StaticString) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    name.withUTF8Buffer { bytes.append(contentsOf: $0) }
    bytes.append(UInt8(ascii: "\""))
    bytes.append(UInt8(ascii: ":"))
    needsComma = false
  }

  // A literal must select the function above, which examines no byte of it.
  @_disfavoredOverload
  package mutating func key(_ name: String) {
    separate()
    quote(name)
    bytes.append(UInt8(ascii: ":"))
    needsComma = false
  }

  package mutating func string(_ value: String) {
    separate()
    quote(value)
    needsComma = true
  }

  /// Nearly all integers have this type; operations of generic ones are looked up at run time.
  package mutating func integer(_ value: Int64) {
    separate()
    decimal(value)
    needsComma = true
  }

  package mutating func integer(_ value: some FixedWidthInteger) {
    if let small = Int64(exactly: value) { return integer(small) }
    separate()
    bytes.append(contentsOf: String(value).utf8)
    needsComma = true
  }

  /// Writes the shortest text that reads back as the same double; `null` when it is not finite.
  package mutating func real(_ value: Double) {
    separate()
    bytes.append(contentsOf: (value.isFinite ? value.description : "null").utf8)
    needsComma = true
  }

  package mutating func bool(_ value: Bool) { word(value ? "true" : "false") }
  package mutating func null() { word("null") }

  /// Writes a part of a message unchanged; a name or an opening bracket ends it.
  mutating func verbatim(_ part: StaticString) {
    part.withUTF8Buffer { bytes.append(contentsOf: $0) }
    needsComma = false
  }

  package mutating func text(_ value: JSONText) { text(value.bytes) }

  /// Writes bytes that are exactly one valid, compact JSON value.
  package mutating func text(_ value: ArraySlice<UInt8>) {
    separate()
    bytes.append(contentsOf: value)
    needsComma = true
  }

  /// The same; `change` may then alter bytes of the value in place, which begins at the given index.
  package mutating func text(_ value: [UInt8], _ change: (inout [UInt8], Int) -> Void) {
    text(value[...])
    change(&bytes, bytes.count - value.count)
  }

  package mutating func base64(_ value: [UInt8]) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    Base64.append(value, to: &bytes)
    bytes.append(UInt8(ascii: "\""))
    needsComma = true
  }

  package mutating func value(_ value: JSONValue) {
    switch value {
    case .null: null()
    case .bool(let value): bool(value)
    case .integer(let value): integer(value)
    case .real(let value): real(value)
    case .string(let value): string(value)
    case .text(let value): text(value)
    case .array(let elements):
      beginArray()
      for element in elements { self.value(element) }
      endArray()
    case .object(let object):
      beginObject()
      for member in object.members {
        key(member.name)
        self.value(member.value)
      }
      endObject()
    }
  }

  private mutating func separate() { if needsComma { bytes.append(UInt8(ascii: ",")) } }

  private mutating func begin(_ bracket: UInt8) {
    separate()
    bytes.append(bracket)
    needsComma = false
  }

  private mutating func end(_ bracket: UInt8) {
    bytes.append(bracket)
    needsComma = true
  }

  private mutating func word(_ word: StaticString) {
    separate()
    word.withUTF8Buffer { bytes.append(contentsOf: $0) }
    needsComma = true
  }

  private mutating func decimal(_ value: Int64) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
      var first = digits.count
      var rest = value.magnitude
      repeat {
        first -= 1
        digits[first] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      } while rest > 0
      if value < 0 {
        first -= 1
        digits[first] = UInt8(ascii: "-")
      }
      bytes.append(contentsOf: UnsafeBufferPointer(rebasing: digits[first...]))
    }
  }

  private mutating func quote(_ value: String) {
    bytes.append(UInt8(ascii: "\""))
    var value = value
    value.withUTF8 { JSONEscape.append($0, to: &bytes) }
    bytes.append(UInt8(ascii: "\""))
  }
}
