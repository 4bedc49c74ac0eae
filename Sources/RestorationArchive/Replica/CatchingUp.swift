// SPDX-License-Identifier: Apache-2.0

/// How a host's copy of an archive becomes what the replica has, when the host has got the lease: which of the two
/// continues the other, told without a clock and without comparing contents.
///
/// - A copy continues the replica if nothing was written there under a later lease than the copy knows.
/// - Else it is only behind if it ends where its lease has left the replica, and the replica has more.
/// - Else both may have what the other does not have: the replica's contents win, and the copy is set aside.
///
/// What the replica says of former leases is its word alone. So whatever it says, a copy gives way unseen only to more
/// of the same history; a copy of another history is set aside, though the archive may just have been removed.
package struct CatchingUp: Hashable, Sendable {
  /// A copy as its store has opened it.
  package struct Copy: Hashable, Sendable {
    /// Its UUID.
    package var archive: String
    package var tip: ReplicaTip

    package init(archive: String, tip: ReplicaTip) { (self.archive, self.tip) = (archive, tip) }
  }

  /// What becomes of what is at the replica, or of what is here.
  package enum Step: Hashable, Sendable {
    /// Both have the same.
    case keep
    /// The replica gets a snapshot of the copy, which continues it.
    case ship
    /// The copy gets what is behind its tip.
    case apply(after: SequenceNumber)
    /// The replica's contents take the place of the copy, if there is one.
    case install
    /// The archive was removed: a new one begins in the place of the copy.
    case renew
  }

  package let step: Step
  /// The copy has what the replica may not have, and is to be set aside before it goes.
  package let isConflict: Bool

  /// Whether an open archive can go on with it: its contents stay what its users have seen.
  package var isContinuation: Bool { step == .keep || step == .ship }

  /// - Parameter copy: `nil` if this host has none.
  /// - Parameter standing: what was noted beside it.
  package init(_ copy: Copy?, _ standing: ReplicaStanding?, _ grant: ReplicaGrant) {
    (step, isConflict) = Self.decide(copy, standing, grant)
  }

  private static func decide(_ copy: Copy?, _ standing: ReplicaStanding?, _ grant: ReplicaGrant) -> (Step, Bool) {
    let isEmpty = grant.tip.sequence == 0
    guard let copy, copy.tip.sequence > 0 else { return (isEmpty ? .keep : .install, false) }
    guard let standing else { return isEmpty ? (.ship, false) : (.install, true) }
    let isOurs = copy.archive == standing.archive
    let isPartial = standing.phase == .catchingUp
    let (sequence, end) = (copy.tip.sequence, grant.tip.sequence)
    guard standing.history == grant.history else { return (isEmpty ? .renew : .install, true) }
    // Repaired, or a backup in its place: not what was shipped. But all there is, if nothing was.
    guard isOurs else { return isEmpty ? (.ship, false) : (.install, true) }
    let follow: Step = sequence < grant.base ? .install : .apply(after: sequence)
    guard standing.epoch < grant.tipEpoch else {
      if copy.tip == grant.tip { return (.keep, false) }
      if sequence > end { return (.ship, false) }
      if isPartial { return (follow, false) }
      // A former state of the file is back, under the same UUID; or something else.
      return (.install, true)
    }
    let isBehind = isPartial ? sequence <= grant.reign?.sequence ?? 0 : copy.tip == grant.reign
    return isBehind && sequence < end ? (follow, false) : (.install, true)
  }
}
