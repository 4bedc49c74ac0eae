// SPDX-License-Identifier: Apache-2.0

/// Ends the session and says what becomes of its objects (R30).
package struct Goodbye: RestorationMethod {
  package static let method = "goodbye"
  package static let summary = "Ends the session."
  package static let errors: [ErrorDescription] = [.archiveUnreadable, .storeFailed]

  package typealias Reply = EmptyResult

  package var reason = GoodbyeReason.closed

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("reason", &reason, "What becomes of the objects (R30).")
  }
}
