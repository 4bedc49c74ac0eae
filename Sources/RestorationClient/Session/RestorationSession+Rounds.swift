// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

extension RestorationSession {
  // MARK: Saving

  /// Saves the whole application: all its processes are asked for the states of their objects, and the answers become
  /// one generation (R11, R12). Joins a round that is under way.
  ///
  /// - Parameters:
  ///   - reason: for people and logs.
  ///   - deadline: how long the round may take; `nil` means the broker's 5 seconds. Processes that have not answered by
  ///     then keep the states saved before.
  @discardableResult
  public func saveApplicationState(reason: String? = nil, deadline: Duration? = nil) async throws -> SaveResult {
    await flush()
    let call = SaveApplicationState().with { message in
      message.reason = reason
      message.deadlineMilliseconds = deadline.map { max(1, $0.wholeMilliseconds) }
    }
    return try await perform(SaveApplicationState.self, SessionCall(call, isIdempotent: true))
  }

  /// Says that the saved state of an object is out of date. The broker asks for its state once within a second
  /// (`StateRestoring.encodeRestorableState`), however often this is called until then.
  public func invalidateRestorableState(of object: RestorableObject) async throws {
    let call = SessionCall(InvalidateRestorableState.self, of: [object.reference]) { wire, _ in
      InvalidateRestorableState().with { $0.object = wire[0] }
    }
    _ = try await perform(InvalidateRestorableState.self, call)
  }

  // MARK: Restoring

  /// Restores all saved objects that are not restored yet: objects are located or made, parents first, get their states
  /// back, and are notified when all have (R21–R24). Joins a restoration that is under way.
  ///
  /// If the connection is lost meanwhile, the restoration is requested again: the result then lists only the rest.
  ///
  /// - Parameters:
  ///   - deadline: when the restoration ends with what has been restored until then; `nil` means the broker's 10
  ///     seconds.
  ///   - objects: restore only these, with all below them; `nil` means all.
  @discardableResult
  public func restoreApplicationState(
    deadline: Duration? = nil,
    objects: [IdentifierPath]? = nil
  ) async throws -> RestoreResult {
    let call = RestoreApplicationState().with { message in
      message.deadlineMilliseconds = deadline.map { max(1, $0.wholeMilliseconds) }
      message.objects = objects.map { $0.map { .path($0) } }
    }
    return try await perform(RestoreApplicationState.self, SessionCall(call, isIdempotent: true))
  }

  /// Holds back the end of the restoration until `completeStateRestoration` was called as often (R21); gives how many
  /// sessions of the application are still restoring.
  ///
  /// Not sent again after a lost connection: then it throws `outcomeUnknown`.
  @discardableResult
  public func extendStateRestoration() async throws -> Int64 {
    let call = SessionCall(ExtendStateRestoration(), isIdempotent: false, effect: .extendsRestoration)
    return try await perform(ExtendStateRestoration.self, call).pending
  }

  /// Makes this session answer for a restoration class: `factory` makes the objects that were registered with that
  /// class (R22–R24). The registration lasts as long as the session, across brokers.
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
    let call = RegisterRestorationClass().with { ($0.restorationClass, $0.isShared) = (name, shared) }
    let effect = SessionCall.Effect.registersClass(name, factory, isShared: shared)
    _ = try await perform(RegisterRestorationClass.self, SessionCall(call, isIdempotent: true, effect: effect))
  }

  /// Lets rows of a view be saved by their content instead of their position (R28). The view may belong to another
  /// process. The session does not keep the data source alive.
  public func registerDataSource(_ source: any ModelAssociating, for view: RestorableReference) async throws {
    let effect = SessionCall.Effect.registersDataSource(source, view)
    let call = SessionCall(RegisterDataSource.self, of: [view], effect: effect) { wire, _ in
      RegisterDataSource().with { $0.view = wire[0] }
    }
    _ = try await perform(RegisterDataSource.self, call)
  }
}
