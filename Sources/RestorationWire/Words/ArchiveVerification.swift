// SPDX-License-Identifier: Apache-2.0

/// What `verifyArchive` found (R32).
public struct ArchiveVerification: WireObject, Hashable {
  public package(set) var sound = false
  public package(set) var objects = 0
  public package(set) var states = 0
  public package(set) var bytes = 0
  public package(set) var problems: [ArchiveProblem] = []
  public package(set) var omitted: Int64?
  public package(set) var milliseconds: Int64 = 0

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("sound", &sound, "Nothing is wrong.")
    try members.required("objects", &objects, "Objects at the head.")
    try members.required("states", &states, "Stored states that were checked, those of generations included.")
    try members.required("bytes", &bytes, "Their bytes.")
    try members.required("problems", &problems, "What is wrong, at most 256.")
    try members.optional(
      "omitted",
      &omitted,
      .count,
      "How many problems there are besides; absent where all are listed."
    )
    try members.required("milliseconds", &milliseconds, .count, "How long it took.")
  }
}

/// Something `verifyArchive` found wrong.
public struct ArchiveProblem: WireObject, Hashable {
  package static let sharedName: String? = "ArchiveProblem"

  /// What kind of thing is wrong.
  public enum Kind: String, OpenWireWord {
    /// A stored state cannot be read, or its checksum is wrong (R32).
    case state
    /// A stored text is not what it must be.
    case text
    /// A reference inside a state leads nowhere it can ever have led.
    case reference
    /// An object's description cannot be read or makes no sense.
    case object
    /// The tree is none: a parent is missing, two objects have one path, or an object is its own ancestor.
    case tree
    /// The file is not what the store wrote.
    case file
  }

  public package(set) var kind = ""
  public package(set) var path: IdentifierPath?
  public package(set) var generation: Int64?
  public package(set) var message = ""

  package init() {}

  package init(_ kind: Kind, path: IdentifierPath? = nil, generation: Int64? = nil, _ message: String) {
    self.kind = kind.rawValue
    self.path = path
    self.generation = generation
    self.message = message
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("kind", &kind, .text(of: Kind.self), "One of the words below; the set is open.")
    try members.optional(
      "path",
      &path,
      "The object's path, in the generation where one is named; absent where it is not known."
    )
    try members.optional(
      "generation",
      &generation,
      .generation,
      "The newest generation that shows it; absent where the head does."
    )
    try members.required("message", &message, "For people.")
  }
}
