// SPDX-License-Identifier: Apache-2.0

/// What a host has noted beside its copy of an archive: how the copy and the replica belong together.
///
/// Each step of an opening is durable before the next, so that wherever a host is interrupted, its next opening neither
/// ships what does not continue the replica nor loses what the replica does not have:
/// 1. `lease` is noted, so that the broker's next life may claim it.
/// 2. `catchingUp` is noted before the first batch is applied. A snapshot is noted with the UUID of its file before the
///    file takes the copy's place: until then the former note is the copy's, so both are kept; which one counts, the
///    UUID of the copy says.
/// 3. If the copy may have what the replica does not have, it is set aside before anything takes its place.
/// 4. `held` is noted. Only now may the host write: a note of the lease's epoch says that nothing of an earlier one is
///    missing.
/// 5. When everything was shipped and the lease was given back, `released` is noted.
package struct ReplicaStanding: Hashable, Sendable {
  package enum Phase: String, CaseIterable, Hashable, Sendable {
    /// The copy has nothing of its own, and need not be complete.
    case catchingUp
    case held, released
  }

  /// The replica's UUID of the contents.
  package var history: String
  /// The newest lease that this host has had.
  package var lease: ReplicaEpoch
  /// The contents are known up to this lease: nothing that was written under it or an earlier one is unknown here.
  package var epoch: ReplicaEpoch
  package var phase: Phase
  /// The UUID of the copy; another one in its place is not what was shipped.
  package var archive: String

  package init(history: String, lease: ReplicaEpoch, epoch: ReplicaEpoch, phase: Phase, archive: String) {
    (self.history, self.lease, self.epoch) = (history, lease, epoch)
    (self.phase, self.archive) = (phase, archive)
  }

  /// A broker of this host held it when it ended: it is not alive, if another one asks.
  package var isClaim: Bool { phase != .released }
}
