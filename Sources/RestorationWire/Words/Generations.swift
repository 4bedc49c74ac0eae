// SPDX-License-Identifier: Apache-2.0

/// One generation in `listGenerations` (R16).
public struct GenerationDescription: WireObject, Hashable {
  package static let sharedName: String? = "GenerationDescription"

  public package(set) var generation: Int64 = 0
  /// Later versions may add words.
  public package(set) var kind = ""
  public package(set) var committed = Timestamp(milliseconds: 0)
  public package(set) var objects = 0
  public package(set) var bytes = 0
  public package(set) var pinned = false
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("generation", &generation, .generation, "1, 2, 3 …; a number is never used twice.")
    try members.required("kind", &kind, "`startup`: what the previous run left.")
    try members.required("committed", &committed, "RFC 3339, UTC, milliseconds.")
    try members.required("objects", &objects, "Objects that have a state in it, and bytes of their states.")
    try members.required("bytes", &bytes, "Objects that have a state in it, and bytes of their states.")
    try members.required("pinned", &pinned, "This run started from it, and it is held (R16).")
  }
}

/// The differences between two generations, or between a generation and the head.
public struct GenerationDifference: WireObject, Hashable {
  public package(set) var added: [IdentifierPath] = []
  public package(set) var removed: [IdentifierPath] = []
  public package(set) var changed: [ObjectDifference] = []
  package var cursor: String?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("added", &added, "Objects that only `to` has.")
    try members.required("removed", &removed, "Objects that only `from` has.")
    try members.required("changed", &changed, "Objects that both have, with states that differ.")
    try members.optional("cursor", &cursor, .name, "For the next page; absent after the last one.")
  }

  public var isEmpty: Bool { added.isEmpty && removed.isEmpty && changed.isEmpty }
}

/// The difference of one object's states, in `diffGenerations`.
public struct ObjectDifference: WireObject, Hashable {
  package static let sharedName: String? = "ObjectDifference"

  public package(set) var path: IdentifierPath = []
  public package(set) var keys: [String] = []
  public package(set) var elements = false
  public package(set) var redacted = false
  public package(set) var unreadable = false
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("path", &path, "Its path.")
    try members.required(
      "keys",
      &keys,
      "Top-level keys of the state that only one side has, or whose values differ as text; sorted."
    )
    try members.mark("elements", &elements, "The elements differ; otherwise absent.")
    try members.mark(
      "redacted",
      &redacted,
      "Keys are not named, because the object is confidential on one side; otherwise absent."
    )
    try members.mark("unreadable", &unreadable, "Keys are unknown, because a state is damaged (R32); otherwise absent.")
  }
}

/// The result of `rollBack` (R16).
public struct RolledBackArchive: WireObject, Hashable {
  public package(set) var generation: Int64 = 0
  public package(set) var former: Int64?
  public package(set) var unreadable: [IdentifierPath] = []
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required(
      "generation",
      &generation,
      .generation,
      "The new generation, of kind `rolledBack`, which now equals the head."
    )
    try members.nullable(
      "former",
      &former,
      .generation,
      "The generation that holds the former state; null if there was none."
    )
    try members.required(
      "unreadable",
      &unreadable,
      "Objects whose state in the generation is damaged (R32): they return without state."
    )
  }
}
