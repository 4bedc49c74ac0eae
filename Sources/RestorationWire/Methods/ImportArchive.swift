// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Puts a document that `exportArchive` gave in the place of the application's head, all of it or nothing.
package struct ImportArchive: RestorationMethod {
  package static let method = "importArchive"
  package static let summary = "Takes a document in the place of what is saved."
  package static let parameters: [Schema.Member] = [
    .optional("document", ArchiveDocument.schema, "The whole document."),
    .optional("part", ArchiveDocument.schema, "A part of it, where the whole does not fit into a message."),
    .optional("upload", .name, "With a further part: as the answer to the part before gave it."),
    .optional("more", .boolean, "Further parts follow; with the last one the document is imported."),
    .optional("force", .boolean, "Replace state that is there; take a document in which states are missing."),
    .optional(
      "progressToken",
      ProgressToken.schema,
      "Asks for `progress`, which counts objects; `total` is known with the last part."
    ),
  ]
  package static let errors: [ErrorDescription] = [
    .invalidParams, .invalidIdentifier, .unknownParent, .duplicatePath, .reservedKey, .invalidReference,
    .limitExceeded, .needsForce, .alreadyServed, .archiveUnreadable, .storeFailed,
  ]

  package enum Content: Sendable {
    /// The whole document.
    case document(JSONSlice)
    /// A document with some of the objects.
    case part(JSONSlice)
  }

  package var content: Content
  /// Names what the parts before belong to; nil for the first one.
  package var upload: String?
  /// Whether further parts follow.
  package var more: Bool
  /// Also where state is replaced, or where something is left out of the document.
  package var force: Bool
  package var progressToken: ProgressToken?

  package init(
    _ content: Content,
    upload: String? = nil,
    more: Bool = false,
    force: Bool = false,
    progressToken: ProgressToken? = nil
  ) {
    self.content = content
    self.upload = upload
    self.more = more
    self.force = force
    self.progressToken = progressToken
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    switch (reader.present("document"), reader.present("part")) {
    case (let document?, nil): content = .document(document)
    case (nil, let part?): content = .part(part)
    case (nil, nil):
      throw .invalidParameter(
        reader.pointer("document"),
        "neither document nor part is given",
        hint: "Give a document, or a part of one."
      )
    case (_?, _?):
      throw .invalidParameter(
        reader.pointer("part"),
        "document and part are given",
        hint: "Give a document, or a part of one."
      )
    }
    self.upload = try reader.optionalName("upload")
    self.more = try reader.bool("more")
    self.force = try reader.bool("force")
    self.progressToken = try ProgressToken.read(from: reader)
    if case .document = content {
      if upload != nil {
        throw .invalidParameter(
          reader.pointer("upload"),
          "a whole document belongs to no upload",
          hint: "Leave upload out, or give a part."
        )
      }
      if more {
        throw .invalidParameter(
          reader.pointer("more"),
          "nothing can follow a whole document",
          hint: "Leave more out, or give a part."
        )
      }
    }
  }

  package func writeMembers(to writer: inout JSONWriter) {
    switch content {
    case .document(let slice): writer.member("document", slice.compactText)
    case .part(let slice): writer.member("part", slice.compactText)
    }
    writer.member("upload", ifPresent: upload)
    writer.member("more", ifTrue: more)
    writer.member("force", ifTrue: force)
    writer.member("progressToken", ifPresent: progressToken)
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .optional("upload", .name, "With `more` only: what to call the upload in the next call."),
      .required("objects", .count, "Objects of the document, as far as they have come."),
      .required("states", .count, "States among them."),
      .required("bytes", .count, "Bytes of the states as they are stored; with `more`, of what has come."),
      .optional(
        "generation",
        .generation,
        "The generation that holds what was there before; absent where no state was."
      ),
    ])

    /// Where further parts are awaited: what to call the upload. Nil when everything has been imported.
    package var upload: String?
    /// Objects and states of the document, as far as it has come, and the states' bytes as they are stored.
    package var objects: Int
    package var states: Int
    package var bytes: Int
    /// The generation that holds what was there before; nil where there was nothing.
    package var generation: Int64?

    package init(upload: String? = nil, objects: Int, states: Int, bytes: Int, generation: Int64? = nil) {
      self.upload = upload
      self.objects = objects
      self.states = states
      self.bytes = bytes
      self.generation = generation
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.upload = try reader.optionalString("upload")
        self.objects = try reader.count("objects")
        self.states = try reader.count("states")
        self.bytes = try reader.count("bytes")
        self.generation = try reader.optionalInteger("generation")
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("upload", ifPresent: upload)
        writer.member("objects", objects)
        writer.member("states", states)
        writer.member("bytes", bytes)
        writer.member("generation", ifPresent: generation)
      }
    }
  }
}
