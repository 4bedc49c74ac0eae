// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Exports the saved state, page by page, as a document that `importArchive` accepts (`Protocol/export-format.md`).
package struct ExportArchive: LongMethod {
  package static let method = "exportArchive"
  package static let summary = "Exports the saved state as a document."
  package static let errors: [ErrorCode] = [.invalidParams, .unknownApplication, .archiveUnreadable, .requestCancelled]

  /// `nil` exports the head.
  package var generation: Int64?
  package var cursor: String?
  package var reveal = false
  package var progressToken: ProgressToken?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("generation", &generation, .generation, "The generation to export.")
    try members.optional("cursor", &cursor, .name, "From the previous page.")
    try members.flag("reveal", &reveal, "Export confidential states as well.")
    try members.optional("progressToken", &progressToken, "Asks for `progress`, which counts objects.")
  }

  package struct Reply: WireObject, Hashable {
    package var part = JSONText.null
    package var cursor: String?
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("part", &part, .document, "A document with some of the objects.")
      try members.optional("cursor", &cursor, .name, "For the next page; absent after the last one.")
    }
  }
}

/// Puts a document that `exportArchive` gave in the place of the application's head, all of it or nothing.
package struct ImportArchive: LongMethod {
  package static let method = "importArchive"
  package static let summary = "Replaces the saved state by a document."
  package static let errors: [ErrorCode] = [
    .invalidParams, .invalidIdentifier, .unknownParent, .duplicatePath, .reservedKey, .invalidReference,
    .limitExceeded, .needsForce, .alreadyServed, .archiveUnreadable, .requestCancelled, .storeFailed,
  ]

  package typealias Reply = ImportedArchive

  /// Either the whole document, or a part: a document with some of the objects.
  package var document: JSONSlice?
  package var part: JSONSlice?
  package var upload: String?
  package var more = false
  package var force = false
  package var progressToken: ProgressToken?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("document", &document, .document, "The whole document.")
    try members.optional("part", &part, .document, "Part of a document that does not fit into one message.")
    try members.optional("upload", &upload, .name, "For a further part: as the answer to the previous part gave it.")
    try members.flag("more", &more, "Further parts follow; with the last one the document is imported.")
    try members.flag("force", &force, "Replace existing state; accept a document in which states are missing.")
    try members.optional(
      "progressToken",
      &progressToken,
      "Asks for `progress`, which counts objects; `total` is known with the last part."
    )
  }

  package func check() throws(Misfit) {
    func fault(_ place: String, _ message: String, _ hint: String) -> Misfit {
      Misfit(.unsuited(message, hint: hint), at: place)
    }
    switch (document, part) {
    case (nil, nil): throw fault("document", "neither document nor part is given", "Give a document, or a part of one.")
    case (_?, _?): throw fault("part", "document and part are given", "Give a document, or a part of one.")
    case (nil, _?): break
    case (_?, nil):
      if upload != nil {
        throw fault("upload", "a whole document cannot continue an upload", "Leave upload out, or give a part.")
      }
      if more { throw fault("more", "nothing can follow a whole document", "Leave more out, or give a part.") }
    }
  }
}

/// Copies the archive: as its own last good copy, or to a file (R32).
package struct BackupArchive: LongMethod {
  package static let method = "backupArchive"
  package static let summary = "Copies the archive."
  package static let errors: [ErrorCode] = [
    .invalidParams, .forbidden, .unknownApplication, .archiveUnreadable, .storeFailed,
  ]

  package typealias Reply = ArchiveBackup

  /// `nil` for the archive's own backup copy.
  package var to: String?
  package var progressToken: ProgressToken?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("to", &to, .file, "Absolute path of a file that must not exist yet.")
    try members.optional("progressToken", &progressToken, "Asks for `progress`, which counts bytes.")
  }
}

/// Checks everything that is stored of an application, and changes nothing (R32).
package struct VerifyArchive: LongMethod {
  package static let method = "verifyArchive"
  package static let summary = "Checks the stored states."
  package static let errors: [ErrorCode] = [.unknownApplication, .archiveUnreadable, .requestCancelled]

  package typealias Reply = ArchiveVerification

  package var progressToken: ProgressToken?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("progressToken", &progressToken, "Asks for `progress`, which counts objects.")
  }
}
