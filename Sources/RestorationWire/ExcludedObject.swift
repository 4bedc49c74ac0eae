// SPDX-License-Identifier: Apache-2.0

/// A live object that a generation leaves out, and what excludes it (R4, R5).
package struct ExcludedObject: WireObject, Hashable {
  package static let sharedName: String? = "ExcludedObject"

  package var object: ObjectHandle = 0
  package var path: IdentifierPath?
  package var process: String?
  package var pid: Int64?
  package var by = ObjectReference.blank

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, .handle, "Its handle.")
    try members.nullable("path", &path, "Its path; null where its own identifier is null.")
    try members.nullable("process", &process, "Its owner.")
    try members.nullable("pid", &pid, .processID, "Its owner.")
    try members.required(
      "by",
      &by,
      """
      The object whose identifier is null, or that a view must not be below; the object itself where it is at fault.
      """
    )
  }
}
