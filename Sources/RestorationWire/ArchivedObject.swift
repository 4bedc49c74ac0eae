// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One object in `readArchive`, with its state.
package struct ArchivedObject: WireObject, Hashable {
  package static let sharedName: String? = "ArchivedObject"

  package var object: ObjectHandle?
  package var path: IdentifierPath = []
  package var kind = ObjectKind.object
  /// The class and superclasses that the archive recorded; empty if none was given.
  package var classes: [String] = []
  package var process: String?
  package var orphaned = false
  package var status = RestorationState.none
  package var state: JSONText?
  /// Nil if there is no state.
  package var coder: JSONText?
  package var elements: JSONText?
  package var bytes = 0
  /// Nil if there is no state.
  package var modified: Timestamp?
  package var confidential = false
  package var redacted = false

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("object", &object, .handle, "Its handle now; null where nobody claims it.")
    try members.required("path", &path, "Its path.")
    try members.required("kind", &kind, "`object`, `viewController` or `view`.")
    try members.nullable("objectClass", classes: &classes, "As registered.")
    try members.nullable("process", &process, "Role of the process that wrote the state.")
    try members.required("orphaned", &orphaned, "Its owner left without `closed` (R13).")
    try members.required(
      "status",
      &status,
      "`available`, `none`, `unreadable`, or in the head `quarantined`: withheld from its owner (R35)."
    )
    try members.nullable("state", &state, .state, "Null unless `available` or `quarantined`, and where it is redacted.")
    try members.nullable("coder", &coder, .coder, "Reserved keys of the session that wrote it.")
    try members.optional("elements", &elements, .elements, "Absent where there are none or they are redacted.")
    try members.required("bytes", &bytes, "Of state and elements as they are stored; 0 where there is none.")
    try members.nullable("modified", &modified, "When the state was written, RFC 3339, UTC, milliseconds.")
    try members.required("confidential", &confidential, "Whether it is confidential.")
    try members.required("redacted", &redacted, "Whether that is why `state` is null.")
  }
}
