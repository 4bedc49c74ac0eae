// SPDX-License-Identifier: Apache-2.0

/// Says that this session makes the objects of a restoration class (R9, R22, R23).
package struct RegisterRestorationClass: RestorationMethod {
  package static let method = "registerRestorationClass"
  package static let summary = "Says who makes the objects of a class."
  package static let errors: [ErrorDescription] = [.alreadyServed, .invalidRequest, .limitExceeded, .archiveUnreadable]
  package static let mayBeDiscarded = true

  package typealias Reply = EmptyResult

  package var restorationClass = ""

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("restorationClass", &restorationClass, .name, "The class, compared byte by byte.")
  }
}
