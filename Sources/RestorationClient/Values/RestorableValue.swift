// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
public import RestorationWire

/// A value in a state, for programs that do not write JSON themselves.
///
/// ```swift
/// let state = RestorableState(["cursor": 17, "title": "Notes", "front": .reference(document.reference)])
/// let cursor = state["cursor"]?.int ?? 0
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
  /// Values by name. If a name is `$restorable`, `$literal`, `$data` or `$date`, the whole object is saved in
  /// `{"$literal": …}`, without references, bytes and dates.
  case object([String: RestorableValue])
  /// Another object of the application, in any process (R14).
  case reference(RestorableReference)
  /// Bytes, such as a bookmark or a small picture: `{"$data": base64}`.
  case data([UInt8])
  /// A point in time: `{"$date": RFC 3339}`.
  case date(Timestamp)
}

extension RestorableValue {
  /// A number without fraction, of a variable: `["cursor": .int(cursor)]`.
  public static func int(_ value: Int) -> RestorableValue { .integer(Int64(value)) }
}

// Each is `nil` if the value is of another kind.
extension RestorableValue {
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

  public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }

  /// The same, for variables; `nil` also if it does not fit.
  public var int: Int? { integer.flatMap { Int(exactly: $0) } }

  public var real: Double? {
    switch self {
    case .real(let value): value
    case .integer(let value): Double(value)
    case .null, .bool, .string, .array, .object, .reference, .data, .date: nil
    }
  }

  public var string: String? { if case .string(let value) = self { value } else { nil } }

  public var array: [RestorableValue]? { if case .array(let value) = self { value } else { nil } }

  public var object: [String: RestorableValue]? { if case .object(let value) = self { value } else { nil } }

  /// The referenced object, if this is a reference. After a session has decoded the state, its own objects are live,
  /// and others are paths.
  public var reference: RestorableReference? { if case .reference(let value) = self { value } else { nil } }

  public var data: [UInt8]? { if case .data(let value) = self { value } else { nil } }

  public var date: Timestamp? { if case .date(let value) = self { value } else { nil } }

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
  public init(_ values: [String: RestorableValue]) {
    self.init(JSONText(RestorableValue.object(values).json(isLiteral: false)))
  }

  /// All values by their names. Numbers beyond 64 bits come as the nearest `real`.
  public var values: [String: RestorableValue] {
    top.map { RestorableValue.values(of: $0.members, live, isLiteral: $0.isLiteral) } ?? [:]
  }

  public subscript(name: String) -> RestorableValue? {
    top.flatMap { top in top.members[name].map { RestorableValue($0, live, isLiteral: top.isLiteral) } }
  }

  private var top: (members: JSONSlice, isLiteral: Bool)? {
    text.scanned.map { text in
      guard let literal = RestorableValue.literal(text), literal.kind == .object else { return (text, false) }
      return (literal, true)
    }
  }
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
  private static let dataKey = "$data"
  private static let dateKey = "$date"
  private static let keys = [referenceKey, literalKey, dataKey, dateKey]

  /// Members in the order of their names; a reserved name makes the whole object literal.
  static func object<Value>(
    _ values: [String: Value],
    isLiteral: Bool,
    _ json: (Value, _ isLiteral: Bool) -> JSONValue
  ) -> JSONValue {
    let becomesLiteral = !isLiteral && keys.contains { values[$0] != nil }
    let members = values.sorted { $0.key < $1.key }
      .map { (name: $0.key, value: json($0.value, isLiteral || becomesLiteral)) }
    return becomesLiteral ? [literalKey: .object(JSONObject(members))] : .object(JSONObject(members))
  }

  /// - Parameter isLiteral: whether nothing in it is a reference.
  func json(isLiteral: Bool) -> JSONValue {
    switch self {
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .integer(let value): return .integer(value)
    case .real(let value): return .real(value)
    case .string(let value): return .string(value)
    case .array(let values): return .array(values.map { $0.json(isLiteral: isLiteral) })
    case .object(let values):
      return Self.object(values, isLiteral: isLiteral) { $0.json(isLiteral: $1) }
    case .reference(.path(let path)):
      return [Self.referenceKey: path.json]
    case .reference(.object(let object)):
      let target: JSONValue = object.path.map(\.json) ?? .integer(object.handle)
      return [Self.referenceKey: target]
    case .data(let bytes): return [Self.dataKey: .string(Base64.text(of: bytes))]
    case .date(let date): return [Self.dateKey: .string(date.description)]
    }
  }

  fileprivate init(_ slice: JSONSlice, _ live: LiveObjects?, isLiteral: Bool = false) {
    switch slice.kind {
    case .null: self = .null
    case .bool: self = .bool(slice.bool() ?? false)
    case .string: self = .string(slice.string() ?? "")
    case .integer, .real: self = slice.integer().map { .integer($0) } ?? .real(slice.real() ?? 0)
    case .array: self = .array((slice.elements ?? []).map { RestorableValue($0, live, isLiteral: isLiteral) })
    case .object:
      if !isLiteral, slice[Self.referenceKey] != nil {
        self = Self.reference(slice, live).map { .reference($0) } ?? .null
      } else if !isLiteral, let literal = Self.literal(slice) {
        self = RestorableValue(literal, live, isLiteral: true)
      } else if !isLiteral, let value = Self.bytesOrDate(slice) {
        self = value
      } else {
        self = .object(Self.values(of: slice, live, isLiteral: isLiteral))
      }
    }
  }

  static func literal(_ value: JSONValue) -> JSONValue { [literalKey: value] }

  /// The text of a literal; `nil` for anything else.
  static func literal(_ slice: JSONSlice) -> JSONSlice? { slice[literalKey] }

  static func isGone(_ slice: JSONSlice) -> Bool { slice[referenceKey].map { $0.strings == nil } ?? false }

  /// The live object, if the session has it: its path may have changed since the decode. `nil` if the target is gone,
  /// or this is no reference.
  static func reference(_ slice: JSONSlice, _ live: LiveObjects?) -> RestorableReference? {
    guard let path = slice[referenceKey]?.strings.map({ IdentifierPath($0) }) else { return nil }
    let object = slice["object"]?.integer().flatMap { live?.object(handle: $0) } ?? live?.object(at: path)
    return object.map { .object($0) } ?? .path(path)
  }

  /// `nil` for an object that is neither.
  static func bytesOrDate(_ slice: JSONSlice) -> RestorableValue? {
    guard let members = slice.members, members.count == 1, let text = members[0].value.string() else { return nil }
    switch members[0].name {
    case Self.dataKey: return Base64.bytes(of: text).map { .data($0) }
    case Self.dateKey: return Timestamp(rfc3339: text).map { .date($0) }
    default: return nil
    }
  }

  static func values(
    of slice: JSONSlice,
    _ live: LiveObjects?,
    isLiteral: Bool = false
  ) -> [String: RestorableValue] {
    let members = (slice.members ?? []).map { ($0.name, RestorableValue($0.value, live, isLiteral: isLiteral)) }
    return Dictionary(members) { first, _ in first }
  }
}
