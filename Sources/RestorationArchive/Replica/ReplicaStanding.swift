// SPDX-License-Identifier: Apache-2.0

/// A note beside a host's copy of an archive: the relation of the copy to the replica.
///
/// Each step of an opening is durable before the next. So after any interruption the next opening neither ships what
/// does not continue the replica nor loses what the replica lacks:
/// 1. `lease` is noted, so that this host's next broker may claim it.
/// 2. `catchingUp` is noted before the first batch is applied. A snapshot is noted with its file's UUID before the file
///    replaces the copy. Until then the former note remains as well; the UUID of the copy says which note counts.
/// 3. If the copy may have what the replica lacks, it is set aside before it is replaced.
/// 4. `held` is noted. Only then may the host write: a note of the lease's epoch says that nothing of an earlier one is
///    missing.
/// 5. When everything was shipped and the lease was released, `released` is noted.
package struct ReplicaStanding: Hashable, Sendable {
  package enum Phase: String, CaseIterable, Hashable, Sendable {
    /// The copy has no changes of its own and may be incomplete.
    case catchingUp
    case held, released
  }

  /// The replica's UUID of the contents.
  package var history: String
  /// The newest lease this host has had.
  package var lease: ReplicaEpoch
  /// The copy has everything that was written under this lease and all earlier ones.
  package var epoch: ReplicaEpoch
  package var phase: Phase
  /// The copy's UUID; a file with another UUID is not what was shipped.
  package var archive: String

  package init(history: String, lease: ReplicaEpoch, epoch: ReplicaEpoch, phase: Phase, archive: String) {
    (self.history, self.lease, self.epoch) = (history, lease, epoch)
    (self.phase, self.archive) = (phase, archive)
  }

  /// A broker of this host held the lease when it ended. If another one asks now, that broker is dead.
  package var isClaim: Bool { phase != .released }
}
