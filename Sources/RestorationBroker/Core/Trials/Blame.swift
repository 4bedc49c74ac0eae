// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// Failures counted against an application and the states of its objects (R31).
///
/// Pure: it hears of failures and returns verdicts. It counts failures in a row; `Application` reports the end of a
/// row.
package struct Blame: Hashable {
  package private(set) var strikes = 0
  /// States that are delivered alone, with the number of failures in a row that each may have caused.
  package private(set) var suspects: [NodeID: Int] = [:]

  /// An object's state is withheld after this many failures that only it can have caused: fewer if the system reported
  /// how the processes ended, more if not.
  private static let (certainMax, uncertainMax) = (2, 3)
  /// All states are withheld after this many failures without a quarantine.
  private static let strikesMax = 3

  package enum Verdict: Hashable, Sendable {
    case undecided
    /// This state has caused the failures.
    case quarantine(NodeID)
    /// The cause remains unknown, so all states are withheld.
    case quarantineArchive
  }

  package init() {}

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

  /// The state was proven or is gone.
  ///
  /// - Returns: whether no suspects are left, which is written at once. The acquittal of one among others is not: after
  ///   a kill of the broker it would be delivered alone once more.
  package mutating func acquit(_ node: NodeID) -> Bool { suspects.removeValue(forKey: node) != nil && suspects.isEmpty }

  /// A completed restoration ends the row. Suspects stay: a restoration without them proves nothing about them.
  ///
  /// - Returns: whether anything has changed.
  package mutating func restorationCompleted() -> Bool {
    defer { strikes = 0 }
    return strikes > 0
  }

  mutating func keep(where isThere: (NodeID) -> Bool) { suspects = suspects.filter { isThere($0.key) } }
}

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
