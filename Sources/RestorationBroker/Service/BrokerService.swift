// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import Logging
package import NIOCore
package import RestorationArchive
package import RestorationTransport
package import RestorationWire

/// Carries out what the core decides: sockets on one side, archives on the other.
///
/// It lives on one event loop, which is its executor, so that a message is handled within the read that brought it.
package actor BrokerService {
  nonisolated let eventLoop: any EventLoop
  /// Stored, because it is asked for with every message.
  nonisolated package let unownedExecutor: UnownedSerialExecutor

  let store: any ArchiveStore
  /// Held for as long as the archives are used.
  private let archivesLock: LockFile?
  let watcher: ProcessWatcher
  /// Nil where the broker runs without one.
  let manager: (any ServiceManager)?
  let logger: Logger
  var clock: BrokerClock
  let settings: CoreSettings
  var core: BrokerCore
  var connections: [ClientID: Connection] = [:]
  var archives: [ApplicationID: OpenArchive] = [:]
  var processes: [SessionKey: WatchedProcess] = [:]
  /// Who waits to hear how a process ended, by number.
  var whenEndKnown: [Int: CheckedContinuation<ProcessEnd, Never>] = [:]
  var endCounter = 0
  var timers: [TimerName: Scheduled<Void>] = [:]
  /// Calls to clients that have not ended, by the connection's id of the call.
  var calls: [ClientID: [Int: PendingCall]] = [:]
  var cache = StateCache(bytesMax: 8 << 20)
  /// Archives on their way to be closed; the same one is opened again only after that.
  var closings: [ApplicationName: Task<Void, Never>] = [:]
  /// Applications with changes or reads that the end of this tick takes to the archive.
  var dirty: Set<ApplicationID> = []
  private var isFlushScheduled = false
  private var effects: [Effect] = []
  /// Notifications of the event being carried out.
  var notices: [(ApplicationID, WriteQueue.Notice)] = []
  /// Events on their way to subscribers.
  var outlet = EventOutlet()
  private var isCarryingOut = false
  /// Clients that are not read: for writing faster than the disk, or because an archive opens.
  var pausedWriters: Set<ClientID> = []
  var waitingClients: Set<ClientID> = []
  /// The message at hand has added to an archive for which too much waits already.
  private var hasWrittenTooFast = false
  var isStopping = false
  /// Connections of clients with something that waits no more, until the effects of that are carried out.
  private var released: [Connection] = []
  /// Connections go on in another process when this one ends.
  let handsConnectionsOver: Bool
  /// Waits until the last save rounds are over (R33).
  private var whenSaved: CheckedContinuation<Void, Never>?
  /// Waits to hear whether the user's session ends.
  private var whenSessionEndKnown: CheckedContinuation<Bool, Never>?
  /// Units that the manager is starting.
  var unitStarts = 0
  var whenFatal: (@Sendable (String) -> Void)?
  var transactions: Int64 = 0
  /// The notification that is being handled, for the log.
  var notification: (sender: ClientID, method: String)?
  /// Told after each event; nil where nobody wants to know.
  var activity: ActivityMonitor?

  /// A session of an application, as the service keeps its process.
  struct SessionKey: Hashable {
    let application: ApplicationID
    let session: SessionID
  }

  /// A call to a client, as the core knows it.
  struct PendingCall: Hashable {
    let application: ApplicationID
    let number: CallNumber
  }

  struct WatchedProcess {
    let handle: ProcessHandle
    let token: ProcessWatcher.Token
    /// The unit it belongs to.
    let unit: String?
  }

  /// - Parameter whenFatal: called when going on would break a promise; the process is to end with an error.
  package init(
    eventLoop: any EventLoop,
    store: any ArchiveStore,
    archivesLock: LockFile?,
    watcher: ProcessWatcher,
    handsConnectionsOver: Bool = false,
    manager: (any ServiceManager)? = nil,
    limits: Limits,
    settings: CoreSettings,
    logger: Logger,
    whenFatal: @escaping @Sendable (String) -> Void
  ) {
    self.eventLoop = eventLoop
    self.unownedExecutor = eventLoop.executor.asUnownedSerialExecutor()
    self.store = store
    self.archivesLock = archivesLock
    self.watcher = watcher
    self.handsConnectionsOver = handsConnectionsOver
    self.manager = manager
    self.logger = logger
    self.settings = settings
    self.clock = BrokerClock()
    self.core = BrokerCore(limits: limits, settings: settings)
    self.whenFatal = whenFatal
  }

  /// Lets the core handle one event and carries out what it decided.
  func handle(_ event: (inout BrokerCore, Moment) -> Void) {
    event(&core, clock.now)
    carryOut()
  }

  /// Carries out effects until there are none; an effect that brings a further event adds to the list.
  private func carryOut() {
    guard !isCarryingOut else { return }
    isCarryingOut = true
    defer { isCarryingOut = false }
    while true {
      core.swapEffects(with: &effects)
      guard !effects.isEmpty else {
        guard !notices.isEmpty else { break }
        sendNotices()
        continue
      }
      for effect in effects { perform(effect) }
      effects.removeAll(keepingCapacity: true)
    }
    if !released.isEmpty { settleReleased() }
    if let waiting = whenSaved, !core.isSaving {
      whenSaved = nil
      waiting.resume()
    }
    if let activity { activity.noteEvent(of: self) }
  }

  /// Has the archives of `dirty` looked after at the end of the tick: what many connections wrote shares a transaction.
  func scheduleFlush(_ application: ApplicationID) {
    dirty.insert(application)
    guard !isFlushScheduled else { return }
    isFlushScheduled = true
    eventLoop.execute {
      self.assumeIsolated { $0.flush() }
    }
  }

  private func flush() {
    isFlushScheduled = false
    let due = dirty
    dirty.removeAll(keepingCapacity: true)
    for application in due {
      commitNext(application)
      readMissing(application)
    }
  }

  // MARK: Back-pressure

  /// Notifications are not counted as calls in flight, so the memory of what they leave waiting for the disk is: beyond
  /// this many bytes their sender is not read, until half of them are durable.
  private static let pendingBytesPause = 8 << 20

  /// Adds a change to the next transaction, and its state to the cache.
  func write(_ change: ArchiveChange, to id: ApplicationID) {
    if let archive = archives[id] {
      if case .state(var record) = change {
        // The text is a slice of a frame; with a copy of its own the frame is free for the next one at once.
        record.text = Array(record.text)[...]
        cache.insert(record, sequence: archive.queue.tail + 1, of: id)
        archive.queue.add(.state(record))
      } else {
        archive.queue.add(change)
      }
      noteIfTooMuchWaits(archive)
    }
    scheduleFlush(id)
  }

  func noteIfTooMuchWaits(_ archive: OpenArchive) {
    if archive.queue.pendingBytes > Self.pendingBytesPause { hasWrittenTooFast = true }
  }

  private func pauseIfWritingTooFast(_ client: ClientID) {
    guard hasWrittenTooFast, pausedWriters.insert(client).inserted else { return }
    connections[client]?.setInputPaused(true)
  }

  /// Called when something has become durable, or never will.
  func resumeWriters() {
    guard !pausedWriters.isEmpty, !isStopping,
      archives.values.allSatisfy({ $0.queue.pendingBytes <= Self.pendingBytesPause / 2 })
    else { return }
    for client in pausedWriters where !waitingClients.contains(client) {
      connections[client]?.setInputPaused(false)
    }
    pausedWriters = []
  }

  /// A client has sent much behind a call that waits for an archive to open, or that call goes on.
  func setWaiting(_ client: ClientID, _ isWaiting: Bool) {
    if isWaiting { waitingClients.insert(client) } else { waitingClients.remove(client) }
    connections[client]?.setInputPaused(isWaiting || pausedWriters.contains(client) || isStopping)
  }

  // MARK: Ending

  /// Saves what clients have (R33); afterwards no call waits for anything but what is being done.
  package func prepareToStop() async {
    await withCheckedContinuation { waiting in
      whenSaved = waiting
      handle { $0.saveBeforeEnd(at: $1) }
    }
    if await isUserSessionEnding() { handle { $0.sessionOfUserEnds(at: $1) } }
    handle { $0.endWaiting(at: $1) }
  }

  /// A manager that does not say so soon does not hold up the end: the user's session is taken to go on.
  private func isUserSessionEnding() async -> Bool {
    guard let manager else { return false }
    let limit = eventLoop.scheduleTask(in: .seconds(2)) {
      self.assumeIsolated { $0.tellWhetherSessionEnds(false) }
    }
    defer { limit.cancel() }
    return await withCheckedContinuation { waiting in
      whenSessionEndKnown = waiting
      askWhetherSessionEnds(manager)
    }
  }

  private func askWhetherSessionEnds(_ manager: any ServiceManager) {
    Task { tellWhetherSessionEnds(await manager.isStopping()) }
  }

  private func tellWhetherSessionEnds(_ ends: Bool) {
    whenSessionEndKnown?.resume(returning: ends)
    whenSessionEndKnown = nil
  }

  /// Makes durable what was written, answers it, and closes all archives.
  package func stop() async {
    isStopping = true
    for connection in connections.values { connection.setInputPaused(true) }
    for archive in archives.values { archive.upkeep?.cancel() }
    while let busy = archives.values.first(where: { $0.isBusy }) {
      await idle(busy)
    }
    for closing in closings.values { await closing.value }
    tellAllLosses()
    for archive in archives.values { if let lease = archive.lease { await store.close(lease) } }
    archives = [:]
    for timer in timers.values { timer.cancel() }
    for process in processes.values { process.token.cancel() }
    timers = [:]
    processes = [:]
    forgetEnds()
  }
}

/// An application's archive, as the service keeps it.
final class OpenArchive {
  let id: ApplicationID
  let name: ApplicationName
  /// The core needs it no more; it is closed as soon as nothing is under way.
  var isClosing = false
  var lease: ArchiveLease?
  var hasFailed = false
  /// When a transaction failed last, in monotonic milliseconds, and whether that was soon after another failure.
  var failed: Int64?
  var reopensLate = false
  var queue = WriteQueue()
  /// Reads that the cache had no answer to; one call of the store brings all of them.
  var missing: [StateRequest] = []
  /// Sequences that pages are still read at, with the time until which they are kept.
  var held: [(sequence: SequenceNumber, until: Int64)] = []
  var upkeep: Scheduled<Void>?
  var isMaintaining = false
  /// Decodes so far, and how many there were when upkeep was last put off.
  var reads = 0
  var readsAtUpkeep = 0
  var upkeepDeferrals = 0
  /// Connections with notifications whose effects are durable with that change.
  var unsettled: [(after: SequenceNumber, connection: Connection)] = []
  /// Calls of the store that have not come back.
  var readsUnderWay = 0
  var whenIdle: [CheckedContinuation<Void, Never>] = []

  /// Somebody still waits for an answer of the store.
  var isBusy: Bool { !queue.isIdle || readsUnderWay > 0 || !missing.isEmpty || lease == nil && !hasFailed }

  init(id: ApplicationID, name: ApplicationName) {
    self.id = id
    self.name = name
  }

  /// Connections whose notifications are durable, or never will be, do not wait for it any more.
  func settle(hasFailed: Bool = false) {
    guard !unsettled.isEmpty else { return }
    for (after, connection) in unsettled where hasFailed || after <= queue.durable { connection.countUnsettled(-1) }
    unsettled.removeAll { hasFailed || $0.after <= queue.durable }
  }

  /// Whoever still waited for the archive as it was opened before now waits for this one, and for it alone.
  func takeWaiting(from before: OpenArchive) {
    swap(&whenIdle, &before.whenIdle)
    swap(&missing, &before.missing)
  }
}

extension BrokerService: ConnectionDelegate {
  nonisolated package func connectionOpened(_ connection: Connection) {
    assumeIsolated { service in
      let id = connection.id.value
      service.connections[id] = connection
      let process = ClientProcess(connection.peer)
      let unit = service.unit(of: connection.peer.process)
      service.handle { $0.connected(id, process: process, unit: unit, at: $1) }
    }
  }

  nonisolated package func connectionAdopted(_ connection: Connection, context: [UInt8], afterKill: Bool) {
    assumeIsolated { service in
      let id = connection.id.value
      service.connections[id] = connection
      let process = ClientProcess(connection.peer)
      service.handle { $0.adopted(id, process: process, record: context, afterKill: afterKill, at: $1) }
    }
  }

  nonisolated package func received(_ delivery: Conversation.Delivery, from connection: Connection) {
    // A function, because a closure would check once more by itself that this is the right executor.
    func take(on service: isolated BrokerService) { service.take(delivery, of: connection) }
    assumeIsolated(take)
  }

  private func take(_ delivery: Conversation.Delivery, of connection: Connection) {
    let client = connection.id.value
    hasWrittenTooFast = false
    defer { pauseIfWritingTooFast(client) }
    var message: IncomingMessage
    switch delivery {
    case .request(let call, let request):
      let caller = Caller(client: client, call: call)
      message = IncomingMessage(caller: caller, method: request.method, parameters: request.parameters)
    case .notification(let notification):
      let caller = Caller(client: client, call: nil)
      message = IncomingMessage(caller: caller, method: notification.method, parameters: notification.parameters)
      if notification.method == CancelRequest.method { return cancel(notification.parameters, of: client) }
      if let fault = notification.fault {
        logFailure(of: client, fault, method: notification.method)
        handle { $0.refused(message, fault, at: $1) }
        return
      }
    case .response(let callID, let outcome): return answered(callID, CallAnswer(outcome), by: client)
    case .brokenAnswer(let callID, let code, let reason):
      logger.warning("an answer is \(reason)", metadata: ["pid": "\(connection.peer.pid)"])
      return answered(callID, .error(code: code, message: "the answer is \(reason)"), by: client)
    case .closeAfterOutput: return
    }
    message.canBeCalled = connection.canBeCalled
    if message.caller.call == nil { notification = (client, message.method) }
    core.received(message, at: clock.now)
    carryOut()
    notification = nil
    if handsConnectionsOver, message.caller.call == nil { awaitSettling(connection) }
  }

  /// What the client has sent and waited for is done, and holds its connection only until it is durable.
  func release(_ client: ClientID) {
    guard handsConnectionsOver, let connection = connections[client] else { return }
    released.append(connection)
  }

  /// Called when all effects are carried out: what those brought about that were released is known now.
  private func settleReleased() {
    for connection in released {
      awaitSettling(connection)
      connection.countUnsettled(-1)
    }
    released.removeAll(keepingCapacity: true)
  }

  /// Nothing tells the sender of a notification when its effects are durable, so its connection is not idle before.
  private func awaitSettling(_ connection: Connection) {
    for archive in dirty.compactMap({ archives[$0] }) where archive.queue.durable < archive.queue.tail {
      archive.unsettled.append((archive.queue.tail, connection))
      connection.countUnsettled(1)
    }
  }

  nonisolated package func callsAbandoned(_ callIDs: [Int], by connection: Connection) {
    assumeIsolated { $0.abandoned(callIDs, by: connection.id.value) }
  }

  nonisolated package func hasRoomForOffers(_ connection: Connection) {
    assumeIsolated { $0.tellLosses(on: connection) }
  }

  nonisolated package func connectionClosed(_ connection: Connection, reason: CloseReason) {
    assumeIsolated { service in
      let id = connection.id.value
      service.connections[id] = nil
      service.pausedWriters.remove(id)
      service.waitingClients.remove(id)
      service.outlet.forget(id)
      service.calls[id] = nil
      if reason == .outputOverflow {
        service.logger.warning(
          "a client did not read its notifications and was cut",
          metadata: ["pid": "\(connection.peer.pid)"]
        )
      }
      service.handle { $0.disconnected(id, at: $1) }
    }
  }
}

extension ClientProcess {
  /// The process at the other end of a connection; nil where it cannot be told apart from a later one of its number.
  init?(_ peer: PeerCredentials) {
    guard let identity = peer.process?.identity else { return nil }
    self.init()
    (pid, uid) = (Int64(peer.pid), Int64(peer.uid))
    (startTicks, bootID) = (Int64(clamping: identity.startTicks), identity.bootID)
  }

  var identity: ProcessIdentity {
    ProcessIdentity(pid: Int32(clamping: pid), startTicks: UInt64(clamping: startTicks), bootID: bootID)
  }
}
