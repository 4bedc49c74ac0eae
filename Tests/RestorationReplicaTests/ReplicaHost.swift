// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import RestorationArchive
internal import RestorationReplica
internal import Synchronization

/// A host of a `ReplicaHistory`: its disk outlives a crash, its broker with its store does not. A change is a number,
/// and a transaction is named by its last one.
final class ReplicaHost: Sendable {
  static let application = "org.example.Draw"
  private static let term = LeaseTerm(milliseconds: 15_000)

  struct Life {
    /// What it has told or done wrong.
    var wrong: String?
    var acknowledged: Set<UInt64> = []
    /// What somebody was told that it is not where it was, by the store or by the test.
    var told: Set<UInt64> = []
    var removed: Set<UInt64> = []
    var notes: [String] = []
    fileprivate var broker: Broker?
    fileprivate var brokers = 0
  }

  fileprivate struct Broker {
    let number: Int
    let store: ReplicatedStore
    var lease: ArchiveLease?
  }

  let name: String
  let disk: CarriedDisk
  let state = Mutex(Life())
  private let loop: TestEventLoop
  private let replica: MemoryReplica
  private let promise: ReplicaPromise
  private let fault: ReplicaHistory.Fault?
  /// Of disks or servers: then a copy may be set aside that has nothing of its own.
  private let hasFaults: Bool

  init(
    _ name: String,
    _ replica: MemoryReplica,
    _ promise: ReplicaPromise,
    _ fault: ReplicaHistory.Fault?,
    hasFaults: Bool,
    on loop: TestEventLoop
  ) throws {
    (self.name, self.replica, self.promise, self.fault, self.loop) = (name, replica, promise, fault, loop)
    (self.hasFaults, disk) = (hasFaults, CarriedDisk(name))
    try begin()
  }

  func note(_ text: String) { state.withLock { $0.notes.append("\(name): \(text)") } }

  func takeNotes() -> [String] {
    state.withLock { state in
      defer { state.notes = [] }
      return state.notes
    }
  }

  // MARK: Numbers

  private static func change(_ number: UInt64) -> ArchiveChange {
    .run(RunRecord(run: Int64(number), restorations: 0, facts: ""))
  }

  static func numbers(_ changes: some Sequence<ArchiveChange>) -> [UInt64] {
    changes.compactMap { if case .run(let record) = $0 { UInt64(record.run) } else { nil } }
  }

  static func numbers(_ archive: CarriedDisk.Archive?) -> [UInt64] {
    numbers((archive?.transactions ?? []).flatMap(\.changes))
  }

  var log: [UInt64] { Self.numbers(disk.state.withLock { $0.archives[Self.application] }) }

  var hasLease: Bool { state.withLock { $0.broker?.lease != nil } }

  // MARK: Brokers

  private func begin() throws {
    let (disk, replica, fault) = (disk, replica, fault)
    let base = try disk.connect(
      loop,
      reading: { $0 },
      keeping: { note, former in
        switch fault {
        case .heldTooEarly:
          return note.map { standing in
            standing.phase = .held
            standing.reigns = standing.reigns.map { ReplicaReign($0.lease, end: ReplicaReign.everything) }
          }
        case .catchingUpNotNoted:
          let isCatchingUp = note.incoming == nil && note.standing?.phase == .catchingUp
          return isCatchingUp ? ReplicaNote(standing: former?.standing) : note
        case .numberedLeases, .noReign, .noFence, .historyIgnored, nil: return note
        }
      }
    )
    let broker = base.broker
    let settings = {
      var limits = ShippingQueue.Limits()
      (limits.batchBytesMax, limits.backlogBytesMax) = (150, 300)
      var settings = ReplicaSettings(host: name, term: Self.term, promise: promise, limits: limits)
      settings.eagerMemory = 500
      settings.partBytes = 100
      return settings
    }()
    let store = try ReplicatedStore(
      around: base,
      settings,
      clock: loop.replicaClock,
      on: loop,
      sharing: { $0 },
      replica: { attention in
        let link = replica.link(from: name, term: Self.term, attention: attention)
        return HostLink(link, of: self, broker, replica, fault)
      }
    )
    store.observe { [weak self] event in self?.heard(event, broker) }
    state.withLock { $0.broker = Broker(number: broker, store: store) }
  }

  func crash() {
    note("crash: \(log)")
    state.withLock { $0.broker = nil }
    do { try begin() } catch { state.withLock { $0.wrong = "\(error)" } }
  }

  /// The broker has crashed at the step that the test has named: another one starts.
  func settle() { if disk.state.withLock({ $0.isCrashed }) { crash() } }

  private func heard(_ event: ArchiveRoamingEvent, _ broker: Int) {
    note("\(event)")
    switch event {
    case .wanted(let lease, _), .lost(let lease, _):
      let store = state.withLock { state -> ReplicatedStore? in
        guard state.broker?.number == broker, state.broker?.lease == lease else { return nil }
        state.broker?.lease = nil
        return state.broker?.store
      }
      if let store { _ = loop.call { () async throws(ArchiveError) in await store.close(lease) } }
    case .behind, .caughtUp: break
    case .conflict(_, let conflict):
      let own = Set(Self.numbers(disk.state.withLock { $0.conflicts[conflict.file] }))
      guard own.isSubset(of: replica.numbers), !hasFaults else { return }
      state.withLock { $0.wrong = "\(name) has a conflict, but nothing of its own: \(own)" }
    }
  }

  func damage(telling gone: Set<UInt64>) {
    crash()
    let name = disk.newName()
    disk.state.withLock { state in
      guard var archive = state.archives[Self.application] else { return }
      archive.transactions.removeLast(min(1, archive.transactions.count))
      archive.name = name
      state.archives[Self.application] = archive
    }
    state.withLock { $0.told.formUnion(gone) }
    note("damaged: \(log)")
  }

  // MARK: Calls

  private var broker: Broker? { state.withLock { $0.broker } }

  func write(_ numbers: [UInt64]) {
    guard let broker, let lease = broker.lease else { return }
    let (store, expecting) = (broker.store, SequenceNumber(log.count))
    let call = loop.call { () async throws(ArchiveError) in
      do throws(ArchiveError) {
        _ = try await store.apply(
          numbers.map(Self.change),
          lease: lease,
          expecting: expecting,
          changeID: ChangeID(high: 0, low: numbers[numbers.count - 1])
        )
        self.state.withLock { $0.acknowledged.formUnion(numbers) }
        self.note("acknowledges \(numbers)")
      } catch {
        self.note("does not acknowledge \(numbers): \(error.kind)")
      }
    }
    _ = call
  }

  func open(isForced: Bool) {
    guard let broker, broker.lease == nil else { return }
    let store = broker.store
    if isForced { store.takeOver(Self.application) }
    _ = loop.call { () async throws(ArchiveError) in
      do throws(ArchiveError) {
        let opening = try await store.open(Self.application, for: .writing)
        self.note("opens at \(opening.sequence): \(self.log)")
        self.state.withLock { state in
          if state.broker?.number == broker.number { state.broker?.lease = opening.lease }
        }
      } catch {
        self.note("does not open: \(error.kind)")
      }
    }
  }

  func close() {
    let broker = state.withLock { state in
      defer { state.broker?.lease = nil }
      return state.broker
    }
    guard let broker, let lease = broker.lease else { return }
    _ = loop.call { () async throws(ArchiveError) in
      await broker.store.close(lease)
      self.note("has closed")
    }
  }

  /// The user forgets the application; what is here and not shipped goes with it.
  func remove() {
    guard let broker else { return }
    close()
    let all = Set(log)
    _ = loop.call { () async throws(ArchiveError) in
      let before = Set(self.replica.numbers)
      do throws(ArchiveError) {
        try await broker.store.remove(Self.application, damaged: false)
        self.note("removes the archive")
      } catch {
        self.note("does not remove: \(error.kind)")
        // Perhaps there, but not here.
        guard !before.isEmpty, self.replica.numbers.isEmpty else { return }
      }
      self.state.withLock { $0.removed.formUnion(all.union(before)) }
    }
  }

  /// What was set aside and nobody else has.
  var setAside: Set<UInt64> { Set(disk.state.withLock { Array($0.conflicts.values) }.flatMap(Self.numbers)) }

  fileprivate func mustContinue(_ before: [UInt64]) {
    let (log, after) = (log, replica.numbers)
    guard before != after else { return }
    note("shipped: \(after)")
    guard !log.starts(with: before) else { return }
    state.withLock { $0.wrong = "\(name) has \(log), and shipped behind \(before)" }
  }
}

extension ReplicaNote {
  fileprivate func map(_ change: (inout ReplicaStanding) -> Void) -> ReplicaNote {
    func changed(_ standing: ReplicaStanding) -> ReplicaStanding {
      var standing = standing
      change(&standing)
      return standing
    }
    return ReplicaNote(standing: standing.map(changed), incoming: incoming.map(changed))
  }
}

/// A host's way to the replica: ends with its broker, and looks at what is shipped.
private struct HostLink: ArchiveReplica {
  private let link: MemoryReplicaLink
  private weak let host: ReplicaHost?
  private let disk: CarriedDisk
  private let broker: Int
  private let replica: MemoryReplica
  private let fault: ReplicaHistory.Fault?

  init(
    _ link: MemoryReplicaLink,
    of host: ReplicaHost,
    _ broker: Int,
    _ replica: MemoryReplica,
    _ fault: ReplicaHistory.Fault?
  ) {
    (self.link, self.host, disk, self.broker) = (link, host, host.disk, broker)
    (self.replica, self.fault) = (replica, fault)
  }

  private func step() throws(ReplicaError) {
    guard disk.step(broker) else { throw ReplicaError(.away, "the broker has ended") }
  }

  nonisolated(nonsending) func acquire(
    _ application: String,
    as claim: ReplicaClaim
  ) async throws(ReplicaError) -> ReplicaGrant {
    try step()
    var grant = try await link.acquire(application, as: claim)
    host?.note("is granted \(grant.lease.id.uuid.low) at \(grant.tip.sequence) behind \(grant.reigns)")
    if fault == .noReign { grant.reigns = grant.reigns.map { ReplicaReign($0.lease, end: ReplicaReign.everything) } }
    if fault == .historyIgnored, let standing = claim.standing { grant.history = standing.history }
    return grant
  }

  nonisolated(nonsending) func renew() async throws(ReplicaError) -> ReplicaRenewal {
    try step()
    return try await link.renew()
  }

  nonisolated(nonsending) func append(
    _ batch: ReplicaBatch,
    _ lease: ReplicaLease
  ) async throws(ReplicaError) {
    try step()
    let before = replica.numbers
    defer { host?.mustContinue(before) }
    try await link.append(batch, lease)
  }

  nonisolated(nonsending) func load(
    _ lease: ReplicaLease,
    from position: ReplicaPosition
  ) async throws(ReplicaError) -> ReplicaPage {
    try step()
    return try await link.load(lease, from: position)
  }

  nonisolated(nonsending) func snapshot(
    _ part: SnapshotPart,
    _ lease: ReplicaLease
  ) async throws(ReplicaError) {
    try step()
    let before = replica.numbers
    defer { host?.mustContinue(before) }
    try await link.snapshot(part, lease)
  }

  nonisolated(nonsending) func release(_ lease: ReplicaLease, _ end: ReplicaEnd) async throws(ReplicaError) {
    try step()
    try await link.release(lease, end)
  }

  nonisolated(nonsending) func list(after application: String?) async throws(ReplicaError) -> ReplicaListing {
    try step()
    return try await link.list(after: application)
  }
}

extension MemoryReplica {
  /// The changes that it has, in order.
  var numbers: [UInt64] {
    let (parts, batches) = contents(of: ReplicaHost.application)
    let bytes = [parts.flatMap(\.self)] + batches.map(\.body)
    return bytes.filter { !$0.isEmpty }.flatMap { bytes in
      ReplicaHost.numbers((try? ChangeBatch(decoding: bytes))?.transactions.flatMap(\.changes) ?? [])
    }
  }
}
