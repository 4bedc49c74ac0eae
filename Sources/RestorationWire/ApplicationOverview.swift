// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One application in `listApplications`.
package struct ApplicationOverview: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "ApplicationOverview",
    .object([
      .required("application", .applicationName, "With the instance where there is one."),
      .required("sessions", .count, "Live sessions."),
      .required("objects", .count, "Objects, live and archived."),
      .required("generation", .nullable(.generation), "The newest."),
      .required(
        "bytes",
        .count,
        "Of the states at the head while sessions are live; of the archive at rest otherwise."
      ),
      .required("state", RestorationState.schema, "`none`, `available`, `unreadable` or `quarantined`."),
    ])
  )

  package var application: ApplicationName
  /// Live sessions.
  package var sessions: Int
  /// Objects that are registered or have a saved state.
  package var objects: Int
  /// The newest generation; nil where none has been sealed.
  package var generation: Int64?
  /// Bytes the archive holds.
  package var bytes: Int
  package var state: RestorationState

  package init(
    application: ApplicationName,
    sessions: Int,
    objects: Int,
    generation: Int64?,
    bytes: Int,
    state: RestorationState
  ) {
    self.application = application
    self.sessions = sessions
    self.objects = objects
    self.generation = generation
    self.bytes = bytes
    self.state = state
  }

  /// Reads an item of a result; nil where it has another form.
  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.application = try reader.value("application") { $0.string().flatMap { ApplicationName($0) } }
      self.sessions = try reader.count("sessions")
      self.objects = try reader.count("objects")
      self.generation = try reader.optionalInteger("generation")
      self.bytes = try reader.count("bytes")
      self.state = try reader.word("state", as: RestorationState.self)
    } catch {
      return nil
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("application", application.description)
      writer.member("sessions", sessions)
      writer.member("objects", objects)
      writer.member("generation", generation)
      writer.member("bytes", bytes)
      writer.member("state", state)
    }
  }
}
