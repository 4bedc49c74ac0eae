// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

extension RestorationSession {
  /// Makes an object known under its path (R1–R4, R8). Registering a path of this session's again changes its
  /// description, and gives the same object.
  ///
  /// - Parameters:
  ///   - registration: its description. Its `restorationParent` should be a path; a handle may be invalid after the
  ///     broker has lost the session.
  ///   - parent: an object of this session, instead of `restorationParent`.
  ///   - restoring: encodes and decodes the object's state, if the session answers calls. The session does not keep it
  ///     alive: if it is released, as of a tab that was closed, the object is unregistered with its state at the next
  ///     round, or after 2 seconds in which the session has not ended. Without `restoring`, a round saves the state
  ///     encoded last.
  @discardableResult
  public func register(
    _ registration: ObjectRegistration,
    below parent: RestorableObject? = nil,
    restoring: (any StateRestoring)? = nil
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
    guard let object = registered else {
      throw unexpectedAnswer(to: RegisterObjectForStateRestoration.method, result)
    }
    if let restoring, object.restoring !== restoring { throw RestorationSessionError.duplicateObject(object.path) }
    return object
  }

  /// Makes an object known whose state are its `@Restorable` properties. When it returns, they are as they were saved;
  /// the session pushes what is written to them from then on. Call it on the actor that the object belongs to.
  ///
  /// A property without a saved value keeps its own, and so does one whose saved value is of another type:
  /// `notifications` tells of it (`propertiesFailed`). That value stays saved until the property is written, and a key
  /// that no property has, of a newer version of the program, stays. A state that the broker withholds is reported too;
  /// the first write replaces it. The session keeps the values, but not the object: unregister it when it is closed.
  ///
  /// - Parameters:
  ///   - registration: its description, at least its identifier: `register("Editor", binding: editor)`.
  ///   - parent: an object of this session, instead of `restorationParent`.
  ///   - properties: the object that has the properties.
  @discardableResult
  public func register(
    _ registration: ObjectRegistration,
    below parent: RestorableObject? = nil,
    binding properties: AnyObject,
    isolation: isolated (any Actor)? = #isolation
  ) async throws -> RestorableObject {
    let properties = try await RestorableProperties.found(in: properties, on: isolation)
    let object = try await register(registration, below: parent)
    // If another one was bound there before, what was written to it is what is decoded.
    await flush(object)
    await bind(properties, of: object, restoring: try await decode(object))
    return object
  }

  /// Makes an object known by its identifier alone: `register("Editor")`.
  @discardableResult
  public func register(
    _ identifier: String,
    below parent: RestorableObject? = nil,
    restoring: (any StateRestoring)? = nil
  ) async throws -> RestorableObject {
    try await register(ObjectRegistration(identifier), below: parent, restoring: restoring)
  }

  /// Makes an object known, by its identifier alone, whose state are its `@Restorable` properties.
  @discardableResult
  public func register(
    _ identifier: String,
    below parent: RestorableObject? = nil,
    binding properties: AnyObject,
    isolation: isolated (any Actor)? = #isolation
  ) async throws -> RestorableObject {
    try await register(ObjectRegistration(identifier), below: parent, binding: properties, isolation: isolation)
  }

  /// The object of this session at that path; `nil` if there is none, or another session has it.
  public func object(at path: IdentifierPath) -> RestorableObject? { live.object(at: path) }

  /// Removes an object from its application, with its state unless `keepState` (R3, R13). Does nothing if the object is
  /// no longer this session's.
  public func unregister(_ object: RestorableObject, keepState: Bool = false) async throws {
    guard await owns(object) else { return }
    if keepState { await flush(object) }
    do {
      _ = try await answer(.unregistering(object, keepState: keepState))
    } catch let error as RestorationError where error.code == .unknownObject || error.code == .replaced {
      // It no longer exists, perhaps because of this call, which was then sent again.
    }
  }

  /// Opens again what was closed at a path, or last: its objects are there again, vacant, with their states (R13).
  /// Register them, or have them made by `restoreApplicationState(objects:)`.
  @discardableResult
  public func reopenObject(at path: IdentifierPath? = nil) async throws -> ReopenedObject {
    try await perform(ReopenObject.self, SessionCall(ReopenObject().with { $0.path = path }, isIdempotent: false))
  }

  /// Forgets a path that no session has, with all vacant objects below it; generations keep them (R13). Does nothing if
  /// the path is unknown.
  public func forget(_ path: IdentifierPath) async throws {
    let call = UnregisterObject().with { $0.object = .path(path) }
    do {
      _ = try await perform(UnregisterObject.self, SessionCall(call, isIdempotent: true))
    } catch let error as RestorationError where error.code == .unknownObject {
      // It is gone, perhaps because of this call, which was then sent again.
    }
  }

  /// Moves an object with all that is below it under another parent, or makes it a root, and gives its path (R6).
  ///
  /// - Parameter takeOver: whether a state or a live object that is in the way may be displaced (R6, R8).
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
      SetRestorationParent().with {
        $0.object = wire[0]
        $0.restorationParent = wire.count > 1 ? wire[1] : nil
        $0.takeOver = takeOver
      }
    }
    return try await perform(SetRestorationParent.self, call).path
  }

  /// Gives an object another identifier and position; it moves with all that is below it (R4, R6).
  ///
  /// - Parameters:
  ///   - identifier: `nil` excludes the object and everything below it (R4).
  ///   - position: `nil` leaves the object without one.
  ///   - takeOver: whether a state or a live object that is in the way may be displaced (R6, R8).
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
      SetRestorationIdentifier().with {
        $0.object = wire[0]
        $0.restorationIdentifier = identifier
        $0.position = position
        $0.takeOver = takeOver
      }
    }
    return try await perform(SetRestorationIdentifier.self, call)
  }

  /// Gives the children of a container their positions 0…n−1 in one step. Returns their paths in that order; `nil` for
  /// a child whose identifier is `nil` (R4, R6).
  ///
  /// If a child is named by its path, which the call changes, it is not sent again after a lost connection: then it
  /// throws `outcomeUnknown`.
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
    ) { wire, _ in
      SetChildren().with {
        $0.object = wire[0]
        $0.children = Array(wire.dropFirst())
      }
    }
    return try await perform(SetChildren.self, call).paths
  }
}
