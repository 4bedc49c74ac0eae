// SPDX-License-Identifier: Apache-2.0

/// Empties the application's head, on request also its generations (R30).
package struct DiscardApplicationState: RestorationMethod {
  package static let method = "discardApplicationState"
  package static let summary = "Empties the head."
  package static let errors: [ErrorDescription] = [.needsForce, .unknownApplication, .archiveUnreadable, .storeFailed]

  package typealias Reply = EmptyResult

  package var reason: String?
  package var generations = false
  package var force = false

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("reason", &reason, "For people; written to the log.")
    try members.flag("generations", &generations, "Remove the generations as well.")
    try members.flag("force", &force, "Needed where `generations` is asked for while sessions are live.")
  }
}
