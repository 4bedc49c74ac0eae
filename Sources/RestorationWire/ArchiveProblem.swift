// SPDX-License-Identifier: Apache-2.0

/// Something `verifyArchive` found wrong.
package struct ArchiveProblem: WireObject, Hashable {
  package static let sharedName: String? = "ArchiveProblem"

  package enum Kind: String, OpenWireWord {
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

  package var kind = ""
  package var path: IdentifierPath?
  package var generation: Int64?
  package var message = ""

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
