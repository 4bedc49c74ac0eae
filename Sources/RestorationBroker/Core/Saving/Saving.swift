// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// The save round of an application, when one begins by itself, and what is pulled outside of rounds because its owner
/// said that it has changed (R11, R12, R18). Events in, actions out.
///
/// Invariants:
/// 1. One action is carried out at a time; what leads to others meanwhile does not begin them.
/// 2. A pull is asked for, checked and refused as in a round. It has no delegate and no walk, is stored at once, and
///    makes no generation.
package struct Saving {
  package enum Action: Hashable {
    case round(SaveRound.Action)
    /// Ask a session for these states outside of a round, and tell `pullAsked` or `lost`.
    case pull(SessionID, [EncodeTarget])
  }

  /// Invalidations that come within this time are pulled together.
  private static let gatheringMilliseconds: Int64 = 100
  /// What a session has not answered by then is given up.
  private static let pullMilliseconds: Int64 = 5_000

  package private(set) var round: SaveRound?
  private var lastRound: Int64 = 0
  private var schedule = RoundSchedule()
  /// Objects whose owners are to be asked soon, those that are asked for, and until when each session has time.
  private var invalidated: Set<NodeID> = []
  /// Those of them that are asked for only if their states are still not stored.
  private var unstored: Set<NodeID> = []
  private var pulls = EncodeBatcher()
  private var pullsDue: [SessionID: Int64] = [:]
  private var actions: [Action] = []
  private var isPerforming = false
  /// The host that waits for the archive (R36).
  package private(set) var leavesTo: String?

  package init() {}

  package var isIdle: Bool { round == nil && invalidated.isEmpty }

  /// Zero when every client has left and nothing is under way.
  package var held: Int {
    (round == nil ? 0 : 1) + invalidated.count + pulls.held + pullsDue.count + actions.count + (isPerforming ? 1 : 0)
  }

  /// Everything that is asked for outside of rounds, or is to be.
  package var pulled: Set<NodeID> { invalidated.union(pulls.unanswered.map(\.node)) }

  /// The action to carry out now; tell `performed` when that is done.
  package mutating func next() -> Action? {
    guard !isPerforming, !actions.isEmpty else { return nil }
    isPerforming = true
    return actions.removeFirst()
  }

  package mutating func performed() { isPerforming = false }

  /// The archive is loaded anew; the round has been interrupted.
  package mutating func reset(in turn: inout Turn) {
    schedule.forget(in: &turn)
    (invalidated, unstored, pulls, pullsDue) = ([], [], EncodeBatcher(), [:])
  }

  // MARK: Rounds

  /// - Parameter caller: nil if the round is wanted even if no caller waits for it.
  package mutating func begin(
    deadline: Int64,
    for caller: SaveRound.Waiting?,
    isRestoring: Bool,
    in turn: borrowing Turn
  ) {
    let now = turn.now.monotonic
    lastRound += 1
    // A broker that is to end gives no more time than it has (R33).
    let deadline = turn.roundsEnd.map { min(deadline, max(1, $0 - now)) } ?? deadline
    round = SaveRound(number: lastRound, deadline: deadline, in: turn)
    _ = join(caller)
    advance { $0.machine.begin(isRestoring: isRestoring, at: now) }
  }

  /// - Returns: whether a round is under way.
  package mutating func join(_ caller: SaveRound.Waiting?) -> Bool {
    if let caller { round?.join(caller) } else { round?.isWanted = true }
    return round != nil
  }

  /// Lets the round take in an event.
  package mutating func advance(_ event: (inout SaveRound) -> [SaveRound.Action]) {
    actions += (round?.handle(event) ?? []).map { .round($0) }
  }

  /// How many calls of a client wait for the round.
  package func waiting(of client: ClientID) -> Int { round?.callers.count { $0.call.caller.client == client } ?? 0 }

  /// The caller does not wait any longer.
  ///
  /// - Returns: whether the round is still wanted; nil if the caller did not wait for it.
  package mutating func leave(_ caller: Caller, in turn: inout Turn) -> Bool? {
    guard let index = round?.callers.firstIndex(where: { $0.call.caller == caller }) else { return nil }
    round?.callers.remove(at: index)
    turn.ask(.unpark(caller))
    return round.map { $0.isWanted || !$0.callers.isEmpty }
  }

  /// A caller's connection is gone. What it asked for is done all the same: the others are saved.
  package mutating func forget(_ client: ClientID) {
    guard waiting(of: client) > 0 else { return }
    round?.callers.removeAll { $0.call.caller.client == client }
    round?.isWanted = true
  }

  mutating func stage(_ state: StagedState, growth: Int) { round?.stage(state, growth: growth) }

  package mutating func progress(isLast: Bool = false, at now: Moment) -> [(LongCall, ArchiveProgress?)] {
    round?.progress(isLast: isLast, at: now) ?? []
  }

  /// The round is over, committed or not. Returns who waited for it.
  package mutating func end(in turn: inout Turn) -> [SaveRound.Waiting] {
    guard let callers = round?.callers else { return [] }
    round = nil
    actions.removeAll { if case .round = $0 { true } else { false } }
    schedule.watch(in: &turn)
    turn.ask(.cancelTimer(.round(turn.application)))
    if leavesTo != nil { turn.ask(.setTimer(.leave(turn.application), milliseconds: 1)) }
    for waiting in callers { turn.ask(.unpark(waiting.call.caller)) }
    return callers
  }

  // MARK: Rounds that begin by themselves

  package mutating func noteChange(in turn: inout Turn) { schedule.noteChange(in: &turn) }

  /// What is unsaved begins no round before something else changes.
  package mutating func forgetChanges(in turn: inout Turn) { schedule.forget(in: &turn) }

  /// Sessions have come, gone, or serve something else.
  package mutating func update(_ sessions: SessionTable, hasUnsealedContent: Bool, in turn: inout Turn) {
    let isPulled = sessions.values.contains { !$0.isDiscarded && $0.serves(.encodeRestorableStateWithCoder) }
    schedule.setPulled(isPulled, hasUnsealedContent: hasUnsealedContent, in: &turn)
  }

  /// The timer of changes has fired. Returns whether a round is to begin.
  package mutating func isRoundDue(isRestoring: Bool, in turn: inout Turn) -> Bool {
    guard schedule.isDue(in: &turn) else { return false }
    // It is looked after again when there has been as much quiet once more (R12).
    if isRestoring { schedule.postpone(in: &turn) }
    return !isRestoring && round == nil
  }

  /// The broker is to end, and a round gets this time (R33). Returns whether one is to begin.
  package mutating func hurry(milliseconds: Int64, hasUnsealedContent: Bool, in turn: borrowing Turn) -> Bool {
    let end = turn.now.monotonic + milliseconds
    advance { $0.machine.hurry(until: end) }
    return !join(nil) && milliseconds > 0 && (schedule.isPulled || hasUnsealedContent)
  }

  /// Another host waits for the archive, which is left when the round that is under way is over, or after this time.
  package mutating func leave(to host: String, milliseconds: Int64, in turn: inout Turn) {
    leavesTo = host
    turn.ask(.setTimer(.leave(turn.application), milliseconds: round == nil ? 1 : milliseconds))
  }

  // MARK: Pulls

  /// The owners are asked for these together with what is invalidated soon after.
  ///
  /// - Parameter areUnstored: whether they are asked only for what is still not stored then.
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

  /// - Parameter target: whom to ask for a node, which may be only if its state is still not stored; nil if there is no
  ///   session to ask.
  package mutating func pullInvalidated(_ target: (NodeID, _ isUnstored: Bool) -> EncodeTarget?) {
    for target in invalidated.sorted().compactMap({ target($0, unstored.contains($0)) }) {
      pulls.add(target)
      pulls.resumed(target.session)
    }
    (invalidated, unstored) = ([], [])
    pullNext()
  }

  private mutating func pullNext() { actions += pulls.next().map { .pull($0.session, $0.batch) } }

  package mutating func pullAsked(_ session: SessionID, in turn: inout Turn) {
    if pullsDue.isEmpty { turn.ask(.setTimer(.pulls(turn.application), milliseconds: Self.pullMilliseconds)) }
    pullsDue[session] = turn.now.monotonic + Self.pullMilliseconds
  }

  /// The timer of pulls has fired. Returns what is given up, because its session has not answered in time.
  package mutating func givePullsUp(in turn: inout Turn) -> [EncodeBatcher.Stale] {
    let now = turn.now.monotonic
    let late = pullsDue.filter { $0.value <= now }.keys.sorted()
    for session in late { pullsDue[session] = nil }
    if let due = pullsDue.values.min() { turn.ask(.setTimer(.pulls(turn.application), milliseconds: due - now)) }
    return late.flatMap { pulls.giveUp($0) }
  }

  // MARK: Answers

  /// The batch that the session is to answer.
  package func asked(of session: SessionID, isPull: Bool) -> [EncodeTarget] {
    isPull ? pulls.asked(of: session) : round?.machine.batches.asked(of: session) ?? []
  }

  /// - Returns: what is not pulled again although there is no state.
  package mutating func answered(
    _ session: SessionID,
    _ fates: [NodeID: EncodeBatcher.Fate],
    isPull: Bool,
    _ tree: NodeTree,
    _ sessions: SessionTable,
    _ providers: Providers
  ) -> [EncodeBatcher.Stale] {
    guard isPull else {
      advance { $0.answered(session, fates, tree, sessions, providers) }
      return []
    }
    pullsDue[session] = nil
    let stale = pulls.answered(session, fates)
    if pulls.unanswered(by: session).isEmpty { pulls.forget(session) }
    pullNext()
    return stale
  }

  /// - Parameter isBack: the session has another connection already.
  package mutating func lost(
    _ session: SessionID,
    isBack: Bool,
    isPull: Bool,
    _ tree: NodeTree,
    _ sessions: SessionTable
  ) {
    guard isPull else { return advance { $0.lost(session, isBack: isBack, tree, sessions) } }
    pullsDue[session] = nil
    pulls.lost(session, isBack: isBack)
    pullNext()
  }

  /// The session can be called again.
  package mutating func resumed(_ session: SessionID) {
    advance { $0.machine.resumed(session) }
    pulls.resumed(session)
    pullNext()
  }

  package mutating func ended(_ session: SessionID) {
    pulls.forget(session)
    pullsDue[session] = nil
  }
}
