// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import RestorationArchive
internal import RestorationReplica
internal import Synchronization
internal import TestSupport

/// What tests of sealing need.
enum Sealing {
  /// Of one user; `nil` if there is no libsodium.
  static let keys: ReplicaKeys? = try? ReplicaKeys { () throws(ReplicaKeyError) in [try ReplicaKey()] }

  static let isUsable = keys != nil
  /// Whether tests of it run; in CI they must.
  static let isTested = isUsable || Environment.isCI
  static let requirement = "needs libsodium (Debian: libsodium23)"
}

/// A replica of which somebody has the server: what is loaded and listed is as he wants it to be.
final class TamperedReplica: ArchiveReplica {
  private let base: any ArchiveReplica
  private let pages = Mutex<@Sendable (ReplicaPage) -> ReplicaPage>({ $0 })
  private let summaries = Mutex<@Sendable (ReplicaSummary) -> ReplicaSummary>({ $0 })

  init(around base: any ArchiveReplica) { self.base = base }

  func changePages(_ change: @escaping @Sendable (ReplicaPage) -> ReplicaPage) { pages.withLock { $0 = change } }
  func changeSummaries(_ change: @escaping @Sendable (ReplicaSummary) -> ReplicaSummary) {
    summaries.withLock { $0 = change }
  }

  nonisolated(nonsending) func acquire(
    _ application: String,
    as claim: ReplicaClaim
  ) async throws(ReplicaError) -> ReplicaGrant { try await base.acquire(application, as: claim) }

  nonisolated(nonsending) func renew() async throws(ReplicaError) -> ReplicaRenewal { try await base.renew() }

  nonisolated(nonsending) func append(_ batch: ReplicaBatch, _ lease: ReplicaLease) async throws(ReplicaError) {
    try await base.append(batch, lease)
  }

  nonisolated(nonsending) func load(
    _ lease: ReplicaLease,
    from position: ReplicaPosition
  ) async throws(ReplicaError) -> ReplicaPage {
    let page = try await base.load(lease, from: position)
    return pages.withLock { $0 }(page)
  }

  nonisolated(nonsending) func snapshot(_ part: SnapshotPart, _ lease: ReplicaLease) async throws(ReplicaError) {
    try await base.snapshot(part, lease)
  }

  nonisolated(nonsending) func release(_ lease: ReplicaLease, _ end: ReplicaEnd) async throws(ReplicaError) {
    try await base.release(lease, end)
  }

  nonisolated(nonsending) func list(after application: String?) async throws(ReplicaError) -> ReplicaListing {
    let change = summaries.withLock { $0 }
    var listing = try await base.list(after: application)
    listing.archives = listing.archives.map(change)
    return listing
  }
}

/// A host that seals, and a server that is not to be trusted.
struct SealedHost {
  let memory: MemoryReplica
  let server: TamperedReplica
  let broker: ReplicaBroker

  init(
    on memory: MemoryReplica = MemoryReplica(pageMax: 16),
    application: String = ReplicaFixture.application,
    keys: ReplicaKeys? = nil,
    report: @escaping @Sendable (ReplicaError) -> Void = { _ in }
  ) throws {
    self.memory = memory
    server = TamperedReplica(around: memory.link(from: "A"))
    let keys = try keys ?? ReplicaKeys { () throws(ReplicaKeyError) in [try ReplicaKey()] }
    broker = ReplicaBroker(
      link: SealedReplica(around: server, keys: keys, report: report),
      application: application
    )
  }

  /// Stores a snapshot in parts with these bytes.
  func snapshot(_ sequence: SequenceNumber, _ parts: [[UInt8]], _ lease: ReplicaLease) async throws {
    let tip = ReplicaTip(sequence: sequence, change: .numbered(sequence))
    for (number, bytes) in parts.enumerated() {
      let part = SnapshotPart(
        attempt: sequence,
        tip: tip,
        reader: 1,
        number: number,
        count: parts.count,
        bytes: bytes
      )
      try await broker.link.snapshot(part, lease)
    }
  }

  /// Why the contents cannot be loaded from this position on; `nil` if they can.
  func refusal(
    from position: ReplicaPosition = .batches(after: 0),
    _ lease: ReplicaLease
  ) async -> ReplicaError? {
    do throws(ReplicaError) {
      _ = try await broker.load(position, lease)
      return nil
    } catch {
      return error
    }
  }
}
