// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
public import RestorationWire

/// The state of an object: one JSON object, kept as text so that numbers, escapes and the order of members stay as they
/// were written.
///
/// References to other objects are `{"$restorable": handle or path}`; text that only looks like one is protected by
/// `{"$literal": …}`. Two states are equal when their compact texts are.
public struct RestorableState: Hashable, Sendable {
  /// Compact text of one object, in storage of its own.
  let text: JSONText
  /// Finds the objects that it refers to; `nil` if no session has decoded it.
  let live: LiveObjects?

  /// Takes JSON text of one object; insignificant white space goes.
  ///
  /// Throws a `RestorationError` with code `parseError` if it is not JSON, and `invalidParams` if it is JSON of
  /// another kind.
  public init(jsonText: String) throws {
    let slice = try JSONInput.scan(jsonText, subject: "the state")
    guard slice.kind == .object else {
      throw RestorationError(.invalidParameter("/state", "the state is not an object", hint: "Give a JSON object."))
    }
    self.init(slice.compactText)
  }

  init(_ text: JSONText, _ live: LiveObjects? = nil) { (self.text, self.live) = (text.detached(), live) }

  public static func == (left: RestorableState, right: RestorableState) -> Bool { left.text == right.text }

  public func hash(into hasher: inout Hasher) { hasher.combine(text) }

  /// No keys at all.
  public static let empty = RestorableState(.emptyObject)

  /// The state as compact JSON text.
  public var jsonText: String { text.string }

  /// Bytes of the text in UTF-8, as the broker's limit counts them.
  public var bytes: Int { text.count }
}

// Values of the program's own types
extension RestorableState {
  /// The state that a value of any `Codable` type makes. Its properties are the state's keys, by their coding keys; a
  /// value without keys, such as a number or an array, is the state's `value`.
  ///
  /// Bytes (`[UInt8]`, `Data`), instants (`Timestamp`, `Date`: to the millisecond) and `RestorableReference` have the
  /// forms that all languages know; numbers keep their digits, infinities and NaN are strings. Throws what the value's
  /// own `encode(to:)` throws.
  public init(encoding value: some Encodable) throws { self.init(try StateNode.encoding(value, at: []).state) }

  /// The value that the state was made of.
  ///
  /// Throws a `DecodingError` that says where the state does not fit the type, or that it is too deep to be read.
  public func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    try decoder().read(type)
  }

  /// The values by their keys.
  var members: [String: StateDecoder] { get throws { try decoder().members } }

  private func decoder() throws -> StateDecoder {
    do {
      return StateDecoder(try JSONInput.scan(Array(text.bytes), subject: "the state"), live)
    } catch {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(codingPath: [], debugDescription: "\(error)", underlyingError: error)
      )
    }
  }
}

extension RestorableState: CustomStringConvertible {
  public var description: String { jsonText }
}

/// The result of decoding an object.
public struct DecodedState: Hashable, Sendable {
  /// Whether there is a state, and if not why not.
  public let status: DecodingStatus
  /// `nil` unless the status is `available`. In its text, references are `{"$restorable": path, "object": handle or
  /// null}` (R14).
  public let state: RestorableState?
  /// Who wrote the state; `nil` if there is none.
  public let origin: ReservedKeys?
  /// Selected and topmost elements, as encoded, each with `resolved`.
  public let elements: [RestorableElement]
  /// The change that stored this state, for `encode(…, expecting:)`; 0 if none is stored.
  public let sequence: Int64
  /// Show the state only if you are asked to.
  public let isConfidential: Bool
  /// Its owner is not given it, because its process failed of it (R35).
  public let isWithheld: Bool

  /// `nil` if a member has another form than the protocol gives it.
  init?(_ wire: DecodeRestorableState.Reply, _ live: LiveObjects? = nil) {
    guard let elements = RestorableElement.read(wire.elements) else { return nil }
    status = wire.status
    state = wire.state.map { RestorableState($0, live) }
    origin = wire.coder.flatMap(ReservedKeys.init(coder:))
    (self.elements, sequence) = (elements, wire.sequence)
    (isConfidential, isWithheld) = (wire.confidential, wire.withheld)
    if wire.coder != nil, origin == nil { return nil }
  }
}
