// SPDX-License-Identifier: Apache-2.0

/// Lists what is withheld because it ended in crashes, and what is suspected of it (R31, R35).
package struct ListQuarantine: RestorationMethod {
  package static let method = "listQuarantine"
  package static let summary = "Lists states that are withheld after crashes."
  package static let errors: [ErrorDescription] = [.invalidParams, .unknownApplication, .archiveUnreadable]

  package var cursor: String?
  package var reveal = false

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("cursor", &cursor, .name, "From the page before.")
    try members.flag("reveal", &reveal, "Show the states of confidential objects.")
  }

  package struct Reply: WireObject, Hashable {
    package var archive: Timestamp?
    package var strikes = 0
    package var objects: [QuarantinedObject] = []
    package var cursor: String?

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.nullable(
        "archive",
        &archive,
        "When the archive as a whole was put into quarantine; null where it was not, or nothing is withheld any more."
      )
      try members.required("strikes", &strikes, "Crashes in a row for which no object was found guilty.")
      try members.required("objects", &objects, "In the order in which they were first registered.")
      try members.optional("cursor", &cursor, .name, "For the next page; absent after the last one.")
    }
  }
}
