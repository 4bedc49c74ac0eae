// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Save rounds: who begins, joins and leaves them, and what their state machine wants done (R11, R12).
extension Application {
  /// Begins a round, or joins the one that is under way.
  func save(_ request: SaveApplicationState, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    guard !turn.isEnding else { throw Application.shuttingDown() }
    if let round, let session, isAskedByRound(session.id) {
      let reply = unsaved(.reentrant, since: round.begun)
      turn.ask(.respond(caller, .result(reply)))
      return
    }
    if caller.call != nil {
      try turn.requireRoom(toWaitBeside: round?.callers.count { $0.call.caller.client == caller.client } ?? 0)
      turn.ask(.park(caller))
    }
    let call = LongCall(caller, by: session, token: request.progressToken, at: turn.now)
    let waiting = SaveRound.Waiting(call: call, bytesMax: Application.pageBytes(for: session?.facts.messageBytesMax))
    if let round {
      if caller.call != nil { round.callers.append(waiting) } else { round.isWanted = true }
    } else {
      let deadline = request.deadlineMilliseconds ?? SaveApplicationState.deadlineDefault
      beginRound(deadline: deadline, for: caller.call == nil ? nil : waiting)
    }
  }

  func beginRound(deadline: Int64, for call: SaveRound.Waiting? = nil) {
    roundCounter += 1
    // Of a broker that is to end nobody gets more time than it has (R33).
    let deadline = turn.roundsEnd.map { min(deadline, max(1, $0 - turn.now.monotonic)) } ?? deadline
    let round = SaveRound(number: roundCounter, deadline: deadline, at: turn.now)
    if let call { round.callers = [call] } else { round.isWanted = true }
    self.round = round
    advanceRound { $0.begin(isRestoring: isRestoring, at: turn.now.monotonic) }
  }

  private func isAskedByRound(_ session: SessionID) -> Bool {
    calls.contains { call in
      if case .save = call.purpose { call.session == session } else { false }
    }
  }

  /// The caller does not wait any longer. Where nobody does, the round ends before anything is written.
  ///
  /// - Returns: whether it was waiting.
  func cancelSaving(_ caller: Caller) -> Bool {
    guard let round, let index = round.callers.firstIndex(where: { $0.call.caller == caller }) else { return false }
    round.callers.remove(at: index)
    turn.ask(.unpark(caller))
    if round.callers.isEmpty, !round.isWanted { finishRound() }
    return true
  }

  /// A caller's connection is gone. What it asked for is done all the same: the others are saved.
  func forgetSaving(of client: ClientID) {
    guard let round, round.callers.contains(where: { $0.call.caller.client == client }) else { return }
    round.callers.removeAll { $0.call.caller.client == client }
    round.isWanted = true
  }

  /// What the round was to store has been replaced, or cannot be stored (R30).
  func interruptRound() { if let round { finishRound(with: unsaved(.interrupted, since: round.begun)) } }

  /// A restoration that a round may wait for has ended.
  func restorationEnded() { advanceRound { $0.restorationEnded(at: turn.now.monotonic) } }

  func roundTimerFired() { advanceRound { $0.timePassed(at: turn.now.monotonic) } }

  /// A session has a connection again.
  func sessionResumed(_ session: Session) {
    updatePulling()
    advanceRound { $0.resumed(session.id) }
    pull(from: session.id)
  }

  /// Lets the round take in an event and does what it wants done.
  func advanceRound(_ event: (inout SaveRound.StateMachine) -> [SaveRound.StateMachine.Action]) {
    guard let round else { return }
    round.actions += event(&round.machine)
    guard !round.isPerforming else { return }
    round.isPerforming = true
    var next = 0
    while next < round.actions.count, self.round === round {
      perform(round.actions[next], of: round)
      next += 1
    }
    round.actions = []
    round.isPerforming = false
  }

  private func perform(_ action: SaveRound.StateMachine.Action, of round: SaveRound) {
    switch action {
    case .wait(let due): turn.ask(.setTimer(.round(id), milliseconds: max(1, due - turn.now.monotonic)))
    case .decide: askDelegateWhetherToSave(round)
    case .prepare: prepare(round)
    case .giveUpDelegate: giveUpDelegate(of: round)
    case .walk: walk(round)
    case .encode(let session, let batch): ask(session, for: batch, of: round)
    case .identify(let session, let question): ask(session, question)
    case .commit: commit(round)
    case .end(let obstacle):
      // Who does not want to be saved is not asked again before something else changes.
      if obstacle == .declined { schedule.forget(in: &turn) }
      finishRound(with: unsaved(obstacle, since: round.begun))
    }
  }

  /// The round is over, committed or not.
  func finishRound(with reply: SaveApplicationState.Reply? = nil) {
    guard let round else { return }
    self.round = nil
    endRoundCalls()
    schedule.watch(in: &turn)
    turn.ask(.cancelTimer(.round(id)))
    for caller in round.callers.map(\.call.caller) {
      turn.ask(.unpark(caller))
      if let reply { turn.ask(.respond(caller, .result(reply))) }
    }
  }

  /// Nobody waits for answers to the round any more.
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

  func tellProgress(of round: SaveRound) {
    let (done, total) = round.machine.progress
    for index in round.callers.indices {
      let progress = round.callers[index].call.progress(done, of: total, at: turn.now)
      tell(progress, of: round.callers[index].call)
    }
  }

  // MARK: The delegate

  /// The delegate, if it is there.
  private var delegate: Session? {
    sessions.values.first { $0.facts.isDelegate && !$0.isDiscarded && $0.isReachable }
  }

  /// The delegate is shown the application's own state as it was saved last.
  private func askDelegateWhetherToSave(_ round: SaveRound) {
    guard delegate?.serves(.shouldSaveApplicationState) == true, let row = ownState else {
      return askWhetherToSave(nil, round: round.number)
    }
    read([row], for: .decision(round: round.number), after: row.sequence)
  }

  /// The application's own state has come, if there is one.
  func askWhetherToSave(_ reading: StateReading?, round number: Int64) {
    guard round?.number == number else { return }
    var application = ApplicationState(state: nil, coder: nil)
    if case .state(let record, _) = reading {
      let decoded = decoded(record)
      application = ApplicationState(state: decoded.state, coder: decoded.coderText)
    }
    guard round?.machine.isDeciding == true, let delegate,
      call(delegate, ShouldSaveApplicationState.self, with: application, for: .save(.decide)) != nil
    else { return advanceRound { $0.decided(true) } }
  }

  /// Shows the application's own state to its delegate; one that is too large for an unasked message it may fetch.
  func call<Call: ApplicationStateCall>(
    _ delegate: Session,
    _: Call.Type,
    with application: ApplicationState,
    for purpose: CallPurpose
  ) -> CallNumber? {
    if let number = call(delegate, Call(application: application), for: purpose) { return number }
    var brief = ApplicationState(state: nil, coder: application.coder, isDeferred: application.state != nil)
    if let number = call(delegate, Call(application: brief), for: purpose) { return number }
    brief.coder = nil
    return call(delegate, Call(application: brief), for: purpose)
  }

  private func prepare(_ round: SaveRound) {
    guard let delegate,
      call(delegate, WillEncodeRestorableState().with { $0.round = round.number }, for: .save(.prepare)) != nil
    else { return advanceRound { $0.prepared() } }
  }

  private func giveUpDelegate(of round: SaveRound) {
    endRoundCalls()
    if let delegate, delegate.serves(.willEncodeRestorableState) {
      round.applicationStale = (delegate.id, delegate.owner, StaleObject.Cause.late.rawValue, nil)
    }
  }

  /// Only a clear no is one: a delegate that fails does not keep the others from being saved.
  func decided(_ answer: CallAnswer) {
    let decision: Bool? = if case .result(let slice) = answer { Bool(slice) } else { nil }
    advanceRound { $0.decided(decision ?? true) }
  }

  /// The delegate has given the application's own state, or has not.
  func prepared(_ answer: CallAnswer, by session: SessionID) {
    guard let round else { return }
    if let why = takeApplicationState(answer, by: session, for: round),
      let owner = sessions[session]?.owner ?? endedOwner(session)
    {
      if case .lost = answer {
        round.applicationStale = (session, owner, nil, nil)
      } else {
        round.applicationStale = (session, owner, why, answer.message)
      }
    }
    advanceRound { $0.prepared() }
  }

  /// - Returns: why there is none although there should be.
  private func takeApplicationState(_ answer: CallAnswer, by session: SessionID, for round: SaveRound) -> String? {
    guard case .result(let slice) = answer else { return cause(of: answer, session).rawValue }
    guard let answer = WillEncodeRestorableState.Answer(slice) else { return StaleObject.Cause.malformed.rawValue }
    guard let encoded = answer.state else { return nil }
    do throws(ErrorObject) {
      try check(encoded, [], path: nil)
      let state = try checked(encoded.detached(), elements: [], revision: nil)
      try checkArchiveLimit(state.bytes, replacing: tree.applicationNode, path: nil)
      round.application = (state, session)
      return nil
    } catch {
      return error.kind
    }
  }

  /// Why a call brought nothing.
  func cause(of answer: CallAnswer, _ session: SessionID) -> StaleObject.Cause {
    switch answer {
    case .result: .malformed
    case .error: .failed
    case .lost: sessions[session].map { $0.hasExited ? .ended : .disconnected } ?? .ended
    }
  }
}

extension ErrorObject {
  /// Its stable word.
  var kind: String { data?["kind"]?.string ?? "error" }
}
