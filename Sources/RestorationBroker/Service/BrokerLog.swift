// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import Logging
internal import RestorationArchive
internal import RestorationWire

/// The service's log entries about what clients did; nothing of what they wrote gets into it.
struct BrokerLog {
  let logger: Logger
  /// The notification being handled.
  var notification: IncomingMessage?

  init(_ logger: Logger) { self.logger = logger }

  func log(
    _ level: LogLevel,
    _ text: String,
    of application: ApplicationName?,
    _ incident: Incident?,
    _ core: BrokerCore
  ) {
    var metadata = notification.map { Self.metadata(of: $0, core) } ?? [:]
    if let application { metadata["application"] = "\(application)" }
    let priority: Logger.Level =
      switch level {
      case .info: .info
      case .warning: .warning
      case .error: .error
      }
    guard let incident else { return logger.log(level: priority, "\(text)", metadata: metadata) }
    logger.report(incident, priority, text, metadata)
  }

  /// Nobody is told but the log: a notification has no answer.
  func failure(_ error: ErrorObject, of message: IncomingMessage, _ core: BrokerCore) {
    logger.warning("a notification failed: \(error.kind)", metadata: Self.metadata(of: message, core))
  }

  static func metadata(of message: IncomingMessage, _ core: BrokerCore) -> Logger.Metadata {
    let (application, session) = core.subject(of: message)
    // Another method's name is a client's text and does not get into the log.
    let method = MethodTable.rows[message.method]?.name ?? MetricsPage(rawValue: message.method)?.rawValue
    return metadata(method, application, session, TraceContext(message.parameters))
  }

  static func metadata(of call: ClientGateway.Call, _ method: String, _ core: BrokerCore) -> Logger.Metadata {
    let application = core.applications[call.application]
    let pending = application?.calls[call.number]
    let trace = pending.flatMap { application?.trace(of: $0.purpose) }
    return metadata(method, application?.name, pending?.session, trace)
  }

  private static func metadata(
    _ method: String?,
    _ application: ApplicationName?,
    _ session: SessionID?,
    _ trace: TraceContext?
  ) -> Logger.Metadata {
    let fields = [
      "method": method, "application": application?.description, "session": session.map { "\($0)" },
      "traceparent": trace?.traceparent,
    ]
    return fields.compactMapValues { $0.map { "\($0)" } }
  }
}

extension Logger {
  /// Writes an entry that names the incident.
  package func report(
    _ incident: Incident,
    _ level: Level,
    _ text: String,
    _ metadata: Metadata = [:],
    file: String = #fileID
  ) {
    log(level: level, "\(text)", metadata: metadata.merging([Incident.key: "\(incident)"]) { $1 }, file: file)
  }
}
