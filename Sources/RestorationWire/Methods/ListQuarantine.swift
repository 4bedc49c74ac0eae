// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Lists what is withheld because it ended in crashes, and what is suspected of it (R31, R35).
package struct ListQuarantine: RestorationMethod {
  package static let method = "listQuarantine"
  package static let summary = "Lists states that are withheld after crashes."
  package static let parameters: [Schema.Member] = [
    .optional("cursor", .name, "From the page before."),
    .optional("reveal", .boolean, "Show the states of confidential objects."),
  ]
  package static let errors: [ErrorDescription] = [.invalidParams, .unknownApplication, .archiveUnreadable]

  /// From the page before.
  package var cursor: String?
  /// Whether confidential states are shown.
  package var reveal: Bool

  package init(cursor: String? = nil, reveal: Bool = false) {
    self.cursor = cursor
    self.reveal = reveal
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.cursor = try reader.optionalName("cursor")
    self.reveal = try reader.bool("reveal")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("cursor", ifPresent: cursor)
    writer.member("reveal", ifTrue: reveal)
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required(
        "archive",
        .nullable(.timestamp),
        "When the archive as a whole was put into quarantine; null where it was not, or nothing is withheld any more."
      ),
      .required("strikes", .count, "Crashes in a row for which no object was found guilty."),
      .required("objects", .list(QuarantinedObject.schema), "In the order in which they were first registered."),
      .optional("cursor", .name, "For the next page; absent after the last one."),
    ])

    /// When the archive as a whole was put into quarantine; nil where it is not, or nothing of it is withheld any more.
    package var archive: Timestamp?
    /// Crashes in a row for which no object was found guilty.
    package var strikes: Int
    package var objects: [QuarantinedObject]
    /// For the next page; nil after the last one.
    package var cursor: String?

    package init(archive: Timestamp?, strikes: Int, objects: [QuarantinedObject], cursor: String? = nil) {
      self.archive = archive
      self.strikes = strikes
      self.objects = objects
      self.cursor = cursor
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.archive = try reader.optional("archive") { $0.string().flatMap { Timestamp($0) } }
        self.strikes = try reader.count("strikes")
        self.objects = try reader.list("objects") { QuarantinedObject($0) }
        self.cursor = try reader.optionalString("cursor")
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("archive", archive)
        writer.member("strikes", strikes)
        writer.member("objects", objects)
        writer.member("cursor", ifPresent: cursor)
      }
    }
  }
}
