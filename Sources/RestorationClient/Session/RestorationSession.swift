// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTransport
internal import RestorationWire
internal import Synchronization

/// A session of a process, which outlives connections and brokers.
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
/// **When the connection is lost** the session reconnects: at once, then after 5 ms and twice as long each time, up to
/// 100 ms while calls wait, otherwise 1 s. Its token resumes it with its objects. If the broker does not know the
/// token, or some objects, the session registers all of them again, parents first and in order. An object that has
/// another owner by now stays with it, and is reported as `registrationLost`. `states` shows the progress.
///
/// **If no broker runs at the start**, the session works in memory until one comes (`WithoutBroker`).
///
/// **Calls** may be made from any task, any number at a time. Without a connection they wait, forever or for
/// `brokerTimeout`. Unanswered calls are sent again in their order; a state carries its revision, so that it is stored
/// once, and no older one after it (R15). Calls that must not be sent twice (`discardApplicationState`, `call`,
/// `setChildren` by paths) fail with `outcomeUnknown` when the connection ends before the answer, and any other call
/// after eight such ends. At most 4 MiB are at the broker at a time; further calls wait. Without a broker, at most
/// 16,384 calls and 64 MiB of them wait: a later one fails with `limitExceeded`.
///
/// A call throws
///
/// - a `RestorationError` if the broker, or the library, refuses it,
/// - a `RestorationSessionError` if it did not reach the broker, or its effect is unknown,
/// - a `BrokerConnectionError` if the answer is not the protocol's,
/// - a `CancellationError` if its task is cancelled. It may have taken effect.
///
/// **The broker asks** a session with `answersCalls`, and its delegate: objects for their states at a save
/// (`StateRestoring`), restoration classes for missing objects at a restoration, and data sources for rows. The session
/// answers one call after the other, even while its own are pending; only data sources are asked at the same time.
/// States too large for one answer are postponed, and states too large to be delivered are fetched. All registrations
/// hold for the next broker too.
///
/// The session ends by `end`. Otherwise its last reference, and the exit of the process, say goodbye for a restart,
/// which keeps the saved state. A signal, a trap or `_exit` is a crash, which keeps it too. Child programs do not
/// inherit the connection. After `fork` without `exec` only the parent can use it.
public final class RestorationSession: Sendable {
  let driver: SessionDriver

  private init(driver: SessionDriver) { self.driver = driver }

  deinit {
    driver.release()
  }

  /// Connects to the broker and opens a session.
  ///
  /// Throws a `BrokerConnectionError` if connecting fails, a `RestorationError` if the broker refuses the session, and
  /// a `RestorationSessionError` if it does not answer within `brokerTimeout`.
  ///
  /// - Parameters:
  ///   - options: the description of this process, repeated to each broker.
  ///   - delegate: makes this session the application's delegate (R9). The session does not keep it alive.
  ///   - socketPath: `nil` takes `$RESTORATIOND_SOCKET`, otherwise `$XDG_RUNTIME_DIR/restorationd/broker.sock`.
  ///   - brokerTimeout: the time that a call may wait without a broker, from the loss or from its beginning; `nil`
  ///     means forever. A connected broker that owes an answer counts as gone after a silence of this time, at least a
  ///     second. A broker that answers other calls, or a ping, is not silent.
  ///   - withoutBroker: the mode if no broker runs now.
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

  /// For an application without further options: `start("org.example.Notes")`.
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

  /// Ends the session after all earlier calls; the reason decides whether its objects stay (R30).
  ///
  /// Always returns: at the broker's answer, after `timeout`, or when the task is cancelled. Calls that still wait then
  /// fail. Returns whether the broker has acknowledged the end; later calls return the same.
  @discardableResult
  public func end(_ reason: GoodbyeReason, timeout: Duration = .seconds(5)) async -> Bool {
    defer { withExtendedLifetime(self) {} }
    return await driver.end(reason, timeout: timeout)
  }

  /// The broker's answer when the session was opened or last resumed.
  public var info: SessionInfo { driver.info.withLock { $0 } }

  public var state: SessionState { driver.events.state }

  /// The present state and all later ones, to the end of the session. Each stream delivers all of them; an unread one
  /// retains the newest 16.
  public var states: AsyncStream<SessionState> { driver.events.states() }

  /// The notifications to the session; ends with it. Each is delivered once, to one reader. Up to 1,024 unread ones are
  /// retained; `missed` counts the lost ones.
  public var notifications: AsyncStream<SessionNotification> {
    AsyncStream { [events = driver.events] in await events.nextNotification() }
  }

  /// Makes any call of the protocol: JSON text of an object or array in, the result's JSON text out.
  ///
  /// It is not repeated after a lost connection: it throws `outcomeUnknown`. To change objects of this session, use its
  /// own methods, which track the changes.
  public func call(_ method: String, _ parametersText: String? = nil) async throws -> String {
    let parameters = try JSONInput.parameters(parametersText)
    // The caller's text is sent unchanged.
    let call = SessionCall(
      method: method,
      isIdempotent: false,
      needsBroker: true,
      bytes: parameters?.count ?? 0,
      trace: .none
    ) { (_, _) in parameters }
    return try await answer(call).result.compactText.string
  }
}

// For the calls of the protocol, which are in files of their own
extension RestorationSession {
  func perform<Method: RestorationMethod>(_ method: Method.Type, _ call: SessionCall) async throws -> Method.Reply {
    let result = try await answer(call).result
    guard let reply = Method.Reply(result) else { throw unexpectedAnswer(to: Method.method, result) }
    return reply
  }

  /// The result, with the object that the call registered.
  func answer(_ call: SessionCall) async throws -> (result: JSONSlice, object: RestorableObject?) {
    // The session must not end while a task waits for it.
    defer { withExtendedLifetime(self) {} }
    let completion = try await driver.perform(call)
    return (try completion.answer.get(), completion.object)
  }

  var isAnswering: Bool { SessionDriver.answering == ObjectIdentifier(driver) }

  func owns(_ object: RestorableObject) async -> Bool { await driver.owns(object) }

  func bind(_ properties: RestorableProperties, of object: RestorableObject, restoring saved: DecodedState) async {
    await driver.bind(properties, of: object, restoring: saved)
  }

  /// Turns the writes to `@Restorable` properties of one object, or all, into calls before all later calls.
  func flush(_ object: RestorableObject? = nil) async { await driver.flush(object) }

  var live: LiveObjects { driver.live }

  func unexpectedAnswer(to method: String, _ result: JSONSlice? = nil) -> any Error {
    if result?.saysDiscarded == true { return RestorationSessionError.discarded(method) }
    return BrokerConnectionError.unexpectedAnswer(to: method, path: driver.route.path)
  }
}
