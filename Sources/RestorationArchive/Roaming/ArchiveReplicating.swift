// SPDX-License-Identifier: Apache-2.0

/// A store that sends what its archives commit to a replica, so that they can follow their user: what its broker and
/// people who manage archives ask of it. Without one a broker's archives stay on its host.
package protocol ArchiveReplicating: ArchiveStore, ArchiveRoaming {
  nonisolated var host: String { get }
  nonisolated var promise: ReplicaPromise { get }
  /// The name of the sealing key; `nil` if data is not sealed.
  nonisolated var keyID: String? { get }
  nonisolated var figures: ReplicaFigures { get }
  nonisolated var meter: (any ReplicaMeter)? { get }

  /// The states of archives in ascending order of application, and why the replica has not listed them.
  ///
  /// - Parameter application: `nil` for all archives known to this host or the replica.
  nonisolated(nonsending) func states(
    of application: String?
  ) async -> (states: [ReplicaState], failure: ReplicaFailure?)

  /// Waits until the replica has everything committed before the call.
  ///
  /// - Parameters:
  ///   - application: `nil` for all.
  ///   - milliseconds: the longest wait.
  /// - Returns: the number of changes the replica still lacks, by application; `nil` if a former broker left an unknown
  ///   number.
  nonisolated(nonsending) func flush(
    _ application: String?,
    milliseconds: Int64
  ) async -> [String: SequenceNumber?]

  /// Reads the keys again, then sends a new snapshot of an archive that is not in use, sealed with the present key and
  /// for the present reader.
  ///
  /// - Parameter milliseconds: the longest wait.
  nonisolated(nonsending) func migrate(
    _ application: String,
    milliseconds: Int64
  ) async -> Result<Void, ArchiveError>

  /// Sends what former brokers of this host have left, one archive after the other. Archives that another host has are
  /// skipped: the next opening decides about the copy.
  func sendLeft()

  /// The broker is about to end: sends the rest; all closings share one deadline from now on.
  func drain()

  /// Call after `drain`. Returns when the replica has everything, or at the deadline: the number of changes it lacks,
  /// by application.
  nonisolated(nonsending) func drained() async -> [String: SequenceNumber]
}

/// When a transaction is acknowledged.
package enum ReplicaPromise: String, Sendable {
  /// When this host's disk has it.
  case disk
  /// When the replica has it as well.
  case replica
}

/// Receives the duration of each append.
package protocol ReplicaMeter: Sendable {
  func appended(in milliseconds: Int64)
}
