// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTransport
internal import RestorationWire
internal import Synchronization

/// One connection to the broker: the methods of the protocol as Swift calls.
///
/// Any task may make calls, any number at a time; they share the connection and are answered when the broker is done
/// with them. Messages of one task that awaits each call take effect in that order. A call throws
///
/// - a `RestorationError` if the broker refuses it, or the library does before it is sent,
/// - a `BrokerConnectionError` if there will be no answer, because the connection has ended,
/// - a `CancellationError` if its task is cancelled. It may have taken effect all the same.
///
/// A connection that has ended stays ended: reconnect and give the `session` token to `initialize(_:resuming:)`, or use
/// a `RestorationSession`, which does this automatically. It also ends with the last reference to this object.
///
/// ```swift
/// let broker = try await BrokerConnection.connect()
/// try await broker.initialize(SessionOptions(application: "org.example.Notes", process: "editor"))
/// let editor = try await broker.register(ObjectRegistration("Editor", restorationParent: ["Main"]))
/// let saved = try await broker.decode(editor.reference).state
/// try await broker.encode(RestorableState(jsonText: #"{"cursor":42}"#), for: editor.reference)
/// ```
public final class BrokerConnection: Sendable {
  /// Of this library; a broker built from the same sources has the same.
  public static let version = ProtocolVersion.program

  /// The path of the socket this is connected to.
  public let socketPath: String

  let link: BrokerLink
  private let known = Mutex(Known())

  /// Reports of the broker on this connection.
  private struct Known {
    var session: String?
    var limits: Limits?
  }

  private init(link: BrokerLink) {
    self.link = link
    self.socketPath = link.socketPath
  }

  deinit {
    link.abandon()
  }

  /// Connects to the broker's socket: the one given, otherwise `$RESTORATIOND_SOCKET`, otherwise
  /// `$XDG_RUNTIME_DIR/restorationd/broker.sock`.
  ///
  /// Throws a `BrokerConnectionError` whose message says what to start if no broker runs.
  public static func connect(to socketPath: String? = nil) async throws -> BrokerConnection {
    BrokerConnection(link: try await BrokerLink.connect(by: SocketRoute(socket: try resolve(socketPath))))
  }

  /// The path that `connect()` uses. Throws a `BrokerConnectionError` if the environment names none.
  public static func defaultSocketPath() throws -> String { try resolve(nil).path }

  static func resolve(_ path: String?) throws -> SocketPath {
    do throws(TransportError) {
      return try SocketPath.resolve(flag: path, environment: Host.environment)
    } catch {
      throw BrokerConnectionError(error, path: path)
    }
  }

  /// Closes the connection and waits for its end. Notifications sent before reach the broker, unless it does not take
  /// them for five seconds; calls without an answer fail. The session is not ended by it: say `goodbye` first if it
  /// is over.
  public func close() async { await link.close() }

  /// Token of the session that `initialize` opened on this connection; `nil` before it and after `goodbye`.
  public var session: String? { known.withLock { $0.session } }

  /// The broker's notifications to this session; ends with the connection. Each notification is delivered once, so read
  /// them in one place. Up to 1,024 unread notifications wait; beyond that `missed` says how many were lost.
  public var notifications: AsyncStream<BrokerNotification> { AsyncStream { [link] in await link.nextNotification() } }

  /// Makes any call of the protocol: parameters as JSON text of an object or array in, the result's JSON text out.
  ///
  /// For calls without a method here. `session` does not know sessions opened this way.
  public func call(_ method: String, _ parametersText: String? = nil) async throws -> String {
    let parameters = try JSONInput.parameters(parametersText)
    return try await answer(to: method, parameters).compactText.string
  }
}

// For the calls of the protocol, which are in files of their own
extension BrokerConnection {
  /// Calls a method and reads its result.
  func perform<Method: RestorationMethod>(_ call: Method, application: String? = nil) async throws -> Method.Reply {
    let slice = try await answer(to: Method.method, Self.parameters(of: call, application: application))
    guard let reply = Method.Reply(slice) else { throw unexpectedAnswer(to: Method.method) }
    return reply
  }

  /// Sends a method as a notification.
  func notify<Method: RestorationMethod>(_ call: Method, application: String? = nil) async throws {
    let parameters = Self.parameters(of: call, application: application)
    try await check(parameters, of: Method.method)
    try await link.notify(Method.method, parameters)
  }

  /// Subscribes, and gives the subscription's number. `capacity` events are kept until they are read.
  func subscribe(_ parameters: JSONText, capacity: Int) async throws -> Int64 {
    try await check(parameters, of: Subscribe.method)
    let result = try await link.call(Subscribe.method, parameters, eventsMax: capacity).get()
    guard let reply = Subscribe.Reply(result) else { throw unexpectedAnswer(to: Subscribe.method) }
    return reply.subscription
  }

  func unexpectedAnswer(to method: String) -> BrokerConnectionError {
    .unexpectedAnswer(to: method, path: socketPath)
  }

  /// Remembers what `initialize` said.
  func sessionBegan(_ reply: Initialize.Reply) {
    known.withLock { $0 = Known(session: reply.session, limits: reply.limits) }
  }

  /// Forgets the session after `goodbye`.
  func sessionEnded() { known.withLock { $0.session = nil } }

  private func answer(to method: String, _ parameters: JSONText?) async throws -> JSONSlice {
    try await check(parameters, of: method)
    return try await link.call(method, parameters).get()
  }

  static func parameters<Method: RestorationMethod>(of call: Method, application: String? = nil) -> JSONText {
    var writer = JSONWriter()
    writer.object { writer in
      call.writeMembers(to: &writer)
      writer.member("application", ifPresent: application)
    }
    return JSONText(validated: writer.bytes)
  }

  /// Refuses a message that the broker would skip because it exceeds a limit of frames. The broker's error does not
  /// name the call, so the call would wait forever.
  private func check(_ parameters: JSONText?, of method: String) async throws {
    guard let parameters else { return }
    let check = FrameCheck(method: method, parameters: parameters)
    if let limits = known.withLock({ $0.limits }) { return try check.run(limits) }
    // Whatever the broker's limits are, most messages are within them.
    if check.passes(.lowest) { return }
    let answer = try await link.call(ReportLimits.method, nil)
    let limits = (try? answer.get()).flatMap { Limits($0) } ?? Limits()
    known.withLock { $0.limits = limits }
    try check.run(limits)
  }
}
