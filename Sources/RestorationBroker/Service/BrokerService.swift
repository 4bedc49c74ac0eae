// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import Logging
package import NIOCore
package import RestorationArchive
package import RestorationTransport
package import RestorationWire

/// Passes events of connections and gateways to the core, and the core's effects to the gateways.
///
/// Its executor is one event loop: a message is handled within the read that brought it. Effects are carried out after
/// the core has returned them, so that accesses to it never overlap (`@exclusivity`).
package actor BrokerService {
  nonisolated let eventLoop: any EventLoop
  private let meter: LoopMeter?
  /// Stored, because each message uses it.
  nonisolated package let unownedExecutor: UnownedSerialExecutor

  package let archives: ArchiveGateway
  package let processes: ProcessGateway
  private let clients: ClientGateway
  package private(set) var timers: Timers
  private let log: BrokerLog
  @exclusivity(unchecked) private var requests: RequestLog
  @exclusivity(unchecked) private var clock: BrokerClock
  @exclusivity(unchecked) package private(set) var core: BrokerCore
  @exclusivity(unchecked) private var outcome = Outcome()
  @exclusivity(unchecked) private var isCarryingOut = false
  private var isMemoryDue = false
  /// Number of pieces of long jobs that wait for their turn.
  private var piecesDue = 0
  var reports: [ReportID: ReportUnderWay] = [:]
  /// Callers that wait for the end of the last save rounds (R33). A list, because each event checks it, and comparing
  /// an optional continuation with `nil` copies it.
  private var whenSaved: [CheckedContinuation<Void, Never>] = []
  nonisolated let whenFatal: @Sendable (String) -> Void
  /// Told after each event.
  let activity: ActivityMonitor
  /// `nil` until `open`, and for good if the broker has no directory for them.
  private var sockets: ApplicationSockets?
  /// Calls that came before `open`, because connections are accepted before their listener can be used here. `nil` if
  /// calls no longer wait.
  private var callsBeforeSockets: [(application: String, max: Int, caller: Caller)]?

  /// Time, randomness, archives and processes are passed in, so that a test can control them.
  ///
  /// - Parameters:
  ///   - lock: held as long as the archives are used.
  ///   - manager: `nil` if the broker runs without a service manager.
  ///   - opensSockets: whether `open(_:adopting:)` will be called.
  ///   - whenFatal: called when the broker cannot continue without breaking a promise. The process must end with an
  ///     error.
  package init(
    on eventLoop: any EventLoop,
    meter: LoopMeter? = nil,
    limits: Limits,
    settings: CoreSettings,
    store: any ArchiveStore,
    lock: LockFile? = nil,
    processes host: any ProcessHost,
    manager: (any ServiceManager)?,
    handsConnectionsOver: Bool = false,
    opensSockets: Bool = false,
    wallMilliseconds: @escaping @Sendable () -> Int64 = { Host.wallMilliseconds },
    logger: Logger,
    whenFatal: @escaping @Sendable (String) -> Void
  ) {
    (self.eventLoop, self.meter) = (eventLoop, meter)
    unownedExecutor = eventLoop.executor.asUnownedSerialExecutor()
    core = BrokerCore(limits: limits, settings: settings)
    archives = ArchiveGateway(
      on: eventLoop,
      meter: meter,
      store: store,
      lock: lock,
      random: settings.random(),
      logger: logger
    )
    processes = ProcessGateway(on: eventLoop, host: host, manager: manager, logger: logger)
    let log = BrokerLog(logger, on: eventLoop)
    let clients = ClientGateway(handsConnectionsOver: handsConnectionsOver, log: log)
    core.context.mayPark = { clients.mayPark($0) }
    core.context.refusal = { [archives] name, growth in
      archives.refusal(to: name, growingBy: growth, isConfined: clients.isConfined(name.base), limits)
    }
    (self.log, self.clients) = (log, clients)
    clock = BrokerClock(on: eventLoop, wallMilliseconds: wallMilliseconds)
    timers = Timers(on: eventLoop)
    requests = RequestLog(logger, on: eventLoop)
    activity = ActivityMonitor(eventLoop: eventLoop)
    self.whenFatal = whenFatal
    callsBeforeSockets = opensSockets ? [] : nil
    follow(store)
  }

  /// Subscribes to events about archives that other hosts want or have.
  nonisolated private func follow(_ store: any ArchiveStore) {
    (store as? any ArchiveRoaming)?.observe { [weak self] event in
      guard let self else { return }
      eventLoop.execute {
        self.assumeIsolated { $0.archives.take(event, for: $0) }
      }
    }
  }

  // MARK: Events and effects

  /// Lets the core handle one event, then carries out the effects.
  func handle(_ event: (inout BrokerCore, Moment) -> Void) {
    event(&core, clock.now)
    carryOut()
  }

  /// Carries out effects until none are left; an effect may cause events that add more.
  package func carryOut() {
    guard !isCarryingOut else { return }
    isCarryingOut = true
    defer { isCarryingOut = false }
    repeat {
      core.swapOutcome(with: &outcome)
      for (id, change) in outcome.changes { archives.write(change, to: id, for: self) }
      for effect in outcome.effects { perform(effect) }
      outcome.removeAll()
    } while !core.context.outcome.isEmpty || archives.sendNotices(for: self)
    clients.settleReleased { archives.awaitSettling(of: $0) }
    if clients.hasPausedWriters, archives.hasRoom { clients.resumeWriters() }
    if !whenSaved.isEmpty, !core.isSaving {
      for waiting in whenSaved { waiting.resume() }
      whenSaved = []
    }
    activity.noteEvent(of: self)
  }

  /// One exhaustive switch despite its length, so that a forgotten effect does not compile.
  private func perform(_ effect: Effect) {
    switch effect {
    case .respond(let caller, let answer): send(answer, to: caller)
    case .respondAfter(let id, let sequence, let caller, let answer):
      archives.respond(answer, to: caller, after: sequence, in: id, for: self)
    case .readState(let id, let row, let caller): readState(id, row, caller)
    case .read(let id, let request, let after):
      clients.expect(request.bytes, for: request.caller)
      archives.read(id, request, after: after, for: self)
    case .report(let report, let id, let call, let after): begin(report, id, for: call, after: after)
    case .endReport(let id): reports[id]?.task?.cancel()
    case .open(let id, let name, let purpose): archives.open(id, name, purpose, for: self)
    case .takeOver(let name): archives.takeOver(name)
    case .goOn(let id): goOn(id)
    case .hurry(let id): archives.hurry(id, for: self)
    case .giveUp(let id): archives.giveUp(id)
    case .close(let id, let removal): archives.close(id, removal, for: self)
    case .list(let purpose): archives.list(purpose, for: self)
    case .backUp(let id, let replacingFormer): archives.backUp(id, replacingFormer: replacingFormer, for: self)
    case .notify(let id, let recipient, let method, let parameters):
      archives.add(.notification(recipient, method: method, parameters: parameters), of: id)
    case .announce(let id, let announcement): archives.add(.announcement(announcement), of: id)
    case .call(let id, let number, let client, let method, let parameters):
      let call = ClientGateway.Call(application: id, number: number)
      requests.begin(call, to: client, method: method, core)
      let isUnderWay = clients.call(client, call, method: method, parameters: parameters)
      if !isUnderWay { callEnded(call, of: client, .lost) }
    case .endCall(let client, let number, let id):
      let call = ClientGateway.Call(application: id, number: number)
      requests.end(.ofBroker(call, to: client), "given up", core)
      clients.endCall(client, call)
    case .tell(let client, let method, let parameters): clients.notify(client, method: method, parameters: parameters)
    case .tellLoss(let subscriber): clients.tellLoss(of: 0, to: subscriber)
    case .endSubscription(let subscriber): clients.endSubscription(subscriber)
    case .hold(let client): clients.hold(client)
    case .release(let client): clients.release(client)
    case .confine(let client, let application): clients.confine(client, to: application)
    case .clientChanged(let client): clients.setContext(core.record(of: client), of: client)
    case .setWaiting(let client, let isWaiting): clients.setWaiting(client, isWaiting)
    case .expect(let bytes, let caller): clients.expect(bytes, for: caller)
    case .awaitRoom(let caller):
      let admission = clients.admit(caller)
      if admission == .refused { requests.end(.ofClient(caller), "refused", core) }
      if admission != .later { core.goOn(caller, isRefused: admission == .refused, at: clock.now) }
    case .disconnect(let client): clients.close(client)
    case .park(let caller): clients.park(caller)
    case .unpark(let caller): clients.unpark(caller)
    case .watch(let client, let id, let session):
      let process = clients.peer(of: client).flatMap { processes.host.process(of: $0) }
      processes.watch(process, .init(application: id, session: session), for: self)
    case .watchProcess(let process, let id, let session):
      let process = processes.host.process(process.identity)
      processes.watch(process, .init(application: id, session: session), for: self)
    case .unwatch(let id, let session): processes.unwatch(.init(application: id, session: session))
    case .probe(let id, let sessions, let call): processes.probe(sessions, of: id, call, for: self)
    case .checkUnit(let id, let session, let unit):
      processes.checkUnit(unit, .init(application: id, session: session), for: self)
    case .startUnit(let id, let unit): processes.startUnit(unit, for: id, self)
    case .setTimer(let name, let milliseconds):
      timers.set(name, milliseconds: milliseconds) { self.assumeIsolated { $0.timerFired(name) } }
    case .cancelTimer(let name): timers.cancel(name)
    case .openSocket(let application, let max, let caller): openSocket(application, max, caller)
    case .replica(let request, let caller): archives.answer(request, to: caller, for: self)
    case .reportStatistics(let caller): send(.result(statistics(for: caller)), to: caller)
    case .reportMetrics(let caller, let page, let applications): report(applications, on: page, to: caller)
    case .log(let level, let text, let name, let incident): log.log(level, text, of: name, incident, core)
    }
  }

  private func report(_ applications: [ApplicationOverview], on page: MetricsPage, to caller: Caller) {
    requests.end(.ofClient(caller), "answered", core)
    let metrics = BrokerMetrics(statistics: statistics(for: caller), applications: applications)
    if let call = caller.call { clients.respond(metrics, on: page, to: call, of: caller.client) }
  }

  private func statistics(for caller: Caller) -> BrokerStatistics {
    var statistics = BrokerStatistics(of: core, uptime: clock.now.monotonic - clock.start.monotonic)
    if let application = core.clients[caller.client]?.confinement {
      statistics.add(core, only: application)
    } else {
      statistics.add(core, archives, clients, timers, meter)
    }
    return statistics
  }

  private func openSocket(_ application: String, _ max: Int, _ caller: Caller) {
    guard let sockets else {
      guard callsBeforeSockets?.append((application, max, caller)) == nil else { return }
      let why = "the broker's own socket has no absolute path; give it --socket PATH"
      return send(.error(.noSocket(why)), to: caller)
    }
    sockets.open(application, max: max) { answer in self.assumeIsolated { $0.send(answer, to: caller) } }
  }

  /// Opens and adopts sockets from now on. Before that, clients can use the broker's own socket only.
  func open(_ sockets: ApplicationSockets, adopting inherited: InheritedConnections) {
    self.sockets = sockets
    sockets.adopt(inherited.applicationSockets)
    let calls = callsBeforeSockets ?? []
    callsBeforeSockets = nil
    for call in calls { openSocket(call.application, call.max, call.caller) }
  }

  func stopSockets() async { await sockets?.stop() }

  private func goOn(_ id: ApplicationID) {
    piecesDue += 1
    Task {
      await archives.turns.next()
      piecesDue -= 1
      handle { $0.goOn(id, at: $1) }
    }
  }

  private func timerFired(_ name: TimerName) {
    timers.fired(name)
    handle { $0.timerFired(name, at: $1) }
    // By then the archive of the unused application is closed.
    if case .unused = name { giveMemoryBackSoon() }
  }

  /// Once for all applications that leave at about the same time.
  private func giveMemoryBackSoon() {
    guard !isMemoryDue else { return }
    isMemoryDue = true
    eventLoop.scheduleTask(in: .seconds(1)) {
      self.assumeIsolated { $0.isMemoryDue = false }
      Host.giveMemoryBack()
    }
  }

  private func readState(_ id: ApplicationID, _ row: StateRequest.Row, _ caller: Caller) {
    guard let record = archives.cached(row, of: id), let reply = core.decoded(id, record, at: row.sequence) else {
      clients.expect(row.bytes, for: caller)
      let request = StateRequest(caller: caller, purpose: .decode(node: row.node), rows: [row])
      return archives.read(id, request, after: row.sequence, for: self)
    }
    requests.end(.ofClient(caller), "answered", core)
    if let call = caller.call { clients.respond(reply, to: call, of: caller.client) }
  }

  // MARK: Ending

  /// Saves all clients (R33). Afterwards calls wait only for work in progress.
  package func prepareToStop() async {
    await withCheckedContinuation { waiting in
      whenSaved.append(waiting)
      handle { $0.saveBeforeEnd(at: $1) }
    }
    if await processes.isUserSessionEnding(for: self) { handle { $0.sessionOfUserEnds(at: $1) } }
    handle { $0.endWaiting(at: $1) }
  }

  /// Makes durable and answers what was written, and closes all archives.
  package func stop() async {
    clients.stopReading()
    await archives.drain()
    clients.tellAllLosses()
    await archives.closeAll(removing: core.blankApplications)
    timers.cancelAll()
    processes.stop()
    let held = Holdings.sum(archives.holdings, processes.holdings, ["timers": timers.count])
    assert(held.isEmpty, "still held at the end: \(held)")
    log.tellLeftOut()
  }

  var isStopping: Bool { archives.isStopping }

  /// Whether no client is connected and no session in memory awaits its client. An open socket of an application
  /// prevents it: a client of that socket could not start the broker.
  var isUnused: Bool { clients.count == 0 && core.sessionCount == 0 && sockets?.isEmpty ?? true }

  /// Whether work is in progress, even if no client waits for it.
  var isAtWork: Bool {
    archives.isAtWork || archives.isShipping || processes.isStartingUnits
      || core.applications.values.contains { $0.isRestoring }
  }

  /// Whether work that timers have begun is unfinished. For archives see `archives.isAtWork`.
  var isAtOwnWork: Bool { piecesDue > 0 || processes.isAsking }

  /// All accounts are zero when every client has left, its sessions have ended and no work is in progress.
  package var holdings: Holdings {
    let own = [
      "timers": timers.count, "requests in the log": requests.count,
      "waits for the last save": whenSaved.count,
    ]
    return .sum(Holdings(of: core), clients.holdings, archives.holdings, processes.holdings, own)
  }

  var currentActivity: BrokerActivity { BrokerActivity(core, connections: clients.count) }

  /// Applies the settings that may change while clients are connected.
  package func configure(_ limits: Limits, _ policies: LoginPolicies) {
    core.context.limits.change(to: limits)
    core.context.settings.loginPolicies = policies
    Task { await archives.store.setOpenArchivesMax(limits.openArchivesMax) }
  }
}

extension BrokerService: ArchiveGateway.Delegate, ProcessGateway.Delegate {
  package func send(_ answer: Answer, to caller: Caller) {
    guard let call = caller.call else {
      let message = log.notification ?? IncomingMessage(caller: caller, method: "", parameters: .none)
      if case .error(let error) = answer { log.failure(error, of: message, by: clients.peer(of: caller.client), core) }
      return
    }
    requests.end(.ofClient(caller), answer.outcome, core)
    clients.respond(answer, to: call, of: caller.client)
  }

  package func send(_ notice: WriteQueue.Notice, of id: ApplicationID) {
    switch notice {
    case .notification(.client(let client), let method, let parameters):
      clients.notify(client, method: method, parameters: parameters)
    case .notification(.poller(let session), let method, let parameters):
      core.notified(id, session, method: method, parameters: parameters, at: clock.now)
    case .announcement(let announcement):
      clients.send(announcement, ifSubscribed: core.isSubscribed, reads: core.reads)
    }
  }

  package func report(_ event: ArchiveEvent) { core.take(event, processes, at: clock.now) }

  package func report(_ event: ProcessEvent) { core.take(event, at: clock.now) }

  package func settled(_ settled: [ClientID]) { clients.settled(settled) }

  package func broke(_ message: String) {
    // Answers leave at the end of this tick; the process ends after that.
    eventLoop.execute { self.whenFatal(message) }
  }

  package func refusal(to unit: UnitName, for application: ApplicationID, _ files: [String]?) -> String? {
    core.refusal(to: unit, for: application, files)
  }
}

extension BrokerService: ConnectionDelegate {
  nonisolated package func connectionOpened(_ connection: Connection) {
    assumeIsolated { service in
      service.clients.opened(connection)
      let process = service.processes.host.process(of: connection.peer)
      let (client, unit) = (ClientProcess(process, connection.peer), service.processes.unit(of: process))
      service.handle {
        let id = connection.id.value
        $0.connected(id, process: client, confinement: connection.confinement, unit: unit, at: $1)
      }
    }
  }

  nonisolated package func connectionAdopted(_ connection: Connection, context: [UInt8], afterKill: Bool) {
    assumeIsolated { service in
      service.clients.opened(connection)
      let process = ClientProcess(service.processes.host.process(of: connection.peer), connection.peer)
      service.handle {
        $0.adopted(connection.id.value, process: process, record: context, afterKill: afterKill, at: $1)
      }
    }
  }

  nonisolated package func confinement(inContext context: [UInt8]) -> String? {
    ClientSnapshot(record: context)?.confinement
  }

  nonisolated package func received(_ delivery: Conversation.Delivery, from connection: Connection) {
    // A function, because a closure would check its executor once more.
    func take(on service: isolated BrokerService) { service.take(delivery, of: connection) }
    assumeIsolated(take)
  }

  private func take(_ delivery: Conversation.Delivery, of connection: Connection) {
    let client = connection.id.value
    let overflows = archives.overflows
    defer { if archives.overflows != overflows { clients.pauseWriter(client) } }
    log.process = connection.peer.pid
    defer { log.process = nil }
    var message: IncomingMessage
    switch delivery {
    case .request(let call, let request):
      // If no client can be answered, only the request's effect counts, as for a notification.
      let caller = Caller(client: client, call: connection.isGone ? nil : call)
      message = IncomingMessage(caller: caller, method: request.method, parameters: request.parameters)
    case .notification(let notification):
      let caller = Caller(client: client, call: nil)
      message = IncomingMessage(caller: caller, method: notification.method, parameters: notification.parameters)
      if notification.method == CancelRequest.method {
        guard let cancelled = clients.cancelled(notification.parameters, by: client) else { return }
        return handle { $0.cancelled(cancelled, at: $1) }
      }
      if let fault = notification.fault {
        log.failure(fault, of: message, by: connection.peer, core)
        return handle { $0.refused(message, fault, at: $1) }
      }
    case .response(let callID, let outcome): return callEnded(callID, of: client, CallAnswer(outcome))
    case .brokenAnswer(let callID, let code, let reason):
      log.note(.warning, "an answer is \(reason)", of: connection.peer)
      return callEnded(callID, of: client, .error(code: code, message: "the answer is \(reason)"))
    case .closeAfterOutput: return
    }
    message.canBeCalled = connection.canBeCalled
    if message.caller.call == nil { log.notification = message }
    requests.begin(message, core)
    core.received(message, at: clock.now)
    carryOut()
    log.notification = nil
    if message.caller.call == nil { clients.notified(by: client, archives.awaitSettling(of: client)) }
  }

  nonisolated package func requested(_ page: String, _ call: Conversation.Call, from connection: Connection) {
    guard !connection.isGone, let page = MetricsPage(rawValue: page) else { return }
    assumeIsolated { service in
      let caller = Caller(client: connection.id.value, call: call)
      service.requests.begin(IncomingMessage(caller: caller, method: page.rawValue, parameters: .none), service.core)
      service.handle { $0.requested(page, by: caller, at: $1) }
    }
  }

  private func callEnded(_ callID: Int, of client: ClientID, _ answer: CallAnswer) {
    guard let call = clients.ended(callID, of: client) else { return }
    callEnded(call, of: client, answer)
    carryOut()
  }

  private func callEnded(_ call: ClientGateway.Call, of client: ClientID, _ answer: CallAnswer) {
    requests.end(.ofBroker(call, to: client), answer.outcome, core)
    core.callEnded(call.application, call.number, answer, at: clock.now)
  }

  nonisolated package func callsAbandoned(_ callIDs: [Int], by connection: Connection) {
    assumeIsolated { for callID in callIDs { $0.callEnded(callID, of: connection.id.value, .lost) } }
  }

  nonisolated package func hasRoomForOffers(_ connection: Connection) {
    let client = connection.id.value
    assumeIsolated { service in service.clients.tellLosses(to: client) { service.core.reads($0, client) } }
  }

  nonisolated package func hasRoomForReplies(_ connection: Connection) {
    assumeIsolated { service in service.handle { core, _ in core.hasRoom(connection.id.value) } }
  }

  nonisolated package func connectionClosed(_ connection: Connection, reason: CloseReason) {
    assumeIsolated { service in
      service.clients.closed(connection, reason)
      service.requests.end(allOf: connection.id.value, service.core)
      service.handle {
        $0.disconnected(connection.id.value, at: $1)
        $0.hasRoom(connection.id.value)
      }
    }
  }
}
