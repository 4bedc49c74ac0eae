// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import Logging
package import NIOCore
package import RestorationArchive
package import RestorationTransport
package import RestorationWire

/// The traffic with the archive store: what is open, what waits for the disk, what is read from it.
///
/// An object, because what it asks of the store comes back while others use it. Used by its delegate only, on whose
/// executor all of it runs.
package final class ArchiveGateway {
  package protocol Delegate: Actor {
    var archives: ArchiveGateway { get }
    /// `carryOut` follows if this comes later than in the call that asked for it.
    func report(_ event: ArchiveEvent)
    func carryOut()
    func send(_ answer: Answer, to caller: Caller)
    func send(_ notice: WriteQueue.Notice, of id: ApplicationID)
    /// Notifications of these clients are durable, or never will be.
    func settled(_ clients: [ClientID])
    /// To continue would break a promise.
    func broke(_ message: String)
  }

  let eventLoop: any EventLoop
  /// Resumes what has waited.
  private let executor: EventLoopTaskExecutor
  /// Where pieces of long work wait.
  let turns: TurnQueue
  package let store: any ArchiveStore
  /// Held for as long as the archives are used.
  private let lock: LockFile?
  let logger: Logger
  @exclusivity(unchecked) private(set) var sessions: [ApplicationID: ArchiveSession] = [:]
  @exclusivity(unchecked) var cache = StateCache(bytesMax: 8 << 20)
  /// Archives on their way to be closed; the same one is opened again only after that.
  private var closings: [ApplicationName: ArchiveSession] = [:]
  /// Applications with changes or reads that the end of this tick takes to the archive.
  private var dirty: Set<ApplicationID> = []
  private var isFlushScheduled = false
  /// Notices of the event being carried out.
  private var notices: [(ApplicationID, WriteQueue.Notice)] = []
  package private(set) var transactions: Int64 = 0
  /// Of the last one.
  private var changeID: ChangeID
  /// How long each transaction took from when the archive was given it until it was durable.
  @exclusivity(unchecked) package private(set) var commits = Durations()
  /// Counts what was added to an archive for which too much waits already.
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
  /// So little waits for the disk that those who wrote too fast may go on.
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
        // Steps of before have come back meanwhile, and asked for what is durable.
        for request in session.queue.readyReads() { read(id, request, after: 0, for: delegate) }
        // What was opened before had upkeep to do, or has failed.
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

  /// No client waits any longer for it to be opened. Pages that are still to come from a replica are not fetched then.
  package func giveUp(_ id: ApplicationID) { sessions[id]?.opening?.cancel() }

  /// Closes an archive once everything written to it is durable and answered.
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

  /// Makes durable what was written and answers it; upkeep ends.
  nonisolated(nonsending) package func drain() async {
    isStopping = true
    for session in sessions.values { session.upkeepTimer?.cancel() }
    while let busy = sessions.values.first(where: { $0.isBusy }) { await busy.idle() }
    for closing in closings.values { await closing.idle() }
  }

  /// After `drain`. What happens meanwhile is not written: the next broker finds it out, as after a kill.
  ///
  /// - Parameter blank: archives without content, which are removed.
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

  /// Adds a change to the next transaction, and its state to the cache.
  package func write(_ change: ArchiveChange, to id: ApplicationID, for delegate: isolated some Delegate) {
    if let session = sessions[id] {
      if case .state(var record) = change {
        // A slice of a frame gets its own copy, so that the frame is free at once. Others begin where their array does.
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

  /// Answers once the change with this number is durable; with an error if it cannot be (R15).
  package func respond(
    _ answer: Answer,
    to caller: Caller,
    after sequence: SequenceNumber,
    in id: ApplicationID,
    for delegate: isolated some Delegate
  ) {
    if hasClosedAll { return delegate.send(.error(.shuttingDown()), to: caller) }
    // Nobody waits for what becomes of a notification.
    guard caller.call != nil, let session = sessions[id], session.queue.durable < sequence else {
      return delegate.send(answer, to: caller)
    }
    session.queue.await(WriteQueue.Waiting(after: sequence, caller: caller, answer: answer))
    hurry(session.id, for: delegate)
  }

  /// Keeps what clients are to be told until `sendNotices`.
  package func add(_ notice: WriteQueue.Notice, of id: ApplicationID) { notices.append((id, notice)) }

  /// Sends what clients are told when it has come true on disk; called when an event's changes are all written.
  /// Returns whether there was anything.
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

  /// The client has sent a notification whose effects are written: reports it `settled` once for each archive in which
  /// they are not durable. Returns how many these are.
  package func awaitSettling(of client: ClientID) -> Int {
    var count = 0
    for session in dirty.compactMap({ sessions[$0] }) where session.queue.durable < session.queue.tail {
      session.queue.await(client)
      count += 1
    }
    return count
  }

  /// Has the archives of `dirty` looked after at the end of the tick: what many connections wrote shares a transaction.
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
        // The replica may have answered when one before it had waited for too long.
        guard !session.hasFailed else { return }
        endCommit(session, receipt, for: delegate)
        scheduleUpkeep(session, at: end.milliseconds, for: delegate)
      } catch {
        // After a failure the batches handed over behind it count as failed too; that has been dealt with.
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
    for job in session.queue.readyJobs() { carryOut(session.id, job, after: 0, for: delegate) }
    delegate.report(.committed(session.id, receipt))
    delegate.carryOut()
    becomeIdle(session, for: delegate)
  }

  /// What was not durable before never will be; the core starts again from what is.
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
    // If it failed for lack of space, the next one can make more.
    session.held.expire(at: now)
    if isFatal {
      // A failed sync cannot be repeated: the kernel may have dropped the pages. A new process reads what is there.
      isStopping = true
      for job in failure.jobs { delegate.send(answer, to: job.caller) }
      return delegate.broke(error.message)
    }
    pause(session, for: delegate)
    delegate.report(.commitFailed(session.id, refusal, pause: isStopping ? nil : ArchiveSession.pause))
    // After that: what waits for their end must not begin before the archive is open again.
    for job in failure.jobs { delegate.report(.carriedOut(session.id, job, .failure(.archive(error)))) }
    delegate.carryOut()
    becomeIdle(session, for: delegate)
  }

  /// Others changed the files: what is known of the archive does not hold for them, even if nothing was being written.
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

  /// A client waits until a transaction has succeeded or failed.
  package func hurry(_ id: ApplicationID, for delegate: isolated some Delegate) {
    guard let session = sessions[id], session.failed != nil else { return }
    session.isHurried = true
    scheduleFlush(id, for: delegate)
  }
}
