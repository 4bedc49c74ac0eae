// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// What is held against an application and the states of its objects after crashes (R31).
///
/// Pure: it is told who may have been the cause, and says what is to be done about it. Counts are of crashes *in a
/// row*; `Application` tells it when a row is broken.
package struct Blame: Hashable {
  /// Crashes in a row for which no object was found guilty.
  package private(set) var strikes = 0
  /// States that are handed out alone, with the crashes in a row that each was found guilty of.
  package private(set) var suspects: [NodeID: Int] = [:]

  /// From so many strikes on an object's state is withheld, and all that the archive holds.
  private static let objectStrikesMax = 2
  private static let strikesMax = 3

  /// What a crash comes to.
  package enum Verdict: Hashable, Sendable {
    /// Nobody knows yet who it was; so many strikes are held against the application.
    case undecided(strikes: Int)
    /// It was this one, for the first time.
    case guilty(NodeID, strikes: Int)
    /// It was this one again: its state is to be withheld.
    case quarantine(NodeID, strikes: Int)
    /// Nobody was found once more: everything is to be withheld.
    case quarantineArchive(strikes: Int)
  }

  package init() {}

  /// A process has ended abnormally with open decode windows.
  ///
  /// - Parameters:
  ///   - unproven: what it had been handed without a sign of life since.
  ///   - proven: its other objects, which cannot have been the cause.
  ///   - isAnother: false where processes end together: that is one strike, not several.
  package mutating func crashed(unproven: Set<NodeID>, proven: some Sequence<NodeID>, isAnother: Bool) -> Verdict {
    // One of its states was found guilty the last time, and is not the cause of this crash: nobody is found who is.
    let isContradicted = proven.contains { suspects[$0, default: 0] > 0 && !unproven.contains($0) }
    for node in proven where !unproven.contains(node) { suspects[node] = nil }
    if unproven.count == 1, let node = unproven.first {
      let count = suspects[node, default: 0] + 1
      if count >= Self.objectStrikesMax {
        suspects[node] = nil
        strikes = 0
        return .quarantine(node, strikes: count)
      }
      suspects[node] = count
      guard isContradicted else { return .guilty(node, strikes: count) }
    }
    for node in unproven { suspects[node, default: 0] += 0 }
    if isAnother { strikes += 1 }
    guard strikes >= Self.strikesMax else { return .undecided(strikes: strikes) }
    let count = strikes
    self = Blame()
    return .quarantineArchive(strikes: count)
  }

  /// The state was taken in and the process lives, or the state is gone.
  ///
  /// - Returns: whether that is worth being written down by itself.
  package mutating func acquit(_ node: NodeID) -> Bool {
    guard let count = suspects.removeValue(forKey: node) else { return false }
    return count > 0 || suspects.isEmpty
  }

  /// A restoration has completed. What a state was found guilty of stays until that state has been handed out without a
  /// crash: a restoration that did not touch it says nothing about it.
  ///
  /// - Returns: whether anything is different now.
  package mutating func restorationCompleted() -> Bool {
    let before = self
    strikes = 0
    suspects = suspects.filter { $0.value > 0 }
    return self != before
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
