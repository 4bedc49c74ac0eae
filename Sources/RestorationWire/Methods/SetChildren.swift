// SPDX-License-Identifier: Apache-2.0

/// Gives the children of a container their positions 0…n−1 in one step (R6).
package struct SetChildren: RestorationMethod {
  package static let method = "setChildren"
  package static let summary = "Gives children their positions."
  package static let errors: [ErrorDescription] = [
    .unknownObject, .notOwner, .replaced, .invalidParams, .duplicatePath, .limitExceeded, .archiveUnreadable,
    .storeFailed,
  ]
  package static let mayBeDiscarded = true

  package var object = ObjectReference.blank
  package var children: [ObjectReference] = []

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, "The container; of this session.")
    try members.required("children", &children, "Children in order; each gets its index as position, 0 … n−1.")
  }

  package struct Reply: WireObject, Hashable {
    package var paths: [IdentifierPath?] = []

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("paths", &paths, "Paths of the children from now on, in the order they were given.")
    }
  }
}
