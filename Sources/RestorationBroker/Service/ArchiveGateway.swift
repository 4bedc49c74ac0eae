// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import Logging
package import NIOCore
package import RestorationArchive
package import RestorationTransport
package import RestorationWire

/// The traffic with the archive store: open archives, writes that wait for the disk, reads.
///
/// An object, because the store's answers arrive while others use it. Used by its delegate only; all of it runs on the
/// delegate's executor.
package final class ArchiveGateway {
  package protocol Delegate: Actor {
    var archives: ArchiveGateway { get }
    /// The gateway calls `carryOut` afterwards, unless it reports within the call that caused the event.
    func report(_ event: ArchiveEvent)
    func carryOut()
    func send(_ answer: Answer, to caller: Caller)
    func send(_ notice: WriteQueue.Notice, of id: ApplicationID)
    /// Notifications of these clients are durable, or never will be.
    func settled(_ clients: [ClientID])
    /// The broker cannot continue without breaking a promise.
    func broke(_ message: String)
  }

  let eventLoop: any EventLoop
  private let executor: EventLoopTaskExecutor
  /// The queue of the pieces of long jobs.
  let turns: TurnQueue
  package let store: any ArchiveStore
  private let lock: LockFile?
  let logger: Logger
  @exclusivity(unchecked) private(set) var sessions: [ApplicationID: ArchiveSession] = [:]
  @exclusivity(unchecked) var cache = StateCache(bytesMax: 8 << 20)
  /// Archives being closed; an archive is opened again only after that.
  private var closings: [ApplicationName: ArchiveSession] = [:]
  /// Applications with changes or reads to be passed to the archive at the end of this tick.
  private var dirty: Set<ApplicationID> = []
  private var isFlushScheduled = false
  private var notices: [(ApplicationID, WriteQueue.Notice)] = []
  package private(set) var transactions: Int64 = 0
  private var changeID: ChangeID
  /// The time from handing a transaction to the archive until it is durable.
  @exclusivity(unchecked) package private(set) var commits = Durations()
  /// Counts writes to an archive that already has too many waiting.
  package private(set) var overflows = 0
  package private(set) var isStopping = false
  private var hasClosedAll = false

  package init(
    on eventLoop: any EventLoop,
    meter: LoopMeter? = nil,
    store: any ArchiveStore,
    lock: LockFile?,
    random: (high: UInt64, low: UInt64),
    logger: Logger
  ) {
    (self.eventLoop, self.store, self.lock, self.logger) = (eventLoop, store, lock, logger)
    changeID = ChangeID(high: random.high, low: random.low)
    (executor, turns) = (EventLoopTaskExecutor(eventLoop), TurnQueue(of: eventLoop, meter))
  }

  package var count: Int { sessions.count }
  package var cachedBytes: Int { cache.bytes }
  package var isAtWork: Bool { !closings.isEmpty || sessions.values.contains { $0.isBusy || $0.upkeep.isUnderWay } }
  /// Whether paused writers may resume, because little waits for the disk.
  package var hasRoom: Bool { sessions.values.allSatisfy(\.queue.hasRoom) }

  var holdings: Holdings {
    let own = ["archives being closed": closings.count, "archives to flush": dirty.count, "notices": notices.count]
    return sessions.values.reduce(into: own) { $0.merge($1.holdings, uniquingKeysWith: +) }
  }

  var now: Int64 { eventLoop.milliseconds }

  // MARK: Opening and closing

  package func open(
    _ id: ApplicationID,
    _ name: ApplicationName,
    _ purpose: ArchivePurpose,
    for delegate: isolated some Delegate
  ) {
    let former = sessions.values.first { $0.name == name && $0.id != id }
    let session = ArchiveSession(id: id, name: name)
    let before = sessions.updateValue(session, forKey: id)
    if let before { session.takeOver(from: before) }
    cache.removeAll(of: id)
    session.opening = Task {
      defer { session.opening = nil }
      await withTaskExecutorPreference(executor) {
        await former?.idle()
        await closings[name]?.idle()
      }
      do throws(ArchiveError) {
        let opened = try await store.opened(name, for: purpose).get()
        session.lease = opened.opening.lease
        session.queue.opened(at: opened.opening.sequence)
        scheduleFlush(id, for: delegate)
        delegate.report(.opened(id, .success(opened)))
        takeEarlyEvents(of: session, for: delegate)
        // Steps of the former opening have returned meanwhile and asked for durable rows.
        for request in session.queue.readyReads() { read(id, request, after: 0, for: delegate) }
        // The former opening had maintenance to do, or has failed.
        if before != nil { scheduleUpkeep(session, at: now, for: delegate) }
      } catch {
        session.hasFailed = true
        let callers = session.queue.fail().callers + session.missing.map(\.caller).filter { $0.call != nil }
        session.missing = []
        for caller in callers { delegate.send(.error(.storeError(error)), to: caller) }
        delegate.report(.opened(id, .failure(error)))
      }
      delegate.carryOut()
      becomeIdle(session, for: delegate)
    }
  }

  /// Cancels an opening that no client waits for; a replica's remaining pages are not loaded.
  package func giveUp(_ id: ApplicationID) { sessions[id]?.opening?.cancel() }

  package func close(_ id: ApplicationID, _ removal: ArchiveRemoval? = nil, for delegate: isolated some Delegate) {
    guard let session = sessions[id] else { return }
    (session.isClosing, session.removal) = (true, removal)
    session.upkeepTimer?.cancel()
    becomeIdle(session, for: delegate)
  }

  func becomeIdle(_ session: ArchiveSession, for delegate: isolated some Delegate) {
    guard !session.isBusy else { return }
    if session.isClosing, sessions[session.id] === session { finishClosing(session, for: delegate) }
    session.resumeWaiting()
  }

  private func finishClosing(_ session: ArchiveSession, for delegate: isolated some Delegate) {
    sessions[session.id] = nil
    cache.removeAll(of: session.id)
    guard session.lease != nil || session.removal != nil else { return }
    closings[session.name] = session
    session.callBegins()
    Task {
      if let lease = session.lease { await store.close(lease) }
      if let removal = session.removal {
        let answer = await remove(session.name, removal)
        delegate.send(answer, to: removal.caller)
      }
      closings[session.name] = nil
      session.callEnded()
      session.resumeWaiting()
    }
  }

  nonisolated(nonsending) private func remove(_ name: ApplicationName, _ removal: ArchiveRemoval) async -> Answer {
    do throws(ArchiveError) {
      try await store.remove(name.description, damaged: removal.withDamaged)
      return .result(EmptyResult())
    } catch {
      logger.warning("the archive was not removed: \(error.message)", metadata: ["application": "\(name)"])
      return .error(.storeError(error))
    }
  }

  /// Makes durable what was written and answers it; maintenance ends.
  nonisolated(nonsending) package func drain() async {
    isStopping = true
    for session in sessions.values { session.upkeepTimer?.cancel() }
    while let busy = sessions.values.first(where: { $0.isBusy }) { await busy.idle() }
    for closing in closings.values { await closing.idle() }
  }

  /// Call after `drain`. Later events are not written; the next broker notices them, as after a kill. Removes `blank`
  /// archives, which have no content.
  nonisolated(nonsending) package func closeAll(removing blank: Set<ApplicationID> = []) async {
    let closing = sessions
    (sessions, hasClosedAll) = ([:], true)
    for session in closing.values {
      guard let lease = session.lease else { continue }
      await store.close(lease)
      if blank.contains(session.id) { _ = await remove(session.name, ArchiveRemoval()) }
    }
  }

  // MARK: Writing

  package func write(_ change: ArchiveChange, to id: ApplicationID, for delegate: isolated some Delegate) {
    if let session = sessions[id] {
      if case .state(var record) = change {
        // Copies a slice of a frame, so that the frame can be freed at once. Other texts start at the beginning of
        // their array.
        if record.text.startIndex > 0 { record.text = Array(record.text)[...] }
        cache.insert(record, sequence: session.queue.tail + 1, of: id)
        session.queue.add(.state(record))
      } else {
        session.queue.add(change)
      }
      noteIfTooMuchWaits(session)
    }
    scheduleFlush(id, for: delegate)
  }

  private func noteIfTooMuchWaits(_ session: ArchiveSession) {
    if session.queue.isOverfull { overflows &+= 1 }
  }

  /// Answers once the change with this number is durable, or with an error if it cannot be (R15).
  package func respond(
    _ answer: Answer,
    to caller: Caller,
    after sequence: SequenceNumber,
    in id: ApplicationID,
    for delegate: isolated some Delegate
  ) {
    if hasClosedAll { return delegate.send(.error(.shuttingDown()), to: caller) }
    // No caller awaits the outcome of a notification.
    guard caller.call != nil, let session = sessions[id], session.queue.durable < sequence else {
      return delegate.send(answer, to: caller)
    }
    session.queue.await(WriteQueue.Waiting(after: sequence, caller: caller, answer: answer))
    hurry(session.id, for: delegate)
  }

  /// Holds a notice back until `sendNotices`.
  package func add(_ notice: WriteQueue.Notice, of id: ApplicationID) { notices.append((id, notice)) }

  /// Call after all changes of an event were written: sends its notices as soon as the changes are durable. Returns
  /// whether there were any.
  package func sendNotices(for delegate: isolated some Delegate) -> Bool {
    guard !notices.isEmpty else { return false }
    for (id, notice) in notices {
      if let session = sessions[id], session.queue.durable < session.queue.tail {
        session.queue.await(notice)
        noteIfTooMuchWaits(session)
      } else if notice.followsSuccess {
        delegate.send(notice, of: id)
      }
    }
    notices.removeAll(keepingCapacity: true)
    return true
  }

  /// Call after the effects of a client's notification were written. Reports the client as `settled` once for each
  /// archive in which they are not durable yet, and returns the number of these archives.
  package func awaitSettling(of client: ClientID) -> Int {
    var count = 0
    for session in dirty.compactMap({ sessions[$0] }) where session.queue.durable < session.queue.tail {
      session.queue.await(client)
      count += 1
    }
    return count
  }

  /// Schedules the end of the tick for this archive, so that writes of many connections share a transaction.
  func scheduleFlush(_ id: ApplicationID, for delegate: isolated some Delegate) {
    dirty.insert(id)
    guard !isFlushScheduled else { return }
    isFlushScheduled = true
    eventLoop.execute {
      delegate.assumeIsolated { $0.archives.flush(for: $0) }
    }
  }

  private func flush(for delegate: isolated some Delegate) {
    isFlushScheduled = false
    let due = dirty
    dirty.removeAll(keepingCapacity: true)
    for session in due.compactMap({ sessions[$0] }) {
      commitNext(session, for: delegate)
      readMissing(session, for: delegate)
    }
  }

  private func commitNext(_ session: ArchiveSession, for delegate: isolated some Delegate) {
    let begin = eventLoop.now
    guard !session.isPaused(at: begin.milliseconds), let lease = session.lease,
      case .commit(let batch, let expecting) = session.queue.next()
    else { return }
    transactions += 1
    let held = session.held.sequences + session.queue.awaitedSequences
    changeID = changeID.next
    Task { [changeID] in
      do throws(ArchiveError) {
        let receipt = try await store.apply(
          batch,
          lease: lease,
          expecting: expecting,
          changeID: changeID,
          holding: held
        )
        let end = eventLoop.now
        commits.add(nanoseconds: (end - begin).nanoseconds)
        // The replica may have answered after an earlier transaction had waited too long.
        guard !session.hasFailed else { return }
        endCommit(session, receipt, for: delegate)
        scheduleUpkeep(session, at: end.milliseconds, for: delegate)
      } catch {
        // After a failure, the batches behind it count as failed too; that was handled then.
        if !session.hasFailed { failCommit(session, error, for: delegate) }
      }
    }
  }

  private func endCommit(_ session: ArchiveSession, _ receipt: ArchiveReceipt, for delegate: isolated some Delegate) {
    session.failed = nil
    for waiting in session.queue.committed(receipt) { delegate.send(waiting.answer, to: waiting.caller) }
    delegate.settled(session.queue.settledClients())
    for notice in session.queue.readyNotices() { delegate.send(notice, of: session.id) }
    for request in session.queue.readyReads() { read(session.id, request, after: 0, for: delegate) }
    for reader in session.queue.readyReaders() { reader(nil) }
    delegate.report(.committed(session.id, receipt))
    delegate.carryOut()
    becomeIdle(session, for: delegate)
  }

  /// Fails everything that is not durable; the core restarts from the durable state.
  private func failCommit(_ session: ArchiveSession, _ error: ArchiveError, for delegate: isolated some Delegate) {
    let isFatal = error.kind.isFatal
    if session.isToLogFailure(at: now) || isFatal {
      logger.report(.storeFailed, .error, error.message, ["application": "\(session.name)"])
    }
    let refusal = ErrorObject.commitFailed(error)
    let answer = Answer.error(refusal)
    let failure = session.queue.fail()
    for caller in failure.callers { delegate.send(answer, to: caller) }
    delegate.settled(failure.clients)
    for notice in failure.notices { delegate.send(notice, of: session.id) }
    session.hasFailed = true
    // If space ran out, the next transaction may free some.
    session.held.expire(at: now)
    if isFatal {
      // A failed sync cannot be repeated: the kernel may have dropped the pages. A new process reads what is on disk.
      isStopping = true
      for reader in failure.readers { reader(error) }
      return delegate.broke(error.message)
    }
    pause(session, for: delegate)
    delegate.report(.commitFailed(session.id, refusal, pause: isStopping ? nil : ArchiveSession.pause))
    for reader in failure.readers { reader(error) }
    delegate.carryOut()
    becomeIdle(session, for: delegate)
  }

  /// Another program has changed the files: all knowledge about the archive is invalid, even without a write.
  func failIfChanged(_ session: ArchiveSession, _ error: ArchiveError, for delegate: isolated some Delegate) {
    guard error.kind == .changed, !session.hasFailed, sessions[session.id] === session else { return }
    failCommit(session, error, for: delegate)
  }

  private func pause(_ session: ArchiveSession, for delegate: isolated some Delegate) {
    let id = session.id
    session.failed = now
    for pause in [ArchiveSession.pause, ArchiveSession.longPause] {
      eventLoop.scheduleTask(in: .milliseconds(pause)) {
        delegate.assumeIsolated { $0.archives.scheduleFlush(id, for: $0) }
      }
    }
  }

  /// A client waits for the next transaction: send it without delay.
  package func hurry(_ id: ApplicationID, for delegate: isolated some Delegate) {
    guard let session = sessions[id], session.failed != nil else { return }
    session.isHurried = true
    scheduleFlush(id, for: delegate)
  }
}
