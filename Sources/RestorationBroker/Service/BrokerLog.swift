// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import Logging
internal import NIOCore
internal import RestorationArchive
internal import RestorationTransport
internal import RestorationWire

/// Log entries about what clients did, without any text of theirs. The entries of one process or application a minute
/// are limited; then one entry says how many were left out.
final class BrokerLog {
  enum Cause: Hashable, Sendable {
    /// `nil` if the client has left.
    case process(Int32?)
    case application(String)
  }

  private let logger: Logger
  private let eventLoop: any EventLoop
  private var quota = LogQuota<Cause>()
  var notification: IncomingMessage?
  var process: Int32?

  init(_ logger: Logger, on eventLoop: any EventLoop) { (self.logger, self.eventLoop) = (logger, eventLoop) }

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
    let cause = process.map { Cause.process($0) } ?? application.map { .application($0.description) }
    write(priority, text, metadata, incident, cause)
  }

  /// Logs a failed notification, because it has no answer. `peer`: its sender; `nil` if it has left.
  func failure(_ error: ErrorObject, of message: IncomingMessage, by peer: PeerCredentials?, _ core: BrokerCore) {
    write(.warning, "a notification failed: \(error.kind)", Self.metadata(of: message, core), nil, .process(peer?.pid))
  }

  func note(_ level: Logger.Level, _ text: String, of peer: PeerCredentials, _ incident: Incident? = nil) {
    write(level, text, ["pid": "\(peer.pid)"], incident, .process(peer.pid))
  }

  private func write(
    _ level: Logger.Level,
    _ text: String,
    _ metadata: Logger.Metadata,
    _ incident: Incident?,
    _ cause: Cause?
  ) {
    guard logger.logLevel <= level else { return }
    switch cause.map({ quota.admit($0, at: eventLoop.now) }) ?? .written {
    case .written: break
    case .leftOut: return
    case .firstLeftOut(let end):
      eventLoop.assumeIsolated().scheduleTask(deadline: end) { [weak self] in self?.tellLeftOut() }
      return
    }
    guard let incident else { return logger.log(level: level, "\(text)", metadata: metadata) }
    logger.report(incident, level, text, metadata)
  }

  /// Logs how many entries were left out, and starts the count again.
  func tellLeftOut() {
    for (cause, count) in quota.takeLeftOut() {
      let text = "left out: \(count) \(count == 1 ? "entry" : "entries") about what"
      switch cause {
      case .process(let pid?): logger.warning("\(text) a client did", metadata: ["pid": "\(pid)"])
      case .application(let name): logger.warning("\(text) became of it", metadata: ["application": "\(name)"])
      case .process(nil), nil: logger.warning("\(text) several clients did")
      }
    }
  }

  static func metadata(of message: IncomingMessage, _ core: BrokerCore) -> Logger.Metadata {
    let (application, session) = core.subject(of: message)
    // An unknown method's name is the client's text and must not get into the log.
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
