// SPDX-License-Identifier: Apache-2.0

/// Runs a save round: asks every process for the states of its objects and seals them as one generation (R11, R12).
package struct SaveApplicationState: RestorationMethod {
  package static let method = "saveApplicationState"
  package static let summary = "Runs a save round."
  package static let errors: [ErrorDescription] = [
    .unknownApplication, .archiveUnreadable, .limitExceeded, .requestCancelled, .storeFailed,
  ]

  /// How long a round takes at most where the caller does not say.
  package static let deadlineDefault: Int64 = 5_000
  package static let deadlineMax: Int64 = 600_000

  package typealias Reply = SaveResult

  package var reason: String?
  /// Nil for the default.
  package var deadlineMilliseconds: Int64?
  package var progressToken: ProgressToken?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("reason", &reason, "For people.")
    try members.optional(
      "deadlineMilliseconds",
      &deadlineMilliseconds,
      .range(1...Self.deadlineMax),
      "How long the round takes at most."
    )
    try members.optional(
      "progressToken",
      &progressToken,
      "Asks for `progress`: objects that need not be waited for any more, of those that were found."
    )
  }

  /// Why no generation was made; more words may come.
  package enum Obstacle: String, OpenWireWord {
    /// The delegate does not want it.
    case declined
    /// The caller has itself a call of this round to answer (R12).
    case reentrant
    /// Nothing was registered and nothing changed (R17).
    case unchanged
    /// A restoration was under way and did not end within the deadline.
    case restoring
    /// The head was emptied or replaced, or the archive loaded anew, while the round was under way.
    case interrupted
  }
}
