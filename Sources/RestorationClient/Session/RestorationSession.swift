// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTransport
internal import RestorationWire
internal import Synchronization

/// A process's stay with the broker, which outlives connections and brokers.
///
/// ```swift
/// let session = try await RestorationSession.start(
///   SessionOptions(application: "org.example.Notes", process: "editor")
/// )
/// let editor = try await session.register(ObjectRegistration("Editor", restorationParent: ["Main"]))
/// let saved = try await session.decode(editor.reference).state
/// try await session.completeStateRestoration()
/// try await session.encode(RestorableState(jsonText: #"{"cursor":42}"#), for: editor)
/// await session.end(.restart)
/// ```
///
/// **When the connection is lost** the session reconnects automatically: at once, then after 5 ms and twice as long
/// each time, up to 100 ms while calls wait and 1 s while none does. It resumes with its objects by its token. If the
/// broker no longer knows the token, or not all of the objects, the session registers all of them again, parents first
/// and in their order. An object that has another owner meanwhile is left to that owner and reported as
/// `registrationLost`. `states` shows the progress.
///
/// **If no broker runs at the start**, the session works in memory until one comes (`WithoutBroker`).
///
/// **Calls** may be made from any task, any number at a time. Without a connection they wait, forever or as long as
/// `brokerTimeout` says. Unanswered calls are sent again in the order they were made, and only take longer; a state
/// carries its revision, so that it is stored once, and no older one after it (R15). Only calls that must not be sent
/// twice (`discardApplicationState`, `call`, `setChildren` by paths) fail with `outcomeUnknown` when the connection
/// ends between the two, and any other call fails so when eight connections have ended. At most 4 MiB are at the broker
/// at a time; further calls wait, and hold only what their callers hold. While the broker is gone, at most 16,384 calls
/// and 64 MiB of them wait: a later one fails with `limitExceeded`.
///
/// A call throws
///
/// - a `RestorationError` if the broker refuses it, or the library does before it is sent,
/// - a `RestorationSessionError` if it did not reach the broker, or its effect is unknown,
/// - a `BrokerConnectionError` if the answer makes no sense,
/// - a `CancellationError` if its task is cancelled. It may have taken effect all the same.
///
/// **The broker asks** a session whose options say `answersCalls`, and its delegate: objects for their states when the
/// application is saved (`StateRestoring`), restoration classes for missing objects when it is restored, and data
/// sources for rows. The session answers one call after the other, even while its own are pending; only data sources
/// are asked at the same time. States too large for one answer are postponed, states too large to be sent unrequested
/// are fetched, and all registrations hold for the next broker too.
///
/// The session ends by `end`, and its connection closes with the last reference to it; then its objects wait for this
/// process until that ends. Programs that this process starts do not inherit the connection. After `fork` without
/// `exec` it can only be used by the parent.
public final class RestorationSession: Sendable {
  private let driver: SessionDriver

  private init(driver: SessionDriver) { self.driver = driver }

  deinit {
    driver.release()
  }

  /// Connects to the broker and opens a session.
  ///
  /// If no broker runs, the session works in memory until one comes, unless `withoutBroker` says that it fails. Throws
  /// a `BrokerConnectionError` if connecting fails, a `RestorationError` if the broker refuses the session, and a
  /// `RestorationSessionError` if it does not answer within `brokerTimeout`.
  ///
  /// - Parameters:
  ///   - options: who this process is. All of it is said again to each broker.
  ///   - delegate: makes this session the application's delegate (R9). The session does not keep it alive.
  ///   - socketPath: `nil` takes `$RESTORATIOND_SOCKET`, otherwise `$XDG_RUNTIME_DIR/restorationd/broker.sock`.
  ///   - brokerTimeout: how long a call may wait while the broker is gone, from then or from its beginning; `nil` means
  ///     forever. A connected broker that owes an answer and sends nothing at all counts as gone after at least a
  ///     second: it is stopped or hangs. A broker that answers other calls, or a ping, is not gone, however long a call
  ///     takes.
  ///   - withoutBroker: what happens if no broker runs now.
  public static func start(
    _ options: SessionOptions,
    delegate: (any RestorationDelegate)? = nil,
    socket socketPath: String? = nil,
    brokerTimeout: Duration? = nil,
    withoutBroker: WithoutBroker = .memory
  ) async throws -> RestorationSession {
    let route = SocketRoute(socket: try BrokerConnection.resolve(socketPath))
    return try await start(
      options,
      delegate: delegate,
      by: route,
      brokerTimeout: brokerTimeout,
      withoutBroker: withoutBroker
    )
  }

  /// The same for an application without further options: `start("org.example.Notes")`.
  public static func start(
    _ application: String,
    delegate: (any RestorationDelegate)? = nil,
    socket socketPath: String? = nil,
    brokerTimeout: Duration? = nil,
    withoutBroker: WithoutBroker = .memory
  ) async throws -> RestorationSession {
    let options = SessionOptions(application: application)
    return try await start(
      options,
      delegate: delegate,
      socket: socketPath,
      brokerTimeout: brokerTimeout,
      withoutBroker: withoutBroker
    )
  }

  package static func start(
    _ options: SessionOptions,
    delegate: (any RestorationDelegate)? = nil,
    by route: any BrokerRoute,
    brokerTimeout: Duration? = nil,
    withoutBroker: WithoutBroker = .fails
  ) async throws -> RestorationSession {
    let driver = try await SessionDriver.start(
      options,
      delegate: delegate,
      by: route,
      timeout: brokerTimeout,
      withoutBroker: withoutBroker
    )
    let session = RestorationSession(driver: driver)
    await driver.begin(session)
    return session
  }

  /// Ends the session when all earlier calls are at the broker, and says what becomes of its objects (R30).
  ///
  /// Always returns: when the broker has acknowledged it, when `timeout` is over, or when the task is cancelled. Calls
  /// that are still waiting then fail. Returns whether the broker has acknowledged it; later calls return the same.
  @discardableResult
  public func end(_ reason: GoodbyeReason, timeout: Duration = .seconds(5)) async -> Bool {
    defer { withExtendedLifetime(self) {} }
    return await driver.end(reason, timeout: timeout)
  }

  /// The broker's answer when the session was opened or last resumed.
  public var info: SessionInfo { driver.info.withLock { $0 } }

  /// How the session stands with the broker.
  public var state: SessionState { driver.events.state }

  /// The present state and all that follow, until the session has ended. Each stream delivers all of them; an unread
  /// stream keeps the newest 16.
  public var states: AsyncStream<SessionState> { driver.events.states() }

  /// The notifications to the session; ends with the session. Each notification is delivered once, so read them in one
  /// place. Up to 1,024 unread notifications wait; beyond that `missed` says how many were lost.
  public var notifications: AsyncStream<SessionNotification> {
    AsyncStream { [events = driver.events] in await events.nextNotification() }
  }

  /// Makes any call of the protocol: parameters as JSON text of an object or array in, the result's JSON text out.
  ///
  /// For calls without a method here. The call is not sent again after a lost connection: it then throws
  /// `outcomeUnknown`. To change objects of this session, use its own methods, which keep track of the changes.
  public func call(_ method: String, _ parametersText: String? = nil) async throws -> String {
    let parameters = try JSONInput.parameters(parametersText)
    let call = SessionCall(method: method, isIdempotent: false, needsBroker: true, bytes: parameters?.count ?? 0) {
      (_, _) in parameters
    }
    return try await answer(call).result.compactText.string
  }
}

// For the calls of the protocol, which are in files of their own
extension RestorationSession {
  /// Calls a method and reads its result.
  func perform<Method: RestorationMethod>(_ method: Method.Type, _ call: SessionCall) async throws -> Method.Reply {
    let result = try await answer(call).result
    guard let reply = Method.Reply(result) else { throw unexpectedAnswer(to: Method.method, result) }
    return reply
  }

  /// A good answer, with the object that the call registered.
  func answer(_ call: SessionCall) async throws -> (result: JSONSlice, object: RestorableObject?) {
    // The session must not end while a task waits for it.
    defer { withExtendedLifetime(self) {} }
    let completion = try await driver.perform(call)
    return (try completion.answer.get(), completion.object)
  }

  func owns(_ object: RestorableObject) async -> Bool { await driver.owns(object) }

  func bind(_ properties: RestorableProperties, of object: RestorableObject, restoring saved: DecodedState) async {
    await driver.bind(properties, of: object, restoring: saved)
  }

  /// Makes calls of what was written to `@Restorable` properties until now, of one object or all. They come before all
  /// later calls.
  func flush(_ object: RestorableObject? = nil) async { await driver.flush(object) }

  var live: LiveObjects { driver.live }

  /// The error of a result that is not the method's.
  func unexpectedAnswer(to method: String, _ result: JSONSlice? = nil) -> any Error {
    if result?.saysDiscarded == true { return RestorationSessionError.discarded(method) }
    return BrokerConnectionError.unexpectedAnswer(to: method, path: driver.route.path)
  }
}
