// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A value with one JSON form, which is said once: it reads, writes and describes itself.
package protocol WireValue: JSONWritable, Sendable {
  static var schema: Schema { get }

  /// A description of a valid value that completes "is not": "a string".
  static var expected: String { get }

  /// Several of them, as they follow "an array of".
  static var plural: String { get }

  /// Reads a value of any sender; unknown members of objects are ignored, so that later versions can say more.
  init(wire slice: JSONSlice) throws(Misfit)

  /// The schema of the values within bounds, and what such a value is.
  static func schema(within bounds: Bounds) -> Schema
  static func expected(within bounds: Bounds) -> String

  func fits(_ bounds: Bounds) -> Bool

  /// Whether null is one of its values, even if it may be absent.
  static var takesNull: Bool { get }

  /// Takes out what a confined client is not told; by default there is nothing.
  mutating func conceal(within bounds: Bounds)
}

extension WireValue {
  package static var plural: String { "values" }
  package static func schema(within _: Bounds) -> Schema { schema }
  package static func expected(within _: Bounds) -> String { expected }
  package func fits(_: Bounds) -> Bool { true }
  package static var takesNull: Bool { false }
  package mutating func conceal(within _: Bounds) {}

  /// `nil` if the value has another form.
  package init?(_ slice: JSONSlice) { try? self.init(wire: slice) }

  init(wire slice: JSONSlice, within bounds: Bounds) throws(Misfit) {
    try self.init(wire: slice)
    guard fits(bounds) else { throw Misfit(Self.expected(within: bounds)) }
  }
}

/// A value does not have the form that the protocol gives it.
package struct Misfit: Error, Hashable {
  package enum Fault: Hashable, Sendable {
    case missing
    /// The value is not of the expected form.
    case not(String)
    /// It does not go with another member; the hint says what would.
    case unsuited(String, hint: String)
  }

  /// The place, as a JSON pointer without its first slash; empty for the value itself.
  package var place: String
  package var fault: Fault

  package init(_ fault: Fault, at place: String) { (self.fault, self.place) = (fault, place) }

  package init(_ expected: String, at place: String = "") { self.init(.not(expected), at: place) }

  /// −32602 for it, in the parameters of a call.
  ///
  /// - Parameter value: what is there, as the message tells it.
  package func invalidParameter(at pointer: String, of value: String? = nil) -> ErrorObject {
    switch fault {
    case .missing: .invalidParameter(pointer, "\(place) is missing", hint: "Give \(place).")
    case .not(let expected):
      .invalidParameter(
        pointer,
        "\(place) is not \(expected)\(value.map { ": \($0)" } ?? "")",
        hint: "Give \(expected) as \(place)."
      )
    case .unsuited(let message, let hint): .invalidParameter(pointer, message, hint: hint)
    }
  }

  /// The same fault, told from the object or array that the value is in.
  func inside(_ name: some StringProtocol) -> Misfit {
    Misfit(fault, at: place.isEmpty ? String(name) : "\(name)/\(place)")
  }
}

/// The values a member allows besides its type. A plain enumeration, because the reader checks it for every member.
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
  /// An identifier by R1; the user of the value checks it.
  case identifier
  /// Of a process; without control characters.
  case role
  /// The absolute path of a file.
  case file
  /// A name or text that may say what is outside of the application: units, files of the broker.
  case hostText
  case some
  /// Parameters of whichever method.
  case parameters
  /// As `ArchiveDocument` has it.
  case document

  package static let state = Bounds.text(of: EncodedState.self)
  package static let coder = Bounds.text(of: ReservedKeys.self)
  package static let elements = Bounds.text(of: [RestorableElement].self)
  /// Neither empty nor long.
  package static let name = Bounds.bytes(1...nameBytesMax)
  package static let nameBytesMax = 1_024
  /// Generations are counted from 1.
  package static let generation = Bounds.from(1)
  /// How many or how long.
  package static let count = Bounds.from(0)
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

  package func writeJSON(to writer: inout JSONWriter) { writer.string(self) }

  package static func schema(within bounds: Bounds) -> Schema {
    switch bounds {
    case .bytes(let length): .text(pattern: nil, length: length)
    case .uuid: .uuid
    case .sessionToken: .sessionToken
    case .text(let type): type.schema
    case .identifier: .identifier
    case .role: .text(pattern: nil, length: roleBytes)
    case .file: .text(pattern: "^/", length: 2...filePathBytesMax)
    case .none, .from, .range, .handle, .processID, .hostText, .some, .parameters, .document: schema
    }
  }

  package static func expected(within bounds: Bounds) -> String {
    switch bounds {
    case .bytes(let length): "a string of \(length.lowerBound) to \(length.upperBound) bytes"
    case .file: "the absolute path of a file"
    case .role: "a name of 1 to \(roleBytes.upperBound) bytes without control characters"
    case .none, .from, .range, .handle, .uuid, .sessionToken, .processID, .text, .identifier, .hostText, .some,
      .parameters, .document:
      expected
    }
  }

  package func fits(_ bounds: Bounds) -> Bool {
    switch bounds {
    case .bytes(let length): length.contains(utf8.count)
    case .file: isFilePath
    case .role: Self.roleBytes.contains(utf8.count) && !hasControlCharacter
    case .none, .from, .range, .handle, .uuid, .sessionToken, .processID, .text, .identifier, .hostText, .some,
      .parameters, .document:
      true
    }
  }

  private static let roleBytes = 1...255

  /// Those of Unicode are U+0000 to U+001F and U+007F to U+009F.
  package var hasControlCharacter: Bool {
    var former: UInt8 = 0
    return utf8.contains { byte in
      defer { former = byte }
      return byte < 0x20 || byte == 0x7F || former == 0xC2 && byte <= 0x9F
    }
  }

  /// Bytes of a path at most, as Linux has it.
  private static let filePathBytesMax = 4_095

  private var isFilePath: Bool {
    guard utf8.count <= Self.filePathBytesMax else { return false }
    let last = utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).last ?? ""[...].utf8
    return utf8.first == UInt8(ascii: "/") && !utf8.contains(0)
      && !last.isEmpty && !last.elementsEqual(".".utf8) && !last.elementsEqual("..".utf8)
  }
}

extension Int64: WireValue {
  package static let schema = Schema.integer(min: nil, max: nil)
  package static let expected = "an integer"
  package static let plural = "integers"
  private static let handles: ClosedRange<Int64> = 1...(1 << 53 - 1)

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard let value = slice.integer() else {
      throw Misfit(slice.kind == .integer ? "\(Self.expected) from \(Self.min) to \(Self.max)" : Self.expected)
    }
    self = value
  }

  package func writeJSON(to writer: inout JSONWriter) { writer.integer(self) }

  package static func schema(within bounds: Bounds) -> Schema {
    switch bounds {
    case .from(let least): .integer(least...)
    case .range(let range): .integer(range)
    case .handle: .handle
    case .processID: .integer(1...)
    case .none, .bytes, .uuid, .sessionToken, .text, .identifier, .role, .file, .hostText, .some, .parameters,
      .document:
      schema
    }
  }

  package static func expected(within bounds: Bounds) -> String {
    switch bounds {
    case .from(let least): "an integer of at least \(least)"
    case .range(let range): "an integer from \(range.lowerBound) to \(range.upperBound)"
    case .handle: "a handle (positive integer)"
    case .none, .bytes, .uuid, .sessionToken, .processID, .text, .identifier, .role, .file, .hostText, .some,
      .parameters, .document:
      expected
    }
  }

  package func fits(_ bounds: Bounds) -> Bool {
    switch bounds {
    case .from(let least): self >= least
    case .range(let range): range.contains(self)
    case .handle: Self.handles.contains(self)
    case .none, .bytes, .uuid, .sessionToken, .processID, .text, .identifier, .role, .file, .hostText, .some,
      .parameters, .document:
      true
    }
  }
}

/// How many or how long.
extension Int: WireValue {
  package static let schema = Schema.count
  package static let expected = "an integer of at least 0"
  package static let plural = "integers"

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard let value = slice.integer().flatMap({ Int(exactly: $0) }), value >= 0 else {
      throw Misfit(slice.kind == .integer ? "an integer from 0 to \(Self.max)" : Self.expected)
    }
    self = value
  }

  package func writeJSON(to writer: inout JSONWriter) { writer.integer(self) }
}

extension Bool: WireValue {
  package static let schema = Schema.boolean
  package static let expected = "true or false"

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard let value = slice.bool() else { throw Misfit(Self.expected) }
    self = value
  }

  package func writeJSON(to writer: inout JSONWriter) { writer.bool(self) }
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

/// Null, or a value.
extension Optional: WireValue where Wrapped: WireValue {
  package static var schema: Schema { .nullable(Wrapped.schema) }
  package static var expected: String { Wrapped.expected }
  package static var plural: String { Wrapped.plural }

  package init(wire slice: JSONSlice) throws(Misfit) { self = slice.isNull ? nil : try Wrapped(wire: slice) }

  package static func schema(within bounds: Bounds) -> Schema { .nullable(Wrapped.schema(within: bounds)) }
  package static func expected(within bounds: Bounds) -> String { Wrapped.expected(within: bounds) }
  package func fits(_ bounds: Bounds) -> Bool { self?.fits(bounds) ?? true }
}

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

  /// Bounds apply to each element, except `some`.
  package static func schema(within bounds: Bounds) -> Schema {
    if case .some = bounds { .array(Element.schema, count: 1...Int.max) } else { .list(Element.schema(within: bounds)) }
  }

  package static func expected(within bounds: Bounds) -> String {
    if case .some = bounds { "an array of one or more \(Element.plural)" } else { expected }
  }

  package func fits(_ bounds: Bounds) -> Bool {
    switch bounds {
    case .none, .text: true
    case .some: !isEmpty
    case .from, .range, .bytes, .handle, .uuid, .sessionToken, .processID, .identifier, .role, .file, .hostText,
      .parameters, .document:
      allSatisfy { $0.fits(bounds) }
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

  package static func schema(within bounds: Bounds) -> Schema { .map(Value.schema(within: bounds)) }
  package func fits(_ bounds: Bounds) -> Bool { values.allSatisfy { $0.fits(bounds) } }
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
    guard let text = slice.string() else { throw Misfit(Self.expected) }
    guard let name = ApplicationName(text) else { throw Misfit(Self.invalid(text), at: "") }
    self = name
  }

  package func writeJSON(to writer: inout JSONWriter) { writer.string(description) }

  package static let instanceHint =
    "Begin with a letter or digit; use letters, digits, '.', '_' and '-', at most \(instanceMax)."

  /// What is wrong with a text that is not a name, and what a name is.
  package static func invalid(_ text: String) -> Misfit.Fault {
    .unsuited(
      "\(JSONText(.string(text)).brief) is not \(expected)",
      hint: "Begin with a letter or digit; use letters, digits, '.', '_' and '-', at most \(baseMax), optionally "
        + "followed by @instance."
    )
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

  package init(wire slice: JSONSlice) { self = slice.compactText }

  package func writeJSON(to writer: inout JSONWriter) { writer.text(self) }

  package static func schema(within bounds: Bounds) -> Schema {
    switch bounds {
    case .text(let type): type.schema
    case .parameters: .parameters
    case .document: ArchiveDocument.schema
    case .none, .from, .range, .bytes, .handle, .uuid, .sessionToken, .processID, .identifier, .role, .file, .hostText,
      .some:
      schema
    }
  }

  package static func expected(within bounds: Bounds) -> String {
    switch bounds {
    case .text(let type): type.expected
    case .parameters, .document: "an object"
    case .none, .from, .range, .bytes, .handle, .uuid, .sessionToken, .processID, .identifier, .role, .file, .hostText,
      .some:
      expected
    }
  }

  package func fits(_ bounds: Bounds) -> Bool {
    switch bounds {
    case .text: bytes.first != UInt8(ascii: "n")
    case .parameters, .document: bytes.first == UInt8(ascii: "{")
    case .none, .from, .range, .bytes, .handle, .uuid, .sessionToken, .processID, .identifier, .role, .file, .hostText,
      .some:
      true
    }
  }
}

/// Any value, as it lies in the frame.
extension JSONSlice: WireValue {
  package static let schema = Schema.any
  package static let expected = "a value"

  package init(wire slice: JSONSlice) { self = slice }

  package static func schema(within bounds: Bounds) -> Schema { JSONText.schema(within: bounds) }

  package func writeJSON(to writer: inout JSONWriter) { writer.text(compactText) }
}
