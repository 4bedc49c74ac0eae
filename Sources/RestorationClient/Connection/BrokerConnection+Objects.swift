// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

// On a connection without a session, `application` names the application; with a session it is omitted.
extension BrokerConnection {
  /// Makes an object known under its path and gives it a handle (R1–R4, R8). Registering again changes the description.
  @discardableResult
  public func register(
    _ registration: ObjectRegistration,
    application: String? = nil
  ) async throws -> RegisteredObject {
    try await perform(registration.wire, application: application)
  }

  /// Removes an object from its application, with its state unless `keepState`; a vacant path with all that is vacant
  /// below it (R3, R13).
  ///
  /// - Parameter generations: whether the generations go as well, which may hold the state.
  public func unregister(
    _ object: ObjectReference,
    keepState: Bool = false,
    generations: Bool = false,
    application: String? = nil
  ) async throws {
    let call = UnregisterObject().with {
      $0.object = object
      $0.keepState = keepState
      $0.generations = generations
    }
    _ = try await perform(call, application: application)
  }

  /// What was closed last and can be opened again, the last first (R13).
  public func listClosedObjects(of application: String? = nil) async throws -> [ClosedObject] {
    try await perform(ListClosedObjects(), application: application).objects
  }

  /// Opens again what was closed at a path, or last: its objects are there again, vacant, with their states (R13).
  @discardableResult
  public func reopenObject(at path: IdentifierPath? = nil, application: String? = nil) async throws -> ReopenedObject {
    try await perform(ReopenObject().with { $0.path = path }, application: application)
  }

  /// Moves an object with all that is below it under another parent, or makes it a root, and gives its path (R6).
  ///
  /// - Parameter takeOver: whether a state or a live object that is in the way may be displaced (R6, R8).
  @discardableResult
  public func setRestorationParent(
    of object: ObjectReference,
    to parent: ObjectReference?,
    takeOver: Bool = false,
    application: String? = nil
  ) async throws -> IdentifierPath? {
    let call = SetRestorationParent().with {
      $0.object = object
      $0.restorationParent = parent
      $0.takeOver = takeOver
    }
    return try await perform(call, application: application).path
  }

  /// Gives an object another identifier and position; it moves with all that is below it (R4, R6).
  ///
  /// - Parameters:
  ///   - identifier: `nil` excludes the object and everything below it (R4).
  ///   - position: `nil` leaves the object without one.
  ///   - takeOver: whether a state or a live object that is in the way may be displaced (R6, R8).
  @discardableResult
  public func setRestorationIdentifier(
    of object: ObjectReference,
    to identifier: String?,
    position: Int64? = nil,
    takeOver: Bool = false,
    application: String? = nil
  ) async throws -> ObjectPlacement {
    let call = SetRestorationIdentifier().with {
      $0.object = object
      $0.restorationIdentifier = identifier
      $0.position = position
      $0.takeOver = takeOver
    }
    return try await perform(call, application: application)
  }

  /// Gives the children of a container their positions 0…n−1 in one step. Returns their paths in that order; `nil` for
  /// a child whose identifier is `nil` (R4, R6).
  @discardableResult
  public func setChildren(
    of object: ObjectReference,
    to children: [ObjectReference],
    application: String? = nil
  ) async throws -> [IdentifierPath?] {
    let call = SetChildren().with {
      $0.object = object
      $0.children = children
    }
    return try await perform(call, application: application).paths
  }
}
