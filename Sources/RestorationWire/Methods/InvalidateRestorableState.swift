// SPDX-License-Identifier: Apache-2.0

/// Says that the stored state of an object is not that of now: the broker asks its owner for the new one (R18).
package struct InvalidateRestorableState: RestorationMethod {
  package static let method = "invalidateRestorableState"
  package static let summary = "Has the broker ask for a state."
  package static let errors: [ErrorDescription] = [
    .unknownObject, .notOwner, .replaced, .invalidParams, .archiveUnreadable,
  ]
  package static let mayBeDiscarded = true

  package typealias Reply = EmptyResult

  package var object = ObjectReference.blank

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, "An object of this session.")
  }
}
