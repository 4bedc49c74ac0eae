// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import Synchronization

/// A store around another one, whose archives follow their user from host to host.
///
/// The inner store commits transactions, and they are shipped to the replica from there. Reads and writes wait for this
/// host only, unless the setting requires the replica's acknowledgement. Opening and closing wait for the replica.
///
/// Bounds:
/// - Data that waits to be sent: `ShippingQueue.Limits.backlogBytesMax` an archive and `backlogBytesMax` in all. Beyond
///   that a snapshot replaces it, of which one part at a time is in memory. Transactions gathered before are sent at
///   `eagerMemory`.
/// - The wait of a transaction for the replica: `Limits.patience`. Then waiting ones fail as `unconfirmed`, and later
///   ones are refused at once until the replica answers.
/// - The wait of an opening for another host: `LeaseRequest.patience`. Of a closing for the replica:
///   `stopMilliseconds`, which all closings share after `drain`.
/// - How long this host writes without an answer of the replica: the term of its leases.
/// - Memory for archives that are not open: their number.
package final class ReplicatedStore: ArchiveStore {
  let context: ReplicationContext
  let isSendingLeft = Mutex(false)
  private let archives = Mutex<[String: ReplicatedArchive]>([:])

  /// - Parameters:
  ///   - executor: runs all work for the replica; `nil`: a separate thread.
  ///   - shared: reduces a session's record to what other hosts may know.
  ///   - replica: makes the replica; its argument must be called when another host waits for a lease.
  package init(
    around base: any ArchiveCarrying,
    _ settings: ReplicaSettings,
    clock: ReplicaClock,
    on executor: ReplicaExecutor? = nil,
    sharing shared: @escaping @Sendable (SessionRecord) -> SessionRecord,
    replica: (_ attention: @escaping @Sendable () -> Void) -> any ArchiveReplica
  ) throws(ArchiveError) {
    let leases = LeaseRenewals()
    let ownExecutor: ReplicaExecutor
    if let executor { ownExecutor = executor } else { ownExecutor = try ArchiveThreads().lane() }
    context = ReplicationContext(
      base: base,
      replica: replica { leases.renew() },
      settings: settings,
      clock: clock,
      executor: ownExecutor,
      shared: shared,
      leases: leases
    )
    leases.begin(context) { [weak self] in self?.all ?? [] }
  }

  var all: [ReplicatedArchive] { archives.withLock { Array($0.values) } }

  func archive(_ application: String) -> ReplicatedArchive {
    archives.withLock { archives in
      if let archive = archives[application] { return archive }
      let archive = ReplicatedArchive(application, context)
      archives[application] = archive
      return archive
    }
  }

  private var base: any ArchiveCarrying { context.base }

  /// `nil` if it was set aside: such a copy stays on its host.
  private func roaming(_ application: String) -> ReplicatedArchive? {
    ArchiveFiles.isSetAside(application) ? nil : archive(application)
  }

  // MARK: One application

  nonisolated(nonsending) package func open(
    _ application: String,
    for purpose: ArchivePurpose
  ) async throws(ArchiveError) -> ArchiveOpening {
    if ArchiveFiles.isSetAside(application) { return try await base.open(application, for: purpose) }
    guard ArchiveFiles.isApplication(application) else {
      throw ArchiveError(.definite, "not the name of an application")
    }
    return try await archive(application).opening(for: purpose).get()
  }

  nonisolated(nonsending) package func apply(
    _ batch: ArchiveBatch,
    lease: ArchiveLease,
    expecting: SequenceNumber,
    changeID: ChangeID,
    holding: [SequenceNumber]
  ) async throws(ArchiveError) -> ArchiveReceipt {
    let archive = roaming(lease.application)
    try archive?.begun()
    defer { archive?.finished() }
    batch.keep()
    let receipt = try await base.apply(
      batch,
      lease: lease,
      expecting: expecting,
      changeID: changeID,
      holding: holding
    )
    let committed = CommittedTransaction(upto: receipt.sequence, change: changeID, changes: batch.takeKept())
    if !committed.changes.isEmpty { try await archive?.ship(committed) }
    return receipt
  }

  nonisolated(nonsending) package func close(_ lease: ArchiveLease) async {
    guard let archive = roaming(lease.application) else { return await base.close(lease) }
    await archive.close(lease)
  }

  /// Removes the archive for all hosts, or a copy that was set aside.
  nonisolated(nonsending) package func remove(_ application: String, damaged: Bool) async throws(ArchiveError) {
    guard let archive = roaming(application) else { return try await base.remove(application, damaged: damaged) }
    try await archive.removal(damaged: damaged).get()
  }

  nonisolated(nonsending) package func compute<Value>(
    for application: String,
    _ work: @Sendable () -> sending Value
  ) async -> sending Value { await base.compute(for: application, work) }

  nonisolated(nonsending) package func read(
    _ nodes: [NodeID],
    at point: ArchivePoint,
    lease: ArchiveLease
  ) async throws(ArchiveError) -> [StateReading?] {
    try await base.read(nodes, at: point, lease: lease)
  }

  nonisolated(nonsending) package func scan(
    after node: NodeID?,
    limit: Int,
    at point: ArchivePoint,
    lease: ArchiveLease
  ) async throws(ArchiveError) -> [NodeReading] {
    try await base.scan(after: node, limit: limit, at: point, lease: lease)
  }

  nonisolated(nonsending) package func maintain(
    _ lease: ArchiveLease,
    holding: [SequenceNumber]
  ) async throws(ArchiveError) -> Bool {
    let isMore = try await base.maintain(lease, holding: holding)
    if !isMore { await roaming(lease.application)?.compact() }
    return isMore
  }

  nonisolated(nonsending) package func verify(
    _ lease: ArchiveLease,
    from position: VerificationPosition?
  ) async throws(ArchiveError) -> VerificationPiece {
    try await base.verify(lease, from: position)
  }

  nonisolated(nonsending) package func backUp(
    _ lease: ArchiveLease,
    replacingFormer: Bool,
    leavingRoom: Bool
  ) async throws(ArchiveError) -> Int {
    try await base.backUp(lease, replacingFormer: replacingFormer, leavingRoom: leavingRoom)
  }

  // MARK: All applications

  nonisolated(nonsending) package func setOpenArchivesMax(_ max: Int) async { await base.setOpenArchivesMax(max) }

  nonisolated(nonsending) package func comeRound() async -> UInt64 { await base.comeRound() }

  package nonisolated var progress: StoreProgress { base.progress }
  package nonisolated var sizes: ArchiveSizes { base.sizes }

  /// The archives of this host; `others` has those of other hosts.
  nonisolated(nonsending) package func list() async throws(ArchiveError) -> [ArchiveSummary] { try await base.list() }
}

extension ReplicatedStore: ArchiveRoaming {
  package func takeOver(_ application: String) { roaming(application)?.takeOver() }

  package func observe(_ observer: @escaping @Sendable (ArchiveRoamingEvent) -> Void) {
    context.observer.withLock { $0 = observer }
  }

  nonisolated(nonsending) package func others(
    within milliseconds: Int64?
  ) async -> (archives: [ArchiveSummary], isComplete: Bool) {
    let isComplete = await context.look(within: milliseconds)
    let others = context.known.withLock { $0 }.filter { $0.holder?.host != host }
    return (others.map { ArchiveSummary(of: $0, at: host) }, isComplete)
  }
}

extension ReplicatedStore: ArchiveCopying {
  nonisolated(nonsending) package func copy(
    _ lease: ArchiveLease,
    to path: String
  ) async throws(ArchiveCopyError) -> Int {
    guard let copying = base as? any ArchiveCopying else {
      throw .archive(ArchiveError(.definite, "this store keeps no files to copy"))
    }
    return try await copying.copy(lease, to: path)
  }
}

/// Runs replica calls, so that failures resume on this executor.
private actor ReplicaQuestion {
  private let replica: any ArchiveReplica
  private nonisolated let executor: ReplicaExecutor

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(to replica: any ArchiveReplica, on executor: ReplicaExecutor) {
    (self.replica, self.executor) = (replica, executor)
  }

  func list() async -> Result<[ReplicaSummary], ReplicaError> {
    let listing: Result<[ReplicaSummary], ReplicaError>
    do throws(ReplicaError) { listing = .success(try await replica.list()) } catch { listing = .failure(error) }
    return listing
  }
}

/// State shared by the archives of a `ReplicatedStore`.
final class ReplicationContext: Sendable {
  let base: any ArchiveCarrying
  let replica: any ArchiveReplica
  let settings: ReplicaSettings
  let clock: ReplicaClock
  let executor: ReplicaExecutor
  let shared: @Sendable (SessionRecord) -> SessionRecord
  let leases: LeaseRenewals
  let observer = Mutex<(@Sendable (ArchiveRoamingEvent) -> Void)?>(nil)
  let backlog = Mutex(0)
  /// The deadline of closings; `nil` before `drain`.
  let stopping = Mutex<Int64?>(nil)
  /// Totals only, without current values.
  let figures = Mutex(ReplicaFigures())
  let known = Mutex<[ReplicaSummary]>([])

  init(
    base: any ArchiveCarrying,
    replica: any ArchiveReplica,
    settings: ReplicaSettings,
    clock: ReplicaClock,
    executor: ReplicaExecutor,
    shared: @escaping @Sendable (SessionRecord) -> SessionRecord,
    leases: LeaseRenewals
  ) {
    (self.base, self.replica, self.settings, self.clock) = (base, replica, settings, clock)
    (self.executor, self.shared, self.leases) = (executor, shared, leases)
  }

  var now: Int64 { clock.now() }

  /// The version of a reader that copies and batches of this host need.
  var reader: Int { max(base.copyVersion, Int(ChangeBatch.version)) }

  /// Returns the replica's archives.
  nonisolated(nonsending) func look() async -> Result<[ReplicaSummary], ReplicaError> {
    let listing = await ReplicaQuestion(to: replica, on: executor).list()
    if case .success(let summaries) = listing { known.withLock { $0 = summaries } }
    return listing
  }

  /// Returns whether the replica has answered in time.
  nonisolated(nonsending) func look(within milliseconds: Int64?) async -> Bool {
    let (latch, silence) = (Latch(), ArchiveError(.definite, "the fleet's store does not answer"))
    let asking = start {
      if case .success = await self.look() { latch.open() } else { latch.open(silence) }
    }
    if let milliseconds {
      clock.wake(milliseconds) {
        latch.open(silence)
        asking.cancel()
      }
    }
    return await latch.wait() == nil
  }

  /// A latch that opens at this time at the latest.
  func latch(openingAt time: Int64) -> Latch {
    let latch = Latch()
    clock.wake(max(0, time - now)) { latch.open() }
    return latch
  }

  func tell(_ event: ArchiveRoamingEvent) {
    if case .conflict = event { figures.withLock { $0.conflicts += 1 } }
    observer.withLock { $0 }?(event)
  }

  @discardableResult
  func start(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    Task(executorPreference: executor) { await body() }
  }

  var closingDeadline: Int64 { stopping.withLock { $0 } ?? now + settings.stopMilliseconds }
}
