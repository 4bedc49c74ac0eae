// SPDX-License-Identifier: Apache-2.0

/// Checks everything that is stored of an application, and changes nothing (R32).
package struct VerifyArchive: RestorationMethod {
  package static let method = "verifyArchive"
  package static let summary = "Checks what is stored."
  package static let errors: [ErrorDescription] = [.unknownApplication, .archiveUnreadable, .requestCancelled]

  package typealias Reply = ArchiveVerification

  package var progressToken: ProgressToken?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("progressToken", &progressToken, "Asks for `progress`, which counts objects.")
  }
}
