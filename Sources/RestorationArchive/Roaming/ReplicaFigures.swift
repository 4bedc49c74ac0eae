// SPDX-License-Identifier: Apache-2.0

/// Counters of a store with a replica since it was made, and its current values.
package struct ReplicaFigures: Hashable, Sendable {
  package var appends: Int64 = 0
  package var snapshots: Int64 = 0
  package var conflicts: Int64 = 0
  package var failures: [ReplicaFailure.Cause: Int64] = [:]

  /// Missing at the replica: changes, bytes that wait to be sent, and the longest delay in milliseconds.
  package var changes: Int64 = 0
  package var bytes = 0
  package var milliseconds: Int64 = 0
  package var leases: [Holding: Int] = [:]

  package init() {}

  /// The state of an archive on this host.
  package enum Holding: String, CaseIterable, Hashable, Sendable {
    case held
    /// In use, but the replica has been silent for too long.
    case lapsed
    /// Another server has taken over, and the lease is requested again.
    case claiming
    /// No longer in use; the rest is being sent.
    case closing
  }
}
