// SPDX-License-Identifier: Apache-2.0

/// Gives an object another identifier; it moves with everything below it (R4, R6).
package struct SetRestorationIdentifier: RestorationMethod {
  package static let method = "setRestorationIdentifier"
  package static let summary = "Renames or excludes an object."
  package static let errors: [ErrorDescription] = [
    .unknownObject, .notOwner, .replaced, .invalidIdentifier, .duplicatePath, .limitExceeded, .archiveUnreadable,
    .storeFailed,
  ]
  package static let mayBeDiscarded = true

  package typealias Reply = ObjectPlacement

  package var object = ObjectReference.blank
  /// Nil excludes the object and everything below it (R4).
  package var restorationIdentifier: String?
  /// Nil leaves the object without a position.
  package var position: Int64?
  package var takeOver = false

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, "The object; of this session.")
    try members.required(
      "restorationIdentifier",
      &restorationIdentifier,
      .identifier,
      "The new identifier; null excludes the object and everything below it (R4)."
    )
    try members.optional(
      "position",
      &position,
      .range(0...RegisterObjectForStateRestoration.positionMax),
      "The new position; without it the object has none any more."
    )
    try members.flag(
      "takeOver",
      &takeOver,
      "Displace what is in the way: a live owner (R8), or the state of a vacant path (R6)."
    )
  }
}
