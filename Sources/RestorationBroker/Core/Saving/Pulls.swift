// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// Asks for states outside of rounds, because they have changed or were not stored (R4, R18). A pull is checked and
/// refused as in a round. It has no delegate and no walk, is stored at once, and makes no generation.
package struct Pulls {
  package typealias Batch = EncodeBatcher.Batch

  /// Invalidations that come within this time are asked for together.
  private static let gatheringMilliseconds: Int64 = 100
  /// The timeout of a session's answer.
  private static let answerMilliseconds: Int64 = 5_000

  /// Objects to ask for soon.
  private var invalidated: Set<NodeID> = []
  /// Those of them that are asked for only if their states are still not stored.
  private var unstored: Set<NodeID> = []
  private var batches = EncodeBatcher()
  /// When each session that is asked times out.
  private var due: [SessionID: Int64] = [:]

  package init() {}

  package var isIdle: Bool { invalidated.isEmpty }

  /// Zero when every client has left and nothing is under way.
  package var held: Int { invalidated.count + batches.held + due.count }

  /// Everything that is asked for, or will be.
  package var nodes: Set<NodeID> { invalidated.union(batches.unanswered.map(\.node)) }

  package func asked(of session: SessionID) -> [EncodeTarget] { batches.asked(of: session) }

  /// Asks soon, so that invalidations gather. `areUnstored`: only for states that are still not stored by then.
  package mutating func invalidate(
    _ nodes: some Sequence<NodeID>,
    areUnstored: Bool = false,
    in turn: inout Turn
  ) {
    if invalidated.isEmpty {
      turn.ask(.setTimer(.invalidated(turn.application), milliseconds: Self.gatheringMilliseconds))
    }
    if areUnstored { unstored.formUnion(Set(nodes).subtracting(invalidated)) } else { unstored.subtract(nodes) }
    invalidated.formUnion(nodes)
  }

  /// Asks for the objects that have gathered. `target` gives nil if there is no need or no session to ask.
  package mutating func begin(_ target: (NodeID, _ isUnstored: Bool) -> EncodeTarget?) -> [Batch] {
    for target in invalidated.sorted().compactMap({ target($0, unstored.contains($0)) }) {
      batches.add(target)
      batches.resumed(target.session)
    }
    (invalidated, unstored) = ([], [])
    return batches.next()
  }

  package mutating func begun(_ session: SessionID, in turn: inout Turn) {
    if due.isEmpty { turn.ask(.setTimer(.pulls(turn.application), milliseconds: Self.answerMilliseconds)) }
    due[session] = turn.now.monotonic + Self.answerMilliseconds
  }

  /// The session has answered; `next` follows. Returns the objects that are given up without a state.
  package mutating func answered(
    _ session: SessionID,
    _ fates: [NodeID: EncodeBatcher.Fate]
  ) -> [EncodeBatcher.Stale] {
    due[session] = nil
    let stale = batches.answered(session, fates)
    if batches.unanswered(by: session).isEmpty { batches.forget(session) }
    return stale
  }

  package mutating func next() -> [Batch] { batches.next() }

  /// - Parameter isBack: the session has another connection already.
  package mutating func lost(_ session: SessionID, isBack: Bool) -> [Batch] {
    due[session] = nil
    batches.lost(session, isBack: isBack)
    return batches.next()
  }

  package mutating func resumed(_ session: SessionID) -> [Batch] {
    batches.resumed(session)
    return batches.next()
  }

  package mutating func ended(_ session: SessionID) {
    batches.forget(session)
    due[session] = nil
  }

  /// The timer has fired. Returns the objects whose sessions have not answered in time.
  package mutating func timePassed(in turn: inout Turn) -> [EncodeBatcher.Stale] {
    let now = turn.now.monotonic
    let late = due.filter { $0.value <= now }.keys.sorted()
    for session in late { due[session] = nil }
    if let next = due.values.min() { turn.ask(.setTimer(.pulls(turn.application), milliseconds: next - now)) }
    return late.flatMap { batches.giveUp($0) }
  }
}
