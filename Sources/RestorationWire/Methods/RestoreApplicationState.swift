// SPDX-License-Identifier: Apache-2.0

/// Brings everything back that the head holds and nobody has restored yet (R21 – R29, R34).
package struct RestoreApplicationState: RestorationMethod {
  package static let method = "restoreApplicationState"
  package static let summary = "Brings everything back that is saved."
  package static let errors: [ErrorDescription] = [
    .unknownApplication, .archiveUnreadable, .limitExceeded, .requestCancelled, .storeFailed,
  ]

  package static let deadlineMillisecondsDefault: Int64 = 10_000
  package static let deadlineMillisecondsMax: Int64 = 3_600_000

  package typealias Reply = RestoreResult

  /// Nil for the default.
  package var deadlineMilliseconds: Int64?
  package var progressToken: ProgressToken?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional(
      "deadlineMilliseconds",
      &deadlineMilliseconds,
      .range(1...Self.deadlineMillisecondsMax),
      "When it ends at the latest, with what has been restored until then."
    )
    try members.optional("progressToken", &progressToken, "Asks for `progress`, which counts objects.")
  }

  /// Why an object was not restored although it is known.
  package enum Reason: String, OpenWireWord {
    /// Its restoration class said that it is not to be restored.
    case refused
    /// An object above it was not made.
    case parentSkipped
    case classMismatch
    case quarantined
    case unreadable
    /// Its owner does not serve `decodeRestorableStateWithCoder`.
    case notServed
    /// The client answered with an error, or with something that is no answer.
    case failed
    /// The client had not answered at the deadline.
    case late
    /// The session that was to restore it ended.
    case ended
    /// The application's state was discarded meanwhile.
    case discarded
  }
}
