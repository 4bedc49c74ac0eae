// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One object in `readArchive`, with its state.
public struct ArchivedObject: WireObject, Hashable {
  package static let sharedName: String? = "ArchivedObject"

  public package(set) var object: ObjectHandle?
  public package(set) var path: IdentifierPath = []
  public package(set) var kind = ObjectKind.object
  /// The class and superclasses that the archive recorded; empty if none was given.
  public package(set) var classes: [String] = []
  public package(set) var process: String?
  public package(set) var orphaned = false
  public package(set) var status = RestorationState.none
  package var stateText: JSONText?
  /// Nil if there is no state.
  package var coderText: JSONText?
  package var elementsText: JSONText?
  public package(set) var bytes = 0
  /// Nil if there is no state.
  public package(set) var modified: Timestamp?
  public package(set) var confidential = false
  public package(set) var redacted = false

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
    try members.nullable(
      "state",
      &stateText,
      .state,
      "Null unless `available` or `quarantined`, and where it is redacted."
    )
    try members.nullable("coder", &coderText, .coder, "Reserved keys of the session that wrote it.")
    try members.optional("elements", &elementsText, .elements, "Absent where there are none or they are redacted.")
    try members.required("bytes", &bytes, "Of state and elements as they are stored; 0 where there is none.")
    try members.nullable("modified", &modified, "When the state was written, RFC 3339, UTC, milliseconds.")
    try members.required("confidential", &confidential, "Whether it is confidential.")
    try members.required("redacted", &redacted, "Whether that is why `state` is null.")
  }
}
