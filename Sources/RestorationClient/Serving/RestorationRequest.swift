// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

/// An object is to be made as it was (R24): what a restoration class or the delegate is asked.
///
/// Making it and giving its state to it are two steps: `state` is for whoever wants to look into it, and comes again to
/// `StateRestoring.decodeRestorableState`.
public struct RestorationRequest: Sendable {
  /// Makes the object of a restoration class, or finds it. Nil leaves it and what is below it unrestored (R22, R23).
  public typealias Factory = @Sendable (RestorationRequest) async throws -> RestorableObject?

  /// Name of the restoration class; nil where the delegate is asked.
  public let restorationClass: String?
  /// The whole path that the object had.
  public let path: IdentifierPath
  /// What it was to its application.
  public let kind: ObjectKind
  /// The class that it had; nil where none was named.
  public let objectClass: String?
  /// What it wrote; nil where it wrote nothing.
  public let state: RestorableState?
  /// Who wrote that and when.
  public let origin: ReservedKeys?
  /// The session that is asked.
  public let session: RestorationSession

  init(
    _ saved: SavedObject,
    restorationClass: String?,
    state: RestorableState?,
    origin: ReservedKeys?,
    session: RestorationSession
  ) {
    self.restorationClass = restorationClass
    path = saved.identifierPath
    kind = saved.kind
    objectClass = saved.objectClass
    self.state = state
    self.origin = origin
    self.session = session
  }

  /// What it takes to register the object where it was.
  public var registration: ObjectRegistration {
    let (identifier, position) = path.components.last.flatMap { RestorationIdentifier.split($0) } ?? ("", nil)
    return ObjectRegistration(
      identifier,
      restorationParent: path.components.count > 1 ? .path(IdentifierPath(path.components.dropLast())) : nil,
      kind: kind,
      classes: objectClass.map { [$0] } ?? [],
      restorationClass: restorationClass,
      position: position
    )
  }

  /// Registers an object where it was; it is given its state later. Keep the object alive: the session does not.
  public func register(_ restoring: any StateRestoring) async throws -> RestorableObject {
    try await session.register(registration, restoring: restoring)
  }
}
