// SPDX-License-Identifier: Apache-2.0

/// Moves an object and everything below it under another parent, or makes it a root (R6).
package struct SetRestorationParent: RestorationMethod {
  package static let method = "setRestorationParent"
  package static let summary = "Moves a subtree under another parent."
  package static let errors: [ErrorDescription] = [
    .unknownObject, .notOwner, .replaced, .unknownParent, .parentCycle, .duplicatePath, .limitExceeded,
    .archiveUnreadable, .storeFailed,
  ]
  package static let mayBeDiscarded = true

  package var object = ObjectReference.blank
  /// Nil makes the object a root.
  package var restorationParent: ObjectReference?
  package var takeOver = false

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, "The object; of this session.")
    try members.required("restorationParent", &restorationParent, "The new parent; null makes the object a root.")
    try members.flag(
      "takeOver",
      &takeOver,
      "Displace what is in the way: a live owner (R8), or the state of a vacant path (R6)."
    )
  }

  package struct Reply: WireObject, Hashable {
    package var path: IdentifierPath?

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.nullable("path", &path, "The path from now on; null where the object's own identifier is null.")
    }
  }
}
