// SPDX-License-Identifier: Apache-2.0

/// A notification for clients that list it in `serves`. Its members are the parameters.
package protocol RestorationNotification: WireObject, Hashable {
  static var method: ServedMethod { get }

  /// One sentence: the event.
  static var summary: String { get }
}

/// All sessions have decoded: these objects of the session are restored (R21).
public struct ApplicationFinishedRestoringState: RestorationNotification {
  package static let method = ServedMethod.applicationFinishedRestoringState
  package static let summary =
    "The restoration is over, for all sessions (R21): these objects of this session are restored."

  public package(set) var objects: [ObjectHandle] = []
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("objects", &objects, .handle, "Handles of the objects.")
  }
}

/// A save round was committed as this generation (R11).
public struct ApplicationStateSaved: RestorationNotification {
  package static let method = ServedMethod.applicationStateSaved
  package static let summary = "A save round was committed (R11)."

  public package(set) var generation: Int64 = 0
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("generation", &generation, .generation, "The generation it made.")
  }
}

/// This generation has replaced the whole saved state; objects may be restored again.
public struct HeadReplaced: RestorationNotification {
  package static let method = ServedMethod.headReplaced
  package static let summary = "The saved state was replaced as a whole."

  public package(set) var generation: Int64 = 0
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("generation", &generation, .generation, "Number of the generation that the head equals now.")
  }
}

/// An object has a new path because it or an ancestor was moved (R6).
public struct PathChanged: RestorationNotification {
  package static let method = ServedMethod.pathChanged
  package static let summary =
    "An object of this session has another path because it or an ancestor was moved or renamed (R6)."

  public package(set) var object: ObjectHandle = 0
  public package(set) var path: IdentifierPath?
  package init() {}

  package init(object: ObjectHandle, path: IdentifierPath?) { (self.object, self.path) = (object, path) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, .handle, "Handle of the object; it stays the same.")
    try members.nullable("path", &path, "Its path from now on; null if its own identifier is null.")
  }
}

/// Another session has taken over the object's path; writes to the object now fail with `replaced` (R8).
public struct RegistrationReplaced: RestorationNotification {
  package static let method = ServedMethod.registrationReplaced
  package static let summary = "Another session has taken over the path of an object of this session (R8)."

  public package(set) var object: ObjectHandle = 0
  public package(set) var path: IdentifierPath = []
  public package(set) var by = ObjectOwner()
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, .handle, "The handle that this session had.")
    try members.required("path", &path, "The path that was taken over.")
    try members.required("by", &by, "The new owner: `process` (string or null) and `pid` (integer).")
  }
}

/// An object is saved from now on. Its owner's earlier encodes were not stored (R4).
public struct StateWanted: RestorationNotification {
  package static let method = ServedMethod.stateWanted
  package static let summary =
    "An object of this session is saved from now on, and what was encoded before was not stored (R4)."

  public package(set) var object: ObjectHandle = 0
  public package(set) var path: IdentifierPath?
  package init() {}

  package init(object: ObjectHandle, path: IdentifierPath?) { (self.object, self.path) = (object, path) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, .handle, "Handle of the object.")
    try members.nullable("path", &path, "Its path; null if its own identifier is null.")
  }
}

/// Another host has taken the application (R36). Sessions here have ended: their calls fail with `fenced` until another
/// session begins. Subscribers to events get it as well.
public struct ArchiveLost: RestorationNotification, RestorationEvent {
  package static let method = ServedMethod.archiveLost
  package static let name = EventName.archiveLost
  package static let summary = "Another host has the application from now on, and its sessions here have ended (R36)."

  public package(set) var host: String?
  public package(set) var since: Timestamp?
  public package(set) var unshipped: Int64 = 0
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("host", &host, .hostText, "The host that has it; null if it is unknown.")
    try members.nullable("since", &since, .hostText, "Since when; null if that is unknown.")
    try members.required("unshipped", &unshipped, "Changes that were stored here and that the other host lacks.")
  }
}
