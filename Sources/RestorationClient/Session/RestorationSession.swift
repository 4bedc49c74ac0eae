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
/// **When the connection is lost** the session connects again by itself: at once, then after 5 ms and twice as long
/// each time, up to 100 ms while calls wait and 1 s while none does. It takes its objects up again by its token. Where
/// the broker does not know the token any more, or not all of the objects, the session registers all of them anew,
/// parents first and in their order; one that has another owner meanwhile is left to it and reported as
/// `registrationLost`. `states` tells how things stand.
///
/// **Calls** may be made from any task and any number at a time. While there is no connection they wait, for ever or as
/// long as `brokerTimeout` says. Those that the broker had not answered are sent again in the order they were made, and
/// take longer and nothing else; a state carries its revision, so that it is stored once, and no older one after it
/// (R15). Only calls that must not be sent twice (`discardApplicationState`, `call`, `setChildren` by paths) fail
/// with `outcomeUnknown` when the connection ends between the two, and any other when eight connections have. At most
/// 4 MiB are with the broker at a time; every further call waits, and holds nothing but what its caller holds.
///
/// A call throws
///
/// - a `RestorationError` where the broker refuses it, or the library does before it is sent,
/// - a `RestorationSessionError` where it did not reach the broker, or nobody knows whether it took effect,
/// - a `BrokerConnectionError` where the answer makes no sense,
/// - a `CancellationError` where its task is cancelled. It may have taken effect all the same.
///
/// **The broker asks** a session whose options say `answersCalls`, and its delegate: objects for their states when the
/// application is saved (`StateRestoring`), restoration classes for objects that are not there when it is restored, and
/// data sources for rows. It answers one call after the other, also while its own are pending; only data sources are
/// asked at the same time. What is too large for one answer is put off, what is too large to be sent unasked is
/// fetched, and all that was registered to be asked is asked by the next broker too.
///
/// The session ends by `end`, and its connection closes with the last reference to it; then its objects wait for this
/// process until that ends. Programs that this process starts do not inherit the connection. After `fork` without
/// `exec` it can only be used by the parent.
public final class RestorationSession: Sendable {
  private let driver: SessionDriver

  private init(driver: SessionDriver) { self.driver = driver }

  deinit {
    driver.abandon()
  }

  /// Connects to the broker and opens a session.
  ///
  /// Does not wait for a broker to be started: throws a `BrokerConnectionError` where none runs, a `RestorationError`
  /// where it refuses the session, and a `RestorationSessionError` where it does not answer within `brokerTimeout`.
  ///
  /// - Parameters:
  ///   - options: who this process is. All of it is said again to each broker.
  ///   - delegate: makes this session the application's delegate (R9). The session does not keep it alive.
  ///   - socketPath: nil takes `$RESTORATIOND_SOCKET`, else `$XDG_RUNTIME_DIR/restorationd/broker.sock`.
  ///   - brokerTimeout: how long a call may wait where the broker is gone, from then or from its beginning; nil for
  ///     ever. A broker that is there, owes an answer and says nothing at all is gone, but is given a second at least:
  ///     it is stopped or hangs. One that answers others, or a ping, is not gone, however long a call takes.
  public static func start(
    _ options: SessionOptions,
    delegate: (any RestorationDelegate)? = nil,
    socket socketPath: String? = nil,
    brokerTimeout: Duration? = nil
  ) async throws -> RestorationSession {
    let socket = try BrokerConnection.resolve(socketPath)
    let driver = try await SessionDriver.start(options, delegate: delegate, socket: socket, timeout: brokerTimeout)
    let session = RestorationSession(driver: driver)
    await driver.begin(session)
    return session
  }

  /// Ends the session when what was called before is with the broker, and says what becomes of its objects (R30).
  ///
  /// Always returns: when the broker has acknowledged it, when `timeout` is over, or when the task is cancelled. Calls
  /// that are still waiting then fail. Returns whether the broker has acknowledged it; later calls return the same.
  @discardableResult
  public func end(_ reason: GoodbyeReason, timeout: Duration = .seconds(5)) async -> Bool {
    defer { withExtendedLifetime(self) {} }
    return await driver.end(reason, timeout: timeout)
  }

  /// What the broker said when the session was opened or last resumed.
  public var info: SessionInfo { driver.info.withLock { $0 } }

  /// How the session stands with the broker.
  public var state: SessionState { driver.events.state }

  /// The present state and all that follow, until the session has ended. Each stream gives all of them; one that is not
  /// read keeps the newest 16.
  public var states: AsyncStream<SessionState> { driver.events.states() }

  /// What the session is told; ends when the session does. Each notification is given once, whoever asks for it: take
  /// them in one place. Those that are not taken wait, up to 1,024; after that `missed` says how many were lost.
  public var notifications: AsyncStream<SessionNotification> {
    AsyncStream { [events = driver.events] in await events.nextNotification() }
  }

  /// Makes any call of the protocol: parameters as JSON text of an object or array in, the result's JSON text out.
  ///
  /// For what has no method here. It is not sent again after a lost connection: then it throws `outcomeUnknown`. Calls
  /// that change objects of this session are better made by its own methods, which remember what they did.
  public func call(_ method: String, _ parametersText: String? = nil) async throws -> String {
    let parameters = try JSONInput.parameters(parametersText)
    let call = SessionCall(method: method, isIdempotent: false, bytes: parameters?.count ?? 0) { _, _ in parameters }
    return try await answer(call).result.compactText.string
  }
}

// For the calls of the protocol, which are in files of their own
extension RestorationSession {
  /// Calls a method and reads its result.
  func perform<Method: RestorationMethod>(_ method: Method.Type, _ call: SessionCall) async throws -> Method.Reply {
    guard let reply = Method.Reply(try await answer(call).result) else { throw unexpectedAnswer(to: Method.method) }
    return reply
  }

  /// A good answer, with the object that the call registered.
  func answer(_ call: SessionCall) async throws -> (result: JSONSlice, object: RestorableObject?) {
    // The session is not to end while somebody waits for it.
    defer { withExtendedLifetime(self) {} }
    let completion = try await driver.perform(call)
    switch completion.answer {
    case .result(let result): return (result, completion.object)
    case .error(let error): throw RestorationError(answer: error)
    }
  }

  func owns(_ object: RestorableObject) async -> Bool { await driver.owns(object) }

  func unexpectedAnswer(to method: String) -> BrokerConnectionError {
    .unexpectedAnswer(to: method, path: driver.socket.path)
  }
}
