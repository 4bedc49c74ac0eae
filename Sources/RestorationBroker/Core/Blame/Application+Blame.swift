// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// A decode that waits until the states handed out before it are proven (R31).
struct WaitingDecode {
  let caller: Caller
  let session: SessionID
  let request: DecodeRestorableState
}

/// Finding the state that a process crashes of (R31).
extension Application {
  // MARK: Handing out

  var hasSuspects: Bool { !runs.blame.suspects.isEmpty }

  func isSuspect(_ node: Node) -> Bool { runs.blame.suspects[node.id] != nil }

  /// Whether a state may be handed to its owner now: a suspect travels alone.
  ///
  /// - Parameter chosen: what goes in the same call.
  func mayHandOut(_ node: Node, to session: Session, beside chosen: [NodeID] = []) -> Bool {
    let suspects = runs.blame.suspects
    guard !suspects.isEmpty else { return true }
    let isSuspect = suspects[node.id] != nil
    if isSuspect ? !chosen.isEmpty : chosen.contains(where: { suspects[$0] != nil }) { return false }
    let now = turn.now.monotonic
    return !session.windows.contains { other, window in
      other != node.id && window.isOnTrial(at: now) && (isSuspect || suspects[other] != nil)
    }
  }

  /// The owner has answered the call in which these states were handed to it: none of them is what it crashes of.
  func acknowledged(_ nodes: [NodeID], _ session: Session) {
    for node in nodes { session.windows[node]?.isProven = true }
    goOnHandingOut()
  }

  /// Something has come from the client of a session: a sign of life.
  func heard(from session: Session) {
    // An answer that waits for the archive has not been written, so that this says nothing about its state.
    if readsUnderWay == 0, !jobs.isWorking { session.heard(at: turn.now.monotonic) }
  }

  /// The node's state is no longer suspected.
  func acquit(_ node: NodeID) {
    guard hasSuspects, runs.blame.acquit(node) else { return }
    writeRun()
  }

  // MARK: Waiting

  func wait(_ request: DecodeRestorableState, by session: Session, for caller: Caller) throws(ErrorObject) {
    try turn.requireRoom(toWaitBeside: waitingDecodes.count { $0.caller.client == caller.client })
    waitingDecodes.append(WaitingDecode(caller: caller, session: session.id, request: request))
    turn.ask(.park(caller))
    watchTrials()
  }

  /// Hands out what waited, as far as it may be now.
  func goOnHandingOut() {
    drive(.trialsChanged)
    goOnMaking()
    guard !waitingDecodes.isEmpty else { return }
    let waiting = waitingDecodes
    waitingDecodes = []
    for decode in waiting {
      guard let session = sessions[decode.session] else { continue }
      if let node = node(decode.request.object), !mayHandOut(node, to: session) {
        waitingDecodes.append(decode)
        continue
      }
      endTrials(of: session)
      turn.ask(.unpark(decode.caller))
      do throws(ErrorObject) {
        try self.decode(decode.request, by: session, for: decode.caller)
      } catch {
        turn.refuse(decode.caller, error)
      }
    }
    if !waitingDecodes.isEmpty { watchTrials() }
  }

  /// The client waits for the next state, has had its time with those before, and lives.
  private func endTrials(of session: Session) {
    for (node, window) in session.windows
    where !window.isByCall && !window.isOnTrial(at: turn.now.monotonic) {
      session.windows[node]?.isProven = true
    }
  }

  /// Sees to it that what waits goes on when the first trial in its way is over.
  ///
  /// Whichever of all it is: there is one timer, which must not be put off for another session that waits.
  func watchTrials() {
    let now = turn.now.monotonic
    let ends = sessions.values.flatMap { session in
      session.windows.values.filter { $0.isOnTrial(at: now) }.map { $0.opened + DecodeWindow.trialMilliseconds }
    }
    guard let end = ends.min() else { return }
    turn.ask(.setTimer(.trial(id), milliseconds: max(1, end - now)))
  }

  /// Answers decodes that will not wait any longer, because their session, client or archive has gone.
  func abandonDecodes(for error: ErrorObject = Application.sessionEnded(), where isOver: (WaitingDecode) -> Bool) {
    guard !waitingDecodes.isEmpty else { return }
    let over = waitingDecodes.filter(isOver)
    waitingDecodes.removeAll(where: isOver)
    for decode in over { turn.refuse(parked: decode.caller, error) }
    stopWatchingTrialsIfIdle()
  }

  /// A restoration may wait for the same trials as a decode.
  func stopWatchingTrialsIfIdle() { if waitingDecodes.isEmpty, !isRestoring { turn.ask(.cancelTimer(.trial(id))) } }

  // MARK: Crashes

  /// The session's process has ended abnormally: finds out what that says about the states it was handed.
  func blame(_ session: Session) {
    guard !session.windows.isEmpty, !turn.settings.isDeveloperMode else { return }
    // While suspects are tried, a sign of life must be beyond doubt; else the wrong one would be found guilty.
    let isStrict = hasSuspects
    let unproven = Set(session.unproven(isStrict: isStrict).filter { tree.nodes[$0]?.hasState ?? false })
    // Processes that end together have crashed once.
    let isAnother = session.crashesBefore == crashCount
    if isAnother { crashCount += 1 }
    let own = session.objects.values.map(\.id)
    let verdict = runs.blame.crashed(unproven: unproven, proven: own, isAnother: isAnother)
    announce(verdict, of: session, suspects: unproven.count)
    switch verdict {
    case .undecided, .guilty: break
    case .quarantine(let node, _): tree.nodes[node].map { quarantine($0) }
    case .quarantineArchive: quarantineAll()
    }
  }

  private func announce(_ verdict: Blame.Verdict, of session: Session, suspects: Int) {
    announce {
      let (guilty, strikes): (NodeID?, Int) =
        switch verdict {
        case .undecided(let strikes), .quarantineArchive(let strikes): (nil, strikes)
        case .guilty(let node, let strikes), .quarantine(let node, let strikes): (node, strikes)
        }
      return RestorationCrashed().with { message in
        message.session = Application.identity(of: session)
        message.objects = session.windows.count
        message.suspects = suspects
        message.guilty = guilty.flatMap { tree.nodes[$0] }.flatMap { tree.path(of: $0) }
        message.strikes = strikes
      }
    }
  }
}
