// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One application in `listApplications`.
public struct ApplicationOverview: WireObject, Hashable {
  package static let sharedName: String? = "ApplicationOverview"

  public package(set) var application = ApplicationName.blank
  public package(set) var sessions = 0
  public package(set) var objects = 0
  public package(set) var generation: Int64?
  public package(set) var bytes = 0
  /// `nil` while its archive is closed.
  public package(set) var stateBytes: Int?
  /// `nil` before anything is stored.
  public package(set) var fileBytes: Int?
  /// `nil` while it is used, and if unknown.
  public package(set) var unusedDays: Int?
  public package(set) var state = RestorationState.none
  /// Number of objects whose state is withheld from its owner (R35).
  public package(set) var withheld = 0
  public package(set) var restoreAtLogin = LoginPolicy.ask
  public package(set) var units: [String] = []
  public package(set) var damaged: String?
  /// The other host that has the application; `nil` if there is none.
  public package(set) var host: String?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("application", &application, "With the instance if there is one.")
    try members.required("sessions", &sessions, "Live sessions.")
    try members.required("objects", &objects, "Objects, live and archived.")
    try members.nullable("generation", &generation, .generation, "The newest.")
    try members.required(
      "bytes",
      &bytes,
      "Of the head, as `archiveBytesMax` counts it, while sessions are live; of the archive at rest otherwise."
    )
    try members.optional("stateBytes", &stateBytes, "Of the states at the head, while the archive is open.")
    try members.optional("fileBytes", &fileBytes, "Of the archive's files, if there are any.")
    try members.optional(
      "unusedDays",
      &unusedDays,
      "Whole days since its last session or write; absent while it is used, and if it is not known."
    )
    try members.required("state", &state, "`none`, `available`, `unreadable` or `quarantined`.")
    var some = withheld == 0 ? nil : withheld
    try members.optional("withheld", &some, "Objects whose state is withheld from its owner (R35), if there are any.")
    withheld = some ?? 0
    try members.added("restoreAtLogin", &restoreAtLogin, "What happens to it when its user logs in.")
    try members.added("units", &units, .hostText, "Units that start its processes again, the delegate's first.")
    try members.optional(
      "damaged",
      &damaged,
      .hostText,
      "Present until a run has ended, if its archive was found damaged: what was found and done, for people (R32)."
    )
    try members.optional("host", &host, .hostText, "Present if another host has it (R36): which one.")
  }
}

/// Whether an application is restored when its user logs in.
public enum LoginPolicy: String, WireWord {
  case never, ask, always
}

/// One application with its sessions and objects, without states.
public struct ApplicationDescription: WireObject, Hashable {
  public package(set) var application = ApplicationName.blank
  public package(set) var archive: String?
  public package(set) var generation: Int64?
  public package(set) var sequence: Int64 = 0
  public package(set) var sessions: [SessionDescription] = []
  public package(set) var objects: [ObjectDescription] = []
  package var cursor: String?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("application", &application, "Its name, with the instance if there is one.")
    try members.nullable("archive", &archive, .uuid, "UUID of the archive.")
    try members.nullable("generation", &generation, .generation, "The newest.")
    try members.required("sequence", &sequence, .count, "Number of the newest write.")
    try members.required("sessions", &sessions, "Its live sessions.")
    try members.required("objects", &objects, "In the order in which they were first registered.")
    try members.optional("cursor", &cursor, .name, "For the next page; absent after the last one.")
  }
}

/// One live session in `describeApplication`; its token is not shown.
public struct SessionDescription: WireObject, Hashable {
  package static let sharedName: String? = "SessionDescription"

  public package(set) var process: String?
  public package(set) var pid: Int64 = 0
  public package(set) var delegate = false
  /// Without names that only a later broker knows.
  public package(set) var serves: [ServedMethod] = []
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("process", &process, "The process role.")
    try members.required("pid", &pid, .processID, "Number of the process.")
    try members.required("delegate", &delegate, "Whether it is the application's delegate (R9).")
    var names = serves.map(\.rawValue)
    try members.required("serves", &names, .text(of: ServedMethod.self), "What it may be called and notified of.")
    serves = names.compactMap { ServedMethod(rawValue: $0) }
  }
}

/// Decides what happens to a session's objects when it ends (R30).
public enum GoodbyeReason: String, WireWord {
  /// The session's objects are finished; their states are removed.
  case closed
  /// The user quit the application; its state is discarded.
  case userQuit
  /// The process restarts, e.g. after an update; everything is kept.
  case restart
  /// The user's session ends; everything is kept.
  case logout
}

/// One object in `describeApplication`, without its state.
public struct ObjectDescription: WireObject, Hashable {
  package static let sharedName: String? = "ObjectDescription"

  public package(set) var node: Int64 = 0
  public package(set) var parent: Int64?
  public package(set) var object: ObjectHandle?
  public package(set) var path: IdentifierPath?
  public package(set) var kind = ObjectKind.object
  /// The object's class and its superclasses; empty if none was given.
  public package(set) var classes: [String] = []
  public package(set) var process: String?
  public package(set) var pid: Int64?
  public package(set) var included = false
  public package(set) var orphaned = false
  public package(set) var bytes = 0
  /// `nil` if there is no state.
  public package(set) var modified: Timestamp?
  public package(set) var revision: Int64?
  public package(set) var confidential = false
  public package(set) var quarantined = false
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("node", &node, .from(1), "Identifies it permanently within its archive, even while unclaimed.")
    try members.nullable(
      "parent",
      &parent,
      .from(1),
      "`node` of its restoration parent, even if its path begins anew (R4); null for a root."
    )
    try members.nullable("object", &object, .handle, "Handle, and process of the owner; null if unclaimed.")
    try members.nullable("path", &path, "Null if its own identifier is null.")
    try members.required("kind", &kind, "`object`, `viewController` or `view`.")
    try members.nullable("objectClass", classes: &classes, "As registered.")
    try members.nullable("process", &process, "Role of the process that owns it, or wrote it last.")
    try members.nullable("pid", &pid, .processID, "Handle, and process of the owner; null if unclaimed.")
    try members.required("included", &included, "Whether the walk of a save round reaches it (R4).")
    try members.required("orphaned", &orphaned, "Its owner left without `closed` (R13).")
    try members.required("bytes", &bytes, "Of its state; 0 if there is none.")
    try members.nullable("modified", &modified, "When the state was written.")
    try members.nullable("revision", &revision, .from(1), "The highest that its present owner has given (R15).")
    try members.added("confidential", &confidential, "Tools show its state only if they ask.")
    try members.mark("quarantined", &quarantined, "Present and true if its state is withheld from its owner (R35).")
  }
}

/// One object in `readArchive`, with its state.
public struct ArchivedObject: WireObject, Hashable {
  package static let sharedName: String? = "ArchivedObject"

  public package(set) var object: ObjectHandle?
  public package(set) var path: IdentifierPath = []
  public package(set) var kind = ObjectKind.object
  /// The class and superclasses that the archive recorded; empty if none was given.
  public package(set) var classes: [String] = []
  public package(set) var process: String?
  public package(set) var orphaned = false
  public package(set) var status = RestorationState.none
  package var stateText: JSONText?
  /// `nil` if there is no state.
  package var coderText: JSONText?
  package var elementsText: JSONText?
  public package(set) var bytes = 0
  /// `nil` if there is no state.
  public package(set) var modified: Timestamp?
  public package(set) var confidential = false
  public package(set) var redacted = false
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("object", &object, .handle, "Its handle now; null if unclaimed.")
    try members.required("path", &path, "Its path.")
    try members.required("kind", &kind, "`object`, `viewController` or `view`.")
    try members.nullable("objectClass", classes: &classes, "As registered.")
    try members.nullable("process", &process, "Role of the process that wrote the state.")
    try members.required("orphaned", &orphaned, "Its owner left without `closed` (R13).")
    try members.required(
      "status",
      &status,
      "`available`, `none`, `unreadable`, or in the head `quarantined`: withheld from its owner (R35)."
    )
    try members.nullable("state", &stateText, .state, "Null if redacted, and unless `available` or `quarantined`.")
    try members.nullable("coder", &coderText, .coder, "Reserved keys of the session that wrote it.")
    try members.optional("elements", &elementsText, .elements, "Absent if there are none or they are redacted.")
    try members.required("bytes", &bytes, "Of state and elements as they are stored; 0 if there is none.")
    try members.nullable("modified", &modified, "When the state was written, RFC 3339, UTC, milliseconds.")
    try members.required("confidential", &confidential, "Whether it is confidential.")
    try members.required("redacted", &redacted, "Whether that is why `state` is null.")
  }
}
