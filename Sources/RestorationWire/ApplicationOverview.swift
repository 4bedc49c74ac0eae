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
      .required("restoreAtLogin", .words(LoginPolicy.self), "What becomes of it when its user logs in."),
      .required("units", .list(.string), "Units that start its processes again, the delegate's first."),
      .optional(
        "damaged",
        .string,
        "Present until a run has ended, if its archive was found damaged: what was found and done, for people (R32)."
      ),
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
  /// What becomes of it when its user logs in.
  package var restoreAtLogin: LoginPolicy
  /// Units that start its processes again, the delegate's first.
  package var units: [String]
  /// What was found damaged and what was done about it (R32); nil if nothing was, or a run has ended since.
  package var damaged: String?

  package init(
    application: ApplicationName,
    sessions: Int,
    objects: Int,
    generation: Int64?,
    bytes: Int,
    state: RestorationState,
    restoreAtLogin: LoginPolicy = .ask,
    units: [String] = [],
    damaged: String? = nil
  ) {
    self.application = application
    self.sessions = sessions
    self.objects = objects
    self.generation = generation
    self.bytes = bytes
    self.state = state
    self.restoreAtLogin = restoreAtLogin
    self.units = units
    self.damaged = damaged
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
      // Brokers of before had neither.
      self.restoreAtLogin = try reader.optional("restoreAtLogin") { LoginPolicy(rawValue: $0.string() ?? "") } ?? .ask
      self.units = try reader.optional("units") { $0.elements?.compactMap { $0.string() } } ?? []
      self.damaged = try reader.optional("damaged") { $0.string() }
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
      writer.member("restoreAtLogin", restoreAtLogin)
      writer.member("units", units)
      if let damaged { writer.member("damaged", damaged) }
    }
  }
}
