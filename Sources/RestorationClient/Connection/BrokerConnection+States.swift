// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
public import RestorationWire

// On a connection without a session, `application` names the application; with a session it is omitted.
extension BrokerConnection {
  /// Stores the state of an object, whole; returns when it is on disk (R15), or is not stored (R4).
  ///
  /// - Parameters:
  ///   - object: of this session, or a path that no live session owns.
  ///   - elements: selected and topmost rows of a view (R28).
  ///   - revision: at least 1, counting up per object; makes sending again safe (R15).
  ///   - expecting: `sequence` of the state that was decoded before, 0 if there was none. The call throws
  ///     `stateChanged` if the object has another one by now.
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

  /// Hands the state of an object to the broker without waiting for the disk, which gets it within 250 ms.
  ///
  /// The outcome is not reported; a later call on this connection sees the state. Waits only while more messages are on
  /// their way than the broker accepts.
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

  /// Gives an object its state back (R10, R19, R25). For the object's owner this opens a decode window (R31).
  public func decode(_ object: ObjectReference, application: String? = nil) async throws -> DecodedState {
    let reply = try await perform(DecodeRestorableState().with { $0.object = object }, application: application)
    guard let decoded = DecodedState(reply) else { throw unexpectedAnswer(to: DecodeRestorableState.method) }
    return decoded
  }

  /// Empties the application's head (R30).
  ///
  /// - Parameters:
  ///   - reason: for people and logs.
  ///   - generations: whether the generations go as well.
  ///   - force: discard even if live sessions lose state, or the state cannot be restored.
  public func discardApplicationState(
    reason: String? = nil,
    generations: Bool = false,
    force: Bool = false,
    application: String? = nil
  ) async throws {
    let call = DiscardApplicationState().with {
      $0.reason = reason
      $0.generations = generations
      $0.force = force
    }
    _ = try await perform(call, application: application)
  }

  /// Removes an application with its archive; its name is free then.
  ///
  /// - Parameters:
  ///   - force: remove it even while sessions are live.
  ///   - damaged: remove files as well that were set aside because of damage (R32).
  public func forgetApplication(_ application: String? = nil, force: Bool = false, damaged: Bool = false) async throws {
    let call = ForgetApplication().with {
      $0.force = force
      $0.damaged = damaged
    }
    _ = try await perform(call, application: application)
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
