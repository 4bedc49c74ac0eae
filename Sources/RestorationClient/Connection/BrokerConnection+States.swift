// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
public import RestorationWire

// On a connection without a session, `application` names the application; with a session it is omitted.
extension BrokerConnection {
  /// Registers an object under its path and gives it a handle (R1–R4, R8). Registering again changes the description.
  @discardableResult
  public func register(
    _ registration: ObjectRegistration,
    application: String? = nil
  ) async throws -> RegisteredObject {
    try await perform(registration.wire, application: application)
  }

  /// Stores the whole state of an object; returns when it is on disk (R15), or when the broker does not store it (R4).
  ///
  /// - Parameters:
  ///   - object: of this session, or a path that no live session owns.
  ///   - elements: selected and topmost rows of a view (R28).
  ///   - revision: at least 1, counting up per object; makes sending again safe (R15).
  ///   - expecting: `sequence` of the decoded state; 0 if there was none. The call throws `stateChanged` if another
  ///     state is stored.
  @discardableResult
  public func encode(
    _ state: RestorableState,
    for object: ObjectReference,
    elements: [RestorableElement] = [],
    revision: Int64? = nil,
    expecting: Int64? = nil,
    application: String? = nil
  ) async throws -> EncodeOutcome {
    let call = try Self.call(state, object, elements, revision).with { $0.expecting = expecting }
    return try await perform(call, application: application)
  }

  /// Sends the state of an object without waiting for the disk, which gets it within 250 ms. The outcome is not
  /// reported; a later call on this connection sees the state. If the broker's window is full, waits for room.
  public func encodeUnacknowledged(
    _ state: RestorableState,
    for object: ObjectReference,
    elements: [RestorableElement] = [],
    revision: Int64? = nil,
    application: String? = nil
  ) async throws {
    let call = try Self.call(state, object, elements, revision)
    if let key = call.state.reservedKey {
      // The broker would silently drop it.
      throw RestorationError(.reserved(key))
    }
    try await notify(call, application: application)
  }

  /// Gives an object its state (R10, R19, R25). For the object's owner this opens a decode window (R31).
  public func decode(_ object: ObjectReference, application: String? = nil) async throws -> DecodedState {
    let reply = try await perform(DecodeRestorableState().with { $0.object = object }, application: application)
    guard let decoded = DecodedState(reply) else { throw unexpectedAnswer(to: DecodeRestorableState.method) }
    return decoded
  }

  /// The call that stores a state. Throws a `RestorationError` if the text is not a state.
  static func call(
    _ state: RestorableState,
    _ object: ObjectReference,
    _ elements: [RestorableElement],
    _ revision: Int64?
  ) throws -> EncodeRestorableState {
    let slice = try JSONInput.scan(Array(state.text.bytes), subject: "the state")
    if let name = slice.duplicateName { throw RestorationError(.duplicateKey(name)) }
    guard let encoded = EncodedState(slice) else {
      throw RestorationError(.invalidParameter("/state", "the state is not an object", hint: "Give a JSON object."))
    }
    return EncodeRestorableState().with {
      $0.object = object
      $0.state = encoded
      $0.elements = elements
      $0.revision = revision
    }
  }
}

extension ErrorObject {
  /// A state has a key twice.
  static func duplicateKey(_ name: String) -> ErrorObject {
    .invalidParameter(
      JSONPointer.make("state", name),
      "the state has the key \(name) twice",
      hint: "Give each key of a state once."
    )
  }
}

extension ErrorObject {
  /// A key of a state that only the broker writes (R10).
  static func reserved(_ key: String) -> ErrorObject {
    .restoration(
      .reservedKey,
      "the key \(key) is reserved for the broker",
      hint: "Keys that begin with \(EncodedState.reservedPrefixes.joined(separator: " or ")) are read-only.",
      details: ["pointer": .string(JSONPointer.make("state", key))]
    )
  }
}
