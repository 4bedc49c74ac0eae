// SPDX-License-Identifier: Apache-2.0

/// Ends the quarantine of one object or of all of them: their states are handed out again (R31, R35).
package struct ReleaseQuarantine: RestorationMethod {
  package static let method = "releaseQuarantine"
  package static let summary = "Hands withheld states out again."
  package static let errors: [ErrorDescription] = [
    .invalidParams, .unknownObject, .unknownApplication, .archiveUnreadable, .storeFailed,
  ]

  /// Nil releases everything, the archive as a whole included.
  package var path: IdentifierPath?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("path", &path, "The object to release.")
  }

  package struct Reply: WireObject, Hashable {
    package var released = 0

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("released", &released, "Objects whose states were withheld until now.")
    }
  }
}
