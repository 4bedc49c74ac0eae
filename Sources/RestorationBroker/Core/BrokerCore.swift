// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

/// Decides everything that the broker does: it takes events, and returns effects that the service carries out.
///
/// It does no I/O and reads no clock. Requests of one client take effect in the order of their arrival. While a client
/// waits for an archive to open, its later messages wait, too.
package struct BrokerCore {
  package let context: CoreContext
  var clients: [ClientID: Client] = [:]
  package internal(set) var applications: [ApplicationID: Application] = [:]
  var applicationIDs: [ApplicationName: ApplicationID] = [:]
  private var applicationCounter = 0
  package internal(set) var counters = Counters()

  package init(limits: Limits, settings: CoreSettings) {
    self.context = CoreContext(limits: limits, settings: settings)
  }

  /// Swaps the outcome of the last event for an empty one.
  package mutating func swapOutcome(with outcome: inout Outcome) { context.swapOutcome(with: &outcome) }

  package var sessionCount: Int { applications.values.reduce(0) { $0 + $1.sessions.count } }
  package var objectCount: Int { applications.values.reduce(0) { $0 + $1.tree.count } }

  // MARK: Clients

  /// - Parameter confinement: the application, without instance, that the client is confined to.
  package mutating func connected(
    _ id: ClientID,
    process: ClientProcess?,
    confinement: String? = nil,
    unit: String? = nil,
    at now: Moment
  ) {
    context.now = now
    clients[id] = Client(id: id, process: process, confinement: confinement, unit: unit, context: context)
    counters.connections += 1
    guard let confinement else { return }
    context.emit(.confine(id, to: confinement))
    // The next broker must confine it, too, even if nothing else of the client changes.
    context.emit(.clientChanged(id))
  }

  /// The client is gone, and all its messages were handled.
  package func isDone(with client: ClientID) -> Bool { clients[client] == nil }

  package mutating func received(_ message: IncomingMessage, at now: Moment) {
    context.now = now
    guard let client = clients[message.caller.client] else { return }
    counters.requests += 1
    if client.isWaiting { client.enqueue(message) } else { process(message, client) }
  }

  /// Answers a GET of the metrics.
  package mutating func requested(_ page: MetricsPage, by caller: Caller, at now: Moment) {
    context.now = now
    counters.requests += 1
    context.emit(.list(.metrics(caller, page)))
  }

  package mutating func disconnected(_ id: ClientID, at now: Moment) {
    context.now = now
    guard let client = clients[id] else { return }
    client.hasLeft = true
    client.abandonImport()
    context.subscriptions.removeAll(of: id)
    // Messages sent before it left still take effect, even if an archive must be opened first.
    guard client.isWaiting else { return leave(client) }
    guard let application = client.waitsFor.flatMap({ applications[$0] }), application.sessions.isEmpty else { return }
    if waiting(for: application.id).allSatisfy(\.wantsNothing) { application.turn.giveUp() }
  }

  /// Removes a client that has left. All its messages must have been handled.
  mutating func leave(_ client: Client) {
    let id = client.id
    clients[id] = nil
    context.subscriptions.removeAll(of: id)
    for application in client.applications.compactMap({ applications[$0]?.settled }) {
      application.sessions.disconnect(id)
      application.note(.clientLeft(id))
    }
    if let (application, session) = boundSession(client) { application.settled.lost(session) }
    for (application, token) in client.detached {
      guard let application = applications[application]?.settled, let session = application.sessions[token: token]
      else { continue }
      if session.client == id { session.client = nil }
      if !session.usedElsewhere { application.end(session, .expired) }
    }
    dropUpload(of: client)
    for application in client.applications.compactMap({ applications[$0] }) { closeIfUseless(application) }
  }

  func boundSession(_ client: Client) -> (Application, Session)? {
    guard let bound = client.bound, let application = applications[bound.application],
      let session = application.sessions[bound.session]
    else { return nil }
    return (application, session)
  }

  // MARK: Archives

  /// The archive was opened, or its opening failed; `ended` lists its sessions whose processes have ended.
  package mutating func opened(
    _ id: ApplicationID,
    _ result: Result<OpenedArchive, ArchiveError>,
    ended: Set<SessionID>,
    at now: Moment
  ) {
    context.now = now
    guard let application = applications[id] else { return }
    if case .failure(let error) = result {
      // These callers still waited because of an earlier failed transaction.
      application.parentWaits.abandon(for: .storeError(error), in: &application.turn) { _ in true }
    }
    switch result {
    case .success(let opened):
      let opening = opened.opening
      application.load(opened)
      forgetLostSessions(of: application)
      application.announceOpening(damage: opening.damage)
      if let damage = opening.damage { context.emit(.log(.warning, damage, of: application.name, .damageFound)) }
      application.resumeSessions(ended: ended)
    case .failure(let error) where error.kind == .unreadable:
      application.turn.phase = .unreadable(error.message)
      application.turn.begin(after: 0, content: 0)
      application.announce(.settled) { ArchiveUnreadable().with { $0.message = error.message } }
      context.emit(.log(.error, error.message, of: application.name, .archiveUnusable))
    case .failure(let error):
      if let loss = ArchiveLoss(error), !application.sessions.isEmpty { return lose(application, loss) }
      application.jobs.cancelAll(for: .storeError(error), isClosed: true, in: &application.turn)
      close(application)
      for client in waiting(for: id) {
        // A client that came later may have the archive created, or released by another host.
        let asksForMore = client.purpose > application.turn.purpose || client.takesOver && !application.turn.takesOver
        let mayOpen = asksForMore && error.dependsOnPurpose
        let isNew = application.turn.isGivenUp && !client.hasLeft
        if mayOpen || isNew { resume(client) } else { refuse(client, with: .storeError(error)) }
      }
      return
    }
    application.beginWaiting()
    for client in waiting(for: id) { resume(client) }
    closeIfUseless(application)
  }

  /// Unbinds clients from sessions that were lost with a failed transaction. Their numbers will be used again.
  private func forgetLostSessions(of application: Application) {
    for client in clients.values {
      if let bound = client.bound, bound.application == application.id,
        application.sessions[bound.session]?.client != client.id
      {
        client.bound = nil
      }
      if let token = client.detached[application.id], application.sessions[token: token] == nil {
        client.detached[application.id] = nil
      }
    }
  }

  /// After a refused call or a dry run, closes archives that were created for it and have no write.
  mutating func closeUnwritten(of client: Client) {
    for application in client.applications.compactMap({ applications[$0] }) {
      guard application.sequence == 0, application.isBlank else { continue }
      client.applications.remove(application.id)
      client.lastApplication = nil
      application.sessions.disconnect(client.id)
      closeIfUseless(application)
    }
  }

  package var blankApplications: Set<ApplicationID> { Set(applications.values.filter(\.isBlank).map(\.id)) }

  func isAwaited(_ id: ApplicationID) -> Bool { clients.values.contains { $0.waitsFor == id } }

  /// Clients that wait for the archive, longest wait first.
  func waiting(for id: ApplicationID) -> [Client] {
    clients.values.filter { $0.waitsFor == id }.sorted { $0.waitsSince < $1.waitsSince }
  }

  /// Refuses the call that waited for the archive, and handles the client's later messages.
  mutating func refuse(_ client: Client, with error: ErrorObject) {
    (client.waitsFor, client.chosenInstance) = (nil, nil)
    guard client.pendingAdoption == nil else { return giveUp(client) }
    guard !client.queue.isEmpty else { return }
    let message = client.queue.removeFirst()
    client.cancelled.remove(message.caller)
    if message.method == ImportArchive.method { dropUpload(of: client) }
    context.emit(.respond(message.caller, .error(error)))
    announceFailure(of: message, client, error)
    resume(client)
  }

  mutating func resume(_ client: Client) {
    client.waitsFor = nil
    guard client.pendingAdoption == nil else { return adopt(client) }
    if !client.isWaiting, !client.queue.isEmpty { process(client.queue.removeFirst(), client) }
    drain(client)
  }

  /// Handles the client's queued messages, and removes the client if it has left.
  mutating func drain(_ client: Client) {
    client.drain()
    if client.hasLeft, !client.isWaiting, clients[client.id] === client { leave(client) }
  }

  /// There may be room for the answer to the client's next message.
  package func hasRoom(_ client: ClientID) { clients[client]?.awaitRoom() }

  /// Handles the client's next queued message, unless it was answered already (`isRefused`).
  package mutating func goOn(_ caller: Caller, isRefused: Bool, at now: Moment) {
    context.now = now
    guard let client = clients[caller.client], client.isDraining, client.queue.first?.caller == caller else { return }
    client.isDraining = false
    let message = client.queue.removeFirst()
    if isRefused { client.cancelled.remove(caller) } else { process(message, client) }
    drain(client)
  }

  /// Does the next piece of a long turn. After the last one, waiting clients continue.
  package mutating func goOn(_ id: ApplicationID, at now: Moment) {
    context.now = now
    // Another event may have finished the turn and closed the application.
    let application = applications[id]
    if application?.takePiece() == true { return context.emit(.goOn(id)) }
    application?.beginWaiting()
    for client in waiting(for: id) { resume(client) }
    if let application { closeIfUseless(application) }
  }

  /// Everything up to the receipt's sequence is durable.
  package mutating func committed(_ id: ApplicationID, _ receipt: ArchiveReceipt, at now: Moment) {
    context.now = now
    guard let application = applications[id], !application.defers(receipt) else { return }
    application.committed(receipt)
    if application.turn.endTrouble() { for client in waiting(for: id) { resume(client) } }
  }

  /// A transaction failed, so nothing may rely on it: the application is loaded again from the archive. If the broker
  /// is stopping (`pause` is `nil`), it stays closed: the ends of sessions would be written, and fail, again and again.
  package mutating func commitFailed(_ id: ApplicationID, _ error: ErrorObject, pause: Int64?, at now: Moment) {
    context.now = now
    guard let application = applications[id] else { return }
    application.turn.fail(error, pause: pause)
    application.abandonLong(for: error)
    application.note(.archiveReopened)
    if pause == nil { application.jobs.cancelAll(for: error, in: &application.turn) }
    while pause == nil, let client = waiting(for: id).first { refuse(client, with: error) }
    if pause != nil { context.emit(.open(id, application.name, for: .writing)) }
  }

  /// Makes the answer to a decode from the row that was read.
  package mutating func decoded(_ id: ApplicationID, _ record: StateRecord, at row: SequenceNumber) -> DecodedState? {
    guard let application = applications[id]?.settled else { return nil }
    application.jobs.endRead()
    return application.decoded(record, at: row)
  }

  package mutating func readingFinished(
    _ id: ApplicationID,
    _ request: StateRequest,
    _ result: Result<[StateReading?], ArchiveError>,
    at now: Moment
  ) {
    context.now = now
    guard let application = applications[id]?.settled else {
      // After a failed transaction the archive could not be opened again.
      let error = ErrorObject.storeFailed("the archive was closed meanwhile", indeterminate: false)
      if request.caller.call != nil { context.emit(.respond(request.caller, .error(error))) }
      return
    }
    application.jobs.endRead()
    switch (result, request.purpose) {
    case (.success(let readings), .decode(let node, let isResolving)):
      let reading = readings.first ?? nil
      let sequence = request.rows.first.flatMap { application.dropProvisional(of: $0, showing: reading) }
      application.finishDecode(reading, now: sequence, node: node, isResolving: isResolving, for: request.caller)
    case (.success(let readings), .nameElements(let view)): application.name(readings.first ?? nil, of: view)
    case (.success(let readings), .restoring(let number, let purpose)):
      application.finishReading(purpose, of: number, readings)
    case (.failure, .restoring(let number, let purpose)): application.finishReading(purpose, of: number, nil)
    case (_, .delivery(let session, let batch)):
      application.take(try? result.get(), of: request.rows, for: session, batch: batch)
    case (_, .dropProvisional):
      let readings = (try? result.get()) ?? request.rows.map { _ in nil }
      for (row, reading) in zip(request.rows, readings) { application.dropProvisional(of: row, showing: reading) }
    case (.success(let readings), .decision(let round)):
      application.askWhetherToSave(readings.first ?? nil, round: round)
    case (.failure, .decision(let round)): application.askWhetherToSave(nil, round: round)
    case (.success(let readings), .reinstating(let row)):
      application.reinstate(readings.first ?? nil, row, for: request.caller)
    case (.success(let readings), .reopening(let subtree)):
      application.finishReopening(subtree, readings, for: request.caller)
    case (.success(let readings), .quarantine(let page)): application.finishPage(readings, page, for: request.caller)
    case (.failure(let error), .decode):
      for row in request.rows { application.dropProvisional(of: row, showing: nil) }
      context.emit(.respond(request.caller, .error(.storeError(error))))
    case (.failure(let error), _): context.emit(.respond(request.caller, .error(.storeError(error))))
    }
  }

  // MARK: Processes and time

  package mutating func processExited(
    _ id: ApplicationID,
    _ session: SessionID,
    _ end: ProcessEnd = ProcessEnd(),
    at now: Moment
  ) {
    context.now = now
    guard let application = applications[id]?.settled, let session = application.sessions[session] else { return }
    session.exit = end
    if session.client == nil {
      application.died(session)
      closeIfUseless(application)
    } else {
      // Messages sent before its end are read first. A descriptor that outlives the process must not delay its end.
      context.emit(.setTimer(.lost(id, session.id), milliseconds: Application.lostMilliseconds))
    }
  }

  /// Handles the answer to a `probe`: the processes in `ended` have ended, those of the other sessions live.
  package mutating func probed(
    _ id: ApplicationID,
    _ sessions: [SessionID],
    ended: [SessionID: ProcessEnd],
    _ call: ProbedCall,
    at now: Moment
  ) {
    context.now = now
    let application = applications[id]?.settled
    for session in sessions.compactMap({ application?.sessions[$0] }) {
      guard let end = ended[session.id] else { continue }
      session.exit = end
      application?.died(session)
    }
    application?.sessions.probed(sessions)
    switch call {
    case .message(let message):
      guard let client = clients[message.caller.client] else { break }
      client.isProbing = false
      // If the archive was closed meanwhile, the message opens it again.
      process(message, client)
      application?.sessions.endVerification()
      drain(client)
    case .registration(let caller, let session, let request):
      application?.finish(request, by: session, for: caller)
      application?.note(.appeared)
    case .instance(let message, let known):
      guard clients[message.caller.client] != nil, let request = try? Initialize(message.parameters) else { break }
      listInstances(of: request.application, for: message, known: known)
    }
    guard let application else { return }
    application.sessions.endVerification()
    closeIfUseless(application)
  }

  package mutating func timerFired(_ timer: TimerName, at now: Moment) {
    context.now = now
    switch timer {
    case .lost(let id, let session):
      guard let application = applications[id]?.settled, let session = application.sessions[session] else { return }
      guard session.hasExited else { return }
      application.died(session)
      closeIfUseless(application)
    case .detached(let id, let session):
      applications[id]?.settled.detachedTimerFired(session)
      if let application = applications[id]?.settled { closeIfUseless(application) }
    case .windows(let id): applications[id]?.settled.windowTimerFired()
    case .early(let id): applications[id]?.settled.earlyTimerFired()
    case .trial(let id): applications[id]?.settled.note(.trialsEnded)
    case .parent(let id, let number): applications[id]?.settled.parentTimerFired(number)
    case .exports(let id):
      if let application = applications[id]?.settled { application.jobs.exportTimerFired(in: &application.turn) }
    case .round(let id): applications[id]?.settled.roundTimerFired()
    case .changes(let id): applications[id]?.settled.changeTimerFired()
    case .invalidated(let id): applications[id]?.settled.invalidationTimerFired()
    case .pulls(let id): applications[id]?.settled.pullTimerFired()
    case .poll(let id, let session): applications[id]?.settled.pollTimerFired(session)
    case .restoration(let id): applications[id]?.settled.restorationTimerFired()
    case .elements(let id, let number): applications[id]?.settled.finishResolution(number)
    case .backup(let id): applications[id]?.settled.backupTimerFired()
    case .unused(let id): unusedTimerFired(id)
    case .leave(let id): leave(id)
    case .upload(let id): if let client = clients[id] { uploadTimerFired(of: client) }
    }
  }

  // MARK: Applications

  mutating func application(
    named name: ApplicationName,
    for client: Client,
    _ message: IncomingMessage
  ) throws(ErrorObject) -> Application? {
    if name.isSetAside { try message.requireReading(of: name) }
    if let id = applicationIDs[name], let application = applications[id] {
      application.sessions.use(in: application.turn)
      if application.isUnsettled {
        try application.turn.requireReopening()
        if message.takesOver { context.emit(.takeOver(name)) }
        wait(client, for: application, with: message)
        context.emit(.hurry(application.id))
        return nil
      }
      return application
    }
    if let row = MethodTable.rows[message.method], row.makesArchive { try row.check(message.parameters) }
    let purpose = message.purpose
    if purpose.creates, let refusal = context.refusal(name, nil) { throw refusal }
    // Only where an opening follows: another one must not use the force.
    let takesOver = message.takesOver
    if takesOver { context.emit(.takeOver(name)) }
    let application = open(name, for: purpose)
    application.turn.takesOver = takesOver
    wait(client, for: application, with: message)
    return nil
  }

  mutating func open(_ name: ApplicationName, for purpose: ArchivePurpose) -> Application {
    for application in UnusedApplications(in: self).surplus { close(application) }
    applicationCounter += 1
    let application = Application(id: applicationCounter, name: name, context: context)
    application.turn.purpose = purpose
    application.sessions.use(in: application.turn)
    (applications[application.id], applicationIDs[name]) = (application, application.id)
    context.emit(.open(application.id, name, for: purpose))
    return application
  }

  private mutating func wait(_ client: Client, for application: Application, with message: IncomingMessage) {
    counters.waits += 1
    client.waitsFor = application.id
    client.waitsSince = counters.waits
    client.queue.insert(message, at: 0)
  }

  /// - Parameter removal: removes the archive's files; a blank archive's files are removed anyway.
  mutating func close(_ application: Application, _ removal: ArchiveRemoval? = nil) {
    let removal = removal ?? (application.isBlank ? ArchiveRemoval() : nil)
    applications[application.id] = nil
    applicationIDs[application.name] = nil
    for client in clients.values {
      client.applications.remove(application.id)
      client.detached[application.id] = nil
    }
    for session in application.sessions.values { context.emit(.unwatch(application.id, session.id)) }
    context.emit(.close(application.id, removal))
    if !application.turn.archive.isEmpty { application.announce(.settled) { ArchiveClosed() } }
  }
}

/// Totals since the broker started.
package struct Counters: Sendable {
  package var connections: Int64 = 0
  package var requests: Int64 = 0
  package var encodes: Int64 = 0
  package var decodes: Int64 = 0
  package var registrations: Int64 = 0
  package var waits: Int64 = 0
}
