// SPDX-License-Identifier: Apache-2.0

/// Lists what is withheld because it ended in crashes, and what is suspected of it (R31, R35).
package struct ListQuarantine: RestorationMethod {
  package static let method = "listQuarantine"
  package static let summary = "Lists states that are withheld after crashes."
  package static let errors: [ErrorDescription] = [.invalidParams, .unknownApplication, .archiveUnreadable]

  package typealias Reply = QuarantineReport

  package var cursor: String?
  package var reveal = false

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("cursor", &cursor, .name, "From the page before.")
    try members.flag("reveal", &reveal, "Show the states of confidential objects.")
  }
}
