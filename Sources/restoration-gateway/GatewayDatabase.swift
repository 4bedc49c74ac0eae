// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationReplica

/// The database behind the gateway.
struct GatewayDatabase: Sendable {
  static let schema = ""

  init(_ configuration: GatewayConfiguration) throws {}

  func replica(
    owner: String,
    host: String,
    term: LeaseTerm,
    attention: @escaping @Sendable () -> Void
  ) -> any ArchiveReplica { NoReplica() }

  /// Throws if the database does not answer.
  func check() async throws { throw NoReplica.error }

  /// Removes all archives of a user; returns how many there were.
  func erase(_ user: String) async throws -> Int { throw NoReplica.error }
}

/// Without a database.
private struct NoReplica: ArchiveReplica {
  static let error = ReplicaError(.away, "this gateway was built without a database")

  nonisolated(nonsending) func acquire(_: String, as _: ReplicaClaim) async throws(ReplicaError) -> ReplicaGrant {
    throw Self.error
  }

  nonisolated(nonsending) func renew() async throws(ReplicaError) -> ReplicaRenewal { throw Self.error }
  nonisolated(nonsending) func append(_: ReplicaBatch, _: ReplicaLease) async throws(ReplicaError) { throw Self.error }

  nonisolated(nonsending) func load(
    _: ReplicaLease,
    from _: ReplicaPosition
  ) async throws(ReplicaError) -> ReplicaPage { throw Self.error }

  nonisolated(nonsending) func snapshot(_: SnapshotPart, _: ReplicaLease) async throws(ReplicaError) {
    throw Self.error
  }

  nonisolated(nonsending) func release(_: ReplicaLease, _: ReplicaEnd) async throws(ReplicaError) { throw Self.error }
  nonisolated(nonsending) func list() async throws(ReplicaError) -> [ReplicaSummary] { throw Self.error }
}
