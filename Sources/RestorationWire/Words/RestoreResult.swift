// SPDX-License-Identifier: Apache-2.0

/// What became of a restoration (R21–R23).
public struct RestoreResult: WireObject, Hashable {
  public package(set) var restored: [IdentifierPath] = []
  public package(set) var skipped: [SkippedObject] = []
  public package(set) var absent: [IdentifierPath] = []
  public package(set) var declined = false
  public package(set) var omitted: Int64?
  public package(set) var failedUnits: [FailedUnit] = []
  public package(set) var milliseconds: Int64 = 0

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required(
      "restored",
      &restored,
      "Objects that are there and have their state, or have none to be given."
    )
    try members.required("skipped", &skipped, "Objects that somebody or a rule refused.")
    try members.required("absent", &absent, "Objects that nobody has registered.")
    try members.mark("declined", &declined, "True where the delegate said no, and nothing was done; else absent.")
    try members.optional(
      "omitted",
      &omitted,
      .count,
      """
      How many objects there are besides, where the lists would take more than 1 MiB or half of \
      `messageBytesMax`; else absent.
      """
    )
    try members.member(
      "failedUnits",
      &failedUnits,
      default: [],
      "Units that were to bring missing processes and were not started, at most 64; absent where there are none."
    )
    try members.required("milliseconds", &milliseconds, .count, "How long it took.")
  }
}

/// An object that was not restored although it is known.
public struct SkippedObject: WireObject, Hashable {
  package static let sharedName: String? = "SkippedObject"

  public package(set) var path: IdentifierPath = []
  public package(set) var reason = ""
  public package(set) var message: String?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("path", &path, "The object.")
    try members.required("reason", &reason, .text(of: RestoreApplicationState.Reason.self), "Why it was not restored.")
    try members.optional("message", &message, "Why, in the words of who was asked; for people. At most 256 bytes.")
  }
}

/// A unit that was to bring a missing process and was not started.
public struct FailedUnit: WireObject, Hashable {
  package static let sharedName: String? = "FailedUnit"

  public package(set) var unit = ""
  public package(set) var message = ""

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("unit", &unit, "The unit's name.")
    try members.required("message", &message, "Why it was not started, for people.")
  }
}
