// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// The content written by an `Encodable` value. Its containers share it, because they may be filled in any order.
final class StateNode {
  enum Content {
    case none
    case value(SavedValue)
    case object([String: StateNode])
    case array([StateNode])
  }

  var content: Content

  init(_ value: SavedValue? = nil) { content = value.map { .value($0) } ?? .none }

  static func encoding(_ value: some Encodable, at path: [any CodingKey]) throws -> StateNode {
    let node = StateNode()
    try StateEncoder(node: node, codingPath: path).write(value)
    return node
  }

  func add(_ node: StateNode, as name: String) {
    var members: [String: StateNode] = [:]
    if case .object(let present) = content { members = present }
    // No second reference is left: the dictionary is changed in place.
    content = .none
    members[name] = node
    content = .object(members)
  }

  /// The node of that name, which may be begun already.
  func member(_ name: String) -> StateNode {
    if case .object(let members) = content, let present = members[name] { return present }
    let node = StateNode()
    add(node, as: name)
    return node
  }

  func append(_ node: StateNode) {
    var elements: [StateNode] = []
    if case .array(let present) = content { elements = present }
    content = .none
    elements.append(node)
    content = .array(elements)
  }

  func becomeObject() { if case .object = content {} else { content = .object([:]) } }

  func becomeArray() { if case .array = content {} else { content = .array([]) } }

  var count: Int { if case .array(let elements) = content { elements.count } else { 0 } }

  /// - Parameter isLiteral: whether nothing in it is a reference.
  func json(isLiteral: Bool = false) -> JSONValue {
    switch content {
    case .none: return [:]
    case .value(.json(let value)): return value
    case .value(.marked(let value)): return value.json(isLiteral: isLiteral)
    case .value(.kept(let text, let wasLiteral)):
      return wasLiteral && !isLiteral ? RestorableValue.literal(.text(text)) : .text(text)
    case .array(let elements): return .array(elements.map { $0.json(isLiteral: isLiteral) })
    case .object(let members):
      return RestorableValue.object(members, isLiteral: isLiteral) { $0.json(isLiteral: $1) }
    }
  }

  /// A state is an object. Any other value is its one member, `value`.
  var state: JSONText {
    let isObject =
      switch content {
      case .none, .object: true
      case .value, .array: false
      }
    return JSONText(isObject ? json() : [StateDecoder.valueKey: json()])
  }
}

/// Writes a value of any `Encodable` type into a node.
struct StateEncoder: Encoder {
  let node: StateNode
  let codingPath: [any CodingKey]
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func write(_ value: some Encodable) throws {
    if let value = value as? any StateValue {
      guard let saved = try? value.saved else {
        let message = "this value of \(type(of: value)) has no form in a state"
        let context = EncodingError.Context(codingPath: codingPath, debugDescription: message)
        // Without the value itself: showing such a date traps.
        throw EncodingError.invalidValue(type(of: value), context)
      }
      node.content = .value(saved)
    } else {
      try value.encode(to: self)
      if let type = type(of: value) as? any VersionedState.Type { try note(type) }
    }
  }

  /// Adds the version of the value.
  private func note(_ type: any VersionedState.Type) throws {
    guard case .object = node.content else {
      let message = "\(type) has a version, which only a value with keys can be saved with"
      let context = EncodingError.Context(codingPath: codingPath, debugDescription: message)
      throw EncodingError.invalidValue(type, context)
    }
    node.add(StateNode(.json(.integer(Int64(type.version)))), as: StateDecoder.versionKey)
  }

  func container<Key>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    node.becomeObject()
    return KeyedEncodingContainer(Keyed(node: node, codingPath: codingPath))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    node.becomeArray()
    return Unkeyed(node: node, codingPath: codingPath)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension StateEncoder: SingleValueEncodingContainer {
  func encodeNil() { node.content = .value(.json(.null)) }

  func encode<Value: Encodable>(_ value: Value) throws { try write(value) }
}

extension StateEncoder {
  private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let node: StateNode
    let codingPath: [any CodingKey]

    private func child(_ key: any CodingKey) -> StateEncoder {
      let child = StateNode()
      node.add(child, as: key.stringValue)
      return StateEncoder(node: child, codingPath: codingPath + [key])
    }

    func encodeNil(forKey key: Key) { child(key).encodeNil() }

    func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws { try child(key).write(value) }

    /// The node for the key: a value that asks for its container again adds to the same one.
    private func present(_ key: Key) -> StateEncoder {
      StateEncoder(node: node.member(key.stringValue), codingPath: codingPath + [key])
    }

    func nestedContainer<Nested>(keyedBy type: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<Nested> {
      present(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { present(key).unkeyedContainer() }

    func superEncoder() -> any Encoder { child(StateKey.super) }

    func superEncoder(forKey key: Key) -> any Encoder { child(key) }
  }

  private struct Unkeyed: UnkeyedEncodingContainer {
    let node: StateNode
    let codingPath: [any CodingKey]
    var count: Int { node.count }

    private func child() -> StateEncoder {
      let child = StateNode()
      let key = StateKey(intValue: count)
      node.append(child)
      return StateEncoder(node: child, codingPath: codingPath + [key])
    }

    func encodeNil() { child().encodeNil() }

    func encode<Value: Encodable>(_ value: Value) throws { try child().write(value) }

    func nestedContainer<Nested>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
      child().container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { child().unkeyedContainer() }

    func superEncoder() -> any Encoder { child() }
  }
}

/// A place in an array, or a superclass.
struct StateKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  static let `super` = StateKey(stringValue: "super")

  init(stringValue: String) { (self.stringValue, intValue) = (stringValue, nil) }

  init(intValue: Int) { (stringValue, self.intValue) = ("\(intValue)", intValue) }
}
