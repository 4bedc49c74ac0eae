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

  package struct Reply: WireObject, Hashable {
    package var saved = false
    package var reason: String?
    package var generation: Int64?
    package var objects = 0
    package var bytes = 0
    package var stale: [StaleObject] = []
    package var excluded: [ExcludedObject] = []
    package var omitted: Int64?
    package var milliseconds: Int64 = 0

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("saved", &saved, "Whether a generation was made.")
      try members.optional("reason", &reason, .text(of: Obstacle.self), "Why none was made; only there.")
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
}
