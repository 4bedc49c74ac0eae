// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// What the broker says of an object that has been registered.
public struct RegisteredObject: Hashable, Sendable {
  /// The object's handle; it names the object until its registration ends.
  public let object: Int64
  /// Nil where the object's own identifier is nil (R4).
  public internal(set) var path: [String]?
  /// Whether the next generation holds the object by itself, without a reference to it (R4, R5, R7).
  public internal(set) var included: Bool
  /// Whether there is a saved state to decode.
  public let state: StateAvailability
  /// False where decoding would answer `classMismatch` (R25).
  public let classMatches: Bool
  /// Token of the detached session that the call began; nil for a call of a session.
  public let session: String?

  init(_ wire: RegisterObjectForStateRestoration.Reply) {
    object = wire.object
    path = wire.path?.components
    included = wire.included
    state = StateAvailability(wire.restoration.state)
    classMatches = wire.restoration.classMatches
    session = wire.session
  }

  /// The handle, to be used in further calls.
  public var reference: ObjectReference { .handle(object) }
}

/// Where an object is after it was moved or renamed.
public struct ObjectPlacement: Hashable, Sendable {
  /// The path from now on; nil where the object's own identifier is nil (R4).
  public let path: [String]?
  /// Whether the next generation holds the object by itself (R4, R5).
  public let included: Bool

  init(_ wire: SetRestorationIdentifier.Reply) {
    path = wire.path?.components
    included = wire.included
  }
}
