// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
public import RestorationWire

/// A type with a form of its own in a state. All other `Codable` types consist of these.
protocol StateValue {
  /// Throws if the value has no form in a state.
  var saved: SavedValue { get throws }

  /// `nil` if the text has another form.
  init?(saved slice: JSONSlice, of state: SavedSource)
}

/// The form of a value in a state.
enum SavedValue: Sendable {
  case json(JSONValue)
  /// Bytes, a date or a reference.
  case marked(RestorableValue)
  /// Text of a saved state, unchanged.
  case kept(JSONText, isLiteral: Bool)
}

/// The origin of a value's text.
struct SavedSource {
  /// Finds the referenced objects; `nil` if no session has decoded the state.
  let live: LiveObjects?
  /// Whether it is inside of `{"$literal": …}`.
  var isLiteral = false
}

extension Bool: StateValue {
  var saved: SavedValue { .json(.bool(self)) }

  init?(saved slice: JSONSlice, of state: SavedSource) {
    guard let value = slice.bool() else { return nil }
    self = value
  }
}

extension String: StateValue {
  var saved: SavedValue { .json(.string(self)) }

  init?(saved slice: JSONSlice, of state: SavedSource) {
    guard let value = slice.string() else { return nil }
    self = value
  }
}

// MARK: Numbers

/// Integers of any width, with all their digits.
extension StateValue where Self: FixedWidthInteger {
  var saved: SavedValue {
    .json(Int64(exactly: self).map { .integer($0) } ?? .text(JSONText(validated: Array(description.utf8))))
  }

  /// Languages with one kind of numbers write `17.0`.
  init?(saved slice: JSONSlice, of state: SavedSource) {
    let value = slice.kind == .integer ? Self(slice.description) : slice.real().flatMap { Self(exactly: $0) }
    guard let value else { return nil }
    self = value
  }
}

extension Int: StateValue {}
extension Int8: StateValue {}
extension Int16: StateValue {}
extension Int32: StateValue {}
extension Int64: StateValue {}
extension Int128: StateValue {}
extension UInt: StateValue {}
extension UInt8: StateValue {}
extension UInt16: StateValue {}
extension UInt32: StateValue {}
extension UInt64: StateValue {}
extension UInt128: StateValue {}

/// JSON has no infinities and no NaN: they are saved as strings.
extension StateValue where Self: BinaryFloatingPoint & LosslessStringConvertible {
  var saved: SavedValue {
    if isNaN { return .json("NaN") }
    if isInfinite { return .json(self < 0 ? "-Infinity" : "Infinity") }
    return .json(.text(JSONText(validated: Array(description.utf8))))
  }

  init?(saved slice: JSONSlice, of state: SavedSource) {
    switch slice.kind {
    case .integer, .real:
      guard let value = Self(slice.description), value.isFinite else { return nil }
      self = value
    case .string:
      switch slice.string() {
      case "NaN": self = .nan
      case "Infinity": self = .infinity
      case "-Infinity": self = -.infinity
      default: return nil
      }
    case .object, .array, .bool, .null: return nil
    }
  }
}

extension Double: StateValue {}
extension Float: StateValue {}

// MARK: Bytes, dates, references

extension Array: StateValue where Element == UInt8 {
  var saved: SavedValue { .marked(.data(self)) }

  /// Reads also an array of numbers, as other encoders write bytes.
  init?(saved slice: JSONSlice, of state: SavedSource) {
    if let bytes = RestorableValue.bytesOrDate(slice)?.data {
      self = bytes
    } else {
      guard let elements = slice.elements else { return nil }
      let bytes = elements.compactMap { UInt8(saved: $0, of: state) }
      guard bytes.count == elements.count else { return nil }
      self = bytes
    }
  }
}

extension Timestamp: StateValue {
  var saved: SavedValue { .marked(.date(self)) }

  init?(saved slice: JSONSlice, of state: SavedSource) {
    guard let date = RestorableValue.bytesOrDate(slice)?.date else { return nil }
    self = date
  }
}

/// In a state `{"$date": …}`; other encoders get the text of RFC 3339.
extension Timestamp: Codable {
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if encoder is StateEncoder { try container.encode(self) } else { try container.encode(description) }
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if decoder is StateDecoder {
      self = try container.decode(Self.self)
    } else {
      let text = try container.decode(String.self)
      guard let date = Timestamp(rfc3339: text) else {
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "\(text) is not a date of RFC 3339")
      }
      self = date
    }
  }
}

extension RestorableReference: StateValue {
  var saved: SavedValue { .marked(.reference(self)) }

  init?(saved slice: JSONSlice, of state: SavedSource) {
    guard let reference = RestorableValue.reference(slice, state.live) else { return nil }
    self = reference
  }
}

/// In a state `{"$restorable": …}`, which follows its object's moves (R14); other encoders get the path. Declare it as
/// optional in a state: the object may be gone at the decode (R14).
extension RestorableReference: Codable {
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if encoder is StateEncoder { try container.encode(self) } else { try container.encode(path?.components) }
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if decoder is StateDecoder {
      self = try container.decode(Self.self)
    } else {
      self = .path(IdentifierPath(try container.decode([String].self)))
    }
  }
}
