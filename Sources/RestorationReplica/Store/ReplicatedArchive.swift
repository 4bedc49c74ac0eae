// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import Synchronization

/// One archive that follows its user: carries out what `LeaseHolding`, `CatchingUp` and `ShippingQueue` decide.
///
/// Invariants:
/// 1. Openings, closings and removals run one after the other (`begin`, `end`).
/// 2. `gate`, which writers read, changes after the observer has been told.
/// 3. The answer to a shipment counts only if its queue is still in use (`era`).
actor ReplicatedArchive {
  struct Gate {
    var holding: LeaseHolding
    /// No writes until the replica answers.
    var isAway = false
    var isAsking = false
    var isForced = false
    /// Number of transactions begun and unanswered.
    var unanswered = 0
    var committed: CommittedTransactions
    /// Set while the replica lacks changes: what it has, when the last of that arrived, since when it lacks some, and
    /// how many.
    var progress: (stored: SequenceNumber, time: Int64, since: Int64, lag: SequenceNumber)?
  }

  nonisolated let application: String
  nonisolated let context: ReplicationContext
  nonisolated let gate: Mutex<Gate>
  var holding: LeaseHolding
  var queue: ShippingQueue
  /// Counts queues and their halts.
  var era = 0
  /// Counts the copies begun for sending.
  var copies = 0
  /// As last read or stored.
  var note = ReplicaNote()
  /// The inner store's lease of the copy; `nil` while the copy is closed.
  var lease: ArchiveLease?
  /// The UUID of the copy; `nil` if it does not exist.
  var copy: String?
  var prepared: ArchiveOpening?
  var damage: String?
  var wantedBy: String?
  /// Writers that wait until a transaction is stored.
  private var waiting: [(upto: SequenceNumber, latch: Latch)] = []
  /// Opened when everything has been sent.
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

  /// How long shipping may go without progress.
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

  /// Fails unless the archive may be written now. On success the caller must call `finished`.
  ///
  /// All writers that wait for the archive get the same error. If another transaction is in progress, it may be stored
  /// already, so the error must not claim otherwise.
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
    // After sleep the machine may still have the lease.
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

  /// Ships a transaction. Returns at once or, if the setting requires it, when the replica has the transaction.
  nonisolated(nonsending) func ship(_ transaction: CommittedTransaction) async throws(ArchiveError) {
    let (step, permission) = gate.withLock { gate in
      (gate.committed.add(transaction, at: now), gate.holding.permission(at: now))
    }
    switch context.settings.promise {
    case .disk:
      perform(step)
      // The process may have been frozen since the transaction began, and may have read later messages.
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

  /// Waits until the replica has everything up to `sequence`; returns an error if that is not known.
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

  /// Returns when the replica has all present commits, or at the deadline: the number of changes it lacks then.
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

  /// Number of changes this host must send. Changes that another host continued without are reported as lost.
  var unsent: SequenceNumber { holding.lease == nil ? 0 : queue.lag }

  // MARK: What is decided

  func perform(_ actions: [LeaseHolding.Action]) {
    for action in actions {
      switch action {
      case .acquire: start { await $0.claimAgain() }
      case .leave(let host):
        wantedBy = host
        tellWanted()
      case .flush: perform(queue.flush(at: now))
      case .release(let lease):
        start { try? await $0.context.replica.release(lease, .left(upto: nil, summary: [])) }
      case .lose(let host):
        // Counted, but no longer sent.
        _ = queue.add(encodedTransactions(), at: now)
        if let lease { context.tell(.lost(lease, ArchiveLoss(host: host, unshipped: queue.lag))) }
      case .wait(let time):
        claimTime = time
        wake(at: time)
      }
    }
    settle()
  }

  /// Publishes the decision; without a lease nothing is sent.
  func settle() {
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

  func report(_ failure: ReplicaFailure) {
    context.figures.withLock { $0.failures[failure.cause, default: 0] += 1 }
    guard journal.failed(failure) else { return }
    context.tell(.behind(application: application, ArchiveLag(failure, changes: queue.lag)))
  }

  /// Publishes the decision to writers.
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

  /// The lease is gone or void: the shipment in progress does not count.
  func haltShipping() {
    era += 1
    queue.stop()
    guard holding.lease == nil else { return }
    giveUpWaiting(obstacle(holding.permission(at: now)) ?? unconfirmed)
    drained?.open()
  }

  /// Drops everything that waited.
  func renewQueue() {
    gate.withLock { _ = $0.committed.take(at: now) }
    era += 1
    queue = queue.successor
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
    // The alarm may have been an earlier one of the queue.
    if let claimTime { wake(at: claimTime) }
    perform(queue.timePassed(at: now))
  }

  // MARK: The lease

  /// The end of the replica's contents, as far as known.
  var stored: SequenceNumber { queue.stored }

  /// - Parameters:
  ///   - asked: when the question was sent.
  ///   - stored: what the replica had then.
  func renewed(_ lease: ReplicaLease, _ renewal: ReplicaRenewal, asked: Int64, stored: SequenceNumber) async {
    guard let end = renewal.held[lease] else { return await probe(lease) }
    holding.renewed(lease, asked: asked)
    publish()
    if lease == holding.lease, end < stored { perform(queue.wentBack(to: end, at: now)) }
    if let host = renewal.wanted[lease] { perform(holding.wanted(lease, by: host)) }
  }

  /// A lease was not renewed: any call says whether it has ended or is unknown. If neither, it is that of a broker that
  /// the replica has forgotten.
  private func probe(_ lease: ReplicaLease) async {
    do throws(ReplicaError) {
      _ = try await context.replica.load(lease, from: .batches(after: queue.stored))
      ended(.voided, lease)
    } catch {
      if case .gap = error.kind { ended(.voided, lease) } else { ended(error.kind, lease) }
    }
  }

  /// Another host has continued a closed archive without its last changes; nobody else here notices before its opening.
  private func tellLeft(_ changes: SequenceNumber, _ host: String?) {
    let text = "\(host ?? "another host") has taken over \(application), which is set aside when it is opened here"
    let failure = ReplicaFailure(.fenced, text)
    guard journal.failed(failure, isFinal: true) else { return }
    context.tell(.behind(application: application, ArchiveLag(failure, changes: changes)))
  }

  /// A call under this lease has failed.
  func ended(_ kind: ReplicaError.Kind, _ lease: ReplicaLease) {
    switch kind {
    case .fenced(let host):
      let left = self.lease == nil && holding.lease == lease ? unsent : 0
      perform(holding.fenced(lease, by: host))
      if left > 0, holding.lease == nil { tellLeft(left, host) }
    case .voided:
      let actions = holding.voided(lease, at: now)
      if !actions.isEmpty { haltShipping() }
      perform(actions)
    case .elsewhere, .away, .unknown, .gap, .uncovered, .tooNew, .key, .quota, .refused: break
    }
  }
}
