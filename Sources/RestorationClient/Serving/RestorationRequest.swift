// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

/// Asks a restoration class or the delegate to make an object (R24). `state` is for inspection; the object gets it
/// later by `StateRestoring.decodeRestorableState`.
public struct RestorationRequest: Sendable {
  /// Makes or finds the object of a restoration class. `nil` leaves it and everything below it unrestored (R22, R23).
  /// It may throw one of `Instead`.
  public typealias Factory = @Sendable (RestorationRequest) async throws -> RestorableObject?

  /// The errors by which a factory gives another answer than an object or `nil`.
  public enum Instead: Error, Hashable {
    /// A session, this one or another, is about to register the object: the restoration waits for it.
    case awaited
    /// The broker asks another session that serves the class.
    case pass
    /// The broker forgets the object's path, and all vacant objects below it (R13). `nil` refuses only this
    /// restoration.
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
  /// The former path of the object.
  public let path: IdentifierPath
  public let kind: ObjectKind
  /// The former class; `nil` if none was named.
  public let objectClass: String?
  /// The saved state; `nil` if there is none.
  public let state: RestorableState?
  public let origin: ReservedKeys?
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

  /// Registers an object at its former place; it gets its state later. Keep the object alive: if it is released, it
  /// counts as closed.
  public func register(_ restoring: any StateRestoring) async throws -> RestorableObject {
    try await session.register(registration, restoring: restoring)
  }
}
