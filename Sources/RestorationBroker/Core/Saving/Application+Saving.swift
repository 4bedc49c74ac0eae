// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Save rounds and pulls: what begins and ends them, and what they want done (R11, R12, R18, R33).
extension Application {
  /// Begins a round, or joins the one that is under way.
  func save(_ request: SaveApplicationState, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    guard !turn.isEnding else { throw .shuttingDown() }
    if let round = saving.round, let session, isAskedByRound(session.id) {
      let reply = unsaved(.reentrant, since: round.begun)
      turn.ask(.respond(caller, .result(reply)))
      return
    }
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
    saving.begin(deadline: deadline, for: caller, isRestoring: isRestoring, in: turn)
    performSaving()
  }

  private func isAskedByRound(_ session: SessionID) -> Bool {
    calls.contains { call in
      if case .save = call.purpose { call.session == session } else { false }
    }
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
    saving.invalidate([node.id], in: &turn)
    turn.ask(.respond(caller, .result(EmptyResult())))
  }

  /// What the session has said of its objects is unknown now: it is asked for all of them once.
  func invalidateAll(of session: Session) {
    guard session.serves(.encodeRestorableStateWithCoder), !session.objects.isEmpty else { return }
    saving.invalidate(session.objects.values.map(\.id), in: &turn)
  }

  /// These were to be asked for when the archive was closed or lost, and are still.
  func invalidate(_ handles: [ObjectHandle]) {
    let nodes = handles.compactMap { tree.claimed[$0]?.id }
    guard !nodes.isEmpty else { return }
    saving.noteChange(in: &turn)
    saving.invalidate(nodes, in: &turn)
  }

  // MARK: Events

  /// The caller stops waiting. After the last one the round ends, before anything is written.
  ///
  /// - Returns: whether it was waiting.
  func cancelSaving(_ caller: Caller) -> Bool {
    guard let isWanted = saving.leave(caller, in: &turn) else { return false }
    if !isWanted { endRound() }
    return true
  }

  /// What the round was to store has been replaced, or cannot be stored (R30).
  func interruptRound() { if let round = saving.round { endRound(with: unsaved(.interrupted, since: round.begun)) } }

  /// A restoration that a round may wait for has ended.
  func restorationEnded() { advanceRound { $0.machine.restorationEnded(at: turn.now.monotonic) } }

  func roundTimerFired() { advanceRound { $0.machine.timePassed(at: turn.now.monotonic) } }

  func invalidationTimerFired() {
    var ancestry = Ancestry()
    saving.pullInvalidated { node, isUnstored in
      guard let node = tree.node(node), !isUnstored || node.isUnstored else { return nil }
      guard !isUnsaved(node) else {
        noteUnstored(node)
        return nil
      }
      let target = EncodeTarget(node, &ancestry, sessions, frameBytesMax: turn.limits.frameBytesMax)
      if target != nil { node.isUnstored = false }
      return target
    }
    performSaving()
  }

  func pullTimerFired() {
    let late = saving.givePullsUp(in: &turn)
    let sessions = Set(late.map(\.target.session))
    endCalls { call in
      if case .pull = call.purpose { sessions.contains(call.session) } else { false }
    }
    for stale in late { report(stale) }
  }

  /// A session can be called again.
  func sessionResumed(_ session: SessionID) {
    updatePulling()
    saving.resumed(session)
    performSaving()
    goOnResolving()
  }

  /// Sessions have come, gone, or serve something else.
  func updatePulling() { saving.update(sessions, hasUnsealedContent: hasUnsealedContent, in: &turn) }

  func changeTimerFired() {
    guard case .open = phase, saving.isRoundDue(isRestoring: isRestoring, in: &turn) else { return }
    beginRound(deadline: SaveApplicationState.deadlineDefault)
  }

  /// The broker is to end: what is not saved yet is, within this time (R33).
  func saveBeforeEnd(milliseconds: Int64) {
    let isWanted = saving.hurry(milliseconds: milliseconds, hasUnsealedContent: hasUnsealedContent, in: turn)
    performSaving()
    guard isWanted, case .open = phase, sessions.values.contains(where: { !$0.isDiscarded }) else { return }
    beginRound(deadline: milliseconds)
  }

  /// Another host waits for the archive: what is not saved yet is, within this time, and then it is left (R36).
  func saveBeforeLeaving(to host: String, milliseconds: Int64) {
    saveBeforeEnd(milliseconds: milliseconds)
    // The round has ended by itself then.
    saving.leave(to: host, milliseconds: milliseconds + 100, in: &turn)
  }

  // MARK: Actions

  /// Lets the round take in an event, and does what it wants done.
  func advanceRound(_ event: (inout SaveRound) -> [SaveRound.Action]) {
    saving.advance(event)
    performSaving()
  }

  func performSaving() {
    while let action = saving.next() {
      switch action {
      case .round(let action): perform(action)
      case .pull(let session, let batch): ask(session, for: batch, isPull: true)
      }
      saving.performed()
    }
  }

  private func perform(_ action: SaveRound.Action) {
    switch action {
    case .wait(let due): turn.ask(.setTimer(.round(id), milliseconds: max(1, due - turn.now.monotonic)))
    case .rest: turn.ask(.setTimer(.round(id), milliseconds: 1))
    case .decide: askDelegateWhetherToSave()
    case .prepare: prepare()
    case .giveUpDelegate: giveUpDelegate()
    case .walk: saving.advance { $0.walk(tree, sessions, in: turn) }
    case .encode(let session, let batch): ask(session, for: batch, isPull: false)
    case .identify(let session, let question): ask(session, question)
    case .commit: commit()
    case .end(let obstacle):
      // Who does not want to be saved is not asked again before something else changes.
      if obstacle == .declined { saving.forgetChanges(in: &turn) }
      if let round = saving.round { endRound(with: unsaved(obstacle, since: round.begun)) }
    }
  }

  /// The round is over, committed or not.
  func endRound(with reply: SaveApplicationState.Reply? = nil) {
    endRoundCalls()
    for waiting in saving.end(in: &turn) { if let reply { turn.ask(.respond(waiting.call.caller, .result(reply))) } }
  }

  func endRoundCalls() { endCalls { if case .save = $0.purpose { true } else { false } } }

  /// What a round answers that made no generation.
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
  /// Whether a save round is under way.
  package var isSaving: Bool { applications.values.contains { $0.saving.round != nil } }

  /// The broker is to end: saves what its clients have (R33). They are done when `isSaving` is false.
  package mutating func saveBeforeEnd(at now: Moment) {
    context.now = now
    let milliseconds = Int64(context.limits.stopRoundMilliseconds)
    context.roundsEnd = now.monotonic + milliseconds
    for application in applications.values.sorted(by: { $0.id < $1.id }) {
      application.settled.saveBeforeEnd(milliseconds: milliseconds)
    }
  }
}
