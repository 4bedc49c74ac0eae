// SPDX-License-Identifier: Apache-2.0

/// Keeps archives in memory: for tests, and as a second engine that shows the interface is not SQLite's.
package actor MemoryArchiveStore: ArchiveStore {
  private let executor: any SerialExecutor
  private let newIdentifier: @Sendable () -> String
  private let quota: ArchiveQuota
  private let upkeep: ArchiveUpkeep
  private var archives: [String: OpenArchive<MemoryArchive>] = [:]
  private var lastEpoch: Int64 = 0
  private var rounds: UInt64 = 0
  package nonisolated let sizes = ArchiveSizes()

  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// - Parameters:
  ///   - executor: does all the work; `nil` for a lane of the store's own.
  ///   - newIdentifier: makes a new archive's name; random if `nil`.
  package init(
    on executor: (any SerialExecutor)? = nil,
    newIdentifier: (@Sendable () -> String)? = nil,
    quota: ArchiveQuota = ArchiveQuota(),
    upkeep: ArchiveUpkeep = ArchiveUpkeep()
  ) throws(ArchiveError) {
    if let executor { self.executor = executor } else { self.executor = try ArchiveThreads().lane() }
    self.newIdentifier = newIdentifier ?? { SQLiteArchive.newUUID(of: SystemFiles()) }
    (self.quota, self.upkeep) = (quota, upkeep)
  }

  package func open(_ application: String, for purpose: ArchivePurpose) async throws(ArchiveError) -> ArchiveOpening {
    guard ArchiveFiles.isApplication(application) else {
      throw ArchiveError(.definite, "not the name of an application")
    }
    lastEpoch += 1
    if let archive = archives[application] {
      try archive.reopen(epoch: lastEpoch)
      return try archive.opening()
    }
    guard purpose.creates else { throw ArchiveError(.absent, "there is no archive of \(application)") }
    if let limit = sizes.add(application, bytes: 0, within: quota) {
      throw ArchiveError(limit, "no further archive is allowed; discard one, or raise the limit")
    }
    let rows = MemoryArchive(archive: newIdentifier())
    let archive = OpenArchive(application, rows: rows, index: rows.index(), epoch: lastEpoch, upkeep: upkeep)
    archives[application] = archive
    return try archive.opening()
  }

  package func compute<Value>(
    for application: String,
    _ work: @Sendable () -> sending Value
  ) async -> sending Value { work() }

  /// The content of an opening; takes no lease.
  package func contents(of application: String) -> ArchiveOpening? { try? archives[application]?.opening() }

  package func comeRound() async -> UInt64 {
    rounds += 1
    return rounds
  }

  package nonisolated var progress: StoreProgress { StoreProgress() }

  private func archive(_ lease: ArchiveLease) throws(ArchiveError) -> OpenArchive<MemoryArchive> {
    guard let archive = archives[lease.application] else {
      throw ArchiveError(.fenced, "there is no archive of \(lease.application)")
    }
    try archive.check(lease)
    return archive
  }

  package func apply(
    _ batch: ArchiveBatch,
    lease: ArchiveLease,
    expecting: SequenceNumber,
    changeID: ChangeID,
    holding: [SequenceNumber]
  ) async throws(ArchiveError) -> ArchiveReceipt {
    let changes = batch.take()
    let archive = try archive(lease)
    let before = archive.index.totals.reachableBytes
    let receipt = try archive.apply(changes, expecting: expecting, changeID: changeID, holding: holding)
    if receipt.reachableBytes != before { sizes.note(lease.application, bytes: receipt.reachableBytes) }
    return receipt
  }

  package func read(
    _ nodes: [NodeID],
    at point: ArchivePoint,
    lease: ArchiveLease
  ) async throws(ArchiveError) -> [StateReading?] {
    try archive(lease).read(nodes, at: point)
  }

  package func scan(
    after node: NodeID?,
    limit: Int,
    at point: ArchivePoint,
    lease: ArchiveLease
  ) async throws(ArchiveError) -> [NodeReading] {
    try archive(lease).scan(after: node ?? 0, limit: limit, at: point)
  }

  package func verify(
    _ lease: ArchiveLease,
    from position: VerificationPosition?
  ) async throws(ArchiveError) -> VerificationPiece {
    try archive(lease).verify(from: position)
  }

  package func maintain(_ lease: ArchiveLease, holding: [SequenceNumber]) async throws(ArchiveError) -> Bool {
    try archive(lease).purge(holding: holding)
  }

  /// Only checks the lease: a backup in memory would be of no use.
  package func backUp(
    _ lease: ArchiveLease,
    replacingFormer: Bool,
    leavingRoom: Bool
  ) async throws(ArchiveError) -> Int {
    try archive(lease).rows.bytes
  }

  package func close(_ lease: ArchiveLease) async {
    guard let archive = archives[lease.application], archive.epoch == lease.epoch else { return }
    // No lease has this epoch: the old one is fenced off.
    lastEpoch += 1
    try? archive.reopen(epoch: lastEpoch)
  }

  package func remove(_ application: String, damaged: Bool) async {
    archives[application] = nil
    sizes.note(application, bytes: nil)
  }

  package func list() async throws(ArchiveError) -> [ArchiveSummary] {
    var summaries: [ArchiveSummary] = []
    for archive in archives.values {
      var summary = try archive.summary()
      summary.bytes = archive.rows.bytes
      summaries.append(summary)
    }
    return summaries.sorted { $0.application < $1.application }
  }
}
