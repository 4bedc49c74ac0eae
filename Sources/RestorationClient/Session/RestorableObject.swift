// SPDX-License-Identifier: Apache-2.0

public import RestorationWire
internal import Synchronization

/// An object that a session has registered; it outlives connections and brokers. Equal only to itself. Its properties
/// are the broker's last report: they lack moves by other processes during a reconnection.
public final class RestorableObject: Sendable {
  let id: ObjectPlan.ObjectID
  let session: ObjectIdentifier
  private let known: Mutex<RegisteredObject>
  private let owner = Mutex(Owner())
  private let loss = Mutex<RestorationSessionError?>(nil)

  private struct Owner { weak var restoring: (any StateRestoring)? }

  init(id: ObjectPlan.ObjectID, session: ObjectIdentifier, _ registered: RegisteredObject) {
    (self.id, self.session) = (id, session)
    known = Mutex(registered)
  }

  /// The path; `nil` if the object's own identifier is `nil` (R4).
  public var path: IdentifierPath? { known.withLock { $0.path } }

  /// Whether the walk of the next save round reaches the object (R4, R7), as registering or renaming it reported.
  public var included: Bool { known.withLock { $0.included } }

  /// Whether the session had the path when it was registered, as after a resumption (R1).
  public var existing: Bool { known.withLock { $0.existing } }

  /// Whether there was a saved state to decode when the object was registered.
  public var state: RestorationState { known.withLock { $0.restoration.state } }

  /// Whether the broker delivers the state by itself, because the process came late (R29).
  public var handing: Bool { known.withLock { $0.restoration.handing } }

  /// False if decoding would have answered `classMismatch` when the object was registered (R25).
  public var classMatches: Bool { known.withLock { $0.restoration.classMatches } }

  /// The handle, for calls without a method in this library. It changes if the broker loses the session: do not retain
  /// it.
  public var handle: Int64 { known.withLock { $0.object } }

  /// The program's own object; `nil` if none was registered, or it was released.
  ///
  /// `session.object(at: path)?.restoring as? Editor` leads from a path to the editor, and
  /// `saved.state["front"]?.reference?.restoring` from a reference in a saved state.
  public var restoring: (any StateRestoring)? { owner.withLock { $0.restoring } }

  /// Whether the session still has it: false after it was unregistered, taken over, or refused at a repeated
  /// registration.
  public var isRegistered: Bool { loss.withLock { $0 == nil } }

  public var reference: RestorableReference { .object(self) }

  var lossError: RestorationSessionError? { loss.withLock { $0 } }

  func registered(_ registered: RegisteredObject) { known.withLock { $0 = registered } }

  func restored(by restoring: any StateRestoring) { owner.withLock { $0.restoring = restoring } }

  func moved(to path: IdentifierPath?, included: Bool? = nil) {
    known.withLock { known in
      known.path = path
      known.included = included ?? known.included
    }
  }

  func lost(_ error: RestorationSessionError) { loss.withLock { $0 = $0 ?? error } }
}

extension RestorableObject: Hashable {
  public static func == (left: RestorableObject, right: RestorableObject) -> Bool { left === right }

  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension RestorableObject: CustomStringConvertible {
  /// The path's components joined by `/`, for people.
  public var description: String { path?.description ?? "an object without a path" }
}

/// Names an object in a call of a session.
public enum RestorableReference: Hashable, Sendable {
  case object(RestorableObject)
  /// Components from the outermost ancestor to the object; each is an identifier or `identifier#position`.
  case path(IdentifierPath)
}

extension RestorableReference {
  /// The object's path; `nil` if its own identifier is `nil` (R4).
  public var path: IdentifierPath? {
    switch self {
    case .object(let object): object.path
    case .path(let path): path
    }
  }

  /// The program's own object, if it was registered by this session.
  public var restoring: (any StateRestoring)? { if case .object(let object) = self { object.restoring } else { nil } }
}

extension RestorableReference: ExpressibleByArrayLiteral {
  public init(arrayLiteral components: String...) { self = .path(IdentifierPath(components)) }
}
