// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import RestorationArchive
internal import RestorationReplica
internal import Synchronization

/// The archives of a host, in memory; they outlive its brokers, of which each ends at the step that a test names.
final class CarriedDisk: Sendable {
  struct Archive: Hashable, Sendable {
    /// Its UUID.
    var name: String
    var transactions: [ChangeBatch.Transaction] = []

    var tip: ReplicaTip {
      let sequence = transactions.reduce(0) { $0 + SequenceNumber($1.changes.count) }
      return ReplicaTip(sequence: sequence, change: transactions.last?.changeID)
    }
  }

  struct State {
    var archives: [String: Archive] = [:]
    var notes: [String: ReplicaNote] = [:]
    /// By their names.
    var conflicts: [String: Archive] = [:]
    /// After how many further steps the broker crashes.
    var crashAfter: Int?
    /// Holds the next transaction back.
    var hold: HeldCall<Void>?
    fileprivate(set) var isCrashed = false
    /// A copy of another host has begun to come, and was neither installed nor dropped.
    fileprivate(set) var isReceiving = false
    fileprivate var broker = 0
    fileprivate var names = 0
    fileprivate var outgoing: [UInt8] = []
    fileprivate var incoming: [UInt8] = []
    fileprivate var arrived: Archive?
  }

  let host: String
  let state = Mutex(State())

  init(_ host: String) { self.host = host }

  /// The store of a broker that starts now; for the one before it is as if it had ended.
  ///
  /// - Parameters:
  ///   - reading: makes of a note what the broker reads.
  ///   - keeping: makes of a note and the former one what is kept.
  func connect(
    _ loop: TestEventLoop,
    reading: @escaping @Sendable (ReplicaNote) -> ReplicaNote = { $0 },
    keeping: @escaping @Sendable (ReplicaNote, ReplicaNote?) -> ReplicaNote = { new, _ in new }
  ) throws -> CarriedStore {
    let broker = state.withLock { state in
      state.broker += 1
      (state.isCrashed, state.crashAfter) = (false, nil)
      return state.broker
    }
    return try CarriedStore(self, broker, on: loop, reading, keeping)
  }

  /// Whether the broker is alive after this step.
  func step(_ broker: Int) -> Bool {
    state.withLock { state in
      guard broker == state.broker, !state.isCrashed else { return false }
      guard let left = state.crashAfter else { return true }
      state.crashAfter = left - 1
      state.isCrashed = left == 0
      return !state.isCrashed
    }
  }

  func newName() -> String {
    state.withLock { state in
      state.names += 1
      return "\(host)\(state.names)"
    }
  }
}

/// The archives as one broker has them.
actor CarriedStore: ArchiveCarrying {
  let broker: Int
  private let disk: CarriedDisk
  private let loop: TestEventLoop
  private let memory: MemoryArchiveStore
  private var isLoaded: Set<String> = []
  private let reading: @Sendable (ReplicaNote) -> ReplicaNote
  private let keeping: @Sendable (ReplicaNote, ReplicaNote?) -> ReplicaNote

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  fileprivate init(
    _ disk: CarriedDisk,
    _ broker: Int,
    on loop: TestEventLoop,
    _ reading: @escaping @Sendable (ReplicaNote) -> ReplicaNote,
    _ keeping: @escaping @Sendable (ReplicaNote, ReplicaNote?) -> ReplicaNote
  ) throws {
    (self.disk, self.broker, self.loop) = (disk, broker, loop)
    (self.reading, self.keeping) = (reading, keeping)
    memory = try MemoryArchiveStore(on: loop)
  }

  private func step() throws(ArchiveError) {
    guard disk.step(broker) else { throw ArchiveError(.definite, "the broker has ended") }
  }

  func open(_ application: String, for purpose: ArchivePurpose) async throws(ArchiveError) -> ArchiveOpening {
    try step()
    if disk.state.withLock({ $0.archives[application] }) == nil {
      guard purpose.creates else { throw ArchiveError(.absent, "there is no archive") }
      let name = disk.newName()
      disk.state.withLock { $0.archives[application] = CarriedDisk.Archive(name: name) }
    }
    if isLoaded.insert(application).inserted { try await load(application) }
    var opening = try await memory.open(application, for: .reading)
    opening.archive = disk.state.withLock { $0.archives[application]?.name ?? "" }
    return opening
  }

  private func load(_ application: String) async throws(ArchiveError) {
    let lease = try await memory.open(application, for: .writing).lease
    var end: SequenceNumber = 0
    for transaction in disk.state.withLock({ $0.archives[application]?.transactions ?? [] }) {
      let change = transaction.changeID
      end = try await memory.apply(transaction.changes, lease: lease, expecting: end, changeID: change).sequence
    }
  }

  func apply(
    _ batch: ArchiveBatch,
    lease: ArchiveLease,
    expecting: SequenceNumber,
    changeID: ChangeID,
    holding: [SequenceNumber]
  ) async throws(ArchiveError) -> ArchiveReceipt {
    try step()
    _ = await disk.state.withLock { $0.hold.take() }?.wait()
    let changes = batch.take()
    let receipt = try await memory.apply(changes, lease: lease, expecting: expecting, changeID: changeID)
    disk.state.withLock { state in
      state.archives[lease.application]?.transactions.append(ChangeBatch.Transaction(changeID, changes))
    }
    return receipt
  }

  func close(_ lease: ArchiveLease) async { await memory.close(lease) }

  func remove(_ application: String, damaged: Bool) async throws(ArchiveError) {
    try step()
    disk.state.withLock { $0.archives[application] = nil }
    await forget(application)
  }

  private func forget(_ application: String) async {
    isLoaded.remove(application)
    await memory.remove(application, damaged: false)
  }

  // MARK: Carrying

  nonisolated var copyVersion: Int { 1 }

  func tip(_ lease: ArchiveLease) async throws(ArchiveError) -> ReplicaTip {
    try await check(lease)
    return disk.state.withLock { $0.archives[lease.application]?.tip ?? ReplicaTip() }
  }

  /// Throws if the archive was closed or opened again since it was opened under this lease.
  private func check(_ lease: ArchiveLease) async throws(ArchiveError) {
    _ = try await memory.backUp(lease, replacingFormer: false)
  }

  func summary(of application: String) async -> ArchiveSummary? {
    disk.state.withLock { $0.archives[application] }.map { archive in
      let changes = archive.transactions.count
      return ArchiveSummary(application: application, state: .available, objects: changes, modified: Int64(changes))
    }
  }

  func noted() async throws(ArchiveError) -> [String] {
    try step()
    return disk.state.withLock { $0.notes.keys.sorted() }
  }

  func note(of application: String) async throws(ArchiveError) -> String? {
    try step()
    return reading(disk.state.withLock { $0.notes[application] ?? ReplicaNote() }).text
  }

  func keep(_ note: String?, of application: String) async throws(ArchiveError) {
    try step()
    let note = note.flatMap(ReplicaNote.init)
    disk.state.withLock { state in
      state.notes[application] = note.map { keeping($0, state.notes[application]) }
    }
  }

  func beginCopy(
    _ lease: ArchiveLease,
    sharing shared: @escaping @Sendable (SessionRecord) -> SessionRecord
  ) async throws(ArchiveError) -> ArchiveCopy {
    try step()
    try await check(lease)
    return disk.state.withLock { state in
      let archive = state.archives[lease.application]
      state.outgoing = ChangeBatch(after: 0, archive?.transactions ?? []).encoded(shared: shared)
      return ArchiveCopy(tip: archive?.tip ?? ReplicaTip(), bytes: state.outgoing.count)
    }
  }

  func copy(of application: String, _ range: Range<Int>) async throws(ArchiveError) -> [UInt8] {
    try step()
    return disk.state.withLock { Array($0.outgoing[range]) }
  }

  func endCopy(of application: String) async {}

  func beginIncoming(_ application: String) async throws(ArchiveError) {
    try step()
    disk.state.withLock { ($0.incoming, $0.isReceiving) = ([], true) }
  }

  func addIncoming(_ bytes: [UInt8], to application: String) async throws(ArchiveError) {
    try step()
    disk.state.withLock { $0.incoming += bytes }
  }

  func endIncoming(_ application: String) async throws(ArchiveError) -> CarriedCopy {
    try step()
    let bytes = disk.state.withLock { $0.incoming }
    let batch = try? ChangeBatch(decoding: bytes)
    guard let batch = bytes.isEmpty ? ChangeBatch(after: 0, []) : batch else {
      throw ArchiveError(.unreadable, "the copy is damaged")
    }
    let name = disk.newName()
    let arrived = CarriedDisk.Archive(name: name, transactions: batch.transactions)
    disk.state.withLock { $0.arrived = arrived }
    return CarriedCopy(archive: name, tip: arrived.tip)
  }

  func dropIncoming(_: String) async { disk.state.withLock { $0.isReceiving = false } }

  func install(_ application: String) async throws(ArchiveError) {
    try step()
    disk.state.withLock { ($0.archives[application], $0.isReceiving) = ($0.arrived, false) }
    await forget(application)
  }

  func setAside(_ application: String) async throws(ArchiveError) -> String {
    try step()
    return disk.state.withLock { state in
      let name = "\(application)+conflict-\(state.conflicts.count + 1)"
      state.conflicts[name] = state.archives[application]
      return name
    }
  }

  func setAside() async throws(ArchiveError) -> [String: Int64] {
    disk.state.withLock { $0.conflicts.mapValues { _ in 0 } }
  }

  func removeSetAside(_ application: String) async throws(ArchiveError) { disk.state.withLock { $0.conflicts = [:] } }

  // MARK: The rest

  func compute<Value>(for application: String, _ work: @Sendable () -> sending Value) async -> sending Value { work() }

  func read(
    _ nodes: [NodeID],
    at point: ArchivePoint,
    lease: ArchiveLease
  ) async throws(ArchiveError) -> [StateReading?] { try await memory.read(nodes, at: point, lease: lease) }

  func scan(
    after node: NodeID?,
    limit: Int,
    at point: ArchivePoint,
    lease: ArchiveLease
  ) async throws(ArchiveError) -> [NodeReading] {
    try await memory.scan(after: node, limit: limit, at: point, lease: lease)
  }

  func maintain(_ lease: ArchiveLease, holding: [SequenceNumber]) async throws(ArchiveError) -> Bool { false }

  func verify(
    _ lease: ArchiveLease,
    from position: VerificationPosition?
  ) async throws(ArchiveError) -> VerificationPiece { try await memory.verify(lease, from: position) }

  func backUp(_ lease: ArchiveLease, replacingFormer: Bool, leavingRoom: Bool) async throws(ArchiveError) -> Int { 0 }

  func comeRound() async -> UInt64 { await memory.comeRound() }

  nonisolated var progress: StoreProgress { StoreProgress() }
  nonisolated let sizes = ArchiveSizes()

  func list() async throws(ArchiveError) -> [ArchiveSummary] { try await memory.list() }
}
