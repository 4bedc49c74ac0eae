// SPDX-License-Identifier: Apache-2.0

/// An object was registered that its session had not registered before (R1).
public struct ObjectRegistered: RestorationEvent {
  package static let name = EventName.objectRegistered
  package static let summary = "A session registered an object that it had not registered before."

  public package(set) var object: ObjectHandle = 0
  public package(set) var path: IdentifierPath?
  public package(set) var kind = ObjectKind.object
  public package(set) var session = SessionIdentity()

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, .handle, "Handle.")
    try members.nullable("path", &path, "The object's path; null where its own identifier is null (R4).")
    try members.required("kind", &kind, "In `objectRegistered`: `object`, `viewController` or `view`.")
    try session.walk(&members)
  }
}

/// The registration of an object ended while its session goes on.
public struct ObjectUnregistered: RestorationEvent {
  package static let name = EventName.objectUnregistered
  package static let summary = "A registration ended while its session goes on."

  /// Why it ended.
  public enum Cause: String, OpenWireWord {
    /// By `unregisterObject`.
    case unregistered
    /// Another session has claimed the path (R1, R8).
    case replaced
  }

  public package(set) var object: ObjectHandle = 0
  public package(set) var path: IdentifierPath?
  public package(set) var cause = Cause.unregistered
  public package(set) var stateKept = false
  public package(set) var session = SessionIdentity()

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, .handle, "The handle, which names nothing any more.")
    try members.nullable("path", &path, "The object's path; null where its own identifier is null (R4).")
    try members.required("cause", &cause, "Why.")
    try members.required("stateKept", &stateKept, "Whether the object's state stays in the archive.")
    try session.walk(&members)
  }
}

/// The event `pathChanged`: an object was moved, and everything below it with it (R6).
public struct ObjectMoved: RestorationEvent {
  package static let name = EventName.pathChanged
  package static let summary =
    "An object was moved or renamed, and everything below it with it: that is not told one by one (R6)."

  public package(set) var object: ObjectHandle?
  public package(set) var from: IdentifierPath?
  public package(set) var path: IdentifierPath?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("object", &object, .handle, "Handle.")
    try members.nullable(
      "from",
      &from,
      "The path before, as it was before the call; null where its own identifier was null."
    )
    try members.nullable("path", &path, "The object's path; null where its own identifier is null (R4).")
  }
}
