// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Gives what is saved as a document that `importArchive` takes, page by page (`Protocol/export-format.md`).
package struct ExportArchive: RestorationMethod {
  package static let method = "exportArchive"
  package static let summary = "Gives what is saved as a document."
  package static let parameters: [Schema.Member] = [
    .optional("generation", .generation, "The generation to export."),
    .optional("cursor", .name, "From the page before."),
    .optional("reveal", .boolean, "Export confidential states as well."),
    .optional("progressToken", ProgressToken.schema, "Asks for `progress`, which counts objects."),
  ]
  package static let errors: [ErrorDescription] = [
    .invalidParams, .unknownApplication, .archiveUnreadable, .requestCancelled,
  ]

  /// Nil exports the head.
  package var generation: Int64?
  /// From the page before; fixes what all pages show.
  package var cursor: String?
  /// Whether confidential states are part of it.
  package var reveal: Bool
  package var progressToken: ProgressToken?

  package init(
    generation: Int64? = nil,
    cursor: String? = nil,
    reveal: Bool = false,
    progressToken: ProgressToken? = nil
  ) {
    self.generation = generation
    self.cursor = cursor
    self.reveal = reveal
    self.progressToken = progressToken
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.generation = try reader.optionalInteger("generation", in: 1...Int64.max)
    self.cursor = try reader.optionalName("cursor")
    self.reveal = try reader.bool("reveal")
    self.progressToken = try ProgressToken.read(from: reader)
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("generation", ifPresent: generation)
    writer.member("cursor", ifPresent: cursor)
    writer.member("reveal", ifTrue: reveal)
    writer.member("progressToken", ifPresent: progressToken)
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("part", ArchiveDocument.schema, "A document with some of the objects."),
      .optional("cursor", .name, "For the next page; absent after the last one."),
    ])

    /// A document with some of the objects; the whole one has those of all pages.
    package var part: JSONText
    /// For the next page; nil after the last one.
    package var cursor: String?

    package init(part: JSONText, cursor: String? = nil) {
      self.part = part
      self.cursor = cursor
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.part = try reader.value("part") { $0.kind == .object ? $0.compactText : nil }
        self.cursor = try reader.optionalString("cursor")
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("part", part)
        writer.member("cursor", ifPresent: cursor)
      }
    }
  }
}
