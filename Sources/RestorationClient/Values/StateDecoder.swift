// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// Reads a value of any `Decodable` type from the text of a state.
struct StateDecoder: Decoder {
  /// The key of a value without keys.
  static let valueKey = "value"
  /// The key of the version of a `VersionedState`.
  static let versionKey = "$version"

  private let text: JSONSlice
  private let source: SavedSource
  private let isState: Bool
  let codingPath: [any CodingKey]
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  init(_ text: JSONSlice, _ live: LiveObjects?) {
    self.init(text, SavedSource(live: live), isState: true, codingPath: [])
  }

  private init(_ text: JSONSlice, _ source: SavedSource, isState: Bool = false, codingPath: [any CodingKey]) {
    (self.isState, self.codingPath) = (isState, codingPath)
    if !source.isLiteral, let literal = RestorableValue.literal(text) {
      (self.text, self.source) = (literal, SavedSource(live: source.live, isLiteral: true))
    } else {
      (self.text, self.source) = (text, source)
    }
  }

  /// The text of a value without keys; `nil` if the state has none.
  private var value: JSONSlice? { isState ? text[Self.valueKey] : text }

  func read<Value: Decodable>(_ type: Value.Type) throws -> Value {
    guard let plain = type as? any StateValue.Type else { return try Value(from: migrated(to: type)) }
    guard let value else { throw mismatch(type, text) }
    guard let read = plain.init(saved: value, of: source) as? Value else { throw mismatch(type, value) }
    return read
  }

  /// The decoder of the value in its present version.
  private func migrated(to type: Any.Type) throws -> StateDecoder {
    guard let type = type as? any VersionedState.Type, text.kind == .object else { return self }
    let number = text[Self.versionKey]
    guard let saved = number == nil ? 0 : number.flatMap({ Int(saved: $0, of: source) }), saved <= type.version else {
      let shown = String((number?.description ?? "").prefix(60))
      let known = "this program knows versions up to \(type.version)"
      throw DecodingError.dataCorrupted(context("\(type) was saved as version \(shown), and \(known)"))
    }
    guard saved < type.version else { return self }
    var values = RestorableValue.values(of: text, source.live, isLiteral: source.isLiteral)
    values[Self.versionKey] = nil
    do {
      try type.migrate(&values, from: saved)
    } catch let error as DecodingError {
      throw error
    } catch {
      let message = "\(type) could not be migrated from version \(saved): \(error)"
      throw DecodingError.dataCorrupted(
        DecodingError.Context(codingPath: codingPath, debugDescription: message, underlyingError: error)
      )
    }
    let present = JSONText(RestorableValue.object(values).json(isLiteral: source.isLiteral))
    guard let text = present.scanned else { throw DecodingError.dataCorrupted(context("\(type) is too deep")) }
    return StateDecoder(text, source, isState: isState, codingPath: codingPath)
  }

  func container<Key>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard let members = text.members else { throw mismatch([String: Any].self, text) }
    let byName = Dictionary(members.map { ($0.name, $0.value) }) { first, _ in first }
    return KeyedDecodingContainer(Keyed(decoder: self, members: byName))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard let elements = value?.elements else { throw mismatch([Any].self, value ?? text) }
    return Unkeyed(decoder: self, elements: elements)
  }

  func singleValueContainer() -> any SingleValueDecodingContainer { self }

  var members: [String: StateDecoder] {
    let members = (text.members ?? []).map { ($0.name, child($0.value, StateKey(stringValue: $0.name))) }
    return Dictionary(members) { first, _ in first }.compactMapValues { $0 }
  }

  var asSaved: SavedValue { .kept(text.compactText.detached(), isLiteral: source.isLiteral) }

  private func child(_ text: JSONSlice?, _ key: any CodingKey) -> StateDecoder? {
    text.map { StateDecoder($0, source, codingPath: codingPath + [key]) }
  }

  // MARK: Errors

  private func context(_ message: String) -> DecodingError.Context {
    DecodingError.Context(codingPath: codingPath, debugDescription: message)
  }

  private func mismatch(_ type: Any.Type, _ text: JSONSlice) -> DecodingError {
    if text.isNull || isGone(text) { return .valueNotFound(type, context("a value of \(type) was expected, not null")) }
    let shown = String(text.description.prefix(60))
    let isNumber = text.kind == .integer || text.kind == .real
    return isNumber && type is any Numeric.Type
      ? .dataCorrupted(context("\(shown) does not fit into \(type)"))
      : .typeMismatch(type, context("a value of \(type) was expected, not \(shown)"))
  }

  /// Whether the referenced object is gone (R14).
  private func isGone(_ text: JSONSlice) -> Bool { !source.isLiteral && RestorableValue.isGone(text) }
}

extension StateDecoder: SingleValueDecodingContainer {
  func decodeNil() -> Bool { value.map { $0.isNull || isGone($0) } ?? false }

  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try read(type) }
}

extension StateDecoder {
  private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let decoder: StateDecoder
    let members: [String: JSONSlice]
    var codingPath: [any CodingKey] { decoder.codingPath }
    var allKeys: [Key] { members.keys.sorted().compactMap { Key(stringValue: $0) } }

    /// - Parameter missing: read in place of a missing member.
    private func member(_ key: any CodingKey, else missing: JSONText? = nil) throws -> StateDecoder {
      guard let child = decoder.child(members[key.stringValue] ?? missing?.scanned, key) else {
        throw DecodingError.keyNotFound(key, decoder.context("the state has no \(key.stringValue) there"))
      }
      return child
    }

    func contains(_ key: Key) -> Bool { members[key.stringValue] != nil }

    func decodeNil(forKey key: Key) throws -> Bool { try member(key).decodeNil() }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value { try member(key).read(type) }

    func nestedContainer<Nested>(
      keyedBy type: Nested.Type,
      forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> { try member(key).container(keyedBy: type) }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
      try member(key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder { try member(StateKey.super, else: .null) }

    func superDecoder(forKey key: Key) throws -> any Decoder { try member(key, else: .null) }
  }

  private struct Unkeyed: UnkeyedDecodingContainer {
    let decoder: StateDecoder
    let elements: [JSONSlice]
    private(set) var currentIndex = 0
    var codingPath: [any CodingKey] { decoder.codingPath }
    var count: Int? { elements.count }
    var isAtEnd: Bool { currentIndex == elements.count }

    init(decoder: StateDecoder, elements: [JSONSlice]) { (self.decoder, self.elements) = (decoder, elements) }

    /// Reads the present element; advances if that succeeds.
    private mutating func element<Value>(_ read: (StateDecoder) throws -> Value) throws -> Value {
      let key = StateKey(intValue: currentIndex)
      guard let child = decoder.child(isAtEnd ? nil : elements[currentIndex], key) else {
        let context = DecodingError.Context(
          codingPath: codingPath + [key],
          debugDescription: "the array has only \(elements.count) elements"
        )
        throw DecodingError.valueNotFound(Value.self, context)
      }
      let value = try read(child)
      currentIndex += 1
      return value
    }

    mutating func decodeNil() throws -> Bool {
      // An element that is a value is read next.
      let index = currentIndex
      let isNil = try element { $0.decodeNil() }
      if !isNil { currentIndex = index }
      return isNil
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try element { try $0.read(type) } }

    mutating func nestedContainer<Nested>(keyedBy type: Nested.Type) throws -> KeyedDecodingContainer<Nested> {
      try element { try $0.container(keyedBy: type) }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
      try element { try $0.unkeyedContainer() }
    }

    mutating func superDecoder() throws -> any Decoder { try element { $0 } }
  }
}
