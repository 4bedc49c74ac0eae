// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A result or notification has not the form that `Protocol/` gives it.
package struct WrongShape: Error, Hashable {
  /// The member that is missing or of another kind.
  package let member: String
}

/// Reads members of a result; what the reader throws becomes a nil result.
///
/// Unknown members are ignored, so that later brokers can say more. An optional member may be absent or null.
package struct ResultReader {
  private let slice: JSONSlice

  package init(_ slice: JSONSlice) throws(WrongShape) {
    guard slice.kind == .object else { throw WrongShape(member: "") }
    self.slice = slice
  }

  /// A part whose members stand among those of the result.
  package func part<Part: WireObject>(_: Part.Type) throws(WrongShape) -> Part {
    guard let part = try? Part(wire: slice) else { throw WrongShape(member: "") }
    return part
  }

  /// The member as `read` takes it; nil from `read` means that it is of another kind.
  package func value<Value>(_ name: String, _ read: (JSONSlice) -> Value?) throws(WrongShape) -> Value {
    guard let value = try optional(name, read) else { throw WrongShape(member: name) }
    return value
  }

  /// The member as `read` takes it; nil where it is absent or null.
  package func optional<Value>(_ name: String, _ read: (JSONSlice) -> Value?) throws(WrongShape) -> Value? {
    guard let member = slice[name], !member.isNull else { return nil }
    guard let value = read(member) else { throw WrongShape(member: name) }
    return value
  }

  package func value<Value: WireValue>(_ name: String) throws(WrongShape) -> Value {
    try value(name) { try? Value(wire: $0) }
  }

  package func optional<Value: WireValue>(_ name: String) throws(WrongShape) -> Value? {
    try optional(name) { try? Value(wire: $0) }
  }

  /// The member, an array, with each element as `read` takes it.
  package func list<Value>(_ name: String, _ read: (JSONSlice) -> Value?) throws(WrongShape) -> [Value] {
    guard let elements = slice[name]?.elements else { throw WrongShape(member: name) }
    var values: [Value] = []
    values.reserveCapacity(elements.count)
    for element in elements {
      guard let value = read(element) else { throw WrongShape(member: name) }
      values.append(value)
    }
    return values
  }

  package func string(_ name: String) throws(WrongShape) -> String {
    try value(name) { $0.string() }
  }

  package func optionalString(_ name: String) throws(WrongShape) -> String? {
    try optional(name) { $0.string() }
  }

  package func integer(_ name: String) throws(WrongShape) -> Int64 {
    try value(name) { $0.integer() }
  }

  package func optionalInteger(_ name: String) throws(WrongShape) -> Int64? {
    try optional(name) { $0.integer() }
  }

  /// A count of things or bytes.
  package func count(_ name: String) throws(WrongShape) -> Int {
    try value(name) { $0.integer().flatMap { Int(exactly: $0) } }
  }

  /// False where the member is absent.
  package func bool(_ name: String) throws(WrongShape) -> Bool {
    try optional(name) { $0.bool() } ?? false
  }

  package func path(_ name: String) throws(WrongShape) -> IdentifierPath {
    try value(name) { IdentifierPath($0) }
  }

  package func optionalPath(_ name: String) throws(WrongShape) -> IdentifierPath? {
    try optional(name) { IdentifierPath($0) }
  }

  /// The member's text, whatever kind it is of.
  package func optionalText(_ name: String) throws(WrongShape) -> JSONText? {
    try optional(name) { $0.compactText }
  }

  /// The member as one of the words of `Word`.
  package func word<Word: RawRepresentable<String>>(_ name: String, as: Word.Type) throws(WrongShape) -> Word {
    try value(name) { $0.string().flatMap { Word(rawValue: $0) } }
  }

  /// A class list: a string or an array on the wire; empty where it is absent or null.
  package func classes(_ name: String) throws(WrongShape) -> [String] {
    try optional(name) { try? ClassList(wire: $0) }?.names ?? []
  }
}

extension IdentifierPath {
  /// Reads a path from JSON; nil where it is not a non-empty array of strings.
  package init?(_ slice: JSONSlice) {
    guard case .path(let path) = ObjectReference(slice) else { return nil }
    self = path
  }
}
