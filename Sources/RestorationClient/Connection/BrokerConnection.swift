// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTransport
public import RestorationWire
internal import Synchronization

/// One connection to the broker, with the methods of the protocol as Swift calls.
///
/// Any task may make calls, any number at a time. Messages of one task that awaits each call take effect in that order.
/// A call throws
///
/// - a `RestorationError` if the broker, or the library, refuses it,
/// - a `BrokerConnectionError` if the connection has ended without an answer,
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
  /// The version of this library; a broker from the same sources has the same.
  public static let version = ProtocolVersion.program

  /// The path of the socket this is connected to.
  public let socketPath: String

  let link: BrokerLink
  private let known = Mutex(Known())

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

  /// Connects to the broker's socket: the given one, otherwise `$RESTORATIOND_SOCKET`, otherwise
  /// `$XDG_RUNTIME_DIR/restorationd/broker.sock`. If no broker runs, throws a `BrokerConnectionError` that says how to
  /// start it.
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

  /// Closes the connection and waits for its end, at most five seconds for a broker that does not read. Earlier
  /// notifications are sent; pending calls fail. The session stays: say `goodbye` first to end it.
  public func close() async { await link.close() }

  /// Token of the session that `initialize` opened on this connection; `nil` before it and after `goodbye`.
  public var session: String? { known.withLock { $0.session } }

  /// The broker's notifications to this session; ends with the connection. Each is delivered once, to one reader. Up to
  /// 1,024 unread notifications are retained; `missed` counts the lost ones.
  public var notifications: AsyncStream<BrokerNotification> { AsyncStream { [link] in await link.nextNotification() } }

  /// Makes a call of the protocol (`Protocol/methods`) and gives its result: `try await broker.call(ListGenerations(),
  /// of: "org.example.A")`.
  ///
  /// - Parameters:
  ///   - application: on a connection without a session, the application; with a session it is omitted.
  ///   - progress: receives the progress of a long call, such as `VerifyArchive`.
  @discardableResult
  public func call<Call: BrokerCall>(
    _ call: Call,
    of application: String? = nil,
    progress: ArchiveProgress.Handler? = nil
  ) async throws -> Call.Reply {
    let reply: any Sendable =
      switch call {
      case let call as any LongMethod: try await perform(call, application: application, progress: progress)
      case let call as any RestorationMethod: try await perform(call, application: application)
      default: preconditionFailure("\(Call.self) is no call of the protocol")
      }
    guard let reply = reply as? Call.Reply else { preconditionFailure("\(Call.self) has another reply") }
    return reply
  }

  /// Makes any call of the protocol: JSON text of an object or array in, the result's JSON text out. `session` does not
  /// know sessions opened this way.
  public func call(_ method: String, _ parametersText: String? = nil) async throws -> String {
    let parameters = try JSONInput.parameters(parametersText)
    // The caller's text is sent unchanged.
    return try await answer(to: method, parameters, trace: .none).compactText.string
  }
}

// For the calls of the protocol, which are in files of their own
extension BrokerConnection {
  func perform<Method: RestorationMethod>(_ call: Method, application: String? = nil) async throws -> Method.Reply {
    let slice = try await answer(to: Method.method, Self.parameters(of: call, application: application))
    guard let reply = Method.Reply(slice) else { throw unexpectedAnswer(to: Method.method) }
    return reply
  }

  private func perform<Method: LongMethod>(
    _ call: Method,
    application: String?,
    progress: ArchiveProgress.Handler?
  ) async throws -> Method.Reply {
    try await withProgress(progress) { token in
      try await perform(call.with { $0.progressToken = token }, application: application)
    }
  }

  func notify<Method: RestorationMethod>(_ call: Method, application: String? = nil) async throws {
    let parameters = Self.parameters(of: call, application: application)
    try await check(parameters, of: Method.method)
    try await link.notify(Method.method, parameters)
  }

  /// Subscribes, and gives the subscription's number. Retains `capacity` unread events.
  func subscribe(_ parameters: JSONText, capacity: Int) async throws -> Int64 {
    try await check(parameters, of: Subscribe.method)
    let traced = traced(parameters, of: Subscribe.method, .current)
    let result = try await link.call(Subscribe.method, traced, eventsMax: capacity).get()
    guard let reply = Subscribe.Reply(result) else { throw unexpectedAnswer(to: Subscribe.method) }
    return reply.subscription
  }

  func unexpectedAnswer(to method: String) -> BrokerConnectionError {
    .unexpectedAnswer(to: method, path: socketPath)
  }

  /// Remembers the reply of `initialize`.
  func sessionBegan(_ reply: Initialize.Reply) {
    known.withLock { $0 = Known(session: reply.session, limits: reply.limits) }
  }

  func sessionEnded() { known.withLock { $0.session = nil } }

  private func answer(
    to method: String,
    _ parameters: JSONText?,
    trace: CallTrace = .current
  ) async throws -> JSONSlice {
    try await check(parameters, of: method)
    return try await link.call(method, traced(parameters, of: method, trace)).get()
  }

  private func traced(_ parameters: JSONText?, of method: String, _ trace: CallTrace) -> JSONText? {
    trace.added(to: parameters, of: method, within: known.withLock { $0.limits } ?? .lowest)
  }

  static func parameters<Method: RestorationMethod>(of call: Method, application: String? = nil) -> JSONText {
    var writer = JSONWriter()
    writer.object { writer in
      call.writeMembers(to: &writer)
      writer.member("application", ifPresent: application)
    }
    return JSONText(validated: writer.bytes)
  }

  /// Refuses a message above the broker's frame limits: the broker's error would not name the call, which would wait
  /// forever.
  private func check(_ parameters: JSONText?, of method: String) async throws {
    guard let parameters else { return }
    let check = FrameCheck(method: method, parameters: parameters)
    if let limits = known.withLock({ $0.limits }) { return try check.run(limits) }
    // Most messages are within the limits of any broker.
    if check.passes(.lowest) { return }
    let answer = try await link.call(ReportLimits.method, nil)
    let limits = (try? answer.get()).flatMap { Limits($0) } ?? Limits()
    known.withLock { $0.limits = limits }
    try check.run(limits)
  }
}
