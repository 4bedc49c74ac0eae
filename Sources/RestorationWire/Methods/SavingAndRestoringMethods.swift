// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// Asks every process for the states of its objects and seals them as one generation (R11, R12).
public struct SaveApplicationState: LongMethod, TracedMethod {
  package static let method = "saveApplicationState"
  package static let summary = "Runs a save round."
  package static let errors: [ErrorCode] = [
    .unknownApplication, .archiveUnreadable, .limitExceeded, .requestCancelled, .storeFailed,
  ]

  package static let deadlineDefault: Int64 = 5_000
  package static let deadlineMax: Int64 = 600_000

  public typealias Reply = SaveResult

  public var reason: String?
  /// `nil` for the default.
  public var deadlineMilliseconds: Int64?
  package var progressToken: ProgressToken?
  package var trace: TraceContext?
  package init() {}

  public init(reason: String? = nil, deadlineMilliseconds: Int64? = nil) {
    (self.reason, self.deadlineMilliseconds) = (reason, deadlineMilliseconds)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("reason", &reason, "For people.")
    try members.optional(
      "deadlineMilliseconds",
      &deadlineMilliseconds,
      .range(1...Self.deadlineMax),
      "Time limit of the round."
    )
    try members.optional(
      "progressToken",
      &progressToken,
      "Asks for `progress`, which counts objects that are no longer awaited, of those found."
    )
  }

  package enum Obstacle: String, OpenWireWord {
    /// The delegate refused the round.
    case declined
    /// Nothing was registered and nothing changed (R16).
    case unchanged
    /// A restoration did not end before the deadline.
    case restoring
    /// During the round, the head was emptied or replaced, or the archive was loaded again.
    case interrupted
  }
}

/// Restores the objects of the head that are not restored yet (R21–R29).
public struct RestoreApplicationState: LongMethod, TracedMethod {
  package static let method = "restoreApplicationState"
  package static let summary = "Restores the saved objects."
  package static let errors: [ErrorCode] = [
    .unknownObject, .invalidIdentifier, .unknownApplication, .archiveUnreadable, .limitExceeded, .requestCancelled,
    .storeFailed,
  ]

  package static let deadlineMillisecondsDefault: Int64 = 10_000
  package static let deadlineMillisecondsMax: Int64 = 3_600_000

  public typealias Reply = RestoreResult

  /// `nil` for the default.
  public var deadlineMilliseconds: Int64?
  package var progressToken: ProgressToken?
  package var trace: TraceContext?
  /// `nil` for all.
  public var objects: [ObjectReference]?
  package init() {}

  public init(deadlineMilliseconds: Int64? = nil, objects: [ObjectReference]? = nil) {
    (self.deadlineMilliseconds, self.objects) = (deadlineMilliseconds, objects)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional(
      "deadlineMilliseconds",
      &deadlineMilliseconds,
      .range(1...Self.deadlineMillisecondsMax),
      "Time limit; the restoration ends with what has been restored until then."
    )
    try members.optional("progressToken", &progressToken, "Asks for `progress`, which counts objects.")
    try members.optional("objects", &objects, "Restore only these objects and all below them.")
  }

  package enum Reason: String, OpenWireWord {
    /// Its restoration class refused it.
    case refused
    /// An object above it was not made.
    case parentSkipped
    /// Its factory answered with an object that has another path.
    case sameObject
    case classMismatch
    case quarantined
    case unreadable
    /// Its owner does not serve `decodeRestorableStateWithCoder`.
    case notServed
    /// The client answered with an error, or with a malformed answer.
    case failed
    case late
    /// The session that was to restore it ended.
    case ended
    /// The application's state was discarded meanwhile.
    case discarded
  }
}

/// Delays the end of the restoration until `completeStateRestoration` is called as often (R21, R22).
public struct ExtendStateRestoration: RestorationMethod {
  package static let method = "extendStateRestoration"
  package static let summary = "Holds back the end of the restoration."
  package static let errors: [ErrorCode] = [.archiveUnreadable]
  package static let mayBeDiscarded = true

  public typealias Reply = CompleteStateRestoration.Reply

  public init() {}
}

/// Says that this session has restored its objects (R19, R31).
public struct CompleteStateRestoration: RestorationMethod {
  package static let method = "completeStateRestoration"
  package static let summary = "Says that the session has restored its objects."
  package static let errors: [ErrorCode] = [.archiveUnreadable]
  package static let mayBeDiscarded = true

  public init() {}

  public struct Reply: WireObject, Hashable {
    public package(set) var pending: Int64 = 0
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("pending", &pending, .count, "Sessions of the application that are still restoring.")
    }
  }
}

/// Tells what happened to an object in the last round and the last restoration.
public struct ExplainRestoration: RestorationMethod {
  package static let method = "explainRestoration"
  package static let summary = "Tells why an object was saved and restored, or was not."
  package static let errors: [ErrorCode] = [
    .unknownObject, .invalidIdentifier, .unknownApplication, .archiveUnreadable,
  ]

  public typealias Reply = RestorationExplanation

  public var object = ObjectReference.blank
  public var reveal = false
  package init() {}

  public init(object: ObjectReference, reveal: Bool = false) { (self.object, self.reveal) = (object, reveal) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, "The object.")
    try members.flag(
      "reveal",
      &reveal,
      "Also give details that may quote the state of a confidential object: names of elements, messages of clients."
    )
  }

  /// The overall result. Failures precede successes, and restoring precedes saving.
  package enum Verdict: String, OpenWireWord {
    /// Its state is withheld because it has crashed its owner (R31, R35).
    case quarantined
    /// Its state is damaged (R32).
    case unreadable
    /// A restoration is in progress and has not decided yet.
    case waiting
    /// It was not registered before the last restoration ended (R23).
    case absent
    /// The last restoration skipped it.
    case skipped
    /// No walk reaches it and no saved object refers to it: generations leave it out (R4, R7).
    case excluded
    case neverSaved
    /// The last round retained an older state (R12).
    case stale
    case restored
    case saved
    /// It was unregistered or closed, and can be reopened (R13).
    case closed
    /// It was closed because no process had claimed it for long (R13).
    case retired
  }
}
