// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Gives what is saved as a document that `importArchive` takes, page by page (`Protocol/export-format.md`).
package struct ExportArchive: RestorationMethod {
  package static let method = "exportArchive"
  package static let summary = "Gives what is saved as a document."
  package static let errors: [ErrorDescription] = [
    .invalidParams, .unknownApplication, .archiveUnreadable, .requestCancelled,
  ]

  /// Nil exports the head.
  package var generation: Int64?
  package var cursor: String?
  package var reveal = false
  package var progressToken: ProgressToken?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("generation", &generation, .generation, "The generation to export.")
    try members.optional("cursor", &cursor, .name, "From the page before.")
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
