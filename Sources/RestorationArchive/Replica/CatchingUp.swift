// SPDX-License-Identifier: Apache-2.0

/// Decides how a host that has got the lease brings its copy and the replica together. Compares neither clocks nor
/// contents.
///
/// - The copy continues the replica if no later lease than the copy knows has written there.
/// - Otherwise the copy is only behind, if it ends where its lease left the replica, and the replica has more.
/// - Otherwise either may have changes that the other lacks: the replica's contents win, and the copy is set aside.
///
/// The facts about former leases come from the replica alone. Whatever it claims, a copy is replaced without a trace
/// only by more of the same history; a copy of another history is set aside, even if the archive was just removed.
package struct CatchingUp: Hashable, Sendable {
  /// A copy as its store has opened it.
  package struct Copy: Hashable, Sendable {
    /// Its UUID.
    package var archive: String
    package var tip: ReplicaTip

    package init(archive: String, tip: ReplicaTip) { (self.archive, self.tip) = (archive, tip) }
  }

  package enum Step: Hashable, Sendable {
    /// Both are equal.
    case keep
    /// Send a snapshot of the copy, which continues the replica, to the replica.
    case ship
    /// Apply the changes after this one to the copy.
    case apply(after: SequenceNumber)
    /// Replace the copy, if there is one, by the replica's contents.
    case install
    /// The archive was removed: start a new one in place of the copy.
    case renew
  }

  package let step: Step
  /// The copy may have changes that the replica lacks: set it aside before it is replaced.
  package let isConflict: Bool

  /// Whether an open archive can stay open: its contents remain what its users have seen.
  package var isContinuation: Bool { step == .keep || step == .ship }

  /// - Parameters:
  ///   - copy: `nil` if this host has none.
  ///   - standing: the note beside the copy.
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
    // The file was repaired or restored from a backup, so it is not what was shipped. If nothing was shipped, it is all
    // there is.
    guard isOurs else { return isEmpty ? (.ship, false) : (.install, true) }
    let follow: Step = sequence < grant.base ? .install : .apply(after: sequence)
    guard standing.epoch < grant.tipEpoch else {
      if copy.tip == grant.tip { return (.keep, false) }
      if sequence > end { return (.ship, false) }
      if isPartial { return (follow, false) }
      // An earlier state of the file under the same UUID, or another file.
      return (.install, true)
    }
    let isBehind = isPartial ? sequence <= grant.reign?.sequence ?? 0 : copy.tip == grant.reign
    return isBehind && sequence < end ? (follow, false) : (.install, true)
  }
}
