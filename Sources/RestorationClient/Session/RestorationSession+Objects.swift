// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

extension RestorationSession {
  /// Registers an object under its path (R1–R4, R8). Registering a path of this session again changes its description,
  /// and gives the same object.
  ///
  /// - Parameters:
  ///   - registration: its description. `restorationParent` should be a path; a handle may be invalid after the broker
  ///     has lost the session.
  ///   - parent: an object of this session, instead of `restorationParent`.
  ///   - restoring: encodes and decodes the object's state, if the session answers calls; otherwise a round saves the
  ///     last encoded state. The session does not keep it alive. After its release the object is unregistered with its
  ///     state, at the next round or after 2 seconds in which the session has not ended.
  @discardableResult
  public func register(
    _ registration: ObjectRegistration,
    below parent: RestorableObject? = nil,
    restoring: (any StateRestoring)? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) async throws -> RestorableObject {
    let call = SessionCall(
      RegisterObjectForStateRestoration.self,
      of: parent.map { [$0.reference] } ?? [],
      effect: .registers(registration, below: parent, restoring: restoring)
    ) { references, _ in
      var wire = registration.wire
      if let parent = references.first { wire.restorationParent = parent }
      return wire
    }
    let (result, registered) = try await answer(call)
    defer { if registered != nil { driver.returns.end() } }
    guard let object = registered else {
      throw unexpectedAnswer(to: RegisterObjectForStateRestoration.method, result)
    }
    if let restoring, object.restoring !== restoring { throw RestorationSessionError.duplicateObject(object.path) }
    return object
  }

  /// Registers an object whose state is its `@Restorable` properties. When it returns, they are restored; the session
  /// pushes later writes. Call it on the object's actor.
  ///
  /// A property keeps its value if none is saved, or if the saved one is of another type: then `propertiesFailed`
  /// reports it, and the saved value stays until the property is written. Keys without a property stay. A withheld
  /// state is reported too; the first write replaces it. The session retains the values, not the object: unregister it
  /// when it is closed.
  ///
  /// - Parameters:
  ///   - registration: its description, at least its identifier: `register("Editor", binding: editor)`.
  ///   - parent: an object of this session, instead of `restorationParent`.
  ///   - properties: the object with the properties.
  @discardableResult
  public func register(
    _ registration: ObjectRegistration,
    below parent: RestorableObject? = nil,
    binding properties: AnyObject,
    isolation: isolated (any Actor)? = #isolation
  ) async throws -> RestorableObject {
    let properties = try await RestorableProperties.found(in: properties, on: isolation)
    let object = try await register(registration, below: parent)
    // The writes of an object that was bound there before are decoded.
    await flush(object)
    await bind(properties, of: object, restoring: try await decode(object))
    return object
  }

  /// Registers an object by its identifier: `register("Editor")`.
  @discardableResult
  public func register(
    _ identifier: String,
    below parent: RestorableObject? = nil,
    restoring: (any StateRestoring)? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) async throws -> RestorableObject {
    try await register(ObjectRegistration(identifier), below: parent, restoring: restoring, isolation: isolation)
  }

  /// Registers an object by its identifier; its state is its `@Restorable` properties.
  @discardableResult
  public func register(
    _ identifier: String,
    below parent: RestorableObject? = nil,
    binding properties: AnyObject,
    isolation: isolated (any Actor)? = #isolation
  ) async throws -> RestorableObject {
    try await register(ObjectRegistration(identifier), below: parent, binding: properties, isolation: isolation)
  }

  /// `nil` if this session has no object at the path.
  public func object(at path: IdentifierPath) -> RestorableObject? { live.object(at: path) }

  /// Removes an object from its application, with its state unless `keepState` (R3, R13). Does nothing if the session
  /// no longer has the object.
  public func unregister(_ object: RestorableObject, keepState: Bool = false) async throws {
    guard await owns(object) else { return }
    if keepState { await flush(object) }
    do {
      _ = try await answer(.unregistering(object, keepState: keepState))
    } catch let error as RestorationError where error.code == .unknownObject || error.code == .replaced {
      // It no longer exists, perhaps because this call was sent before.
    }
  }

  /// Reopens the objects that were closed at a path, or last: they are vacant, with their states (R13). Register them,
  /// or let `restoreApplicationState(objects:)` make them.
  @discardableResult
  public func reopenObject(at path: IdentifierPath? = nil) async throws -> ReopenedObject {
    try await perform(ReopenObject.self, SessionCall(ReopenObject(path: path), isIdempotent: false))
  }

  /// Forgets a vacant path, with all vacant objects below it; generations keep them (R13). Does nothing if the path is
  /// unknown.
  public func forget(_ path: IdentifierPath) async throws {
    let call = UnregisterObject(object: .path(path))
    do {
      _ = try await perform(UnregisterObject.self, SessionCall(call, isIdempotent: true))
    } catch let error as RestorationError where error.code == .unknownObject {
      // It is gone, perhaps because this call was sent before.
    }
  }

  /// Moves an object with all objects below it under another parent, or makes it a root; gives its path (R6).
  ///
  /// - Parameter takeOver: whether it may displace a state or a live object (R6, R8).
  @discardableResult
  public func setRestorationParent(
    of object: RestorableObject,
    to parent: RestorableReference?,
    takeOver: Bool = false
  ) async throws -> IdentifierPath? {
    let call = SessionCall(
      SetRestorationParent.self,
      of: [object.reference] + (parent.map { [$0] } ?? []),
      effect: .moves(object, below: parent)
    ) { wire, _ in
      SetRestorationParent(object: wire[0], restorationParent: wire.dropFirst().first, takeOver: takeOver)
    }
    return try await perform(SetRestorationParent.self, call).path
  }

  /// Gives an object another identifier and position; it moves with all objects below it (R4, R6).
  ///
  /// - Parameters:
  ///   - identifier: `nil` excludes the object and everything below it (R4).
  ///   - position: `nil` removes the position.
  ///   - takeOver: whether it may displace a state or a live object (R6, R8).
  @discardableResult
  public func setRestorationIdentifier(
    of object: RestorableObject,
    to identifier: String?,
    position: Int64? = nil,
    takeOver: Bool = false
  ) async throws -> ObjectPlacement {
    let call = SessionCall(
      SetRestorationIdentifier.self,
      of: [object.reference],
      effect: .renames(object, identifier: identifier, position: position)
    ) { wire, _ in
      SetRestorationIdentifier(
        object: wire[0],
        restorationIdentifier: identifier,
        position: position,
        takeOver: takeOver
      )
    }
    return try await perform(SetRestorationIdentifier.self, call)
  }

  /// Gives the children of a container the positions 0…n−1 in one step. Returns their paths in that order; `nil` for a
  /// child whose identifier is `nil` (R4, R6). If a child is named by its path, the call is not repeated after a lost
  /// connection: it throws `outcomeUnknown`.
  @discardableResult
  public func setChildren(
    of object: RestorableObject,
    to children: [RestorableReference]
  ) async throws -> [IdentifierPath?] {
    let call = SessionCall(
      SetChildren.self,
      isIdempotent: children.allSatisfy { if case .object = $0 { true } else { false } },
      of: [object.reference] + children,
      effect: .orders(children)
    ) { wire, _ in SetChildren(object: wire[0], children: Array(wire.dropFirst())) }
    return try await perform(SetChildren.self, call).paths
  }
}
