// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A value with one JSON form, which is said once: it reads, writes and describes itself.
package protocol WireValue: JSONWritable, Sendable {
  static var schema: Schema { get }

  /// What a value is, as it follows "is not": "a string".
  static var expected: String { get }

  /// Several of them, as they follow "an array of".
  static var plural: String { get }

  /// Reads a value of any sender; unknown members of objects are ignored, so that later versions can say more.
  init(wire slice: JSONSlice) throws(Misfit)

  /// The schema of the values within bounds, and what such a value is.
  static func schema(within bounds: Bounds) -> Schema
  static func expected(within bounds: Bounds) -> String

  func fits(_ bounds: Bounds) -> Bool
}

extension WireValue {
  package static var plural: String { "values" }
  package static func schema(within _: Bounds) -> Schema { schema }
  package static func expected(within _: Bounds) -> String { expected }
  package func fits(_: Bounds) -> Bool { true }

  /// Nil if the value has another form.
  package init?(_ slice: JSONSlice) {
    try? self.init(wire: slice)
  }
}

/// A value does not have the form that the protocol gives it.
package struct Misfit: Error, Hashable {
  /// Where, as a JSON pointer without its first slash; empty for the value itself.
  package var place: String
  /// What is expected there; nil if the member is missing.
  package var expected: String?

  package init(_ expected: String?, at place: String = "") {
    self.expected = expected
    self.place = place
  }

  /// The same fault, told from the object or array that the value is in.
  func inside(_ name: some StringProtocol) -> Misfit {
    Misfit(expected, at: place.isEmpty ? String(name) : "\(name)/\(place)")
  }
}

/// What a member allows besides its type. A plain enumeration: the reader asks it for every member.
package enum Bounds: Sendable {
  case none
  case from(Int64)
  case range(ClosedRange<Int64>)
  /// Bytes of UTF-8.
  case bytes(ClosedRange<Int>)
  case handle, uuid, sessionToken
  /// Positive; 0 is read as well, which the broker sends of a process that it does not know.
  case processID
  /// The text of such a value, which is described and not looked into.
  case text(of: any WireValue.Type)

  /// Neither empty nor long.
  package static let name = Bounds.bytes(1...1_024)
  /// Generations are counted from 1.
  package static let generation = Bounds.from(1)
}

// MARK: Scalars

extension String: WireValue {
  package static let schema = Schema.string
  package static let expected = "a string"
  package static let plural = "strings"

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard let text = slice.string() else { throw Misfit(Self.expected) }
    self = text
  }

  package static func schema(within bounds: Bounds) -> Schema {
    switch bounds {
    case .bytes(let length): .text(pattern: nil, length: length)
    case .uuid: .uuid
    case .sessionToken: .sessionToken
    case .text(let type): type.schema
    case .none, .from, .range, .handle, .processID: schema
    }
  }

  package static func expected(within bounds: Bounds) -> String {
    if case .bytes(let length) = bounds { "a string of \(length.lowerBound) to \(length.upperBound) bytes" } else { expected }
  }

  package func fits(_ bounds: Bounds) -> Bool {
    if case .bytes(let length) = bounds { length.contains(utf8.count) } else { true }
  }
}

extension Int64: WireValue {
  package static let schema = Schema.integer(min: nil, max: nil)
  package static let expected = "an integer"
  package static let plural = "integers"
  private static let handles: ClosedRange<Int64> = 1...(1 << 53 - 1)

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard let value = slice.integer() else { throw Misfit(Self.expected) }
    self = value
  }

  package static func schema(within bounds: Bounds) -> Schema {
    switch bounds {
    case .from(let least): .integer(least...)
    case .range(let range): .integer(range)
    case .handle: .handle
    case .processID: .integer(1...)
    case .none, .bytes, .uuid, .sessionToken, .text: schema
    }
  }

  package static func expected(within bounds: Bounds) -> String {
    switch bounds {
    case .from(let least): "an integer of at least \(least)"
    case .range(let range): "an integer from \(range.lowerBound) to \(range.upperBound)"
    case .handle: "a handle (positive integer)"
    case .none, .bytes, .uuid, .sessionToken, .processID, .text: expected
    }
  }

  package func fits(_ bounds: Bounds) -> Bool {
    switch bounds {
    case .from(let least): self >= least
    case .range(let range): range.contains(self)
    case .handle: Self.handles.contains(self)
    case .none, .bytes, .uuid, .sessionToken, .processID, .text: true
    }
  }
}

/// How many or how long.
extension Int: WireValue {
  package static let schema = Schema.count
  package static let expected = "an integer of at least 0"
  package static let plural = "integers"

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard let value = slice.integer().flatMap({ Int(exactly: $0) }), value >= 0 else { throw Misfit(Self.expected) }
    self = value
  }
}

extension Bool: WireValue {
  package static let schema = Schema.boolean
  package static let expected = "true or false"

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard let value = slice.bool() else { throw Misfit(Self.expected) }
    self = value
  }
}

// MARK: Words

/// One of some words; none is added later.
package protocol WireWord: WireValue, RawRepresentable<String>, CaseIterable {}

/// One of some words, of which there may be more one day.
package protocol OpenWireWord: WireWord {}

extension WireWord {
  package static var schema: Schema { .words(Self.self) }
  package static var expected: String { "one of \(allCases.map(\.rawValue).joined(separator: ", "))" }

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard let word = slice.string().flatMap({ Self(rawValue: $0) }) else { throw Misfit(Self.expected) }
    self = word
  }
}

extension OpenWireWord {
  package static var schema: Schema { .openWords(Self.self) }
}

// MARK: Collections

extension Array: WireValue where Element: WireValue {
  package static var schema: Schema { .list(Element.schema) }
  package static var expected: String { "an array of \(Element.plural)" }

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard let slices = slice.elements else { throw Misfit(Self.expected) }
    self = []
    reserveCapacity(slices.count)
    for slice in slices {
      do throws(Misfit) {
        append(try Element(wire: slice))
      } catch {
        throw error.inside(String(count))
      }
    }
  }

  /// Bounds are those of each element.
  package static func schema(within bounds: Bounds) -> Schema { .list(Element.schema(within: bounds)) }

  package func fits(_ bounds: Bounds) -> Bool {
    if case .none = bounds { true } else { allSatisfy { $0.fits(bounds) } }
  }
}

extension Optional: WireValue where Wrapped: WireValue {
  package static var schema: Schema { .nullable(Wrapped.schema) }
  package static var expected: String { Wrapped.expected }
  package static var plural: String { Wrapped.plural }

  package init(wire slice: JSONSlice) throws(Misfit) {
    self = slice.isNull ? nil : try Wrapped(wire: slice)
  }
}

extension Dictionary: JSONWritable where Key == String, Value: JSONWritable {
  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      for (name, value) in sorted(by: { $0.key < $1.key }) {
        writer.key(name)
        value.writeJSON(to: &writer)
      }
    }
  }
}

extension Dictionary: WireValue where Key == String, Value: WireValue {
  package static var schema: Schema { .map(Value.schema) }
  package static var expected: String { "an object of \(Value.plural)" }

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard let members = slice.members else { throw Misfit(Self.expected) }
    self = [:]
    for (name, slice) in members {
      do throws(Misfit) {
        self[name] = try Value(wire: slice)
      } catch {
        throw error.inside(JSONPointer.escaped(name))
      }
    }
  }
}

// MARK: The protocol's own

extension IdentifierPath: WireValue {
  package static let schema = Schema.path
  package static let expected = "a path (array of strings)"
  package static let plural = "paths"

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard case .path(let path) = ObjectReference(slice) else { throw Misfit(Self.expected) }
    self = path
  }
}

extension ObjectReference: WireValue {
  package static let schema = Schema.reference
  package static let expected = "a handle (positive integer) or a path (array of strings)"
  package static let plural = "handles and paths"

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard let reference = ObjectReference(slice) else { throw Misfit(Self.expected) }
    self = reference
  }
}

extension ApplicationName: WireValue {
  package static let schema = Schema.applicationName
  package static let expected = "an application name"
  package static let plural = "application names"

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard let name = slice.string().flatMap({ ApplicationName($0) }) else { throw Misfit(Self.expected) }
    self = name
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.string(description)
  }
}

extension Timestamp: WireValue {
  package static let schema = Schema.timestamp
  package static let expected = "a time such as 2026-02-28T09:05:00.042Z"
  package static let plural = "times"

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard let time = slice.string().flatMap({ Timestamp($0) }) else { throw Misfit(Self.expected) }
    self = time
  }
}

/// Any value, as its text.
extension JSONText: WireValue {
  package static let schema = Schema.any
  package static let expected = "a value"

  package init(wire slice: JSONSlice) {
    self = slice.compactText
  }

  package static func schema(within bounds: Bounds) -> Schema {
    if case .text(let type) = bounds { type.schema } else { schema }
  }

  package static func expected(within bounds: Bounds) -> String {
    if case .text(let type) = bounds { type.expected } else { expected }
  }

  package func fits(_ bounds: Bounds) -> Bool {
    if case .text = bounds { bytes.first != UInt8(ascii: "n") } else { true }
  }
}
