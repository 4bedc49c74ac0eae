// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// An application's save round, its schedule, and its pulls (R11, R12, R18). Events in, actions out.
package struct Saving {
  package private(set) var round: SaveRound?
  package private(set) var pulls = Pulls()
  private var lastRound: Int64 = 0
  private var schedule = RoundSchedule()
  /// The host that waits for the archive (R36).
  package private(set) var leavesTo: String?

  package init() {}

  package var isIdle: Bool { round == nil && pulls.isIdle }

  /// Zero when every client has left and nothing is under way.
  package var held: Int { (round == nil ? 0 : 1) + pulls.held }

  package var isPulled: Bool { schedule.isPulled }

  /// The archive is reloaded; the round was interrupted.
  package mutating func reset(in turn: inout Turn) {
    schedule.forget(in: &turn)
    pulls = Pulls()
  }

  /// Passes an event to the round; returns nil without a round.
  @discardableResult
  package mutating func advance<Result>(_ event: (inout SaveRound) -> Result) -> Result? { round?.handle(event) }

  package mutating func pull<Result>(_ event: (inout Pulls) -> Result) -> Result { event(&pulls) }

  // MARK: The round

  /// - Parameter caller: nil if the round is wanted even if no caller waits for it.
  package mutating func begin(
    deadline: Int64,
    for caller: SaveRound.Waiting?,
    isRestoring: Bool,
    in turn: borrowing Turn
  ) -> [SaveRound.Action] {
    let now = turn.now.monotonic
    lastRound += 1
    // An ending broker gives no more time than it has (R33).
    let deadline = turn.roundsEnd.map { min(deadline, max(1, $0 - now)) } ?? deadline
    round = SaveRound(number: lastRound, deadline: deadline, in: turn)
    _ = join(caller)
    return round?.machine.begin(isRestoring: isRestoring, at: now) ?? []
  }

  /// - Returns: whether a round is under way.
  package mutating func join(_ caller: SaveRound.Waiting?) -> Bool {
    if let caller { round?.join(caller) } else { round?.isWanted = true }
    return round != nil
  }

  /// How many calls of a client wait for the round.
  package func waiting(of client: ClientID) -> Int { round?.callers.count { $0.call.caller.client == client } ?? 0 }

  /// The caller stops waiting. Returns whether the round is still wanted; nil if the caller was not waiting for it.
  package mutating func leave(_ caller: Caller, in turn: inout Turn) -> Bool? {
    guard let index = round?.callers.firstIndex(where: { $0.call.caller == caller }) else { return nil }
    round?.callers.remove(at: index)
    turn.ask(.unpark(caller))
    return round.map { $0.isWanted || !$0.callers.isEmpty }
  }

  /// A caller's connection is gone. Its round continues, because it saves others as well.
  package mutating func forget(_ client: ClientID) {
    guard waiting(of: client) > 0 else { return }
    round?.callers.removeAll { $0.call.caller.client == client }
    round?.isWanted = true
  }

  /// The round is over, committed or not. Returns its callers.
  package mutating func end(in turn: inout Turn) -> [SaveRound.Waiting] {
    guard let callers = round?.callers else { return [] }
    round = nil
    schedule.watch(in: &turn)
    turn.ask(.cancelTimer(.round(turn.application)))
    if leavesTo != nil { turn.ask(.setTimer(.leave(turn.application), milliseconds: 1)) }
    for waiting in callers { turn.ask(.unpark(waiting.call.caller)) }
    return callers
  }

  /// Another host waits for the archive: leaves it when the round is over, or after this time.
  package mutating func leave(to host: String, milliseconds: Int64, in turn: inout Turn) {
    leavesTo = host
    turn.ask(.setTimer(.leave(turn.application), milliseconds: round == nil ? 1 : milliseconds))
  }

  // MARK: Rounds that begin by themselves

  package mutating func noteChange(in turn: inout Turn) { schedule.noteChange(in: &turn) }

  /// Unsaved changes begin no round before something else changes.
  package mutating func forgetChanges(in turn: inout Turn) { schedule.forget(in: &turn) }

  package mutating func update(_ sessions: SessionTable, hasUnsealedContent: Bool, in turn: inout Turn) {
    let isPulled = sessions.values.contains { !$0.isDiscarded && $0.serves(.encodeRestorableStateWithCoder) }
    schedule.setPulled(isPulled, hasUnsealedContent: hasUnsealedContent, in: &turn)
  }

  /// The timer of changes has fired. Returns whether a round begins.
  package mutating func isRoundDue(isRestoring: Bool, in turn: inout Turn) -> Bool {
    guard schedule.isDue(in: &turn) else { return false }
    // The round is tried again after another quiet time (R12).
    if isRestoring { schedule.postpone(in: &turn) }
    return !isRestoring && round == nil
  }
}
