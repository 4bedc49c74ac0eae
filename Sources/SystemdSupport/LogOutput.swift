// SPDX-License-Identifier: Apache-2.0

package import Logging
internal import Synchronization

/// The target of the log: the journal with fields if standard error ends there anyway, otherwise standard error.
package final class LogOutput: Sendable {
  /// The metadata key that names an incident, and the message ID of each incident.
  package typealias Incidents = (key: String, messageID: @Sendable (String) -> String?)

  /// May change while the process runs; all loggers follow.
  private let level: Mutex<Logger.Level>
  private let place: Place
  private let incidents: Incidents?

  private enum Place {
    case journal(Journal)
    case standardError(StandardError)
  }

  package init(level: Logger.Level, toJournal: Bool, incidents: Incidents? = nil) {
    self.level = Mutex(level)
    self.incidents = incidents
    let journal = toJournal ? Journal() : nil
    place = journal.map { .journal($0) } ?? .standardError(StandardError())
  }

  package var currentLevel: Logger.Level {
    get { level.withLock { $0 } }
    set { level.withLock { $0 = newValue } }
  }

  /// Call once in a process.
  package func bootstrap() {
    LoggingSystem.bootstrap { label in
      let handler: any LogHandler =
        switch self.place {
        case .journal(let journal): JournalHandler(journal: journal, identifier: label, incidents: self.incidents)
        case .standardError(let stream): StreamLogHandler(label: label, stream: stream)
        }
      return LevelledHandler(output: self, base: handler)
    }
  }

  /// Delivers all log entries before the process ends.
  package func flush() {
    switch place {
    case .journal(let journal): journal.flush()
    case .standardError(let stream): stream.flush()
    }
  }
}

/// A handler with the shared level.
private struct LevelledHandler: LogHandler {
  let output: LogOutput
  var base: any LogHandler

  init(output: LogOutput, base: any LogHandler) {
    (self.output, self.base) = (output, base)
    self.base.logLevel = .trace
  }

  var logLevel: Logger.Level {
    get { output.currentLevel }
    set { output.currentLevel = newValue }
  }

  var metadata: Logger.Metadata {
    get { base.metadata }
    set { base.metadata = newValue }
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { base[metadataKey: key] }
    set { base[metadataKey: key] = newValue }
  }

  func log(event: LogEvent) { base.log(event: event) }
}

/// Writes entries with the fields in `Protocol/service.md`.
private struct JournalHandler: LogHandler {
  let journal: Journal
  let identifier: String
  let incidents: LogOutput.Incidents?
  var logLevel = Logger.Level.trace
  var metadata: Logger.Metadata = [:]

  init(journal: Journal, identifier: String, incidents: LogOutput.Incidents?) {
    (self.journal, self.identifier, self.incidents) = (journal, identifier, incidents)
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  /// Metadata with their own fields; the rest is appended to the message.
  private static let fields = [
    "application": "RESTORATION_APPLICATION", "session": "RESTORATION_SESSION", "method": "RESTORATION_METHOD",
  ]

  func log(event: LogEvent) {
    var message = event.message.description
    var more: [Journal.Field] = []
    let metadata = metadata.merging(event.metadata ?? [:]) { $1 }
    for (key, value) in metadata.sorted(by: { $0.key < $1.key }) {
      if let incidents, key == incidents.key, let identifier = incidents.messageID("\(value)") {
        more.append(Journal.Field("MESSAGE_ID", identifier))
      } else if let field = Self.fields[key] {
        more.append(Journal.Field(field, "\(value)"))
      } else {
        message += " \(key)=\(value)"
      }
    }
    journal.write(
      [
        Journal.Field("MESSAGE", message),
        Journal.Field("PRIORITY", "\(Self.priority(event.level))"),
        Journal.Field("SYSLOG_IDENTIFIER", identifier),
      ] + more
    )
  }

  /// By syslog(3).
  private static func priority(_ level: Logger.Level) -> Int {
    switch level {
    case .critical: 2
    case .error: 3
    case .warning: 4
    case .notice: 5
    case .info: 6
    case .debug, .trace: 7
    }
  }
}
