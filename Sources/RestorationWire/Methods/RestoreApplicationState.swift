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

  package struct SkippedObject: WireObject, Hashable {
    package static let sharedName: String? = "SkippedObject"

    package var path: IdentifierPath = []
    package var reason = ""
    package var message: String?

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("path", &path, "The object.")
      try members.required("reason", &reason, .text(of: Reason.self), "Why it was not restored.")
      try members.optional("message", &message, "Why, in the words of who was asked; for people. At most 256 bytes.")
    }
  }

  package struct FailedUnit: WireObject, Hashable {
    package static let sharedName: String? = "FailedUnit"

    package var unit = ""
    package var message = ""

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("unit", &unit, "The unit's name.")
      try members.required("message", &message, "Why it was not started, for people.")
    }
  }

  package struct Reply: WireObject, Hashable {
    package var restored: [IdentifierPath] = []
    package var skipped: [SkippedObject] = []
    package var absent: [IdentifierPath] = []
    package var declined = false
    package var omitted: Int64?
    package var failedUnits: [FailedUnit] = []
    package var milliseconds: Int64 = 0

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
}
