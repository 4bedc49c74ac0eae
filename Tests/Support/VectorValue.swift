// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// A JSON value whose numbers are their text, so that 1, 1.0 and 1e0 are three.
enum VectorValue: Sendable {
  case null
  case bool(Bool)
  case number(String)
  case string(String)
  case array([VectorValue])
  case object([(name: String, value: VectorValue)])

  /// Reads text that may hold numbers of any size.
  init(parsing text: String) throws {
    do {
      self.init(try JSONSlice.scan(Array(text.utf8), vocabulary: Self.vocabulary, limits: Self.limits))
    } catch {
      throw TestFailure("not JSON (\(error.message) at byte \(error.position)): \(text.prefix(200))")
    }
  }

  private init(_ slice: JSONSlice) {
    if let members = slice.members {
      self = .object(members.map { ($0.name, VectorValue($0.value)) })
    } else if let elements = slice.elements {
      self = .array(elements.map(VectorValue.init))
    } else if let string = slice.string() {
      self = .string(string)
    } else if let bool = slice.bool() {
      self = .bool(bool)
    } else if slice.isNull {
      self = .null
    } else {
      self = .number(String(decoding: slice.text, as: UTF8.self))
    }
  }

  private static let vocabulary = ScanVocabulary(referenceKey: "$restorable", literalKey: "$literal")
  private static let limits = FrameLimits(
    frameBytesMax: 1 << 30,
    depthMax: 64,
    valuesPerFrameMax: 1 << 24,
    keysPerObjectMax: 1 << 20
  )

  subscript(name: String) -> VectorValue? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.name == name }?.value
  }

  var string: String? { if case .string(let value) = self { value } else { nil } }

  var array: [VectorValue]? { if case .array(let value) = self { value } else { nil } }

  var members: [(name: String, value: VectorValue)]? { if case .object(let value) = self { value } else { nil } }

  var isTrue: Bool { if case .bool(true) = self { true } else { false } }

  /// Compact text.
  var text: String {
    switch self {
    case .null: "null"
    case .bool(let value): value ? "true" : "false"
    case .number(let text): text
    case .string(let value): JSONValue.string(value).text
    case .array(let elements): "[" + elements.map(\.text).joined(separator: ",") + "]"
    case .object(let members):
      "{" + members.map { JSONValue.string($0.name).text + ":" + $0.value.text }.joined(separator: ",") + "}"
    }
  }

  /// Text short enough for a message.
  var shown: String { text.count <= 300 ? text : text.prefix(300) + "…" }

  /// Whether two scalars are the same; strings by their scalars.
  func isSameScalar(as other: VectorValue) -> Bool {
    switch (self, other) {
    case (.null, .null): true
    case (.bool(let left), .bool(let right)): left == right
    case (.number(let left), .number(let right)): left == right
    case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
    default: false
    }
  }
}
