// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import NIOCore
internal import RestorationArchive
package import RestorationTransport
package import RestorationWire
internal import Synchronization

/// A broker's replica over one connection to this host's gateway. The connection is made on demand, and again after
/// each loss.
///
/// Every call ends within its deadline. A call without an answer fails as `unknown` if its data may have been stored,
/// otherwise as `away`; a call that was never sent fails as `away`. Runs on its event loop, which is its executor.
package actor GatewayLink: ForwardingReplica {
  package struct Patience: Sendable {
    /// The time of a call, a second more than the gateway's own limit; a new connection is not included. One late call
    /// ends the connection: the data that waits must not grow while the gateway hangs.
    package var milliseconds = GatewayProtocol.callMilliseconds + 1_000
    /// The same for an append and a new connection.
    package var briefMilliseconds = GatewayProtocol.briefMilliseconds + 1_000
    package var pauseMilliseconds: Int64 = 100

    package init() {}
  }

  nonisolated private let eventLoop: any EventLoop
  package nonisolated var unownedExecutor: UnownedSerialExecutor { eventLoop.executor.asUnownedSerialExecutor() }

  private let path: SocketPath
  private let patience: Patience
  private let introduction: Attach
  private let attention: @Sendable () -> Void
  private let standingChanged: @Sendable (ReplicaError?) -> Void
  /// Whether the last call found the replica unreachable.
  private let isAway = Mutex(false)
  /// Set before it is attached as well.
  private var connection: Connection?
  private var isAttached = false
  private var wasAttached = false
  /// Concurrent calls share its result.
  private var opening: Task<Result<Connection, ReplicaError>, Never>?
  private var calls: [Int: Waiter] = [:]
  private var lastFailure: (error: ReplicaError, pauseEnds: NIODeadline)?

  private struct Waiter {
    let continuation: CheckedContinuation<Ending, Never>
    let deadline: Scheduled<Void>
  }

  private struct Message: Sendable {
    let method: String
    let parameters: JSONText
    let isBrief: Bool

    init<Method: GatewayMethod>(_ method: Method) {
      (self.method, parameters, isBrief) = (Method.method, method.text, Method.isBrief)
    }
  }

  private enum Ending: Sendable {
    case answered(Response.Outcome)
    /// Nothing of the call has reached the gateway.
    case unsent(String)
    case lost(String)
  }

  /// - Parameters:
  ///   - host: this host's name; `nil` leaves it to the gateway.
  ///   - term: the term of leases.
  ///   - attention: called on the event loop when another host has begun to wait for a lease of this broker, or may
  ///     have.
  ///   - standingChanged: called with the error when the replica becomes unreachable, and with `nil` when it is back.
  package init(
    to path: SocketPath,
    host: String?,
    term: LeaseTerm,
    patience: Patience = Patience(),
    on eventLoop: any EventLoop,
    attention: @escaping @Sendable () -> Void,
    standingChanged: @escaping @Sendable (ReplicaError?) -> Void = { _ in }
  ) {
    (self.path, self.patience, self.eventLoop, self.attention) = (path, patience, eventLoop, attention)
    self.standingChanged = standingChanged
    // The same on all connections: it identifies the broker to the gateway.
    let number = ChangeID.random()
    introduction = Attach().with {
      $0.version = GatewayProtocol.version
      $0.broker = String(number.high, radix: 16) + String(number.low, radix: 16)
      ($0.term, $0.host) = (term.milliseconds, host)
    }
  }

  /// Ends the connection; the next call makes another one.
  package func close() { end(connection, "the link was closed") }

  // MARK: Calls

  /// Encodes and decodes messages on the caller's executor, so that the event loop is not kept waiting.
  nonisolated(nonsending) package func call<Method: ReplicaMethod>(
    _ method: Method
  ) async throws(ReplicaError) -> Method.Reply {
    let ending = await send(Message(method))
    let reply = Result { () throws(ReplicaError) in try Self.reply(to: method, ending.get()) }
    note(reply)
    return try reply.get()
  }

  nonisolated private func note<Reply>(_ reply: Result<Reply, ReplicaError>) {
    var failure: ReplicaError?
    if case .failure(let error) = reply, error.kind == .away || error.kind == .unknown { failure = error }
    // Reported under the lock, so in the order of the events.
    isAway.withLock { isAway in
      guard isAway != (failure != nil) else { return }
      isAway = failure != nil
      standingChanged(failure)
    }
  }

  private static func reply<Method: GatewayMethod>(
    to method: Method,
    _ ending: Ending
  ) throws(ReplicaError) -> Method.Reply {
    switch ending {
    case .answered(let outcome): return try method.reply(outcome)
    case .unsent(let reason): throw ReplicaError(.away, reason)
    case .lost(let reason): throw ReplicaError(Method.lost, reason)
    }
  }

  private func send(_ message: Message) async -> Result<Ending, ReplicaError> {
    let first = await sendOnce(message)
    // The gateway may have closed the connection a moment ago and be back.
    guard case .success(.unsent) = first else { return first }
    return await sendOnce(message)
  }

  private func sendOnce(_ message: Message) async -> Result<Ending, ReplicaError> {
    switch await open() {
    case .success(let connection):
      let ending = await exchange(message, on: connection)
      if case .unsent(let reason) = ending { end(connection, reason) }
      return .success(ending)
    case .failure(let error): return .failure(error)
    }
  }

  private func exchange(_ message: Message, on connection: Connection) async -> Ending {
    let milliseconds = message.isBrief ? patience.briefMilliseconds : patience.milliseconds
    return await withCheckedContinuation { waiting in
      guard let id = connection.call(method: message.method, parameters: message.parameters) else {
        return waiting.resume(returning: .unsent("the gateway has closed the connection; \(Self.remedy)"))
      }
      let deadline = eventLoop.scheduleTask(in: .milliseconds(milliseconds)) { [weak self] in
        guard let self else { return }
        assumeIsolated { $0.end(connection, "the gateway has not answered in \(milliseconds) ms") }
      }
      calls[id] = Waiter(continuation: waiting, deadline: deadline)
    }
  }

  private static let remedy = "see systemctl status restoration-gateway"

  // MARK: The connection

  private func open() async -> Result<Connection, ReplicaError> {
    if isAttached, let connection { return .success(connection) }
    if let lastFailure, opening == nil, lastFailure.pauseEnds > .now() { return .failure(lastFailure.error) }
    let task = opening ?? Task { await attach() }
    opening = task
    return await task.value
  }

  private func attach() async -> Result<Connection, ReplicaError> {
    defer { opening = nil }
    do throws(ReplicaError) {
      let connection = try await connect()
      _ = try Self.reply(to: introduction, await exchange(Message(introduction), on: connection))
      (isAttached, lastFailure) = (true, nil)
      // Notifications may have been missed meanwhile.
      if wasAttached { attention() }
      wasAttached = true
      return .success(connection)
    } catch {
      end(connection, error.message)
      // Whatever the error, the replica was not asked.
      let error = ReplicaError(.away, error.message)
      lastFailure = (error, .now() + .milliseconds(patience.pauseMilliseconds))
      return .failure(error)
    }
  }

  private func connect() async throws(ReplicaError) -> Connection {
    do throws(TransportError) {
      return try await UnixConnector.connect(
        to: path,
        on: eventLoop,
        settings: GatewayProtocol.linkSettings,
        delegate: self
      )
    } catch {
      throw ReplicaError(.away, "the gateway cannot be reached at \(path.path): \(error.reason); \(Self.remedy)")
    }
  }

  /// Ends all calls on the connection, if it is the open one.
  private func end(_ connection: Connection?, _ reason: String) {
    guard let connection, connection === self.connection else { return }
    connection.close(afterOutput: false)
    (self.connection, isAttached) = (nil, false)
    let ended = calls
    calls = [:]
    for waiter in ended.values {
      waiter.deadline.cancel()
      waiter.continuation.resume(returning: .lost("\(reason); \(Self.remedy)"))
    }
  }
}

extension TransportError {
  /// Without the advice for users who look for a broker.
  fileprivate var reason: String {
    switch code {
    case .noSocket: "there is no such socket"
    case .refused: "no process listens there"
    case .notPermitted: "this user may not connect"
    case .busy: "too many connections wait"
    case .noRuntimeDirectory, .invalidPath, .notADirectory, .foreignOwner, .writableByOthers, .alreadyRunning,
      .notASocket, .systemCall, .damaged, .closed:
      message
    }
  }
}

extension GatewayLink: ConnectionDelegate {
  package nonisolated func connectionOpened(_ connection: Connection) {
    assumeIsolated { $0.connection = connection }
  }

  package nonisolated func received(_ delivery: Conversation.Delivery, from connection: Connection) {
    assumeIsolated { $0.take(delivery, from: connection) }
  }

  package nonisolated func callsAbandoned(_: [Int], by connection: Connection) {
    assumeIsolated { $0.end(connection, "the gateway has ended the connection") }
  }

  package nonisolated func connectionClosed(_ connection: Connection, reason _: CloseReason) {
    assumeIsolated { $0.end(connection, "the connection to the gateway has ended") }
  }

  private func take(_ delivery: Conversation.Delivery, from connection: Connection) {
    guard connection === self.connection else { return }
    switch delivery {
    case .response(let id, let outcome):
      guard let waiter = calls.removeValue(forKey: id) else { return }
      waiter.deadline.cancel()
      waiter.continuation.resume(returning: .answered(outcome))
    case .notification(let notification):
      if notification.method == Attention.method { attention() }
    case .request(let call, let request):
      connection.respond(to: call, with: .error(.methodNotFound(request.method, hint: "A broker serves no calls.")))
    case .brokenAnswer: end(connection, "what answers is not a gateway")
    case .closeAfterOutput: break
    }
  }
}
