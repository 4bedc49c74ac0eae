// SPDX-License-Identifier: Apache-2.0

/// Copies a generation into the head and seals that as the next one (R16).
package struct RollBack: RestorationMethod {
  package static let method = "rollBack"
  package static let summary = "Goes back to a generation."
  package static let errors: [ErrorDescription] = [
    .invalidParams, .needsForce, .unknownApplication, .limitExceeded, .archiveUnreadable, .requestCancelled,
    .storeFailed,
  ]

  package typealias Reply = RolledBackArchive

  package var generation: Int64 = 0
  package var force = false
  package var progressToken: ProgressToken?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("generation", &generation, .generation, "The generation to go back to.")
    try members.flag("force", &force, "Also while sessions are live.")
    try members.optional("progressToken", &progressToken, "Asks for `progress`, which counts objects.")
  }
}
