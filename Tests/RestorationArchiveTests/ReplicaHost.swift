// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import RestorationArchive

/// A host of a `ReplicaHistory`: its disk outlives a crash, its broker does not. A change is a number, and a
/// transaction is named by its last one.
final class ReplicaHost {
  static let application = "org.example.Draw"
  private static let term = LeaseTerm(milliseconds: 15_000)
  private static let limits: ShippingQueue.Limits = {
    var limits = ShippingQueue.Limits()
    (limits.eagerBytes, limits.batchBytesMax, limits.backlogBytesMax) = (24, 40, 80)
    return limits
  }()

  let name: String
  var now: Int64 = 0
  /// After how many further steps of its work it crashes.
  var crashAfter: Int?
  private(set) var wrong: String?
  private(set) var acknowledged: Set<UInt64> = []
  private(set) var told: Set<UInt64> = []
  private(set) var removed: Set<UInt64> = []
  private var notes: [String] = []
  private let replica: MemoryReplica
  private let promise: ShippingQueue.Promise
  private let fault: ReplicaHistory.Fault?
  /// Of disks or servers: then a copy may be set aside that has nothing of its own.
  private let hasFaults: Bool

  // The disk
  private(set) var log: [UInt64] = []
  private var archive: String
  private var standing: ReplicaStanding?
  /// Of a file that is about to take the copy's place.
  private var incoming: ReplicaStanding?
  private var archives = 0

  // The broker
  private var link: MemoryReplicaLink
  private(set) var holding: LeaseHolding
  private var queue: ShippingQueue
  private var outbox: [ShippingQueue.Action] = []

  private struct Crash: Error {}

  init(
    _ name: String,
    _ replica: MemoryReplica,
    _ promise: ShippingQueue.Promise,
    _ fault: ReplicaHistory.Fault?,
    hasFaults: Bool
  ) {
    (self.name, self.replica, self.promise, self.fault) = (name, replica, promise, fault)
    self.hasFaults = hasFaults
    archive = "\(name)0"
    link = replica.link(from: name, term: Self.term)
    holding = LeaseHolding(Self.term)
    queue = ShippingQueue(promise, limits: Self.limits)
  }

  func note(_ text: String) { notes.append("\(name): \(text)") }

  func takeNotes() -> [String] {
    defer { notes = [] }
    return notes
  }

  // MARK: Numbers

  static func bytes(_ numbers: some Sequence<UInt64>) -> [UInt8] {
    numbers.flatMap { number in (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) } }
  }

  static func numbers(_ bytes: [UInt8]) -> [UInt64] {
    stride(from: 0, to: bytes.count, by: 8).map { start in
      (0..<8).reduce(0) { $0 | UInt64(bytes[start + $1]) << ($1 * 8) }
    }
  }

  private var tip: ReplicaTip {
    ReplicaTip(sequence: Int64(log.count), change: log.last.map { ChangeID(high: 0, low: $0) })
  }

  // MARK: What happens to it

  func crash() {
    note("crash")
    link = replica.link(from: name, term: Self.term)
    holding = LeaseHolding(Self.term)
    queue = ShippingQueue(promise, limits: Self.limits)
    outbox = []
    crashAfter = nil
  }

  func damage(telling gone: Set<UInt64>) {
    log.removeLast(min(2, log.count))
    archive = newArchive()
    told.formUnion(gone)
    note("damaged: \(log)")
  }

  private func newArchive() -> String {
    archives += 1
    return "\(name)\(archives)"
  }

  private func mayCrash() throws(Crash) {
    guard let left = crashAfter else { return }
    crashAfter = left - 1
    if left == 0 { throw Crash() }
  }

  private func surviving(_ body: () async throws -> Void) async {
    do { try await body() } catch { crash() }
  }

  // MARK: Writing

  /// Whether it was written.
  func write(_ numbers: [UInt64]) -> Bool {
    guard holding.permission(at: now) == .granted, !queue.isAway || promise == .disk else { return false }
    let after = Int64(log.count)
    log += numbers
    if promise == .disk { acknowledged.formUnion(numbers) }
    note("writes \(numbers)")
    let transaction = ReplicaTransaction(
      after: after,
      upto: Int64(log.count),
      change: ChangeID(high: 0, low: numbers[numbers.count - 1]),
      changes: Self.bytes(numbers)
    )
    take(queue.add(transaction, at: now))
    return true
  }

  private func take(_ actions: [ShippingQueue.Action]) {
    for action in actions {
      switch action {
      case .append, .copy: outbox.append(action)
      case .stored(let upTo):
        if promise == .replica { acknowledged.formUnion(log.prefix(Int(upTo))) }
      case .drained, .unconfirmed, .wait: break
      }
    }
  }

  // MARK: Shipping

  /// Does some of what the queue wants.
  func work(_ count: Int) async {
    await surviving {
      for _ in 0..<count {
        now += 100
        replica.advance(by: 100)
        for action in holding.timePassed(at: now) where action == .acquire { try await claim(isForced: false) }
        take(queue.timePassed(at: now))
        guard let lease = holding.lease, queue.lag > 0 || !outbox.isEmpty else { return }
        guard let action = outbox.first else { continue }
        outbox.removeFirst()
        try await carryOut(action, lease)
      }
    }
  }

  private func carryOut(_ action: ShippingQueue.Action, _ lease: ReplicaLease) async throws {
    let before = replica.numbers
    do throws(ReplicaError) {
      switch action {
      case .append(let batch):
        try await link.append(batch, lease)
        mustContinue(before)
        take(queue.appended(at: now))
      case .copy:
        let copy = tip
        guard try await sendCopy(copy, lease) else { return crash() }
        mustContinue(before)
        take(queue.copied(upTo: copy.sequence, at: now))
      case .stored, .drained, .unconfirmed, .wait: break
      }
      note("shipped: \(replica.numbers)")
    } catch {
      note("\(action): \(error.kind)")
      if error.kind == .unknown { mustContinue(before) }
      take(queue.failed(error.kind, at: now))
      try await ended(error.kind, lease)
    }
    try mayCrash()
  }

  /// Returns false if the host crashes meanwhile.
  private func sendCopy(_ tip: ReplicaTip, _ lease: ReplicaLease) async throws(ReplicaError) -> Bool {
    let starts = Array(stride(from: 0, to: log.count, by: 3))
    for (number, start) in starts.enumerated() {
      do { try mayCrash() } catch { return false }
      let bytes = Self.bytes(log[start..<min(start + 3, log.count)])
      try await link.snapshot(
        SnapshotPart(tip: tip, reader: 1, number: number, count: starts.count, bytes: bytes),
        lease
      )
    }
    return true
  }

  /// What was at the replica before it took something from here must be how our contents begin.
  private func mustContinue(_ before: [UInt64]) {
    guard !log.starts(with: before), before != replica.numbers else { return }
    wrong = "\(name) has \(log), and shipped behind \(before)"
  }

  /// The lease may have ended.
  private func ended(_ kind: ReplicaError.Kind, _ lease: ReplicaLease) async throws {
    switch kind {
    case .fenced(let host): lose(holding.fenced(lease, by: host))
    case .voided:
      queue.stop()
      outbox = []
      if !holding.voided(lease, at: now).isEmpty { try await claim(isForced: false) }
    case .elsewhere, .away, .unknown, .gap, .uncovered, .tooNew, .key, .quota, .refused: break
    }
  }

  private func lose(_ actions: [LeaseHolding.Action]) {
    guard actions.contains(where: { if case .lose = $0 { true } else { false } }) else { return }
    note("loses the archive")
    _ = holding.closed()
    queue = ShippingQueue(promise, limits: Self.limits)
    outbox = []
  }

  // MARK: Opening

  func open(isForced: Bool) async {
    await surviving {
      queue.endFlush()
      for action in holding.opened(at: now) where action == .acquire { try await claim(isForced: isForced) }
    }
  }

  private func claim(isForced: Bool) async throws {
    if let incoming, incoming.archive == archive { standing = incoming }
    incoming = nil
    let grant: ReplicaGrant
    do throws(ReplicaError) {
      let claim = ReplicaClaim(standing: standing, reader: 1, isForced: isForced)
      grant = try await link.acquire(Self.application, as: claim)
    } catch {
      note("is refused: \(error.kind)")
      return lose(holding.refused(error.kind, at: now))
    }
    let isOpen = holding.lease != nil
    guard holding.granted(grant.lease) == [.catchUp] else { return }
    try mayCrash()
    let isCaughtUp: Bool?
    do throws(ReplicaError) {
      isCaughtUp = try await catchUp(grant, isOpen: isOpen)
    } catch {
      _ = holding.failed(error.kind, at: now)
      return
    }
    guard let isCaughtUp else { throw Crash() }
    guard isCaughtUp else { return lose(holding.diverged(from: nil)) }
    try mayCrash()
    noteHeld(grant)
    if !isOpen {
      queue = ShippingQueue(promise, limits: Self.limits)
      outbox = []
    }
    note("holds \(grant.lease.epoch.timeline).\(grant.lease.epoch.number): \(log)")
    _ = holding.caughtUp()
    take(queue.start(stored: grant.tip.sequence, tip: tip.sequence, at: now))
  }

  private func noteHeld(_ grant: ReplicaGrant) {
    let epoch = grant.lease.epoch
    standing = ReplicaStanding(history: grant.history, lease: epoch, epoch: epoch, phase: .held, archive: archive)
  }

  /// As the faults have it.
  private func plan(_ grant: ReplicaGrant) -> CatchingUp {
    var (grant, standing) = (grant, standing)
    if fault == .noReign { grant.reign = tip }
    if fault == .historyIgnored { standing?.history = grant.history }
    if fault == .epochWithoutTimeline {
      grant.tipEpoch = ReplicaEpoch(timeline: 0, number: grant.tipEpoch.number)
      if let epoch = standing?.epoch { standing?.epoch = ReplicaEpoch(timeline: 0, number: epoch.number) }
    }
    return CatchingUp(log.isEmpty ? nil : CatchingUp.Copy(archive: archive, tip: tip), standing, grant)
  }

  /// Returns whether the archive may be used; `nil` if the host crashes meanwhile.
  private func catchUp(_ grant: ReplicaGrant, isOpen: Bool) async throws(ReplicaError) -> Bool? {
    let plan = plan(grant)
    note("\(plan.step)\(plan.isConflict ? " with a conflict" : ""): \(log), \(replica.numbers), \(grant.lease.epoch)")
    guard plan.isContinuation || !isOpen else { return false }
    standing?.lease = grant.lease.epoch
    if fault == .heldTooEarly { noteHeld(grant) }
    do {
      try mayCrash()
      if plan.isConflict { setAside() }
      try mayCrash()
    } catch {
      return nil
    }
    switch plan.step {
    case .keep, .ship: return true
    case .renew:
      (log, archive) = ([], newArchive())
      return true
    case .apply(let after):
      if fault != .catchingUpNotNoted { standing = catchingUp(grant, archive) }
      return try await apply(after, grant)
    case .install: return try await install(grant)
    }
  }

  private func setAside() {
    let own = Set(log).subtracting(replica.numbers)
    if own.isEmpty, !hasFaults { wrong = "\(name) has a conflict, but nothing of its own: \(log)" }
    told.formUnion(own)
    (log, archive) = ([], newArchive())
  }

  private func catchingUp(_ grant: ReplicaGrant, _ archive: String) -> ReplicaStanding {
    ReplicaStanding(
      history: grant.history,
      lease: grant.lease.epoch,
      epoch: grant.tipEpoch,
      phase: .catchingUp,
      archive: archive
    )
  }

  private func install(_ grant: ReplicaGrant) async throws(ReplicaError) -> Bool? {
    var file: [UInt64] = []
    var position: ReplicaPosition? = .snapshot(part: 0)
    while case .snapshot = position, let current = position {
      let page = try await link.load(grant.lease, from: current)
      file += page.parts.flatMap { Self.numbers($0.bytes) }
      position = page.next
    }
    do {
      try mayCrash()
      let name = newArchive()
      incoming = catchingUp(grant, name)
      try mayCrash()
      (log, archive) = (file, name)
      try mayCrash()
    } catch {
      return nil
    }
    (standing, incoming) = (incoming, nil)
    return try await apply(Int64(file.count), grant)
  }

  private func apply(_ after: SequenceNumber, _ grant: ReplicaGrant) async throws(ReplicaError) -> Bool? {
    var position: ReplicaPosition? = .batches(after: after)
    while let current = position {
      let page = try await link.load(grant.lease, from: current)
      for transaction in page.batches.flatMap(\.transactions) where transaction.after >= Int64(log.count) {
        do { try mayCrash() } catch { return nil }
        log += Self.numbers(transaction.changes)
      }
      position = page.next
    }
    if tip != grant.tip { wrong = "\(name) has caught up to \(tip), not to \(grant.tip)" }
    return true
  }

  // MARK: Keeping it, and giving it back

  func renew() async {
    guard let lease = holding.lease else { return }
    await surviving {
      let asked = now
      let renewal: ReplicaRenewal
      do throws(ReplicaError) {
        renewal = try await link.renew()
      } catch {
        note("is not renewed: \(error.kind)")
        return try await ended(error.kind, lease)
      }
      guard renewal.held.contains(lease) else { return lose(holding.fenced(lease, by: nil)) }
      holding.renewed(lease, asked: asked)
      guard let host = renewal.wanted[lease], holding.wanted(lease, by: host) == [.leave(host: host)] else { return }
      try await leave()
    }
  }

  /// The user forgets the application; what is here and not shipped goes with it.
  func remove() async {
    guard holding.closed() == [.flush], let lease = holding.lease, holding.flushed() == [.release(lease)] else {
      return
    }
    let all = Set(log).union(replica.numbers)
    await surviving {
      do throws(ReplicaError) {
        try await link.release(lease, .removed)
      } catch {
        note("does not remove: \(error.kind)")
        if error.kind == .unknown { removed.formUnion(all) }
        _ = holding.released(at: now)
        return
      }
      removed.formUnion(all)
      note("removes the archive")
      try mayCrash()
      (log, archive, standing) = ([], newArchive(), nil)
      _ = holding.released(at: now)
    }
  }

  func close() async { await surviving { try await leave() } }

  private func leave() async throws {
    guard holding.closed() == [.flush] else { return }
    take(queue.flush(at: now))
    await work(30)
    guard queue.lag == 0, let lease = holding.lease, holding.flushed() == [.release(lease)] else { return }
    do throws(ReplicaError) {
      try await link.release(lease, .left(isFlushed: true, summary: []))
    } catch {
      note("does not release: \(error.kind)")
      _ = holding.released(at: now)
      return
    }
    try mayCrash()
    standing?.phase = .released
    note("releases")
    _ = holding.released(at: now)
  }
}
