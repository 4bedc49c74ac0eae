// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// Decides how a host that has got the lease brings its copy and the replica together. Compares neither clocks nor
/// numbers of leases nor contents: copy and replica are equal up to `common`, which the leases that both know prove.
///
/// - If that is where the replica ends, the copy continues the replica.
/// - If that is where the copy ends, the copy is only behind.
/// - Otherwise either has changes that the other lacks: the replica's contents win, and the copy is set aside.
///
/// A replica that was put back to an earlier state ends within what the copy has, or has gone on from there elsewhere.
/// The facts about former leases come from the replica alone. Whatever it claims, a copy is replaced without a trace
/// only by more of the same history; a copy of another history is set aside, even if the archive was just removed.
package struct CatchingUp: Hashable, Sendable {
  package enum Step: Hashable, Sendable {
    /// The copy has all that the replica has, and perhaps more, which is sent.
    case keep
    /// Apply the changes after this one to the copy.
    case apply(after: SequenceNumber)
    /// Replace the copy, if there is one, by the replica's contents, which are empty if the archive was removed.
    case install
  }

  package let step: Step
  /// The copy may have changes that the replica lacks: set it aside before it is replaced.
  package let isConflict: Bool

  /// - Parameters:
  ///   - copy: `nil` if this host has none.
  ///   - standing: the note beside the copy.
  package init(_ copy: CarriedCopy?, _ standing: ReplicaStanding?, _ grant: ReplicaGrant) {
    (step, isConflict) = Self.decide(copy, standing, grant)
  }

  private static func decide(_ copy: CarriedCopy?, _ standing: ReplicaStanding?, _ grant: ReplicaGrant) -> (Step, Bool)
  {
    let isEmpty = grant.tip.sequence == 0
    guard let copy, copy.tip.sequence > 0 else { return (isEmpty ? .keep : .install, false) }
    guard let standing else { return isEmpty ? (.keep, false) : (.install, true) }
    guard standing.history == grant.history else { return (.install, true) }
    // The file was repaired or restored from a backup, so it is not what was shipped. If nothing was shipped, it is all
    // there is.
    guard copy.archive == standing.archive else { return isEmpty ? (.keep, false) : (.install, true) }
    let (sequence, end) = (copy.tip.sequence, grant.tip.sequence)
    let common = standing.common(with: grant, upTo: sequence)
    if common == end { return sequence > end || copy.tip == grant.tip ? (.keep, false) : (.install, true) }
    guard common == sequence else { return (.install, true) }
    return (sequence < grant.base ? .install : .apply(after: sequence), false)
  }
}
