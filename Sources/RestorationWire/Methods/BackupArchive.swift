// SPDX-License-Identifier: Apache-2.0

/// Copies the archive: as its own last good copy, or to a file (R32).
package struct BackupArchive: RestorationMethod {
  package static let method = "backupArchive"
  package static let summary = "Copies the archive."
  package static let errors: [ErrorDescription] = [
    .invalidParams, .unknownApplication, .archiveUnreadable, .storeFailed,
  ]

  package typealias Reply = ArchiveBackup

  /// Nil for the archive's own backup copy.
  package var to: String?
  package var progressToken: ProgressToken?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("to", &to, .file, "Absolute path of a file that must not be there yet.")
    try members.optional("progressToken", &progressToken, "Asks for `progress`, which counts bytes.")
  }
}
