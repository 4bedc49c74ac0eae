// SPDX-License-Identifier: Apache-2.0

/// One JSON value as a tree: for configuration, administration and other small values.
///
/// States and other payloads never take this form; they stay text (`JSONSlice`, `JSONText`).
package enum JSONValue: Sendable {
  case null
  case bool(Bool)
  case integer(Int64)
  /// A number with a fraction or an exponent. Non-finite numbers are written as `null`.
  case real(Double)
  case string(String)
  case array([JSONValue])
  case object(JSONObject)
  /// JSON text that is written unchanged. Parsing never makes this case.
  case text(JSONText)
}

// Each is `nil` if the value is of another kind.
extension JSONValue {
  package var string: String? { if case .string(let value) = self { value } else { nil } }

  /// A real is never rounded.
  package var integer: Int64? { if case .integer(let value) = self { value } else { nil } }

  package var real: Double? {
    switch self {
    case .real(let value): value
    case .integer(let value): Double(value)
    case .null, .bool, .string, .array, .object, .text: nil
    }
  }

  package var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

  package var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }

  package var object: JSONObject? { if case .object(let value) = self { value } else { nil } }

  package var isNull: Bool { if case .null = self { true } else { false } }

  /// About the length of its text.
  package var bytes: Int {
    switch self {
    case .null, .bool, .integer, .real: 8
    case .string(let value): value.utf8.count + 2
    case .array(let elements): elements.reduce(2) { $0 + $1.bytes + 1 }
    case .object(let object): object.members.reduce(2) { $0 + $1.name.utf8.count + $1.value.bytes + 4 }
    case .text(let text): text.bytes.count
    }
  }

  package subscript(name: String) -> JSONValue? { object?[name] }
}

extension JSONValue: Equatable {
  /// Strings are compared by their Unicode scalars: unlike in `String`, composed and decomposed forms differ.
  package static func == (left: JSONValue, right: JSONValue) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.bool(let left), .bool(let right)): left == right
    case (.integer(let left), .integer(let right)): left == right
    case (.real(let left), .real(let right)): left == right
    case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
    case (.array(let left), .array(let right)): left == right
    case (.object(let left), .object(let right)): left == right
    case (.text(let left), .text(let right)): left == right
    default: false
    }
  }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  package init(nilLiteral: ()) { self = .null }
  package init(booleanLiteral value: Bool) { self = .bool(value) }
  package init(integerLiteral value: Int64) { self = .integer(value) }
  package init(floatLiteral value: Double) { self = .real(value) }
  package init(stringLiteral value: String) { self = .string(value) }
  package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  package init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(JSONObject(elements.map { (name: $0.0, value: $0.1) }))
  }
}
