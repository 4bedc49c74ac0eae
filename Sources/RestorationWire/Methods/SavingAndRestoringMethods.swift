// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// Runs a save round: asks every process for the states of its objects and seals them as one generation (R11, R12).
package struct SaveApplicationState: LongMethod, TracedMethod {
  package static let method = "saveApplicationState"
  package static let summary = "Runs a save round."
  package static let errors: [ErrorCode] = [
    .unknownApplication, .archiveUnreadable, .limitExceeded, .requestCancelled, .storeFailed,
  ]

  /// How long a round takes at most if the caller does not say.
  package static let deadlineDefault: Int64 = 5_000
  package static let deadlineMax: Int64 = 600_000

  package typealias Reply = SaveResult

  package var reason: String?
  /// `nil` for the default.
  package var deadlineMilliseconds: Int64?
  package var progressToken: ProgressToken?
  package var trace: TraceContext?
  package init() {}

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

  /// Why no generation was made; more words may come.
  package enum Obstacle: String, OpenWireWord {
    /// The delegate does not want it.
    case declined
    /// The caller has itself a call of this round to answer (R12).
    case reentrant
    /// Nothing was registered and nothing changed (R16).
    case unchanged
    /// A restoration was under way and did not end before the deadline.
    case restoring
    /// The head was emptied or replaced, or the archive loaded anew, while the round was under way.
    case interrupted
  }
}

/// Restores the objects of the head that are not restored yet (R21 – R29).
package struct RestoreApplicationState: LongMethod, TracedMethod {
  package static let method = "restoreApplicationState"
  package static let summary = "Restores the saved objects."
  package static let errors: [ErrorCode] = [
    .unknownObject, .invalidIdentifier, .unknownApplication, .archiveUnreadable, .limitExceeded, .requestCancelled,
    .storeFailed,
  ]

  package static let deadlineMillisecondsDefault: Int64 = 10_000
  package static let deadlineMillisecondsMax: Int64 = 3_600_000

  package typealias Reply = RestoreResult

  /// `nil` for the default.
  package var deadlineMilliseconds: Int64?
  package var progressToken: ProgressToken?
  package var trace: TraceContext?
  /// `nil` for all.
  package var objects: [ObjectReference]?
  package init() {}

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

  /// Why an object was not restored although it is known.
  package enum Reason: String, OpenWireWord {
    /// Its restoration class said that it is not to be restored.
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
    /// The client had not answered at the deadline.
    case late
    /// The session that was to restore it ended.
    case ended
    /// The application's state was discarded meanwhile.
    case discarded
  }
}

/// Holds back the end of the restoration until `completeStateRestoration` is called as often (R21, R22).
package struct ExtendStateRestoration: RestorationMethod {
  package static let method = "extendStateRestoration"
  package static let summary = "Holds back the end of the restoration."
  package static let errors: [ErrorCode] = [.archiveUnreadable]
  package static let mayBeDiscarded = true

  package typealias Reply = CompleteStateRestoration.Reply

  package init() {}
}

/// Says that this session has restored its objects (R19, R31).
package struct CompleteStateRestoration: RestorationMethod {
  package static let method = "completeStateRestoration"
  package static let summary = "Says that the session has restored its objects."
  package static let errors: [ErrorCode] = [.archiveUnreadable]
  package static let mayBeDiscarded = true

  package init() {}

  package struct Reply: WireObject, Hashable {
    package var pending: Int64 = 0
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("pending", &pending, .count, "Sessions of the application that are still restoring.")
    }
  }
}

package struct ExplainRestoration: RestorationMethod {
  package static let method = "explainRestoration"
  package static let summary = "Tells why an object was saved and restored, or was not."
  package static let errors: [ErrorCode] = [
    .unknownObject, .invalidIdentifier, .unknownApplication, .archiveUnreadable,
  ]

  package typealias Reply = RestorationExplanation

  package var object = ObjectReference.blank
  package var reveal = false
  package init() {}

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
    /// Its state is withheld, because it has crashed its owner (R31, R35).
    case quarantined
    /// Its state is damaged (R32).
    case unreadable
    /// A restoration is under way and has not decided yet.
    case waiting
    /// It was not registered before the last restoration ended (R23).
    case absent
    /// The last restoration left it out.
    case skipped
    /// No walk reaches it and nothing saved refers to it: generations leave it out (R4, R7).
    case excluded
    /// It has no state.
    case neverSaved
    /// The last round kept an older state of it (R12).
    case stale
    /// It has been restored in this run.
    case restored
    /// Its state is saved.
    case saved
    /// It was unregistered or closed, and can be opened again (R13).
    case closed
    /// It was closed because nobody had claimed it for long (R13).
    case retired
  }
}
