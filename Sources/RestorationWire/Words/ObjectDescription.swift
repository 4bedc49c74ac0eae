// SPDX-License-Identifier: Apache-2.0

/// One object in `describeApplication`, without its state.
public struct ObjectDescription: WireObject, Hashable {
  package static let sharedName: String? = "ObjectDescription"

  public package(set) var node: Int64 = 0
  public package(set) var parent: Int64?
  public package(set) var object: ObjectHandle?
  public package(set) var path: IdentifierPath?
  public package(set) var kind = ObjectKind.object
  /// The object's class and its superclasses; empty if none was given.
  public package(set) var classes: [String] = []
  public package(set) var process: String?
  public package(set) var pid: Int64?
  public package(set) var included = false
  public package(set) var orphaned = false
  public package(set) var bytes = 0
  /// Nil if there is no state.
  public package(set) var modified: Timestamp?
  public package(set) var revision: Int64?
  public package(set) var confidential = false
  public package(set) var quarantined = false

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("node", &node, .from(1), "Names it within its archive, for ever, also while nobody claims it.")
    try members.nullable(
      "parent",
      &parent,
      .from(1),
      "`node` of its restoration parent, also where its path begins anew (R4); null for a root."
    )
    try members.nullable(
      "object",
      &object,
      .handle,
      "Handle, and process of the owner; null where nobody claims the object."
    )
    try members.nullable("path", &path, "Null where its own identifier is null.")
    try members.required("kind", &kind, "`object`, `viewController` or `view`.")
    try members.nullable("objectClass", classes: &classes, "As registered.")
    try members.nullable("process", &process, "Role of the process that owns it, or wrote it last.")
    try members.nullable(
      "pid",
      &pid,
      .processID,
      "Handle, and process of the owner; null where nobody claims the object."
    )
    try members.required("included", &included, "A generation holds it by itself (R4, R5).")
    try members.required("orphaned", &orphaned, "Its owner left without `closed` (R13).")
    try members.required("bytes", &bytes, "Of its state; 0 where there is none.")
    try members.nullable("modified", &modified, "When the state was written.")
    try members.nullable("revision", &revision, .from(1), "The highest that its present owner has given (R15).")
    try members.added("confidential", &confidential, "Its state is for nobody's eyes unless they ask.")
    try members.mark("quarantined", &quarantined, "Present and true where its state is withheld from its owner (R35).")
  }
}
