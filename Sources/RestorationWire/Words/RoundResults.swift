// SPDX-License-Identifier: Apache-2.0

/// The result of a save round (R11, R12).
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
      "Why none was made; absent if one was made."
    )
    try members.nullable("generation", &generation, .generation, "The generation that was made; otherwise the newest.")
    try members.required(
      "objects",
      &objects,
      "States that this generation holds, including those of objects that were not asked for."
    )
    try members.required("bytes", &bytes, "Bytes of these states and of the application's own.")
    try members.required(
      "stale",
      &stale,
      """
      Objects that gave the round no state: the generation holds their last stored state, if there \
      is one.
      """
    )
    try members.required("excluded", &excluded, "Live objects that the generation leaves out (R4).")
    try members.optional(
      "omitted",
      &omitted,
      .count,
      """
      How many further entries of `stale` and `excluded` there are: the answer ends at 1 MiB or half of the \
      client's `messageBytesMax`.
      """
    )
    try members.required("milliseconds", &milliseconds, .count, "How long it took.")
  }
}

/// An object for which a generation retains an older state (R12).
public struct StaleObject: WireObject, Hashable {
  package static let sharedName: String? = "StaleObject"

  /// Why there is no newer state. Also the kind of the error that refused it; the set is open.
  public enum Cause: String, OpenWireWord {
    /// No answer before the deadline, or the object, asked for alone, was postponed three times.
    case late
    /// The session or its process ended.
    case ended
    case disconnected
    case malformed
    case missing
    /// The client answered with an error.
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
    try members.nullable("object", &object, .handle, "Its handle; null if its owner no longer has it.")
    try members.nullable(
      "path",
      &path,
      "Its path; empty for the application's own state; null if its own identifier is null."
    )
    try members.nullable("process", &process, "The process that was asked.")
    try members.nullable("pid", &pid, .processID, "The process that was asked.")
    try members.required(
      "why",
      &why,
      .text(of: Cause.self),
      """
      One of the words below, or the kind of the error that an encode of this state would have got, such as \
      `reservedKey`, `invalidReference`, `limitExceeded`, `replaced`.
      """
    )
    try members.optional("message", &message, "Why, as the client said it; for people. At most 256 bytes.")
  }
}

/// A live object that a generation leaves out, and the cause (R4).
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
    try members.nullable("path", &path, "Its path; null if its own identifier is null.")
    try members.nullable("process", &process, "Its owner.")
    try members.nullable("pid", &pid, .processID, "Its owner.")
    try members.required(
      "by",
      &by,
      """
      The object whose identifier is null, or that a view must not be below; the object itself if it is the cause.
      """
    )
  }
}

/// The result of a restoration (R21–R23).
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
      "Objects that are registered and have their state, or have none to get."
    )
    try members.required("skipped", &skipped, "Objects that a client or a rule refused.")
    try members.required("absent", &absent, "Objects that are not registered.")
    try members.mark("declined", &declined, "True if the delegate declined, and nothing was done; otherwise absent.")
    try members.optional(
      "omitted",
      &omitted,
      .count,
      """
      How many further objects there are, if the lists would take more than 1 MiB or half of \
      `messageBytesMax`; otherwise absent.
      """
    )
    try members.member(
      "failedUnits",
      &failedUnits,
      default: [],
      "Units of missing processes that could not be started, at most 64; absent if there are none."
    )
    try members.required("milliseconds", &milliseconds, .count, "How long it took.")
  }
}

/// A known object that was not restored.
public struct SkippedObject: WireObject, Hashable {
  package static let sharedName: String? = "SkippedObject"

  public package(set) var path: IdentifierPath = []
  public package(set) var reason = ""
  public package(set) var message: String?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("path", &path, "The object.")
    try members.required("reason", &reason, .text(of: RestoreApplicationState.Reason.self), "Why it was not restored.")
    try members.optional("message", &message, "Why, as the client said it; for people. At most 256 bytes.")
  }
}

/// A unit of a missing process that could not be started.
public struct FailedUnit: WireObject, Hashable {
  package static let sharedName: String? = "FailedUnit"

  public package(set) var unit = ""
  public package(set) var message = ""
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("unit", &unit, .hostText, "The unit's name.")
    try members.required("message", &message, .hostText, "Why it was not started, for people.")
  }
}
