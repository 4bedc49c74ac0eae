// SPDX-License-Identifier: Apache-2.0

/// A generation was sealed (R16).
public struct GenerationSealed: RestorationEvent {
  package static let name = EventName.generationSealed
  package static let summary = "A generation was sealed (R16)."

  public package(set) var generation: Int64 = 0
  public package(set) var kind = ""
  public package(set) var objects = 0
  public package(set) var bytes = 0
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required(
      "generation",
      &generation,
      .generation,
      "Number of the generation; in `archiveOpened` that of the newest, null if there is none."
    )
    try members.required("kind", &kind, "As in `listGenerations`.")
    try members.required("objects", &objects, "Objects that have a state.")
    try members.required("bytes", &bytes, "Of all states concerned.")
  }
}

/// A generation was dropped to make space for newer ones (R16).
public struct GenerationDropped: RestorationEvent {
  package static let name = EventName.generationDropped
  package static let summary = "A generation was given up before newer ones took its place (R16)."

  public enum Cause: String, OpenWireWord {
    /// The data besides the head exceeded `archiveBytesMax`.
    case room
  }

  public package(set) var generation: Int64 = 0
  public package(set) var cause = Cause.room
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("generation", &generation, .generation, "Number of the generation.")
    try members.required("cause", &cause, "Why.")
  }
}

/// An archive was opened or made, or loaded again after a failed write.
public struct ArchiveOpened: RestorationEvent {
  package static let name = EventName.archiveOpened
  package static let summary =
    "An archive was opened or made, or loaded again after a failed write."

  public package(set) var archive = ""
  public package(set) var generation: Int64?
  public package(set) var objects = 0
  public package(set) var bytes = 0
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("archive", &archive, .uuid, "UUID of the archive.")
    try members.nullable("generation", &generation, .generation, "The newest.")
    try members.required("objects", &objects, "Nodes of the tree.")
    try members.required("bytes", &bytes, "Of the states at the head.")
  }
}

/// An unused archive was closed.
public struct ArchiveClosed: RestorationEvent {
  package static let name = EventName.archiveClosed
  package static let summary = "An archive that is not needed now was closed."

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) {}
}

/// An archive was found damaged when it was opened (R32).
public struct ArchiveDamaged: RestorationEvent {
  package static let name = EventName.archiveDamaged
  package static let summary = "An archive was found damaged when it was opened: what was found and done (R32)."

  public package(set) var message = ""
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("message", &message, .hostText, "For people: what is wrong and what was done.")
  }
}

/// An archive exists but could not be opened; its files are unchanged (R20).
public struct ArchiveUnreadable: RestorationEvent {
  package static let name = EventName.archiveUnreadable
  package static let summary = "An archive exists but could not be opened; it was left untouched (R20)."

  public package(set) var message = ""
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("message", &message, .hostText, "For people: what is wrong and what was done.")
  }
}

/// Another host's contents have replaced those of this host (R36).
public struct ArchiveSetAside: RestorationEvent {
  package static let name = EventName.archiveConflict
  package static let summary =
    "The fleet's store has replaced the contents that were stored here; a file has these (R36)."

  public package(set) var host: String?
  public package(set) var changes: Int64?
  public package(set) var file = ""
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("host", &host, .hostText, "The host that wrote it; null if it is unknown.")
    try members.nullable("changes", &changes, "Changes that only the file has; null if that is unknown.")
    try members.required("file", &file, .hostText, "Its name, beside the archives.")
  }
}

/// The fleet's database rejects what was stored here (R36).
public struct ReplicaBehind: RestorationEvent {
  package static let name = EventName.replicaBehind
  package static let summary =
    "The fleet's store does not take what was stored here: told once for each cause, until it has caught up (R36)."

  public enum Cause: String, OpenWireWord {
    /// This host could not make the copy to be sent.
    case disk
    /// Its contents were encrypted with a key that is not here.
    case key
    /// The user's space there is used up.
    case quota
    case refused
    /// Its contents need a later version of this program.
    case tooNew
    /// No second server holds the data, so it would not survive.
    case uncovered
  }

  public package(set) var cause = Cause.refused
  public package(set) var changes: Int64 = 0
  public package(set) var message = ""
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("cause", &cause, "Why.")
    try members.required("changes", &changes, "Changes that only this host has.")
    try members.required("message", &message, .hostText, "For people: what is wrong and what to do.")
  }
}

/// Follows `replicaBehind`: the fleet's database has everything (R36).
public struct ReplicaCaughtUp: RestorationEvent {
  package static let name = EventName.replicaCaughtUp
  package static let summary = "After `replicaBehind`: the fleet's store has everything again (R36)."

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) {}
}

/// The head was replaced by an imported document.
public struct ArchiveImported: RestorationEvent {
  package static let name = EventName.archiveImported
  package static let summary = "A document has replaced the head."

  public package(set) var objects = 0
  public package(set) var bytes = 0
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("objects", &objects, "Objects that have a state.")
    try members.required("bytes", &bytes, "Of all states concerned.")
  }
}

/// The head was emptied (R30).
public struct ApplicationDiscarded: RestorationEvent {
  package static let name = EventName.applicationDiscarded
  package static let summary = "The head was emptied."

  public enum Cause: String, OpenWireWord {
    /// By `discardApplicationState`.
    case discarded
    /// By a goodbye with this reason, which also ended the registrations of live sessions.
    case userQuit
  }

  public package(set) var cause = Cause.discarded
  public package(set) var reason: String?
  public package(set) var generations = false
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("cause", &cause, "Why.")
    try members.nullable(
      "reason",
      &reason,
      "As the caller gave it, at most 200 Unicode characters; null if it gave none."
    )
    try members.required("generations", &generations, "Whether the generations were removed as well.")
  }
}

/// A process failed while it processed states from the broker (R31).
public struct RestorationCrashed: RestorationEvent {
  package static let name = EventName.restorationCrashed
  package static let summary = "A process failed while it was processing states it had been handed (R31)."

  public package(set) var objects = 0
  public package(set) var suspects = 0
  public package(set) var guilty: IdentifierPath?
  public package(set) var strikes = 0
  public package(set) var session = SessionIdentity()
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("objects", &objects, "States that its process had been handed.")
    try members.required("suspects", &suspects, "How many of these states may have caused the crash.")
    try members.nullable("guilty", &guilty, "Path of the object whose state caused the crash; null if unknown.")
    try members.required("strikes", &strikes, "Failures of the application's processes in a row, this one included.")
    try session.walk(&members)
  }
}

/// An object's state is withheld from now on (R35).
public struct StateQuarantined: RestorationEvent {
  package static let name = EventName.stateQuarantined
  package static let summary = "The state of an object was quarantined: it is withheld from now on (R35)."

  public package(set) var object: ObjectHandle?
  public package(set) var path: IdentifierPath?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("object", &object, .handle, "Handle.")
    try members.nullable("path", &path, "The object's path; null if its own identifier is null (R4).")
  }
}

/// All saved states are withheld from now on (R31).
public struct ArchiveQuarantined: RestorationEvent {
  package static let name = EventName.archiveQuarantined
  package static let summary = "All states of the archive were quarantined: they are withheld from now on (R31)."

  public package(set) var objects = 0
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("objects", &objects, "Objects that have a state.")
  }
}

public struct QuarantineEnded: RestorationEvent {
  package static let name = EventName.quarantineEnded
  package static let summary = "States are no longer withheld (R35)."

  public enum Cause: String, OpenWireWord {
    /// A newer state was stored.
    case encoded
    /// By `releaseQuarantine`.
    case released
  }

  public package(set) var cause = Cause.encoded
  public package(set) var path: IdentifierPath?
  public package(set) var objects = 0
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("cause", &cause, "Why.")
    try members.nullable("path", &path, "The object's path; null if its own identifier is null (R4).")
    try members.required("objects", &objects, "Objects that have a state.")
  }
}
