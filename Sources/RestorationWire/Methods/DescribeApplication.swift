// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Describes one application: its sessions and its objects, without their states.
package struct DescribeApplication: RestorationMethod {
  package static let method = "describeApplication"
  package static let summary = "Lists sessions and objects."
  package static let parameters: [Schema.Member] = [
    .optional("cursor", .name, "From the page before."),
  ]
  package static let errors: [ErrorDescription] = [.unknownApplication, .archiveUnreadable, .invalidParams]

  /// From the page before.
  package var cursor: String?

  package init(cursor: String? = nil) {
    self.cursor = cursor
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.cursor = try reader.optionalName("cursor")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("cursor", ifPresent: cursor)
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("application", .applicationName, "Its name, with the instance where there is one."),
      .required("archive", .nullable(.uuid), "UUID of the archive."),
      .required("generation", .nullable(.generation), "The newest."),
      .required("sequence", .count, "Number of the newest write."),
      .required("sessions", .list(SessionDescription.schema), "Its live sessions."),
      .required("objects", .list(ObjectDescription.schema), "In the order in which they were first registered."),
      .optional("cursor", .name, "For the next page; absent after the last one."),
    ])

    package var application: ApplicationName
    /// The archive's UUID; nil where there is none or it cannot be read.
    package var archive: String?
    /// The newest generation; nil where none has been sealed.
    package var generation: Int64?
    /// Of the newest write.
    package var sequence: Int64
    package var sessions: [SessionDescription]
    /// In the order in which they were first registered.
    package var objects: [ObjectDescription]
    /// For the next page; nil after the last one.
    package var cursor: String?

    package init(
      application: ApplicationName,
      archive: String?,
      generation: Int64?,
      sequence: Int64,
      sessions: [SessionDescription],
      objects: [ObjectDescription],
      cursor: String? = nil
    ) {
      self.application = application
      self.archive = archive
      self.generation = generation
      self.sequence = sequence
      self.sessions = sessions
      self.objects = objects
      self.cursor = cursor
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.application = try reader.value("application") { $0.string().flatMap { ApplicationName($0) } }
        self.archive = try reader.optionalString("archive")
        self.generation = try reader.optionalInteger("generation")
        self.sequence = try reader.integer("sequence")
        self.sessions = try reader.list("sessions") { SessionDescription($0) }
        self.objects = try reader.list("objects") { ObjectDescription($0) }
        self.cursor = try reader.optionalString("cursor")
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("application", application.description)
        writer.member("archive", archive)
        writer.member("generation", generation)
        writer.member("sequence", sequence)
        writer.member("sessions", sessions)
        writer.member("objects", objects)
        writer.member("cursor", ifPresent: cursor)
      }
    }
  }
}
