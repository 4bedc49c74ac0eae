// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Logging
internal import RestorationWire

/// The service's log entries about what clients did; nothing of what they wrote gets into it.
struct BrokerLog {
  let logger: Logger
  /// The notification being handled.
  var notification: (sender: ClientID, method: String)?

  init(_ logger: Logger) { self.logger = logger }

  func log(_ level: LogLevel, _ text: String, of application: ApplicationName?, _ core: BrokerCore) {
    var metadata = notification.map { Self.metadata(of: $0.sender, method: $0.method, core) } ?? [:]
    if let application { metadata["application"] = "\(application)" }
    switch level {
    case .info: logger.info("\(text)", metadata: metadata)
    case .warning: logger.warning("\(text)", metadata: metadata)
    case .error: logger.error("\(text)", metadata: metadata)
    }
  }

  /// Nobody is told but the log: a notification has no answer.
  func failure(_ error: ErrorObject, of client: ClientID, method: String? = nil, _ core: BrokerCore) {
    let kind = error.data?["kind"]?.string ?? "error \(error.code)"
    let metadata = Self.metadata(of: client, method: method ?? notification?.method, core)
    logger.warning("a notification failed: \(kind)", metadata: metadata)
  }

  private static func metadata(of client: ClientID, method: String?, _ core: BrokerCore) -> Logger.Metadata {
    var metadata: Logger.Metadata = [:]
    // Anything else is a client's text and does not get into the log.
    if let method, MethodTable.rows[method] != nil { metadata["method"] = "\(method)" }
    if let (application, session) = core.session(of: client) {
      metadata["application"] = "\(application)"
      metadata["session"] = "\(session)"
    }
    return metadata
  }
}
