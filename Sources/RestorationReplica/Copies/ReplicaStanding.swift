// SPDX-License-Identifier: Apache-2.0

/// A note beside a host's copy of an archive: the relation of the copy to the replica.
///
/// Each step of an opening is durable before the next. So after any interruption the next opening neither ships what
/// does not continue the replica nor loses what the replica lacks:
/// 1. The lease is noted, so that this host's next broker may claim it.
/// 2. `catchingUp` is noted before the first batch is applied. A snapshot is noted with its file's UUID before the file
///    replaces the copy. Until then the former note remains as well; the UUID of the copy says which note counts.
/// 3. If the copy may have what the replica lacks, it is set aside before it is replaced.
/// 4. `held` is noted. Only then may the host write.
/// 5. When everything was shipped and the lease was released, `released` is noted.
package struct ReplicaStanding: Hashable, Sendable {
  package enum Phase: String, CaseIterable, Hashable, Sendable {
    /// The copy has no changes of its own and may be incomplete.
    case catchingUp
    case held, released
  }

  /// The replica's UUID of the contents.
  package var history: String
  /// How far the copy has what was written under the newest known leases, the oldest first. The last one is this
  /// host's own.
  package var reigns: [ReplicaReign]
  package var phase: Phase
  /// The copy's UUID; a file with another UUID is not what was shipped.
  package var archive: String

  package init(history: String, reigns: [ReplicaReign], phase: Phase, archive: String) {
    (self.history, self.reigns, self.phase, self.archive) = (history, reigns, phase, archive)
  }

  /// Whether this lease has ended, whatever the replica says of its holder: a later one of this host has ended it, and
  /// the replica was put back; or it is that of a former broker of this host, which is dead if another one asks.
  package func proves(theEndOf lease: LeaseID) -> Bool {
    reigns.dropLast().contains { $0.lease == lease } || phase != .released && self.lease == lease
  }
}
