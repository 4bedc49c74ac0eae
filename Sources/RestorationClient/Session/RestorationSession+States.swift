// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

extension RestorationSession {
  /// Stores the whole state of an object; returns when it is on disk (R15), or when the broker does not store it (R4).
  ///
  /// The session numbers the states. After a lost connection it sends the state again under its number; `superseded`
  /// then means that this state or a newer one is stored.
  ///
  /// - Parameters:
  ///   - state: references should be paths; handles may be invalid after the broker has lost the session.
  ///   - elements: selected and topmost rows of a view (R28).
  @discardableResult
  public func encode(
    _ state: RestorableState,
    for object: RestorableObject,
    elements: [RestorableElement] = []
  ) async throws -> EncodeOutcome {
    try await encode(state, as: object.reference, elements)
  }

  /// Stores the application's own state, whole; returns when it is on disk (R15). If there is a delegate, only its
  /// session may. `decode([])` gives it back.
  @discardableResult
  public func encodeApplicationState(_ state: RestorableState) async throws -> EncodeOutcome {
    try await encode(state, as: [], [])
  }

  private func encode(
    _ state: RestorableState,
    as reference: RestorableReference,
    _ elements: [RestorableElement]
  ) async throws -> EncodeOutcome {
    try await perform(EncodeRestorableState.self, .encoding(state, as: reference, elements))
  }

  /// Gives an object its state (R10, R19, R25). For an object of this session this opens a decode window (R31).
  public func decode(_ object: RestorableReference) async throws -> DecodedState {
    let call = SessionCall(DecodeRestorableState.self, of: [object]) { wire, _ in
      DecodeRestorableState().with { $0.object = wire[0] }
    }
    guard let decoded = DecodedState(try await perform(DecodeRestorableState.self, call), live) else {
      throw unexpectedAnswer(to: DecodeRestorableState.method)
    }
    return decoded
  }

  public func decode(_ object: RestorableObject) async throws -> DecodedState { try await decode(object.reference) }

  /// Stores a `Codable` value as the state of an object, whole (`RestorableState(encoding:)`). An `EncodingError` names
  /// the object.
  @discardableResult
  @_disfavoredOverload
  public func encode(
    _ value: some Encodable & Sendable,
    for object: RestorableObject,
    elements: [RestorableElement] = []
  ) async throws -> EncodeOutcome {
    try await encode(try named(object) { try RestorableState(encoding: value) }, for: object, elements: elements)
  }

  /// Gives an object its state as the encoded value; `nil` if none is saved, or it is withheld (`decode(_:)` says why).
  /// Throws a `DecodingError` that names object and key if the state, of another version of the program, does not fit.
  public func decode<Value: Decodable & Sendable>(
    _ type: Value.Type,
    for object: RestorableObject
  ) async throws -> Value? {
    let state = try await decode(object).state
    return try named(object) { try state?.decode(type) }
  }

  private func named<Value>(_ object: RestorableObject, _ code: () throws -> Value) throws -> Value {
    do {
      return try code()
    } catch let error as DecodingError {
      throw error.of(object)
    } catch let error as EncodingError {
      throw error.of(object)
    }
  }

  /// The session has restored its objects (R19, R31). Returns the number of sessions that are still restoring.
  @discardableResult
  public func completeStateRestoration() async throws -> Int64 {
    let call = SessionCall(CompleteStateRestoration(), isIdempotent: true, effect: .completesRestoration)
    return try await perform(CompleteStateRestoration.self, call).pending
  }

  /// Empties the application's head (R30). Not repeated after a lost connection: it throws `outcomeUnknown`.
  ///
  /// - Parameters:
  ///   - reason: for people and logs.
  ///   - generations: whether to delete the generations too.
  ///   - force: discard even if live sessions lose state, or the state cannot be restored.
  public func discardApplicationState(
    reason: String? = nil,
    generations: Bool = false,
    force: Bool = false
  ) async throws {
    let call = DiscardApplicationState(reason: reason, generations: generations, force: force)
    _ = try await perform(DiscardApplicationState.self, SessionCall(call, isIdempotent: false))
  }
}
