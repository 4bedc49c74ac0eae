// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

/// Marks of states that were pushed before their owner had looked at an older one, which they must not hide (R19).
///
/// Invariant: while a claimed node has an early state, the timer is set for when the first of them is to be cleared.
package struct EarlyMarks {
  /// A mark is cleared so many milliseconds after the claim.
  package static let milliseconds: Int64 = 60_000

  /// Monotonic milliseconds at which the timer fires; nil while it is not set.
  private var due: Int64?

  package init() {}

  /// Whether a push of the owner would hide an older state that it has not looked at.
  func isEarly(_ node: Node, _ claim: Node.Claim, _ session: Session, in turn: borrowing Turn) -> Bool {
    !claim.hasDecoded && !session.hasCompletedRestoration && node.hasState
      && (node.state?.session != session.id || node.state?.isEarly == true || claim.isRolledBack)
      && turn.now.monotonic - claim.since < Self.milliseconds
      // There is nothing to hide if the owner would not be given it (R35).
      && !node.isQuarantined
  }

  /// Sees to it that early marks of a node claimed then are cleared in time.
  package mutating func watch(since: Int64, in turn: inout Turn) {
    let next = since + Self.milliseconds
    if let due, due <= next { return }
    due = next
    turn.ask(.setTimer(.early(turn.application), milliseconds: max(1, next - turn.now.monotonic)))
  }

  /// Clears marks: the newest state is what everybody gets.
  package func clear(_ nodes: some Sequence<Node>, in turn: inout Turn) {
    let early = nodes.filter { $0.state?.isEarly == true }
    guard !early.isEmpty else { return }
    for node in early {
      node.state?.isEarly = false
      node.beforeClaim = nil
    }
    turn.write(.settle(early.map(\.id).sorted()))
  }

  /// - Parameter nodes: all that are claimed.
  package mutating func timerFired(_ nodes: some Sequence<Node>, in turn: inout Turn) {
    due = nil
    let early = nodes.filter { $0.state?.isEarly == true }
    let ripe = turn.now.monotonic - Self.milliseconds
    clear(early.filter { $0.claim.map { $0.since <= ripe } ?? false }, in: &turn)
    if let next = early.compactMap({ $0.claim?.since }).filter({ $0 > ripe }).min() { watch(since: next, in: &turn) }
  }
}
