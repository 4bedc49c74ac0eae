// SPDX-License-Identifier: Apache-2.0

/// How a save round ended (R11, R12).
public struct SaveResult: WireObject, Hashable {
  public package(set) var saved = false
  public package(set) var reason: String?
  public package(set) var generation: Int64?
  public package(set) var objects = 0
  public package(set) var bytes = 0
  public package(set) var stale: [StaleObject] = []
  public package(set) var excluded: [ExcludedObject] = []
  public package(set) var omitted: Int64?
  public package(set) var milliseconds: Int64 = 0
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("saved", &saved, "Whether a generation was made.")
    try members.optional(
      "reason",
      &reason,
      .text(of: SaveApplicationState.Obstacle.self),
      "Why none was made; only there."
    )
    try members.nullable(
      "generation",
      &generation,
      .generation,
      "The generation that was made; else the newest there is."
    )
    try members.required(
      "objects",
      &objects,
      "States that this generation holds, also those of objects that were not asked for."
    )
    try members.required("bytes", &bytes, "Bytes of these states and of the application's own.")
    try members.required(
      "stale",
      &stale,
      """
      Objects of which the round got no state: the generation holds what was stored of them last, if there is \
      anything.
      """
    )
    try members.required("excluded", &excluded, "Live objects that the generation leaves out (R4, R5).")
    try members.optional(
      "omitted",
      &omitted,
      .count,
      """
      How many entries of `stale` and `excluded` there are besides: the answer ends at 1 MiB or half of the \
      client's `messageBytesMax`.
      """
    )
    try members.required("milliseconds", &milliseconds, .count, "How long it took.")
  }
}

/// An object whose state in a generation is an older one than the round that made it (R12).
public struct StaleObject: WireObject, Hashable {
  package static let sharedName: String? = "StaleObject"

  /// Why there is no newer state; besides these the kind of the error that refused it, and more may come.
  public enum Cause: String, OpenWireWord {
    /// No answer within the deadline, or one alone that was put off three times.
    case late
    /// The session ended, or its process did.
    case ended
    /// The connection was lost.
    case disconnected
    /// The answer was not of the form it has to have.
    case malformed
    /// The answer left the object out.
    case missing
    /// The client answered an error.
    case failed
  }

  public package(set) var object: ObjectHandle?
  public package(set) var path: [String]?
  public package(set) var process: String?
  public package(set) var pid: Int64?
  public package(set) var why = ""
  public package(set) var message: String?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("object", &object, .handle, "Its handle; null where its owner has it no more.")
    try members.nullable(
      "path",
      &path,
      "Its path; empty for the application's own state; null where its own identifier is null."
    )
    try members.nullable("process", &process, "Who was asked.")
    try members.nullable("pid", &pid, .processID, "Who was asked.")
    try members.required(
      "why",
      &why,
      .text(of: Cause.self),
      """
      One of the words below, or the kind of the error that an encode of this state would have got, such as \
      `reservedKey`, `invalidReference`, `limitExceeded`, `replaced`.
      """
    )
    try members.optional("message", &message, "Why, in the words of who was asked; for people. At most 256 bytes.")
  }
}

/// A live object that a generation leaves out, and what excludes it (R4, R5).
public struct ExcludedObject: WireObject, Hashable {
  package static let sharedName: String? = "ExcludedObject"

  public package(set) var object: ObjectHandle = 0
  public package(set) var path: IdentifierPath?
  public package(set) var process: String?
  public package(set) var pid: Int64?
  public package(set) var by = ObjectReference.blank
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, .handle, "Its handle.")
    try members.nullable("path", &path, "Its path; null where its own identifier is null.")
    try members.nullable("process", &process, "Its owner.")
    try members.nullable("pid", &pid, .processID, "Its owner.")
    try members.required(
      "by",
      &by,
      """
      The object whose identifier is null, or that a view must not be below; the object itself where it is at fault.
      """
    )
  }
}

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
