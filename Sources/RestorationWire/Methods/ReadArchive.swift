// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Reads what is saved, page by page, from the head or from a generation (R16, R29).
package struct ReadArchive: RestorationMethod {
  package static let method = "readArchive"
  package static let summary = "Reads all that is saved."
  package static let parameters: [Schema.Member] = [
    .optional("generation", .generation, "The generation to read."),
    .optional("cursor", .name, "From the page before."),
    .optional("reveal", .boolean, "Show the states of confidential objects."),
  ]
  package static let errors: [ErrorDescription] = [.invalidParams, .unknownApplication, .archiveUnreadable]

  /// Nil reads the head.
  package var generation: Int64?
  /// From the page before; fixes what all pages show.
  package var cursor: String?
  /// Whether confidential states are shown.
  package var reveal: Bool

  package init(generation: Int64? = nil, cursor: String? = nil, reveal: Bool = false) {
    self.generation = generation
    self.cursor = cursor
    self.reveal = reveal
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.generation = try reader.optionalInteger("generation", in: 1...Int64.max)
    self.cursor = try reader.optionalName("cursor")
    self.reveal = try reader.bool("reveal")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("generation", ifPresent: generation)
    writer.member("cursor", ifPresent: cursor)
    writer.member("reveal", ifTrue: reveal)
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("generation", .nullable(.generation), "The generation; null for the head."),
      .required("objects", .list(ArchivedObject.schema), "Objects that have a path."),
      .optional("cursor", .name, "For the next page; absent after the last one."),
    ])

    /// As asked for; nil for the head.
    package var generation: Int64?
    package var objects: [ArchivedObject]
    /// For the next page; nil after the last one.
    package var cursor: String?

    package init(generation: Int64?, objects: [ArchivedObject], cursor: String? = nil) {
      self.generation = generation
      self.objects = objects
      self.cursor = cursor
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.generation = try reader.optionalInteger("generation")
        self.objects = try reader.list("objects") { ArchivedObject($0) }
        self.cursor = try reader.optionalString("cursor")
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("generation", generation)
        writer.member("objects", objects)
        writer.member("cursor", ifPresent: cursor)
      }
    }
  }
}
