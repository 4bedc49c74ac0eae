// SPDX-License-Identifier: Apache-2.0

/// The state of one archive and its replica, for people.
package struct ReplicaState: Hashable, Sendable {
  package enum Lease: String, CaseIterable, Hashable, Sendable {
    case held
    case elsewhere
    case free
    /// The replica does not answer, and this host does not hold the archive.
    case unknown
  }

  package let application: String
  package var lease = Lease.unknown
  /// The lease's holder, as the replica says.
  package var holder: ReplicaHolder?
  /// The end of the copy; `nil` while it is not in use.
  package var sequence: SequenceNumber?
  /// The end of the replica's contents, if known.
  package var stored: SequenceNumber?
  /// Number of committed changes that the replica lacks; `nil` if a former broker may have left some.
  package var changes: SequenceNumber? = 0
  /// Of the data that waits in memory to be sent.
  package var bytes = 0
  /// How long the replica has lacked changes, in milliseconds.
  package var milliseconds: Int64 = 0
  /// A copy of the archive will be sent instead of the waiting batches.
  package var isSnapshotDue = false
  /// The last failure since the replica had everything.
  package var failure: ReplicaFailure?
  /// The copies with changes that only this host had, as `ArchiveCarrying.setAside` lists them.
  package var conflicts: [String: Int64] = [:]

  package init(of application: String) { self.application = application }
}
