// SPDX-License-Identifier: Apache-2.0

/// Takes an object out of its application; its state goes with it unless it is to be kept (R3, R13).
package struct UnregisterObject: RestorationMethod {
  package static let method = "unregisterObject"
  package static let summary = "Takes an object out."
  package static let errors: [ErrorDescription] = [
    .unknownObject, .notOwner, .replaced, .archiveUnreadable, .storeFailed,
  ]
  package static let mayBeDiscarded = true

  package typealias Reply = EmptyResult

  package var object = ObjectReference.blank
  package var keepState = false

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, "The object; of this session.")
    try members.flag("keepState", &keepState, "Keep the state; the object becomes an orphan (R13).")
  }
}
