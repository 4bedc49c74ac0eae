// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

/// Marks of states that were pushed before their owner had looked at an older one, which they must not hide (R19).
package enum EarlyMarks {
  /// A mark is cleared so many milliseconds after the claim.
  package static let milliseconds: Int64 = 60_000

  /// Whether a push of the owner, which has not looked at the state, would hide an older one.
  ///
  /// - Parameters:
  ///   - isAwaited: the owner is about to be given the older one.
  ///   - isGivenUp: the older one was declined, or refused.
  static func isEarly(
    _ node: Node,
    _ session: Session,
    isAwaited: Bool,
    isGivenUp: Bool,
    in turn: borrowing Turn
  ) -> Bool {
    let isOwn = node.state?.session == session.id && node.claim?.isRolledBack != true
    let isSeen = isOwn && node.state?.isEarly == false
    let since = node.claim?.since ?? session.began
    // There is nothing to hide if the owner would not be given it (R35).
    guard node.hasState, !isSeen, !node.isQuarantined else { return false }
    let isYoung = turn.now.monotonic - since < Self.milliseconds
    return isAwaited || isYoung && !session.hasCompletedRestoration && !isGivenUp
  }

  /// Clears marks: the newest state is what everybody gets.
  package static func clear(_ nodes: some Sequence<Node>, in turn: inout Turn) {
    let early = nodes.filter { $0.state?.isEarly == true }
    guard !early.isEmpty else { return }
    for node in early {
      node.state?.isEarly = false
      node.beforeClaim = nil
    }
    turn.write(.settle(early.map(\.id).sorted()))
  }

  /// Clears marks whose time is over.
  ///
  /// - Parameters:
  ///   - nodes: all that are claimed, and the application.
  ///   - began: when the application's delegate began.
  ///   - isHeld: a restoration may still bring the older state; its end is told of by another call.
  /// - Returns: since when the first of the others counts; nil if all are cleared.
  static func clearRipe(
    _ nodes: some Sequence<Node>,
    since began: Int64?,
    unless isHeld: (Node) -> Bool,
    in turn: inout Turn
  ) -> Int64? {
    let early = nodes.filter { $0.state?.isEarly == true && !isHeld($0) }
    let ripe = turn.now.monotonic - milliseconds
    clear(early.filter { ($0.claim?.since ?? began).map { $0 <= ripe } ?? false }, in: &turn)
    return early.compactMap { $0.claim?.since ?? began }.filter { $0 > ripe }.min()
  }
}
