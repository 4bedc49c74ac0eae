// SPDX-License-Identifier: Apache-2.0

/// Tells what differs between two generations, or a generation and the head, path by path.
package struct DiffGenerations: RestorationMethod {
  package static let method = "diffGenerations"
  package static let summary = "Tells what differs between two generations."
  package static let errors: [ErrorDescription] = [
    .invalidParams, .unknownApplication, .archiveUnreadable, .requestCancelled,
  ]

  package var from: Int64 = 0
  /// Nil compares with the head.
  package var to: Int64?
  package var reveal = false
  package var cursor: String?
  package var progressToken: ProgressToken?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("from", &from, .generation, "The generation to start from.")
    try members.optional("to", &to, .generation, "The generation to come to.")
    try members.flag("reveal", &reveal, "Name the keys of confidential objects.")
    try members.optional("cursor", &cursor, .name, "From the page before.")
    try members.optional("progressToken", &progressToken, "Asks for `progress`, which counts objects.")
  }

  package struct Reply: WireObject, Hashable {
    package var added: [IdentifierPath] = []
    package var removed: [IdentifierPath] = []
    package var changed: [ObjectDifference] = []
    package var cursor: String?

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("added", &added, "Objects that only `to` has.")
      try members.required("removed", &removed, "Objects that only `from` has.")
      try members.required("changed", &changed, "Objects that both have, with states that differ.")
      try members.optional("cursor", &cursor, .name, "For the next page; absent after the last one.")
    }

    /// Nothing differs.
    package var isEmpty: Bool { added.isEmpty && removed.isEmpty && changed.isEmpty }
  }
}

/// How one object's state differs, in `diffGenerations`.
package struct ObjectDifference: WireObject, Hashable {
  package static let sharedName: String? = "ObjectDifference"

  package var path: IdentifierPath = []
  package var keys: [String] = []
  package var elements = false
  package var redacted = false
  package var unreadable = false

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("path", &path, "Its path.")
    try members.required(
      "keys",
      &keys,
      "Top-level keys of the state that only one side has, or whose values are not the same text; sorted."
    )
    try members.mark("elements", &elements, "The elements differ; else absent.")
    try members.mark(
      "redacted",
      &redacted,
      "Keys are not named, because the object is confidential on one side; else absent."
    )
    try members.mark("unreadable", &unreadable, "Keys are not known, because a state is damaged (R32); else absent.")
  }
}
