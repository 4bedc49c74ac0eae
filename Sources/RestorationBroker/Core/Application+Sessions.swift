// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

extension Application {
  /// Sessions whose processes may have ended without notice; `nil` if there are none or the probe has run. They must
  /// not keep the application in use.
  var unverifiedSessions: [SessionID]? {
    guard !sessions.isVerifying else { return nil }
    let others = sessions.values.filter { $0.facts.process != nil && !$0.facts.isDetached }
    return others.isEmpty ? nil : others.map(\.id)
  }

  /// Probes the sessions' processes. The client waits, and `probed` handles its message afterwards.
  func probe(_ sessions: [SessionID], for message: IncomingMessage, _ client: Client) {
    client.isProbing = true
    self.sessions.probe(sessions, for: .message(message), in: &turn)
  }

  /// Asks for `processExited` when the session's process ends.
  func watch(_ session: Session, for client: Client) {
    guard let process = session.facts.process else { return }
    // A closed connection cannot name its process, which may be alive.
    turn.ask(client.hasLeft ? .watchProcess(process, id, session.id) : .watch(client.id, id, session.id))
  }

  /// Begins a run as well if there is none.
  func beginSession(_ facts: SessionFacts, client: ClientID?, unit: String? = nil) -> Session {
    endAbandonedSessions(of: facts.process)
    if sessions.allAreDiscarded { beginRun() }
    let session = sessions.begin(facts, in: turn)
    session.client = client
    session.unitName = facts.storyboard ?? unit
    note(.sessionsChanged)
    write(.session(session.record))
    announceBeginning(of: session)
    return session
  }

  /// If a process connects again without its token, its former session ends, provided that it owns nothing.
  private func endAbandonedSessions(of process: ClientProcess?) {
    guard let process else { return }
    for session in sessions.inOrder
    where session.client == nil && !session.facts.isDetached && session.facts.process == process
      && session.objects.isEmpty && !session.isDiscarded
    {
      end(session, .expired)
    }
  }

  func situation(for session: Session) -> RestorationSituation {
    if case .unreadable = phase {
      return RestorationSituation().with {
        $0.state = .unreadable
        $0.reason = .recover
      }
    }
    let newest = tree.nodes.values.compactMap(\.state).max { $0.sequence < $1.sequence }
    let coder = newest.flatMap { state in
      origins[state.context].map { $0.reservedKeys(timestamp: state.written).text }
    }
    return RestorationSituation().with {
      $0.state = availability
      let isToRestore = restoring.startedUnits.contains(session.unitName ?? "")
      $0.reason = runs.reason(for: session.facts.role, hasState: newest != nil, isToRestore: isToRestore)
      $0.generation = generations.newest?.generation
      $0.archive = turn.archive
      $0.coder = coder
      $0.damaged = runs.facts.damage
    }
  }

  // MARK: Runs

  /// Seals the state that the last run left, and pins that generation until this run has restored it (R16).
  private func beginRun() {
    // An ended session stays recorded while it is the last owner of a node (R13).
    sessions.forgetEnded(besides: Set(tree.nodes.values.compactMap { $0.claimRecord?.session }), in: &turn)
    let hasState = tree.nodes.values.contains { $0.hasState }
    if hasState, hasUnsealedContent {
      _ = generations.seal("startup", of: tree, omitting: tree.unreachedNodes, in: &turn)
    }
    generations.pinNewest(in: &turn)
    // Former brokers stored these states, or the objects were excluded after their session had ended (R4).
    for node in tree.unsaved(among: tree.nodes.values) where tree.nodes[node.id] === node { drop(node) }
    runs.begin(hasState: tree.nodes.values.contains { $0.hasState }, after: sequence, at: turn.now.wall)
    trials.beginRun()
    writeRun()
  }

  /// Keeps the newest affinity only.
  func noteAffinity(_ affinity: String) {
    guard affinity != runs.affinity else { return }
    runs.affinity = affinity
    writeRun()
  }

  func writeRun() {
    runs.write(withheld: withheldCount, withholdsAll: availability == .quarantined, in: &turn)
  }
}

/// Lost and detached sessions, and those of a former broker.
extension Application {
  /// After this time a session whose process lives counts as disconnected, not as crashed (R30).
  static let lostMilliseconds: Int64 = 1_000
  /// A detached session expires after this time without a call.
  static let detachedMilliseconds: Int64 = 600_000

  func lost(_ session: Session) {
    session.client = nil
    // An unidentified process has already ended, so its session ends with the connection.
    if session.hasExited || session.facts.process == nil {
      died(session)
    } else {
      turn.ask(.setTimer(.lost(id, session.id), milliseconds: Application.lostMilliseconds))
    }
  }

  /// Nothing is in progress, and no caller waits. Clients of detached sessions are known to the core only.
  package var isIdle: Bool {
    parentWaits.isEmpty && trials.isIdle && sessions.isIdle && jobs.isIdle && !isRestoring && saving.isIdle
      && calls.isEmpty && !turn.isLong
  }

  func detachedTimerFired(_ number: SessionID) {
    guard let session = sessions[number], session.facts.isDetached else { return }
    let idle = turn.now.monotonic - session.lastUsed
    if idle >= Application.detachedMilliseconds {
      end(session, .expired)
    } else {
      turn.ask(.setTimer(.detached(id, number), milliseconds: Application.detachedMilliseconds - idle))
    }
  }

  /// Continues the sessions of a former broker. If a process has ended, its session has crashed; the others can be
  /// resumed.
  func resumeSessions(ended: Set<SessionID>) {
    for session in sessions.inOrder {
      if ended.contains(session.id) {
        if runs.facts.isLogout, session.exit == nil { session.exit = ProcessEnd(isLogout: true) }
        died(session)
      } else if session.facts.isDetached {
        if session.client == nil { session.usedElsewhere = true }
        detachedTimerFired(session.id)
      } else if session.hasExited {
        turn.ask(.setTimer(.lost(id, session.id), milliseconds: Application.lostMilliseconds))
      } else if session.client == nil, let process = session.facts.process {
        turn.ask(.watchProcess(process, id, session.id))
      }
    }
    // Live processes were not logged out.
    if runs.logIn() { writeRun() }
    goOnRestoring()
    turn.beginTrials()
  }

  func unregister(_ request: UnregisterObject, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    if case .path(let path) = request.object, let node = tree.node(at: path), node.isVacant,
      session?.replacedNodes.contains(node.id) != true
    {
      if !request.keepState { forget(node, by: session) }
      if request.generations { forgetGenerations() }
      return turn.answer(caller, EmptyResult())
    }
    let node = try requireOwn(request.object, session)
    let wasOpen = session.map { trials.release(node.id, of: $0.id) } ?? false
    announceUnregistration(of: node, .unregistered, stateKept: request.keepState && canKeepState(node))
    if request.keepState {
      releaseKeepingState(node)
    } else {
      if !isAwaitingDelivery(node) { settle([node]) }
      close([node])
    }
    if request.generations { forgetGenerations() }
    if wasOpen { note(.windowsClosed) }
    turn.answer(caller, EmptyResult())
  }
}
