// SPDX-License-Identifier: Apache-2.0

/// Copies a generation into the head and seals that as the next one (R16).
package struct RollBack: RestorationMethod {
  package static let method = "rollBack"
  package static let summary = "Goes back to a generation."
  package static let errors: [ErrorDescription] = [
    .invalidParams, .needsForce, .unknownApplication, .limitExceeded, .archiveUnreadable, .requestCancelled,
    .storeFailed,
  ]

  package var generation: Int64 = 0
  package var force = false
  package var progressToken: ProgressToken?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("generation", &generation, .generation, "The generation to go back to.")
    try members.flag("force", &force, "Also while sessions are live.")
    try members.optional("progressToken", &progressToken, "Asks for `progress`, which counts objects.")
  }

  package struct Reply: WireObject, Hashable {
    package var generation: Int64 = 0
    package var former: Int64?
    package var unreadable: [IdentifierPath] = []

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required(
        "generation",
        &generation,
        .generation,
        "The new generation, of kind `rolledBack`, which the head equals now."
      )
      try members.nullable(
        "former",
        &former,
        .generation,
        "The generation that holds what was there before; null where no state was."
      )
      try members.required(
        "unreadable",
        &unreadable,
        "Objects whose state in the generation is damaged (R32): they have come back without state."
      )
    }
  }
}
