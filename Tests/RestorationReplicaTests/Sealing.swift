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
