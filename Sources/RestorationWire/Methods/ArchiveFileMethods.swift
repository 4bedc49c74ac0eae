// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

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

/// Replaces the head by an exported document, completely or not at all.
package struct ImportArchive: LongMethod {
  package static let method = "importArchive"
  package static let summary = "Replaces the saved state by a document."
  package static let errors: [ErrorCode] = [
    .invalidParams, .invalidIdentifier, .unknownParent, .duplicatePath, .reservedKey, .invalidReference,
    .limitExceeded, .needsForce, .alreadyServed, .archiveUnreadable, .requestCancelled, .storeFailed,
  ]

  package typealias Reply = ImportedArchive

  /// The whole document, or a part with some of the objects.
  package var document: JSONSlice?
  package var part: JSONSlice?
  package var upload: String?
  package var more = false
  package var force = false
  package var progressToken: ProgressToken?
  package var dryRun = false
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
    try members.flag("dryRun", &dryRun, "Check all that an import checks, and change nothing.")
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

/// Makes the archive's own last good copy, or a file (R32).
public struct BackupArchive: LongMethod {
  package static let method = "backupArchive"
  package static let summary = "Copies the archive."
  package static let errors: [ErrorCode] = [
    .invalidParams, .forbidden, .unknownApplication, .archiveUnreadable, .storeFailed,
  ]

  public typealias Reply = ArchiveBackup

  /// `nil` for the archive's own backup copy.
  public var to: String?
  package var progressToken: ProgressToken?
  package init() {}

  public init(to: String? = nil) { self.to = to }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("to", &to, .file, "Absolute path of a file that must not exist yet.")
    try members.optional("progressToken", &progressToken, "Asks for `progress`, which counts bytes.")
  }
}

/// Checks everything that is stored of an application, and changes nothing (R32).
public struct VerifyArchive: LongMethod {
  package static let method = "verifyArchive"
  package static let summary = "Checks the stored states."
  package static let errors: [ErrorCode] = [.unknownApplication, .archiveUnreadable, .requestCancelled]

  public typealias Reply = ArchiveVerification

  package var progressToken: ProgressToken?
  public init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("progressToken", &progressToken, "Asks for `progress`, which counts objects.")
  }
}
