// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// Marks of provisional states: their owners wrote them before they had received an older one, which they must not hide
/// (R19).
package enum EarlyMarks {
  /// A mark is cleared this long after the claim.
  package static let milliseconds: Int64 = 60_000

  /// Whether a push of the owner would hide an older state that it has not received.
  ///
  /// - Parameters:
  ///   - isAwaited: whether the owner is about to get the older state.
  ///   - isGivenUp: whether the older state was declined or refused.
  static func isEarly(
    _ node: Node,
    _ session: Session,
    isAwaited: Bool,
    isGivenUp: Bool,
    in turn: borrowing Turn
  ) -> Bool {
    let isOwn = node.state?.session == session.id && node.claim?.isRolledBack != true
    let isSeen = isOwn && !node.versions.isProvisional
    let since = node.claim?.since ?? session.began
    // A state that the owner would not get needs no protection (R35).
    guard node.hasState, !isSeen, !node.isQuarantined else { return false }
    let isYoung = turn.now.monotonic - since < Self.milliseconds
    return isAwaited || isYoung && !session.hasCompletedRestoration && !isGivenUp
  }

  /// Confirms provisional states.
  package static func clear(_ nodes: some Sequence<Node>, in turn: inout Turn) {
    let early = nodes.filter(\.versions.isUndecided)
    guard !early.isEmpty else { return }
    for node in early {
      node.versions.confirm()
      node.note(.confirmed)
    }
    turn.write(.settle(early.map(\.id).sorted()))
  }

  /// Confirms provisional states whose time is over.
  ///
  /// - Parameters:
  ///   - nodes: all claimed nodes, and the application's.
  ///   - began: when the application's delegate began.
  ///   - isHeld: whether a restoration may still deliver the older state. Its end is reported by another call.
  /// - Returns: the earliest claim among the others; `nil` if all are confirmed.
  static func clearRipe(
    _ nodes: some Sequence<Node>,
    since began: Int64?,
    unless isHeld: (Node) -> Bool,
    in turn: inout Turn
  ) -> Int64? {
    let early = nodes.filter { $0.versions.isUndecided && !isHeld($0) }
    let ripe = turn.now.monotonic - milliseconds
    clear(early.filter { ($0.claim?.since ?? began).map { $0 <= ripe } ?? false }, in: &turn)
    return early.compactMap { $0.claim?.since ?? began }.filter { $0 > ripe }.min()
  }
}
