// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
public import RestorationWire

/// The state of an object: one JSON object, retained as text so that numbers, escapes and the order of members stay.
///
/// References to other objects are `{"$restorable": handle or path}`; `{"$literal": …}` protects text that only looks
/// like one. Two states are equal if their compact texts are.
public struct RestorableState: Hashable, Sendable {
  let text: JSONText
  /// Finds the referenced objects; `nil` if no session has decoded the state.
  let live: LiveObjects?

  /// Takes JSON text of one object, and removes insignificant white space. Throws a `RestorationError`: `parseError` if
  /// the text is not JSON, `invalidParams` if it is another kind of JSON.
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

  public static let empty = RestorableState(.emptyObject)

  /// The state as compact JSON text.
  public var jsonText: String { text.string }

  /// Bytes of the text in UTF-8, as the broker's limit counts them.
  public var bytes: Int { text.count }
}

// Values of the program's own types
extension RestorableState {
  /// The state of a `Codable` value. The value's coding keys are the state's keys; a value without keys, such as a
  /// number or an array, is the state's `value`.
  ///
  /// Bytes (`[UInt8]`, `Data`), instants (`Timestamp`, `Date`: to the millisecond) and `RestorableReference` have the
  /// protocol's forms; numbers keep their digits, infinities and NaN are strings. Throws the errors of `encode(to:)`.
  public init(encoding value: some Encodable) throws { self.init(try StateNode.encoding(value, at: []).state) }

  /// The encoded value. Throws a `DecodingError` if the state does not fit the type, or is too deep to be read.
  public func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    try decoder().read(type)
  }

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

public struct DecodedState: Hashable, Sendable {
  /// Whether there is a state; otherwise the reason.
  public let status: DecodingStatus
  /// `nil` unless the status is `available`. Its references are `{"$restorable": path, "object": handle or null}`
  /// (R14).
  public let state: RestorableState?
  /// Who wrote the state; `nil` if there is none.
  public let origin: ReservedKeys?
  /// Selected and topmost elements, as encoded, each with `resolved`.
  public let elements: [RestorableElement]
  /// The change that stored this state, for `encode(…, expecting:)`; 0 if none is stored.
  public let sequence: Int64
  /// Show the state only if you are asked to.
  public let isConfidential: Bool
  /// It is withheld from its owner, whose process failed because of it (R35).
  public let isWithheld: Bool

  /// `nil` if a member has another form than the protocol's.
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
