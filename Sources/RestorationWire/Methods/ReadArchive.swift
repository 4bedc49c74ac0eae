// SPDX-License-Identifier: Apache-2.0

/// Reads what is saved, page by page, from the head or from a generation (R16, R29).
package struct ReadArchive: RestorationMethod {
  package static let method = "readArchive"
  package static let summary = "Reads all that is saved."
  package static let errors: [ErrorDescription] = [.invalidParams, .unknownApplication, .archiveUnreadable]

  /// Nil reads the head.
  package var generation: Int64?
  package var cursor: String?
  package var reveal = false

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("generation", &generation, .generation, "The generation to read.")
    try members.optional("cursor", &cursor, .name, "From the page before.")
    try members.flag("reveal", &reveal, "Show the states of confidential objects.")
  }

  package struct Reply: WireObject, Hashable {
    package var generation: Int64?
    package var objects: [ArchivedObject] = []
    package var cursor: String?

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.nullable("generation", &generation, .generation, "The generation; null for the head.")
      try members.required("objects", &objects, "Objects that have a path.")
      try members.optional("cursor", &cursor, .name, "For the next page; absent after the last one.")
    }
  }
}
