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
      "Number of the generation; in `archiveOpened` of the newest, null where there is none."
    )
    try members.required("kind", &kind, "As in `listGenerations`.")
    try members.required("objects", &objects, "Objects that have a state.")
    try members.required("bytes", &bytes, "Of all states concerned.")
  }
}

/// An archive was opened, made, or opened again after a write that failed.
public struct ArchiveOpened: RestorationEvent {
  package static let name = EventName.archiveOpened
  package static let summary =
    "An archive was opened or made; also when it was loaded again after a write that failed."

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

/// An archive that nobody needs now was closed.
public struct ArchiveClosed: RestorationEvent {
  package static let name = EventName.archiveClosed
  package static let summary = "An archive that nobody needs now was closed."

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
    try members.required("message", &message, "For people: what is wrong and what was done.")
  }
}

/// An archive is there and could not be opened; it was not touched (R20).
public struct ArchiveUnreadable: RestorationEvent {
  package static let name = EventName.archiveUnreadable
  package static let summary = "An archive is there and could not be opened; it was not touched (R20)."

  public package(set) var message = ""

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("message", &message, "For people: what is wrong and what was done.")
  }
}

/// The head was replaced by an imported document.
public struct ArchiveImported: RestorationEvent {
  package static let name = EventName.archiveImported
  package static let summary = "A document took the place of the head."

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

  /// Who wanted it.
  public enum Cause: String, OpenWireWord {
    /// `discardApplicationState`.
    case discarded
    /// A goodbye of this reason: registrations of the sessions still live have ended, too.
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
      "As the caller gave it, at most 200 Unicode characters; null where it gave none."
    )
    try members.required("generations", &generations, "Whether the generations went as well.")
  }
}
