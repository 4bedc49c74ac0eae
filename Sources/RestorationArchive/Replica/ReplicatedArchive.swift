// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// One archive that follows its user: asks, reads and writes what `LeaseHolding`, `CatchingUp` and `ShippingQueue`
/// decide.
///
/// Invariants:
/// 1. Openings, closings and removals follow each other (`begin`, `end`).
/// 2. What writers look at (`gate`) changes after the observer has been told.
/// 3. An answer to what was sent counts only if the queue is still the one that sent it (`era`).
actor ReplicatedArchive {
  struct Gate {
    var holding: LeaseHolding
    /// Nothing may be written until the replica answers.
    var isAway = false
    /// The lease is being asked for.
    var isAsking = false
    var isForced = false
    /// Transactions that have been begun and are not answered.
    var unanswered = 0
    var committed: CommittedTransactions
    /// The replica does not have everything: what it has, when some of it has arrived last, since when it is so, and
    /// how much it lacks.
    var progress: (stored: SequenceNumber, time: Int64, since: Int64, lag: SequenceNumber)?
  }

  nonisolated let application: String
  nonisolated let context: ReplicationContext
  nonisolated let gate: Mutex<Gate>
  var holding: LeaseHolding
  var queue: ShippingQueue
  /// Counts queues, and their halts.
  var era = 0
  /// Counts the copies that were begun to be sent.
  var copies = 0
  /// As it was read or kept last.
  var note = ReplicaNote()
  /// The store's, of the copy; `nil` while that is closed.
  var lease: ArchiveLease?
  /// The UUID of the copy; `nil` if it does not exist.
  var copy: String?
  /// The copy as it was opened, until something is done with it.
  var prepared: ArchiveOpening?
  /// What was found when the copy was opened.
  var damage: String?
  /// The host that waits for the archive.
  var wantedBy: String?
  /// Who waits until a transaction is stored.
  private var waiting: [(upto: SequenceNumber, latch: Latch)] = []
  /// Opened when everything was sent.
  var drained: Latch?
  private var backlog = 0
  private var alarm: Int64?
  private var claimTime: Int64?
  var journal = ReplicaJournal()
  private var isBusy = false
  private var turns: [Latch] = []

  nonisolated var unownedExecutor: UnownedSerialExecutor { context.executor.asUnownedSerialExecutor() }

  init(_ application: String, _ context: ReplicationContext) {
    (self.application, self.context) = (application, context)
    let holding = LeaseHolding(context.settings.term)
    self.holding = holding
    gate = Mutex(Gate(holding: holding, committed: CommittedTransactions(context.settings)))
    queue = ShippingQueue(context.settings.promise, limits: context.settings.limits)
  }

  nonisolated var now: Int64 { context.now }
  nonisolated var base: any ArchiveCarrying { context.base }
  nonisolated var held: ReplicaLease? { gate.withLock { $0.holding.lease } }
  nonisolated var isAsking: Bool { gate.withLock { $0.isAsking } }

  /// So long is awaited that some of what is sent arrives.
  static let progressPatience: Int64 = 60_000

  nonisolated var isShipping: Bool {
    gate.withLock { $0.progress }.map { now < $0.time + Self.progressPatience } ?? false
  }

  nonisolated func takeOver() { gate.withLock { $0.isForced = true } }

  nonisolated func start(_ body: @escaping @Sendable (ReplicatedArchive) async -> Void) {
    context.start { [weak self] in if let self { await body(self) } }
  }

  // MARK: One after the other

  func begin() async {
    guard isBusy else { return isBusy = true }
    let latch = Latch()
    turns.append(latch)
    _ = await latch.wait()
  }

  func end() { if turns.isEmpty { isBusy = false } else { turns.removeFirst().open() } }

  func wait(until time: Int64) async { _ = await context.latch(openingAt: time).wait() }

  // MARK: Writing

  /// Fails unless the archive may be written now; `finished` follows if it may.
  ///
  /// Whoever waits for the archive is told one error. If another transaction is under way, it may be stored already, so
  /// that nothing definite can be said.
  nonisolated func begun() throws(ArchiveError) {
    let (permission, isAway, isFirst) = gate.withLock { gate in
      gate.unanswered += 1
      return (gate.holding.permission(at: now), gate.isAway, gate.unanswered == 1)
    }
    var error = obstacle(permission)
    if error == nil, isAway, context.settings.promise == .replica {
      error = ArchiveError(.definite, "\(application): the fleet's store does not answer; try again when it does")
    }
    guard let error else { return }
    finished()
    // A machine that has slept may have it still.
    if permission == .lapsed { context.leases.renew() }
    throw error.kind == .definite && !isFirst ? ArchiveError(.unconfirmed, error.message) : error
  }

  nonisolated func finished() { gate.withLock { $0.unanswered -= 1 } }

  private nonisolated func obstacle(_ permission: LeaseHolding.Permission) -> ArchiveError? {
    switch permission {
    case .granted: nil
    case .closed: ArchiveError(.definite, "\(application) is not open; open it")
    case .lapsed:
      ArchiveError(.definite, "\(application): nothing was heard of the fleet's store for too long; reconnect to it")
    case .lost(let host): lost(to: host)
    }
  }

  nonisolated func lost(to host: String?) -> ArchiveError {
    ArchiveError(.lost(host: host), "\(host ?? "another host") has taken over \(application); end it there")
  }

  /// Has a transaction sent. Returns at once, or if that is the promise, when the replica has it.
  nonisolated(nonsending) func ship(_ transaction: CommittedTransaction) async throws(ArchiveError) {
    let (step, permission) = gate.withLock { gate in
      (gate.committed.add(transaction, at: now), gate.holding.permission(at: now))
    }
    switch context.settings.promise {
    case .disk:
      perform(step)
      // The process may have been frozen since it began, and have taken in what came later.
      switch permission {
      case .granted: break
      case .closed, .lapsed:
        context.leases.renew()
        throw unconfirmed
      case .lost(let host): throw lost(to: host)
      }
    case .replica: if let error = await stored(transaction.upto) { throw error }
    }
  }

  nonisolated private func perform(_ step: CommittedTransactions.Step) {
    switch step {
    case .none: break
    case .take: start { await $0.takeCommitted() }
    case .takeLater(let milliseconds):
      context.clock.wake(milliseconds) { [weak self] in
        guard let self else { return }
        perform(gate.withLock { $0.committed.timePassed(at: self.now) })
      }
    }
  }

  func takeCommitted() {
    let transactions = encodedTransactions()
    guard !transactions.isEmpty else { return }
    perform(queue.add(transactions, at: now))
    guard context.backlog.withLock({ $0 }) > context.settings.backlogBytesMax else { return }
    queue.drop()
    publish()
  }

  private func encodedTransactions() -> [ReplicaTransaction] {
    gate.withLock { $0.committed.take(at: now) }.map { $0.encoded(shared: context.shared) }
  }

  /// Why it is not known that the replica has everything up to here; `nil` when it has.
  private func stored(_ sequence: SequenceNumber) async -> ArchiveError? {
    takeCommitted()
    guard queue.stored < sequence else { return nil }
    switch holding.permission(at: now) {
    case .granted, .lapsed: break
    case .closed: return unconfirmed
    case .lost: return obstacle(holding.permission(at: now))
    }
    guard !queue.isAway else { return unconfirmed }
    let latch = Latch()
    waiting.append((sequence, latch))
    return await latch.wait()
  }

  private nonisolated var unconfirmed: ArchiveError {
    let text = "\(application): the fleet's store has not confirmed what was written; it is kept here"
    return ArchiveError(.unconfirmed, text)
  }

  /// Returns when the replica has everything that is committed now, or at the deadline: how many changes it lacks then.
  func sent(by deadline: Int64) async -> SequenceNumber {
    takeCommitted()
    let target = queue.tail
    while unsent > 0, queue.stored < target, now < deadline {
      let latch = context.latch(openingAt: deadline)
      waiting.append((target, latch))
      _ = await latch.wait()
      waiting.removeAll { $0.latch === latch }
    }
    return holding.lease == nil ? 0 : max(0, target - queue.stored)
  }

  /// Changes that this host has to send: what another host has gone on without is told as lost.
  var unsent: SequenceNumber { holding.lease == nil ? 0 : queue.lag }

  // MARK: What is decided

  func perform(_ actions: [LeaseHolding.Action]) {
    for action in actions {
      switch action {
      case .acquire: start { await $0.claimAgain() }
      // That is for whoever has asked.
      case .catchUp, .refuse: break
      case .leave(let host):
        wantedBy = host
        tellWanted()
      case .flush: perform(queue.flush(at: now))
      case .release(let lease):
        start { try? await $0.context.replica.release(lease, .left(isFlushed: false, summary: [])) }
      case .lose(let host):
        // Counted, and not sent any more.
        _ = queue.add(encodedTransactions(), at: now)
        if let lease { context.tell(.lost(lease, ArchiveLoss(host: host, unshipped: queue.lag))) }
      case .wait(let time):
        claimTime = time
        wake(at: time)
      }
    }
    publish()
    if holding.lease == nil { haltShipping() }
  }

  func tellWanted() { if let wantedBy, let lease { context.tell(.wanted(lease, host: wantedBy)) } }

  func perform(_ actions: [ShippingQueue.Action]) {
    publish()
    for action in actions {
      switch action {
      case .append(let batch): start { [era] in await $0.send(batch, era) }
      case .copy: start { [era] in await $0.sendCopy(era) }
      case .stored(let upTo):
        let stored = waiting.filter { $0.upto <= upTo }
        waiting.removeAll { $0.upto <= upTo }
        for (_, latch) in stored { latch.open() }
        if queue.lag == 0, journal.caughtUp() { context.tell(.caughtUp(application: application)) }
      case .unconfirmed: giveUpWaiting(unconfirmed)
      case .drained:
        if let drained { drained.open() } else if lease == nil { start { await $0.leaveLate() } }
      case .wait(let time): wake(at: time)
      }
    }
  }

  private func giveUpWaiting(_ error: ArchiveError) {
    let all = waiting
    waiting = []
    for (_, latch) in all { latch.open(error) }
  }

  /// For people.
  func report(_ failure: ReplicaFailure) {
    context.figures.withLock { $0.failures[failure.cause, default: 0] += 1 }
    guard journal.failed(failure) else { return }
    context.tell(.behind(application: application, ArchiveLag(failure, changes: queue.lag)))
  }

  /// Shows writers what has been decided.
  func publish() {
    let (stored, unsent, now) = (queue.stored, unsent, now)
    gate.withLock { gate in
      (gate.holding, gate.isAway) = (holding, queue.isAway)
      if unsent == 0 {
        gate.progress = nil
      } else if gate.progress?.stored != stored {
        gate.progress = (stored, now, gate.progress?.since ?? now, unsent)
      }
      gate.progress?.lag = unsent
    }
    let added = queue.bytes - backlog
    backlog = queue.bytes
    context.backlog.withLock { $0 += added }
  }

  /// The lease is gone, or void: what is under way does not count.
  func haltShipping() {
    era += 1
    queue.stop()
    guard holding.lease == nil else { return }
    giveUpWaiting(obstacle(holding.permission(at: now)) ?? unconfirmed)
    drained?.open()
  }

  /// Nothing of before is to be sent.
  func renewQueue() {
    gate.withLock { _ = $0.committed.take(at: now) }
    era += 1
    queue = ShippingQueue(context.settings.promise, limits: context.settings.limits)
    giveUpWaiting(unconfirmed)
    publish()
  }

  // MARK: Time

  private func wake(at time: Int64) {
    guard time < alarm ?? .max else { return }
    alarm = time
    context.clock.wake(max(0, time - now)) { [weak self] in self?.start { await $0.timePassed() } }
  }

  private func timePassed() {
    let now = now
    if let alarm, alarm <= now { self.alarm = nil }
    if let claimTime, claimTime <= now {
      self.claimTime = nil
      perform(holding.timePassed(at: now))
    }
    // The alarm may have been an earlier one, of the queue.
    if let claimTime { wake(at: claimTime) }
    perform(queue.timePassed(at: now))
  }

  // MARK: The lease

  func renewed(_ lease: ReplicaLease, _ renewal: ReplicaRenewal, asked: Int64) {
    guard renewal.held.contains(lease) else { return perform(holding.fenced(lease, by: nil)) }
    holding.renewed(lease, asked: asked)
    publish()
    if let host = renewal.wanted[lease] { perform(holding.wanted(lease, by: host)) }
  }

  /// A call under this lease has failed.
  func ended(_ kind: ReplicaError.Kind, _ lease: ReplicaLease) {
    switch kind {
    case .fenced(let host): perform(holding.fenced(lease, by: host))
    case .voided:
      guard lease == holding.lease else { return }
      haltShipping()
      perform(holding.voided(lease, at: now))
    case .elsewhere, .away, .unknown, .gap, .uncovered, .tooNew, .key, .quota, .refused: break
    }
  }
}
