// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// A value in a state, for programs that do not write JSON themselves.
///
/// ```swift
/// let state = RestorableState(["cursor": 17, "title": "Notes", "front": .reference(document.reference)])
/// let cursor = state["cursor"]?.integer ?? 0
/// ```
public enum RestorableValue: Hashable, Sendable {
  /// Nothing; also a reference whose target is gone.
  case null
  case bool(Bool)
  /// A number without fraction.
  case integer(Int64)
  /// Any other number; infinities and NaN are saved as null.
  case real(Double)
  case string(String)
  case array([RestorableValue])
  /// Values by name. One that has a name `$restorable` or `$literal` is saved as data and holds no references.
  case object([String: RestorableValue])
  /// Another object of the application, of whatever process (R14, R27).
  case reference(RestorableReference)
}

// Each is `nil` if the value is of another kind.
extension RestorableValue {
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

  public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }

  public var real: Double? {
    switch self {
    case .real(let value): value
    case .integer(let value): Double(value)
    case .null, .bool, .string, .array, .object, .reference: nil
    }
  }

  public var string: String? { if case .string(let value) = self { value } else { nil } }

  public var array: [RestorableValue]? { if case .array(let value) = self { value } else { nil } }

  public var object: [String: RestorableValue]? { if case .object(let value) = self { value } else { nil } }

  /// The object referred to; `nil` if this is something else. Decoded references are paths.
  public var reference: RestorableReference? { if case .reference(let value) = self { value } else { nil } }

  /// The value of that name; `nil` if there is none, or this is not an object.
  public subscript(name: String) -> RestorableValue? { object?[name] }
}

extension RestorableValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  public init(nilLiteral: ()) { self = .null }
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  public init(integerLiteral value: Int64) { self = .integer(value) }
  public init(floatLiteral value: Double) { self = .real(value) }
  public init(stringLiteral value: String) { self = .string(value) }
  public init(arrayLiteral elements: RestorableValue...) { self = .array(elements) }
  /// Values by name; of two with the same name the last counts.
  public init(dictionaryLiteral elements: (String, RestorableValue)...) {
    self = .object(Dictionary(elements) { _, last in last })
  }
}

extension RestorableState {
  /// A state with these values, written in the order of their names: equal values give equal text.
  public init(_ values: [String: RestorableValue]) { self.init(JSONText(.object(RestorableValue.members(values)))) }

  /// All values by their names. Numbers beyond 64 bits come as the nearest `real`.
  public var values: [String: RestorableValue] { text.scanned.map { RestorableValue.values(of: $0) } ?? [:] }

  /// The value of that name at the top level.
  public subscript(name: String) -> RestorableValue? { text.scanned?[name].map { RestorableValue($0) } }
}

extension RestorableState: ExpressibleByDictionaryLiteral {
  /// `["cursor": 17, "title": "Notes"]`
  public init(dictionaryLiteral elements: (String, RestorableValue)...) {
    self.init(Dictionary(elements) { _, last in last })
  }
}

// As JSON
extension RestorableValue {
  private static let referenceKey = "$restorable"
  private static let literalKey = "$literal"

  /// - Parameter isLiteral: whether nothing in it is a reference, whatever it looks like.
  fileprivate static func members(_ values: [String: RestorableValue], isLiteral: Bool = false) -> JSONObject {
    JSONObject(values.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value.json(isLiteral: isLiteral)) })
  }

  private func json(isLiteral: Bool) -> JSONValue {
    switch self {
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .integer(let value): return .integer(value)
    case .real(let value): return .real(value)
    case .string(let value): return .string(value)
    case .array(let values): return .array(values.map { $0.json(isLiteral: isLiteral) })
    case .object(let values):
      let looksLikeMore = values[Self.referenceKey] != nil || values[Self.literalKey] != nil
      guard looksLikeMore, !isLiteral else { return .object(Self.members(values, isLiteral: isLiteral)) }
      return [Self.literalKey: .object(Self.members(values, isLiteral: true))]
    case .reference(.path(let path)):
      return [Self.referenceKey: path.json]
    case .reference(.object(let object)):
      let target: JSONValue = object.path.map(\.json) ?? .integer(object.handle)
      return [Self.referenceKey: target]
    }
  }

  fileprivate init(_ slice: JSONSlice, isLiteral: Bool = false) {
    switch slice.kind {
    case .null: self = .null
    case .bool: self = .bool(slice.bool() ?? false)
    case .string: self = .string(slice.string() ?? "")
    case .integer, .real: self = slice.integer().map { .integer($0) } ?? .real(slice.real() ?? 0)
    case .array: self = .array((slice.elements ?? []).map { RestorableValue($0, isLiteral: isLiteral) })
    case .object:
      if !isLiteral, let target = slice[Self.referenceKey] {
        self = target.strings.map { .reference(.path(IdentifierPath($0))) } ?? .null
      } else if !isLiteral, let literal = slice[Self.literalKey] {
        self = RestorableValue(literal, isLiteral: true)
      } else {
        self = .object(Self.values(of: slice, isLiteral: isLiteral))
      }
    }
  }

  fileprivate static func values(of slice: JSONSlice, isLiteral: Bool = false) -> [String: RestorableValue] {
    let members = (slice.members ?? []).map { ($0.name, RestorableValue($0.value, isLiteral: isLiteral)) }
    return Dictionary(members) { first, _ in first }
  }
}
