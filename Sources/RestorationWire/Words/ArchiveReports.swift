// SPDX-License-Identifier: Apache-2.0

/// A copy of an archive.
public struct ArchiveBackup: WireObject, Hashable {
  public package(set) var to: String?
  public package(set) var bytes = 0
  public package(set) var milliseconds: Int64 = 0
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("to", &to, "As asked for.")
    try members.required("bytes", &bytes, "Of the copy.")
    try members.required("milliseconds", &milliseconds, .count, "How long it took.")
  }
}

/// The result of `importArchive`.
public struct ImportedArchive: WireObject, Hashable {
  package var upload: String?
  public package(set) var objects = 0
  public package(set) var states = 0
  public package(set) var bytes = 0
  public package(set) var generation: Int64?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("upload", &upload, .name, "Only with `more`: names the upload in the next call.")
    try members.required("objects", &objects, "Objects of the document received so far.")
    try members.required("states", &states, "States among them.")
    try members.required("bytes", &bytes, "Bytes of the states as stored; with `more`, of those received so far.")
    try members.optional(
      "generation",
      &generation,
      .generation,
      "The generation that holds the former state; absent if there was none."
    )
  }
}

/// The progress of a call that gave a `progressToken`.
public struct ArchiveProgress: RestorationNotification {
  package static let method = ServedMethod.progress
  package static let summary = "How far a call that this connection made with a `progressToken` has come."

  package var progressToken = ProgressToken("")
  /// In a unit that each method chooses.
  public package(set) var done: Int64 = 0
  public package(set) var total: Int64?
  public package(set) var message: String?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("progressToken", &progressToken, "As the call gave it, byte for byte.")
    try members.required("done", &done, .from(0), "Never decreases within a call.")
    try members.optional("total", &total, .from(0), "The final value of `done`; absent if unknown.")
    try members.optional("message", &message, "For people; absent if there is nothing to say.")
  }
}

/// The result of `verifyArchive` (R32).
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
    try members.required("states", &states, "Stored states that were checked, including those of generations.")
    try members.required("bytes", &bytes, "Their bytes.")
    try members.required("problems", &problems, "Problems, at most 256.")
    try members.optional("omitted", &omitted, .count, "How many further problems there are; absent if all are listed.")
    try members.required("milliseconds", &milliseconds, .count, "How long it took.")
  }
}

/// A fault found by `verifyArchive`.
public struct ArchiveProblem: WireObject, Hashable {
  package static let sharedName: String? = "ArchiveProblem"

  public enum Kind: String, OpenWireWord {
    /// A stored state cannot be read, or its checksum is wrong (R32).
    case state
    /// A stored text is malformed.
    case text
    /// A reference inside a state leads to an object that never existed.
    case reference
    /// An object's description cannot be read or is inconsistent.
    case object
    /// The tree is inconsistent: a parent is missing, two objects have one path, or an object is its own ancestor.
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
    (self.kind, self.path, self.generation, self.message) = (kind.rawValue, path, generation, message)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("kind", &kind, .text(of: Kind.self), "One of the words below; the set is open.")
    try members.optional("path", &path, "The object's path, in the generation if one is named; absent if unknown.")
    try members.optional(
      "generation",
      &generation,
      .generation,
      "The newest generation that shows it; absent if the head shows it."
    )
    try members.required("message", &message, .hostText, "For people.")
  }
}
