// SPDX-License-Identifier: Apache-2.0

/// How one archive and its replica stand, for people.
package struct ReplicaState: Hashable, Sendable {
  /// Who may write the archive.
  package enum Lease: String, CaseIterable, Hashable, Sendable {
    /// This host.
    case held
    /// Another host.
    case elsewhere
    case free
    /// The replica does not answer, and this host does not have it.
    case unknown
  }

  package let application: String
  package var lease = Lease.unknown
  /// Who has it, as the replica says.
  package var holder: ReplicaHolder?
  /// Where the copy ends; `nil` while it is not in use.
  package var sequence: SequenceNumber?
  /// Where the replica's contents end, as far as that is known.
  package var stored: SequenceNumber?
  /// Committed changes that the replica lacks; `nil` if a former broker has left some, or may have.
  package var changes: SequenceNumber? = 0
  /// Of what waits in memory to be sent.
  package var bytes = 0
  /// For how long the replica has not had everything, in milliseconds.
  package var milliseconds: Int64 = 0
  /// A copy of the archive takes the place of what has waited.
  package var isSnapshotDue = false
  /// The last one since the replica had everything.
  package var failure: ReplicaFailure?
  /// Names of files with what only this host had.
  package var conflicts: [String] = []

  package init(of application: String) { self.application = application }

  mutating func add(_ summary: ReplicaSummary, at host: String) {
    (holder, stored) = (summary.holder, lease == .held ? stored : summary.sequence)
    guard lease != .held else { return }
    lease = summary.holder.map { $0.host == host ? .held : .elsewhere } ?? .free
  }
}

/// The keys with which what goes to the replica is sealed, as far as a store has to do with them.
package struct ReplicaKeyring: Sendable {
  /// Names the one with which is sealed.
  package let currentID: @Sendable () -> String
  /// Reads them again; returns why that has failed.
  package let reread: @Sendable () async -> String?

  package init(currentID: @escaping @Sendable () -> String, reread: @escaping @Sendable () async -> String?) {
    (self.currentID, self.reread) = (currentID, reread)
  }
}
