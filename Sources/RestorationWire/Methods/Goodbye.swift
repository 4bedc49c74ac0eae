// SPDX-License-Identifier: Apache-2.0

/// Ends the session and says what becomes of its objects (R30).
package struct Goodbye: RestorationMethod {
  package static let method = "goodbye"
  package static let summary = "Ends the session."
  package static let errors: [ErrorDescription] = [.archiveUnreadable, .storeFailed]

  package typealias Reply = EmptyResult

  package enum Reason: String, WireWord {
    /// The session's objects are over; their state is removed.
    case closed
    /// The user quit the application; its state is discarded.
    case userQuit
    /// The process comes back, e.g. after an update; everything is kept.
    case restart
    /// The user's session ends; everything is kept.
    case logout
  }

  package var reason = Reason.closed

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("reason", &reason, "What becomes of the objects (R30).")
  }
}
