// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

/// The request to a restoration class or the delegate to make an object as it was (R24).
///
/// Making the object and giving it its state are two steps: `state` is for inspection, and comes again to
/// `StateRestoring.decodeRestorableState`.
public struct RestorationRequest: Sendable {
  /// Makes or finds the object of a restoration class. `nil` leaves it and everything below it unrestored (R22, R23).
  /// It may throw one of `Instead`.
  public typealias Factory = @Sendable (RestorationRequest) async throws -> RestorableObject?

  /// What a factory throws that neither gives an object nor leaves it unrestored.
  public enum Instead: Error, Hashable {
    /// A session, this one or another, is about to register the object: it is awaited.
    case awaited
    /// Another session that makes objects of the class is to be asked.
    case pass
    /// The object's path, and all below it that no session has, are forgotten (R13): it is not asked for again. `nil`
    /// is a no for this restoration only.
    case forget

    var located: LocatedObject {
      switch self {
      case .awaited: .awaited
      case .pass: .passed
      case .forget: .forgotten
      }
    }
  }

  /// Name of the restoration class; `nil` if the delegate is asked.
  public let restorationClass: String?
  /// The whole path that the object had.
  public let path: IdentifierPath
  public let kind: ObjectKind
  /// The class that it had; `nil` if none was named.
  public let objectClass: String?
  /// The state it wrote; `nil` if it wrote none.
  public let state: RestorableState?
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
    (self.state, self.origin, self.session) = (state, origin, session)
  }

  /// The registration of the object at its former place.
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

  /// Registers an object at its former place; it gets its state later. Keep the object alive: the session does not, and
  /// takes a released one for closed.
  public func register(_ restoring: any StateRestoring) async throws -> RestorableObject {
    try await session.register(registration, restoring: restoring)
  }
}
