// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

extension RestorationSession {
  // MARK: Saving

  /// Saves the whole application: asks all processes for their objects' states, and makes the answers one generation
  /// (R11, R12). Joins a running round. Throws `reentrant` while the session answers the broker, because the round
  /// would wait for that answer.
  ///
  /// - Parameters:
  ///   - reason: for people and logs.
  ///   - deadline: the round's timeout; `nil` means the broker's 5 seconds. Processes without an answer keep the states
  ///     saved before.
  @discardableResult
  public func saveApplicationState(reason: String? = nil, deadline: Duration? = nil) async throws -> SaveResult {
    if isAnswering { throw RestorationSessionError.reentrant() }
    await flush()
    let milliseconds = deadline.map { max(1, $0.wholeMilliseconds) }
    let call = SaveApplicationState(reason: reason, deadlineMilliseconds: milliseconds)
    return try await perform(SaveApplicationState.self, SessionCall(call, isIdempotent: true))
  }

  /// Marks the saved state of an object as out of date. The broker asks for it once within a second
  /// (`StateRestoring.encodeRestorableState`), for any number of these calls.
  public func invalidateRestorableState(of object: RestorableObject) async throws {
    let call = SessionCall(InvalidateRestorableState.self, of: [object.reference]) { wire, _ in
      InvalidateRestorableState(object: wire[0])
    }
    _ = try await perform(InvalidateRestorableState.self, call)
  }

  // MARK: Restoring

  /// Restores all saved objects that are not restored yet: parents first, objects are located or made, get their
  /// states, and are notified at the end (R21–R24). Joins a running restoration. After a lost connection it is
  /// requested again; the result then lists only the rest.
  ///
  /// - Parameters:
  ///   - deadline: the restoration's timeout; `nil` means the broker's 10 seconds. Objects restored before stay
  ///     restored.
  ///   - objects: restores only these, with all below them; `nil` means all.
  @discardableResult
  public func restoreApplicationState(
    deadline: Duration? = nil,
    objects: [IdentifierPath]? = nil
  ) async throws -> RestoreResult {
    let milliseconds = deadline.map { max(1, $0.wholeMilliseconds) }
    let objects = objects.map { $0.map { ObjectReference.path($0) } }
    let call = RestoreApplicationState(deadlineMilliseconds: milliseconds, objects: objects)
    return try await perform(RestoreApplicationState.self, SessionCall(call, isIdempotent: true))
  }

  /// Extends the restoration until `completeStateRestoration` was called as often (R21); gives the number of sessions
  /// that are still restoring. Not repeated after a lost connection: it throws `outcomeUnknown`.
  @discardableResult
  public func extendStateRestoration() async throws -> Int64 {
    let call = SessionCall(ExtendStateRestoration(), isIdempotent: false, effect: .extendsRestoration)
    return try await perform(ExtendStateRestoration.self, call).pending
  }

  /// Registers a restoration class: `factory` makes its objects (R22–R24). The registration lasts as long as the
  /// session, across brokers.
  ///
  /// ```swift
  /// try await session.registerRestorationClass("Document") { request in
  ///   let document = try await documents.open(request.path.last)
  ///   return try await request.register(document)
  /// }
  /// ```
  ///
  /// - Parameter shared: several sessions may make objects of the class, if all of them say so.
  public func registerRestorationClass(
    _ name: String,
    shared: Bool = false,
    factory: @escaping RestorationRequest.Factory
  ) async throws {
    let call = RegisterRestorationClass(restorationClass: name, isShared: shared)
    let effect = SessionCall.Effect.registersClass(name, factory, isShared: shared)
    _ = try await perform(RegisterRestorationClass.self, SessionCall(call, isIdempotent: true, effect: effect))
  }

  /// Saves rows of a view by their content instead of their position (R28). The view may belong to another process. The
  /// session does not keep the data source alive.
  public func registerDataSource(_ source: any ModelAssociating, for view: RestorableReference) async throws {
    let effect = SessionCall.Effect.registersDataSource(source, view)
    let call = SessionCall(RegisterDataSource.self, of: [view], effect: effect) { wire, _ in
      RegisterDataSource(view: wire[0])
    }
    _ = try await perform(RegisterDataSource.self, call)
  }
}
