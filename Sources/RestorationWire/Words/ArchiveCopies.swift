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

/// What `importArchive` put into an archive.
public struct ImportedArchive: WireObject, Hashable {
  package var upload: String?
  public package(set) var objects = 0
  public package(set) var states = 0
  public package(set) var bytes = 0
  public package(set) var generation: Int64?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("upload", &upload, .name, "With `more` only: what to call the upload in the next call.")
    try members.required("objects", &objects, "Objects of the document, as far as they have come.")
    try members.required("states", &states, "States among them.")
    try members.required("bytes", &bytes, "Bytes of the states as they are stored; with `more`, of what has come.")
    try members.optional(
      "generation",
      &generation,
      .generation,
      "The generation that holds what was there before; absent where no state was."
    )
  }
}
