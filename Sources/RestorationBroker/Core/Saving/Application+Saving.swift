// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Begins and ends save rounds and pulls, and performs their actions (R11, R12, R18, R33).
extension Application {
  /// Begins a round, or joins the one that is under way.
  func save(_ request: SaveApplicationState, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireKept()
    guard !turn.isEnding else { throw .shuttingDown() }
    var waiting: SaveRound.Waiting?
    if caller.call != nil {
      try turn.requireRoom(toWaitBeside: saving.waiting(of: caller.client), of: caller.client)
      turn.ask(.park(caller))
      let call = LongCall(caller, by: session, token: request.progressToken, in: request.trace, at: turn.now)
      waiting = (call, Application.pageBytes(for: session?.facts.messageBytesMax))
    }
    guard !saving.join(waiting) else { return }
    beginRound(deadline: request.deadlineMilliseconds ?? SaveApplicationState.deadlineDefault, for: waiting)
  }

  private func beginRound(deadline: Int64, for caller: SaveRound.Waiting? = nil) {
    guard turn.readOnly == nil else { return }
    perform(saving.begin(deadline: deadline, for: caller, isRestoring: isRestoring, in: turn))
  }

  func invalidate(_ request: InvalidateRestorableState, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let node = try requireOwn(request.object, session)
    guard let session, session.serves(.encodeRestorableStateWithCoder) else {
      throw .invalidParameter(
        "/object",
        "the session does not serve encodeRestorableStateWithCoder, so its states cannot be fetched",
        hint: "List it in serves of initialize, or encode the state."
      )
    }
    saving.noteChange(in: &turn)
    saving.pull { $0.invalidate([node.id], in: &turn) }
    turn.ask(.respond(caller, .result(EmptyResult())))
  }

  /// All objects of the session may have changed: it is asked for each of them once.
  func invalidateAll(of session: Session) {
    guard session.serves(.encodeRestorableStateWithCoder), !session.objects.isEmpty else { return }
    saving.pull { $0.invalidate(session.objects.values.map(\.id), in: &turn) }
  }

  /// Asks for the objects whose pulls ended when the archive was closed or lost.
  func invalidate(_ handles: [ObjectHandle]) {
    let nodes = handles.compactMap { tree.claimed[$0]?.id }
    guard !nodes.isEmpty else { return }
    saving.noteChange(in: &turn)
    saving.pull { $0.invalidate(nodes, in: &turn) }
  }

  // MARK: Events

  /// The caller stops waiting. After the last one the round ends without a write. Returns whether it was waiting.
  func cancelSaving(_ caller: Caller) -> Bool {
    guard let isWanted = saving.leave(caller, in: &turn) else { return false }
    if !isWanted { endRound() }
    return true
  }

  func restorationEnded() { advanceRound { $0.machine.restorationEnded(at: turn.now.monotonic) } }

  func roundTimerFired() { advanceRound { $0.machine.timePassed(at: turn.now.monotonic) } }

  func invalidationTimerFired() {
    var ancestry = Ancestry()
    pull { pulls in
      pulls.begin { node, isUnstored in
        guard let node = tree.node(node), !isUnstored || node.isUnstored else { return nil }
        guard !isUnsaved(node) else {
          noteUnstored(node)
          return nil
        }
        let target = EncodeTarget(node, &ancestry, sessions, frameBytesMax: turn.limits.frameBytesMax)
        if target != nil { node.isUnstored = false }
        return target
      }
    }
  }

  func pullTimerFired() {
    let late = saving.pull { $0.timePassed(in: &turn) }
    let sessions = Set(late.map(\.target.session))
    endCalls { call in
      if case .pull = call.purpose { sessions.contains(call.session) } else { false }
    }
    for stale in late { report(stale) }
  }

  func sessionResumed(_ session: SessionID) {
    updatePulling()
    advanceRound { $0.machine.resumed(session) }
    pull { $0.resumed(session) }
    goOnResolving()
  }

  /// Sessions have come, gone, or serve other methods.
  func updatePulling() { saving.update(sessions, hasUnsealedContent: hasUnsealedContent, in: &turn) }

  func changeTimerFired() {
    guard case .open = phase, saving.isRoundDue(isRestoring: isRestoring, in: &turn) else { return }
    beginRound(deadline: SaveApplicationState.deadlineDefault)
  }

  /// The broker ends: saves unsaved states within this time (R33).
  func saveBeforeEnd(milliseconds: Int64) {
    advanceRound { $0.machine.hurry(until: turn.now.monotonic + milliseconds) }
    guard !saving.join(nil), milliseconds > 0, saving.isPulled || hasUnsealedContent, case .open = phase,
      sessions.values.contains(where: { !$0.isDiscarded })
    else { return }
    beginRound(deadline: milliseconds)
  }

  /// Another host waits for the archive: saves unsaved states within this time, then leaves it (R36).
  func saveBeforeLeaving(to host: String, milliseconds: Int64) {
    saveBeforeEnd(milliseconds: milliseconds)
    // By then the round has ended by itself.
    saving.leave(to: host, milliseconds: milliseconds + 100, in: &turn)
  }

  // MARK: Actions

  /// Passes an event to the round, and performs its actions.
  func advanceRound(_ event: (inout SaveRound) -> [SaveRound.Action]) { perform(saving.advance(event) ?? []) }

  private func perform(_ actions: [SaveRound.Action]) {
    var actions = actions[...]
    // One of them may end the round: then the others are void.
    while saving.round != nil, let action = actions.popFirst() { actions += perform(action) }
  }

  /// - Returns: the actions that follow at once. It does not recurse, because a thousand questions may be unaskable.
  private func perform(_ action: SaveRound.Action) -> [SaveRound.Action] {
    switch action {
    case .wait(let due): turn.ask(.setTimer(.round(id), milliseconds: max(1, due - turn.now.monotonic)))
    case .rest: turn.ask(.setTimer(.round(id), milliseconds: 1))
    case .decide: askDelegateWhetherToSave()
    case .prepare: prepare()
    case .giveUpDelegate: giveUpDelegate()
    case .walk: return saving.advance { $0.walk(tree, sessions, in: turn) } ?? []
    case .encode(let session, let batch): ask(session, for: batch, isPull: false)
    case .identify(let session, let question): return ask(session, question)
    case .commit: commit()
    case .end(let obstacle):
      // A delegate that has declined is not asked again before something else changes.
      if obstacle == .declined { saving.forgetChanges(in: &turn) }
      endRound(obstacle)
    }
    return []
  }

  /// Asks for states outside of a round.
  func pull(_ event: (inout Pulls) -> [Pulls.Batch]) {
    for (session, batch) in saving.pull(event) { ask(session, for: batch, isPull: true) }
  }

  /// The round is over. If its callers are not answered otherwise, they are told why nothing was stored.
  func endRound(_ obstacle: SaveApplicationState.Obstacle? = nil) {
    guard let begun = saving.round?.begun else { return }
    let reply = obstacle.map { unsaved($0, since: begun) }
    endRoundCalls()
    for waiting in saving.end(in: &turn) { if let reply { turn.ask(.respond(waiting.call.caller, .result(reply))) } }
  }

  func endRoundCalls() { endCalls { if case .save = $0.purpose { true } else { false } } }

  /// The answer of a round that made no generation.
  func unsaved(_ obstacle: SaveApplicationState.Obstacle, since begun: Moment) -> SaveApplicationState.Reply {
    let newest = generations.newest
    return SaveApplicationState.Reply().with {
      $0.reason = obstacle.rawValue
      $0.generation = newest?.generation
      $0.objects = newest?.objects ?? 0
      $0.bytes = newest?.bytes ?? 0
      $0.milliseconds = turn.now.monotonic - begun.monotonic
    }
  }
}

extension BrokerCore {
  package var isSaving: Bool { applications.values.contains { $0.saving.round != nil } }

  /// The broker ends: saves the states of its clients (R33). They are saved when `isSaving` is false.
  package mutating func saveBeforeEnd(at now: Moment) {
    context.now = now
    let milliseconds = Int64(context.limits.stopRoundMilliseconds)
    context.roundsEnd = now.monotonic + milliseconds
    for application in applications.values.sorted(by: { $0.id < $1.id }) {
      application.settled.saveBeforeEnd(milliseconds: milliseconds)
    }
  }
}
