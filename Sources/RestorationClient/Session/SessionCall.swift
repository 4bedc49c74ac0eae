// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// One call of a session: its message, its repetition, and the effect of its answer.
struct SessionCall: Sendable {
  /// The effect of a good answer on the session.
  enum Effect: Sendable {
    case none
    case registers(ObjectRegistration, below: RestorableObject?, restoring: (any StateRestoring)?)
    case unregisters(RestorableObject, keepsState: Bool)
    case moves(RestorableObject, below: RestorableReference?)
    case renames(RestorableObject, identifier: String?, position: Int64?)
    case orders([RestorableReference])
    case registersClass(String, RestorationRequest.Factory, isShared: Bool)
    case registersDataSource(any ModelAssociating, RestorableReference)
    case extendsRestoration
    case completesRestoration
  }

  /// Gives the parameters with the current handles; `revision` is `nil` if the call has none.
  typealias Parameters = @Sendable (_ objects: SessionObjects, _ revision: Int64?) throws -> JSONText?

  let method: String
  let isIdempotent: Bool
  /// Objects of this session that it names.
  var objects: [RestorableObject] = []
  /// Whether the call has a revision of its own (R15).
  var isNumbered = false
  /// Whether it only reads or writes one object of this session.
  var isOfOneObject = false
  /// Whether it fails with the connection over which it was sent.
  var isOfOneConnection = false
  /// Whether memory never answers it, even before a broker has the states there.
  var needsBroker = false
  /// The approximate size of the parameters.
  var bytes = 0
  var effect = Effect.none
  /// Of the task that makes it.
  var trace = CallTrace.current
  let parameters: Parameters

  /// The least share of the window for each call; it bounds the number of calls.
  private static let overhead = 512

  /// The object of the call; the application itself if it names none.
  var target: RestorableReference { objects.first.map { .object($0) } ?? .path([]) }

  /// Whether the session learns something from the answer.
  var hasEffect: Bool { if case .none = effect { false } else { true } }

  var queued: CallQueue.Call {
    CallQueue.Call(
      isIdempotent: isIdempotent,
      objects: objects.map(\.id),
      bytes: bytes + Self.overhead,
      isOfOneConnection: isOfOneConnection
    )
  }
}

extension SessionCall {
  static func unregistering(_ object: RestorableObject, keepState: Bool) -> SessionCall {
    let effect = Effect.unregisters(object, keepsState: keepState)
    return SessionCall(UnregisterObject.self, of: [object.reference], effect: effect) { wire, _ in
      UnregisterObject(object: wire[0], keepState: keepState)
    }
  }

  static func encoding(
    _ state: RestorableState,
    as reference: RestorableReference,
    _ elements: [RestorableElement] = []
  ) -> SessionCall {
    SessionCall(EncodeRestorableState.self, of: [reference], isNumbered: true, bytes: state.bytes) { wire, revision in
      try BrokerConnection.call(state, wire[0], elements, revision)
    }
  }

  init<Method: RestorationMethod>(_ call: Method, isIdempotent: Bool, effect: Effect = .none) {
    method = Method.method
    (self.isIdempotent, self.effect) = (isIdempotent, effect)
    let text = BrokerConnection.parameters(of: call)
    bytes = text.count
    parameters = { _, _ in text }
  }

  /// A call about objects: built for each connection, with the handles valid there.
  init<Method: RestorationMethod>(
    _ method: Method.Type,
    isIdempotent: Bool = true,
    of references: [RestorableReference],
    isNumbered: Bool = false,
    bytes: Int = 0,
    effect: Effect = .none,
    _ make: @escaping @Sendable ([ObjectReference], _ revision: Int64?) throws -> Method
  ) {
    self.method = Method.method
    (self.isIdempotent, self.effect) = (isIdempotent, effect)
    self.objects = references.compactMap { if case .object(let object) = $0 { object } else { nil } }
    (self.isNumbered, self.bytes) = (isNumbered, bytes)
    if case .none = effect, references.count == 1, objects.count == 1 { isOfOneObject = true }
    parameters = { objects, revision in
      let wire = try references.map { reference in
        guard let wire = objects.wire(reference) else { throw RestorationSessionError.notRegistered(nil, nil) }
        return wire
      }
      return BrokerConnection.parameters(of: try make(wire, revision))
    }
  }
}
