// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

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
  func isEarly(
    _ node: Node,
    _ claim: Node.Claim,
    _ session: Session,
    _ runs: RunHistory,
    _ restoring: Restoring,
    in turn: borrowing Turn
  ) -> Bool {
    !claim.hasDecoded && !session.hasCompletedRestoration && node.hasState
      && (node.state?.session != session.id || node.state?.isEarly == true || claim.isRolledBack)
      && (turn.now.monotonic - claim.since < Self.milliseconds || restoring.mayConcern(node.id))
      && !runs.hasRefused(node)
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

  /// A restoration concerned these nodes from `begun` until now, which is not counted.
  func extend(_ nodes: some Sequence<Node>, since begun: Int64, in turn: borrowing Turn) {
    for node in nodes {
      guard let since = node.claim?.since else { continue }
      node.claim?.since = since + turn.now.monotonic - max(since, begun)
    }
  }

  /// - Parameters:
  ///   - nodes: all that are claimed.
  ///   - isHeld: a restoration may still bring the older state; its end is told of by another call.
  package mutating func timerFired(
    _ nodes: some Sequence<Node>,
    unless isHeld: (NodeID) -> Bool = { _ in false },
    in turn: inout Turn
  ) {
    due = nil
    let early = nodes.filter { $0.state?.isEarly == true && !isHeld($0.id) }
    let ripe = turn.now.monotonic - Self.milliseconds
    clear(early.filter { $0.claim.map { $0.since <= ripe } ?? false }, in: &turn)
    if let next = early.compactMap({ $0.claim?.since }).filter({ $0 > ripe }).min() { watch(since: next, in: &turn) }
  }
}
