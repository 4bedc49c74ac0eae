// SPDX-License-Identifier: Apache-2.0

/// A user's archives in the fleet's database, and the changes that it lacks (R36).
public struct ReplicaStatus: WireObject, Hashable {
  /// When a write is acknowledged.
  public enum Acknowledgement: String, OpenWireWord {
    /// When it is on this host's disk.
    case disk
    /// When the fleet's database has it as well.
    case replica
  }

  public package(set) var host = ""
  public package(set) var acknowledge = Acknowledgement.disk
  public package(set) var key: String?
  public package(set) var reachable = false
  public package(set) var failure: ReplicatedApplication.Failure?
  public package(set) var applications: [ReplicatedApplication] = []
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("host", &host, "This host's name for others.")
    try members.required("acknowledge", &acknowledge, "When a write is answered.")
    try members.nullable("key", &key, "ID of the sealing key; null if nothing is sealed.")
    try members.required("reachable", &reachable, "Whether the store has answered. If not, this is what is known here.")
    try members.nullable("failure", &failure, "Why it has not, such as a missing ticket; null if it has.")
    try members.required("applications", &applications, "In ascending order of name.")
  }
}

/// One archive and its replica in the fleet's database.
public struct ReplicatedApplication: WireObject, Hashable {
  public enum Lease: String, OpenWireWord {
    case held
    case elsewhere
    case free
    /// The database does not answer, and this host does not hold the archive.
    case unknown
  }

  public struct Failure: WireObject, Hashable {
    public package(set) var cause = ""
    public package(set) var message = ""
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("cause", &cause, "As in the event `replicaBehind`; also words for what ends by itself.")
      try members.required("message", &message, .hostText, "For people.")
    }
  }

  public package(set) var application = ApplicationName.blank
  public package(set) var lease = Lease.unknown
  public package(set) var host: String?
  public package(set) var since: Timestamp?
  public package(set) var sequence: Int64?
  public package(set) var stored: Int64?
  public package(set) var changes: Int64?
  public package(set) var bytes: Int64 = 0
  public package(set) var milliseconds: Int64 = 0
  public package(set) var snapshot = false
  public package(set) var failure: Failure?
  public package(set) var conflicts: [SetAsideCopy] = []
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("application", &application, "With its instance if there is one.")
    try members.required("lease", &lease, "Who may write it.")
    try members.nullable("host", &host, .hostText, "The host that has it; null if none has.")
    try members.nullable("since", &since, .hostText, "Since when, by the store's clock.")
    try members.nullable("sequence", &sequence, "Where it ends on this host; null while it is not in use.")
    try members.nullable("stored", &stored, "Where it ends at the store; null if that is unknown.")
    try members.nullable(
      "changes",
      &changes,
      "Changes of this host that the store lacks; null if a former broker may have left some."
    )
    try members.required("bytes", &bytes, .count, "Of these, what waits in memory.")
    try members.required("milliseconds", &milliseconds, .count, "For how long the store has not had everything.")
    try members.required("snapshot", &snapshot, "Whether a copy of the archive is sent in place of changes.")
    try members.nullable("failure", &failure, "Why sending failed last; null once everything was sent.")
    try members.required("conflicts", &conflicts, "Copies that were set aside, with what only this host had.")
  }
}

/// A copy of an archive with what only this host had.
public struct SetAsideCopy: WireObject, Hashable {
  public package(set) var application = ApplicationName.blank
  public package(set) var since = Timestamp(milliseconds: 0)
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("application", &application, "The name by which it can be read, and forgotten.")
    try members.required("since", &since, "When it was set aside.")
  }
}

/// The changes of an application that the fleet's database lacks.
public struct UnsentChanges: WireObject, Hashable {
  public package(set) var application = ApplicationName.blank
  public package(set) var changes: Int64?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("application", &application, "With its instance if there is one.")
    try members.nullable("changes", &changes, "How many changes; null if that is unknown.")
  }
}
