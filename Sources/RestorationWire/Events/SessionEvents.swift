// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Which process a session is of, as events name it.
package struct SessionIdentity: Sendable, Hashable {
  package static let members: [Schema.Member] = [
    .required("process", .nullable(.string), "Role of the session's process; null where it is not known."),
    .required("pid", .nullable(.integer(1...)), "Number of the process; null where it is not known."),
  ]

  /// The process role; nil where the session gave none, and where there is no session.
  package var process: String?
  /// Number of the process; nil where it is not known.
  package var pid: Int64?

  package init(process: String? = nil, pid: Int64? = nil) {
    self.process = process
    self.pid = pid
  }

  init(_ reader: ResultReader) throws(WrongShape) {
    self.process = try reader.optionalString("process")
    self.pid = try reader.optionalInteger("pid")
  }

  func writeMembers(to writer: inout JSONWriter) {
    writer.member("process", process)
    writer.member("pid", pid)
  }
}

/// A session was opened; one that is resumed began long ago.
package struct SessionBegan: RestorationEvent {
  package static let name = EventName.sessionBegan
  package static let summary = "A session was opened."
  package static let members = SessionIdentity.members + [
    .required("delegate", .boolean, "Whether the session is the application's delegate (R9)."),
    .required("detached", .boolean, "Whether a call opened it instead of `initialize`."),
    .required("restoration", .nullable(Restoration.schema), "As the session was told by `initialize` (R20)."),
  ]

  /// What the session was told of the saved state (R20).
  package struct Restoration: Sendable, Hashable, JSONWritable {
    package static let schema = Schema.object([
      .required("state", RestorationState.schema),
      .required("reason", .words(RestorationReason.self)),
    ])

    package var state: RestorationState
    package var reason: RestorationReason

    package init(state: RestorationState, reason: RestorationReason) {
      self.state = state
      self.reason = reason
    }

    init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.state = try reader.word("state", as: RestorationState.self)
        self.reason = try reader.word("reason", as: RestorationReason.self)
      } catch {
        return nil
      }
    }

    package func writeJSON(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("state", state)
        writer.member("reason", reason)
      }
    }
  }

  package var session: SessionIdentity
  /// Whether it is the application's delegate (R9).
  package var delegate: Bool
  /// Whether it was opened by a call instead of `initialize`.
  package var detached: Bool
  /// Nil for a detached session, which is told nothing.
  package var restoration: Restoration?

  package init(session: SessionIdentity, delegate: Bool, detached: Bool, restoration: Restoration?) {
    self.session = session
    self.delegate = delegate
    self.detached = detached
    self.restoration = restoration
  }

  package init(_ reader: ResultReader) throws(WrongShape) {
    self.session = try SessionIdentity(reader)
    self.delegate = try reader.bool("delegate")
    self.detached = try reader.bool("detached")
    self.restoration = try reader.optional("restoration") { Restoration($0) }
  }

  package func writeMembers(to writer: inout JSONWriter) {
    session.writeMembers(to: &writer)
    writer.member("delegate", delegate)
    writer.member("detached", detached)
    writer.member("restoration", restoration)
  }
}

/// A session ended, and with it the registrations of its objects (R30).
package struct SessionEnded: RestorationEvent {
  package static let name = EventName.sessionEnded
  package static let summary =
    "A session ended, and with it the registrations of its objects, which are not told one by one."
  package static let members: [Schema.Member] = [
    .required("ending", .openWords(Ending.self), "How it ended."),
    .required("objects", .count, "Objects that it had registered."),
  ] + ProcessOutcome.members + SessionIdentity.members

  /// How a session ends.
  package enum Ending: String, CaseIterable, Sendable, JSONWritable {
    // By goodbye
    case closed, userQuit, restart, logout
    /// The service manager stopped its unit.
    case stopped
    /// The process ended without one.
    case crashed
    /// A detached session that was not used any more, or one that its process left behind.
    case expired
  }

  package var session: SessionIdentity
  package var ending: Ending
  /// Objects that were registered by it until now.
  package var objects: Int
  /// How its process ended, where that is why.
  package var outcome: ProcessOutcome

  package init(session: SessionIdentity, ending: Ending, objects: Int, outcome: ProcessOutcome = ProcessOutcome()) {
    self.session = session
    self.ending = ending
    self.objects = objects
    self.outcome = outcome
  }

  package init(_ reader: ResultReader) throws(WrongShape) {
    self.session = try SessionIdentity(reader)
    self.outcome = try ProcessOutcome(reader)
    self.ending = try reader.word("ending", as: Ending.self)
    self.objects = try reader.count("objects")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    session.writeMembers(to: &writer)
    writer.member("ending", ending)
    writer.member("objects", objects)
    outcome.writeMembers(to: &writer)
  }
}
