// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore
internal import RestorationWire
internal import Synchronization

/// The I/O side of a session: carries out the state machine's decisions, over one connection after the other. It runs
/// on the event loop of those connections.
actor SessionDriver {
  typealias Ticket = RestorationSession.StateMachine.Ticket
  typealias Action = RestorationSession.StateMachine.Action

  /// The most bytes at the broker; a frame of the broker's default limit.
  private static let windowBytes = 4 << 20

  /// The timeout of a released session for its last states.
  private static let releaseTime: Duration = .seconds(5)

  typealias Completion = PendingCalls.Completion
  typealias Question = PendingCalls.Question

  /// Progress of the session's restoration.
  struct Restoring {
    /// Whether it completed without an extension.
    var hasCompleted = false
    /// `extendStateRestoration` without its `completeStateRestoration`.
    var extensions = 0
  }

  /// Scheduled timers.
  struct Timers {
    /// The next try to connect.
    var connect: Scheduled<Void>?
    var alarm: Scheduled<Void>?
    /// The next look for released objects.
    var look: Scheduled<Void>?
  }

  /// The goodbye, and the tasks that wait for its end.
  private struct Farewell {
    /// Set when it is a call, after all earlier calls.
    var ticket: Ticket?
    /// `nil` before the end has begun.
    private(set) var parameters: JSONText?
    private var limit: Scheduled<Void>?
    private var waiters: [(Bool) -> Void] = []
    /// Who waits to know if a broker is there.
    private var lookers: [() -> Void] = []

    mutating func wait(_ waiter: @escaping (_ isConfirmed: Bool) -> Void) { waiters.append(waiter) }

    mutating func look(_ looker: @escaping () -> Void) { lookers.append(looker) }

    mutating func takeLookers() -> [() -> Void] {
      defer { lookers = [] }
      return lookers
    }

    mutating func begin(_ reason: GoodbyeReason, limit: Scheduled<Void>) {
      self.limit = limit
      parameters = BrokerConnection.parameters(of: Goodbye().with { $0.reason = reason })
    }

    func stopWaiting() { limit?.cancel() }

    mutating func end(isConfirmed: Bool) {
      for waiter in waiters { waiter(isConfirmed) }
      waiters = []
    }
  }

  nonisolated var eventLoop: any EventLoop { route.eventLoop }
  nonisolated var unownedExecutor: UnownedSerialExecutor { eventLoop.executor.asUnownedSerialExecutor() }

  nonisolated let route: any BrokerRoute
  /// The broker's answer to the last `initialize`.
  nonisolated let info: Mutex<SessionInfo>
  nonisolated let events: SessionEvents
  var options: SessionOptions

  nonisolated let live = LiveObjects()

  var machine: RestorationSession.StateMachine
  var objects: SessionObjects
  /// `nil` while there is no connection.
  var link: BrokerLink?
  var limits: Limits
  var pending = PendingCalls()
  var restoring = Restoring()
  var refusal: RestorationError?
  var memory: SessionMemory
  var bound: [ObjectPlan.ObjectID: BoundObject] = [:]

  // Answers to the broker's calls
  private(set) weak var session: RestorationSession?
  private(set) weak var delegate: (any RestorationDelegate)?
  let served: [ServedMethod]
  var factories: [String: (make: RestorationRequest.Factory, isShared: Bool)] = [:]
  var dataSources: [DataSource] = []
  var callQueue = ServedCallQueue()
  let returns = RegistrationReturns()
  var calls: [ServedCallQueue.Number: ServedCall] = [:]

  /// Actions in the order of their decision: carrying out one may add others.
  private var actions: [Action] = []
  private var isActing = false
  var timers = Timers()
  private var farewell = Farewell()

  /// - Parameters:
  ///   - link: `nil` if there is no broker: then `memory` answers.
  ///   - options: with the application's full name from the broker: an instance is chosen only once.
  private init(
    _ link: BrokerLink?,
    _ memory: SessionMemory = SessionMemory(because: nil),
    by route: any BrokerRoute,
    options: SessionOptions,
    delegate: (any RestorationDelegate)?,
    info: SessionInfo,
    timeout: Duration?
  ) {
    (self.link, self.delegate) = (link, delegate)
    self.memory = memory
    served = options.served(byDelegate: delegate != nil)
    (self.route, self.options) = (route, options)
    self.info = Mutex(info)
    events = SessionEvents(link == nil ? .withoutBroker : .connected)
    limits = info.limits
    objects = SessionObjects(live)
    machine = RestorationSession.StateMachine(
      windowBytes: Self.windowBytes,
      timeout: timeout.map(Self.milliseconds),
      isAlone: link == nil,
      at: Self.now(on: route.eventLoop)
    )
  }

  /// The machine's clock, in milliseconds.
  var now: Int64 { Self.now(on: eventLoop) }

  static func now(on eventLoop: any EventLoop) -> Int64 {
    Int64(eventLoop.now.uptimeNanoseconds / 1_000_000)
  }

  /// Opens a session; in memory if there is no broker and `withoutBroker` permits it. `begin` starts it.
  static func start(
    _ options: SessionOptions,
    delegate: (any RestorationDelegate)?,
    by route: any BrokerRoute,
    timeout: Duration?,
    withoutBroker: WithoutBroker
  ) async throws -> SessionDriver {
    var options = options
    options.isDelegate = options.isDelegate || delegate != nil
    let call = try options.forSession(serving: options.served(byDelegate: delegate != nil), resuming: nil)
    func connected() async throws -> SessionDriver {
      try await connect(options, call, delegate: delegate, by: route, timeout: timeout)
    }
    switch withoutBroker {
    case .fails: return try await connected()
    case .memory:
      switch try await open(by: route, within: timeout, connected) {
      case .success(let driver): return driver
      case .failure(let error):
        let info = SessionInfo(Initialize.Reply().with { $0.application = call.application }, resuming: nil)
        let memory = SessionMemory(because: error)
        return SessionDriver(nil, memory, by: route, options: options, delegate: delegate, info: info, timeout: timeout)
      }
    }
  }

  private static func connect(
    _ options: SessionOptions,
    _ call: Initialize,
    delegate: (any RestorationDelegate)?,
    by route: any BrokerRoute,
    timeout: Duration?
  ) async throws -> SessionDriver {
    var options = options
    let link = try await BrokerLink.connect(by: route, isToBeObserved: true)
    // A stopped broker accepts connections too.
    let timer = timeout.map { timeout in
      let silenceMax = max(milliseconds(timeout), RestorationSession.StateMachine.silenceMilliseconds)
      return link.eventLoop.scheduleTask(in: .milliseconds(silenceMax)) { link.cut() }
    }
    defer { timer?.cancel() }
    let info: SessionInfo
    do {
      let result = try await link.call(Initialize.method, BrokerConnection.parameters(of: call)).get()
      guard let reply = Initialize.Reply(result) else {
        throw BrokerConnectionError.unexpectedAnswer(to: Initialize.method, path: route.path)
      }
      info = SessionInfo(reply, resuming: nil)
    } catch {
      link.abandon()
      let isOver = (error as? BrokerConnectionError)?.code == .closed
      throw isOver ? RestorationSessionError.timedOut(route.path) : error
    }
    options.application = info.application.description
    (options.instance, options.takeOver) = (nil, false)
    return SessionDriver(link, by: route, options: options, delegate: delegate, info: info, timeout: timeout)
  }

  /// Observes the connection, for this session.
  func begin(_ session: RestorationSession) {
    self.session = session
    endAtExit()
    if machine.isAlone { beginAlone() }
    // It may have ended meanwhile.
    if let link, !link.assumeIsolated({ $0.observe(by: self) }) { lost(link) }
  }

  /// Bounded, so that sums do not overflow.
  static func milliseconds(_ duration: Duration) -> Int64 { min(duration.wholeMilliseconds, 1 << 40) }

  // MARK: Calls

  /// Makes a call, over as many connections as needed.
  func perform(_ call: SessionCall) async throws -> Completion {
    try Task.checkCancellation()
    for object in call.objects {
      guard object.session == ObjectIdentifier(self) else {
        throw RestorationSessionError(.notRegistered, "\(object) is an object of another session")
      }
    }
    let ticket = machine.makeTicket()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        submit(call, as: ticket) { continuation.resume(with: $0) }
      }
    } onCancel: {
      enter { $0.act($0.machine.cancelled(ticket)) }
    }
  }

  /// The call has its place in the order when this returns. `end` is called once, in the turn of its answer; it must
  /// make no call in that turn.
  func submit(_ call: SessionCall, as ticket: Ticket, _ end: @escaping (Result<Completion, any Error>) -> Void) {
    let revision = call.isNumbered ? objects.nextRevision() : nil
    if call.isNumbered { renew(call, revision) }
    pending.add(call, revision: revision, as: ticket, end)
    act(machine.submit(ticket, call.queued, at: now))
  }

  /// Runs on the event loop, soon.
  nonisolated func enter(_ body: @escaping @Sendable (isolated SessionDriver) -> Void) {
    eventLoop.execute { self.assumeIsolated { body($0) } }
  }

  func owns(_ object: RestorableObject) -> Bool { objects[object.id]?.object === object }

  // MARK: The end

  /// Says goodbye and waits for the answer until `timeout`. Returns whether the broker has confirmed it.
  func end(_ reason: GoodbyeReason, timeout: Duration) async -> Bool {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if case .ended(let ending) = events.state {
          return continuation.resume(returning: ending == .left(isConfirmed: true))
        }
        farewell.wait { continuation.resume(returning: $0) }
        beginEnd(reason, timeout)
      }
    } onCancel: {
      abandon()
    }
  }

  nonisolated func release() { enter { $0.beginEnd(.restart, Self.releaseTime) } }

  /// The exiting process may block the actors of its objects: writes to properties are not awaited.
  func leaveAtExit(within milliseconds: Int64, _ promise: EventLoopPromise<Void>) {
    guard !machine.hasEnded else { return promise.succeed(()) }
    farewell.wait { _ in promise.succeed(()) }
    guard farewell.parameters == nil else { return }
    farewell.begin(.restart, limit: eventLoop.scheduleTask(in: .milliseconds(milliseconds)) { self.abandon() })
    sayGoodbye()
  }

  private func beginEnd(_ reason: GoodbyeReason, _ timeout: Duration) {
    guard farewell.parameters == nil, !machine.hasEnded else { return }
    timers.look?.cancel()
    let limit = eventLoop.scheduleTask(in: .milliseconds(Self.milliseconds(timeout))) { self.abandon() }
    farewell.begin(reason, limit: limit)
    guard !bound.isEmpty else { return look { self.sayGoodbye() } }
    Task {
      await flush()
      look { self.sayGoodbye() }
    }
  }

  /// If the session has no broker, looks for one once more before it continues.
  private func look(_ next: @escaping () -> Void) {
    guard machine.isAlone, !machine.hasEnded else { return next() }
    farewell.look(next)
    act(machine.look())
  }

  func looked() { for looker in farewell.takeLookers() { looker() } }

  /// Begins the goodbye, once.
  private func sayGoodbye() {
    guard farewell.parameters != nil, !machine.isEnding else { return }
    let ticket = machine.makeTicket()
    farewell.ticket = ticket
    act(machine.end(ticket, bytes: 0, at: now))
  }

  /// Ends the session without waiting; a goodbye is still sent.
  nonisolated func abandon() {
    enter {
      $0.sayGoodbye()
      $0.act($0.machine.giveUp())
    }
  }

  // MARK: Carrying out

  func act(_ decided: [Action]) {
    actions += decided
    guard !isActing else { return }
    isActing = true
    var index = 0
    while index < actions.count {
      carryOut(actions[index])
      index += 1
    }
    actions = []
    isActing = false
  }

  private func carryOut(_ action: Action) {
    switch action {
    case .connect: connect()
    case .wait(let milliseconds):
      timers.connect = eventLoop.scheduleTask(in: .milliseconds(milliseconds)) {
        self.assumeIsolated { $0.act($0.machine.elapsed()) }
      }
    case .initialize: initialize()
    case .register(let id): register(id)
    case .ping: ask(.unawaited, Ping.method, parameters: nil)
    case .replay: replay()
    case .send(let ticket): send(ticket)
    case .forget(let ticket):
      if let linkTicket = pending.abandon(ticket) { link?.assumeIsolated { $0.giveUp(linkTicket) } }
    case .complete(let ticket): pending.complete(ticket)
    case .cancel(let ticket): pending.fail(ticket, CancellationError())
    case .fail(let ticket, let failure):
      pending.fail(ticket, error(of: failure, ticket))
    case .setAlarm(let time): setAlarm(at: time)
    case .disconnect: link?.cut()
    case .close(let leaving): close(leaving: leaving)
    case .report(let report): tell(report)
    }
  }

  private func connect() {
    timers.connect?.cancel()
    timers.connect = nil
    Task {
      do {
        connected(try await BrokerLink.connect(by: route, isToBeObserved: true))
      } catch {
        act(machine.connectFailed())
        looked()
      }
    }
  }

  private func connected(_ link: BrokerLink) {
    self.link = link
    // It may have ended meanwhile.
    guard link.assumeIsolated({ $0.observe(by: self) }) else {
      self.link = nil
      act(machine.connectFailed())
      return looked()
    }
    act(machine.connected())
  }

  func ask(_ question: Question, _ method: String, parameters: JSONText?) {
    guard let link else { return }
    pending.asked(question, as: link.assumeIsolated { $0.begin(method, parameters) })
  }

  private func initialize() {
    let token = info.withLock { $0.session }
    guard let call = try? options.forSession(serving: served, resuming: token.isEmpty ? nil : token) else {
      return act(machine.postponed())
    }
    ask(.initialize, Initialize.method, parameters: BrokerConnection.parameters(of: call))
  }

  func register(_ id: ObjectPlan.ObjectID) {
    guard let registration = objects.registrationAgain(id) else { return act(machine.settled(id, isRegistered: false)) }
    let parameters = BrokerConnection.parameters(of: registration.wire)
    do {
      try FrameCheck(method: RegisterObjectForStateRestoration.method, parameters: parameters).run(limits)
    } catch {
      return refused(id, error)
    }
    ask(.register(id), RegisterObjectForStateRestoration.method, parameters: parameters)
  }

  private func send(_ ticket: Ticket) {
    if isFarewell(ticket) { return ask(.call(ticket), Goodbye.method, parameters: farewell.parameters) }
    guard let (call, revision) = pending[ticket] else { return }
    do {
      let parameters = try call.parameters(objects, revision)
      if let parameters { try FrameCheck(method: call.method, parameters: parameters).run(limits) }
      if let result = try remembered(call, parameters), let slice = result.scanned {
        return completed(ticket, .result(slice))
      }
      ask(.call(ticket), call.method, parameters: call.trace.added(to: parameters, of: call.method, within: limits))
    } catch let error as ErrorObject {
      pending.fail(ticket, RestorationError(error))
      act(machine.unsendable(ticket))
    } catch {
      pending.fail(ticket, error)
      act(machine.unsendable(ticket))
    }
  }

  func isFarewell(_ ticket: Ticket) -> Bool { ticket == farewell.ticket }

  private func error(of failure: RestorationSession.StateMachine.Failure, _ ticket: Ticket) -> RestorationSessionError {
    switch failure {
    case .ended: .ended(refusal)
    case .timedOut: .timedOut(route.path)
    case .outcomeUnknown: .outcomeUnknown(pending[ticket]?.call.method ?? Goodbye.method)
    case .notRegistered(let id):
      pending[ticket]?.call.objects.first { $0.id == id }?.lossError ?? .notRegistered(nil, nil)
    case .limitExceeded(let limit): .limitExceeded(limit, route.path)
    }
  }

  private func setAlarm(at time: Int64?) {
    timers.alarm?.cancel()
    timers.alarm = time.map { time in
      eventLoop.scheduleTask(in: .milliseconds(max(0, time - now))) {
        self.assumeIsolated { $0.act($0.machine.alarm(at: $0.now)) }
      }
    }
  }

  private func close(leaving: Bool) {
    timers.connect?.cancel()
    timers.look?.cancel()
    farewell.stopWaiting()
    if leaving {
      // The session is unwanted: it must not count as a crash when the process ends.
      let goodbye = Goodbye().with { $0.reason = .restart }
      ask(.unawaited, Goodbye.method, parameters: BrokerConnection.parameters(of: goodbye))
    }
    link?.abandon()
    link = nil
    pending.forgetQuestions()
    dropCalls()
  }

  private func tell(_ report: RestorationSession.StateMachine.Report) {
    switch report {
    case .connected: events.become(.connected)
    case .reconnecting: events.become(.reconnecting(since: .now))
    case .ended(.left(let isConfirmed)): ended(.left(isConfirmed: isConfirmed))
    case .ended(.refused): ended(refusal.map { .refused($0) } ?? .left(isConfirmed: false))
    }
  }

  private func ended(_ ending: SessionEnding) {
    events.become(.ended(ending))
    looked()
    farewell.end(isConfirmed: ending == .left(isConfirmed: true))
  }
}
