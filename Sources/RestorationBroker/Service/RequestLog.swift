// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Logging
internal import NIOCore

/// Logs the requests of clients and of the broker: one entry at `debug` when a request has ended, another at `trace`
/// when it begins.
struct RequestLog {
  enum Request: Hashable {
    case ofClient(Caller)
    case ofBroker(ClientGateway.Call, to: ClientID)
  }

  private struct Entry {
    /// `nil` for a request of the broker.
    let message: IncomingMessage?
    let metadata: Logger.Metadata
    let start: NIODeadline
  }

  private let logger: Logger
  private let eventLoop: any EventLoop
  private var entries: [Request: Entry] = [:]

  init(_ logger: Logger, on eventLoop: any EventLoop) { (self.logger, self.eventLoop) = (logger, eventLoop) }

  var count: Int { entries.count }

  private var isOn: Bool { logger.logLevel <= .debug }

  mutating func begin(_ message: IncomingMessage, _ core: @autoclosure () -> BrokerCore) {
    guard isOn, message.caller.call != nil else { return }
    begin(.ofClient(message.caller), message, BrokerLog.metadata(of: message, core()))
  }

  mutating func begin(
    _ call: ClientGateway.Call,
    to client: ClientID,
    method: String,
    _ core: @autoclosure () -> BrokerCore
  ) {
    guard isOn else { return }
    begin(.ofBroker(call, to: client), nil, BrokerLog.metadata(of: call, method, core()))
  }

  private mutating func begin(_ request: Request, _ message: IncomingMessage?, _ metadata: Logger.Metadata) {
    entries[request] = Entry(message: message, metadata: metadata, start: eventLoop.now)
    logger.trace("\(request) begins", metadata: metadata)
  }

  mutating func end(_ request: Request, _ outcome: @autoclosure () -> String, _ core: @autoclosure () -> BrokerCore) {
    guard !entries.isEmpty, let entry = entries.removeValue(forKey: request) else { return }
    var metadata = entry.metadata
    // A call may begin a session, and end it.
    if let message = entry.message {
      metadata.merge(BrokerLog.metadata(of: message, core())) { former, _ in former }
    }
    metadata["microseconds"] = "\((eventLoop.now - entry.start).nanoseconds / 1_000)"
    logger.debug("\(request) \(outcome())", metadata: metadata)
  }

  /// The client has left: its requests and the broker's calls to it get no answer.
  mutating func end(allOf client: ClientID, _ core: @autoclosure () -> BrokerCore) {
    guard !entries.isEmpty else { return }
    for request in entries.keys where request.client == client {
      end(request, "unanswered: the client has left", core())
    }
  }
}

extension RequestLog.Request: CustomStringConvertible {
  var client: ClientID {
    switch self {
    case .ofClient(let caller): caller.client
    case .ofBroker(_, let client): client
    }
  }

  var description: String {
    switch self {
    case .ofClient: "request"
    case .ofBroker: "the broker's request"
    }
  }
}

extension Answer {
  var outcome: String {
    switch self {
    case .result: "answered"
    case .error(let error): "refused: \(error.kind)"
    }
  }
}

extension CallAnswer {
  /// Without the client's message.
  var outcome: String {
    switch self {
    case .result: "answered"
    case .error(let code, _): "refused: error \(code)"
    case .lost: "unanswered"
    }
  }
}
