// SPDX-License-Identifier: Apache-2.0

/// A process ended abnormally while it was still taking in what it had been handed (R31).
public struct RestorationCrashed: RestorationEvent {
  package static let name = EventName.restorationCrashed
  package static let summary =
    "A process ended abnormally while it was still taking in what it had been handed (R31)."

  public package(set) var objects = 0
  public package(set) var suspects = 0
  public package(set) var guilty: IdentifierPath?
  public package(set) var strikes = 0
  public package(set) var session = SessionIdentity()

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("objects", &objects, "States that its process had been handed.")
    try members.required("suspects", &suspects, "How many of them it may have been.")
    try members.nullable("guilty", &guilty, "Path of the object whose state it was; null where that is not known.")
    try members.required(
      "strikes",
      &strikes,
      "Crashes in a row that count against the guilty object, or against the application where there is none."
    )
    try session.walk(&members)
  }
}

/// The state of an object is withheld from now on (R35).
public struct StateQuarantined: RestorationEvent {
  package static let name = EventName.stateQuarantined
  package static let summary = "The state of an object is withheld from now on (R35)."

  public package(set) var object: ObjectHandle?
  public package(set) var path: IdentifierPath?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("object", &object, .handle, "Handle.")
    try members.nullable("path", &path, "The object's path; null where its own identifier is null (R4).")
  }
}

/// All states there are are withheld from now on (R31).
public struct ArchiveQuarantined: RestorationEvent {
  package static let name = EventName.archiveQuarantined
  package static let summary = "All states there are are withheld from now on (R31)."

  public package(set) var objects = 0

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("objects", &objects, "Objects that have a state.")
  }
}

/// States are not withheld any more (R35).
public struct QuarantineEnded: RestorationEvent {
  package static let name = EventName.quarantineEnded
  package static let summary = "States are not withheld any more (R35)."

  /// What ended it.
  public enum Cause: String, OpenWireWord {
    /// A newer state was stored.
    case encoded
    /// `releaseQuarantine`.
    case released
  }

  public package(set) var cause = Cause.encoded
  public package(set) var path: IdentifierPath?
  public package(set) var objects = 0

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("cause", &cause, "Why.")
    try members.nullable("path", &path, "The object's path; null where its own identifier is null (R4).")
    try members.required("objects", &objects, "Objects that have a state.")
  }
}
