// SPDX-License-Identifier: Apache-2.0

/// Says that this session knows what the elements of a view stand for (R9, R28).
package struct RegisterDataSource: RestorationMethod {
  package static let method = "registerDataSource"
  package static let summary = "Says who knows the elements of a view."
  package static let errors: [ErrorDescription] = [
    .unknownObject, .alreadyServed, .invalidRequest, .limitExceeded, .archiveUnreadable,
  ]
  package static let mayBeDiscarded = true

  package typealias Reply = EmptyResult

  package var view = ObjectReference.blank

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("view", &view, "The view; live, vacant, or known from the archive.")
  }
}
