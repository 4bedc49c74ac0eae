// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// What is held against an application and the states of its objects after failures of processes (R31).
///
/// Pure: it is told who may have been the cause, and says what is to be done about it. Counts are of failures *in a
/// row*; `Application` tells it when a row is broken.
package struct Blame: Hashable {
  /// Failures in a row.
  package private(set) var strikes = 0
  /// States that are handed out alone, with the failures in a row that each may have caused.
  package private(set) var suspects: [NodeID: Int] = [:]

  /// At so many failures that only it can have caused, an object's state is withheld: fewer if the system said how the
  /// processes ended, more if it could not tell.
  private static let (certainMax, uncertainMax) = (2, 3)
  /// At so many failures for which nothing was withheld, all that the archive holds is.
  private static let strikesMax = 3

  /// What a failure comes to.
  package enum Verdict: Hashable, Sendable {
    /// Nobody knows yet.
    case undecided
    /// It was this one again: its state is to be withheld.
    case quarantine(NodeID)
    /// Nobody was found once more: everything is to be withheld.
    case quarantineArchive
  }

  package init() {}

  /// A process has failed with open decode windows.
  package mutating func failed(_ failure: DecodeTrials.Failure) -> Verdict {
    for node in failure.proven { suspects[node] = nil }
    for node in failure.unproven { suspects[node, default: 0] += 1 }
    if failure.isAnother { strikes += 1 }
    let countMax = failure.isCertain ? Self.certainMax : Self.uncertainMax
    if let node = failure.only, suspects[node, default: 0] >= countMax {
      (suspects[node], strikes) = (nil, 0)
      return .quarantine(node)
    }
    guard strikes >= Self.strikesMax else { return .undecided }
    self = Blame()
    return .quarantineArchive
  }

  /// The state was taken in and the process lives, or the state is gone.
  ///
  /// - Returns: whether nobody is suspected any longer, which is worth being written down by itself. If the broker is
  ///   killed before it writes down that this state is not, it only travels alone once more.
  package mutating func acquit(_ node: NodeID) -> Bool { suspects.removeValue(forKey: node) != nil && suspects.isEmpty }

  /// A restoration has completed, which ends the row. What a state may have caused counts until it has been handed out
  /// without a failure: a restoration that did not touch it says nothing about it.
  ///
  /// - Returns: whether anything is different now.
  package mutating func restorationCompleted() -> Bool {
    defer { strikes = 0 }
    return strikes > 0
  }

  /// Forgets nodes that are gone.
  mutating func keep(where isThere: (NodeID) -> Bool) { suspects = suspects.filter { isThere($0.key) } }
}

// As it stands in the facts of a run.
extension Blame: StoredFacts {
  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    var held = Int64(strikes)
    try members.stored("strikes", count: &held)
    strikes = Int(held)
    var counts: [String: StoredCount] = [:]
    for (node, count) in suspects { counts[String(node)] = StoredCount(Int64(count)) }
    try members.stored("suspects", &counts)
    suspects = [:]
    for (node, count) in counts { if let node = NodeID(node) { suspects[node] = Int(count.value) } }
  }
}
