// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

extension Application {
  /// Sessions whose processes may have ended, so that they do not keep the application in use; nil if there are none,
  /// or it is known.
  var unverifiedSessions: [SessionID]? {
    guard !sessions.isVerifying else { return nil }
    let others = sessions.values.filter { $0.facts.process != nil && !$0.facts.isDetached }
    return others.isEmpty ? nil : others.map(\.id)
  }

  /// Passes a message to `probed` once it is known which of the sessions' processes have ended; the client waits.
  func probe(_ sessions: [SessionID], for message: IncomingMessage, _ client: Client) {
    client.isProbing = true
    self.sessions.probe(sessions, for: .message(message), in: &turn)
  }

  /// Has the end of the session's process noticed.
  func watch(_ session: Session, for client: Client) {
    guard let process = session.facts.process else { return }
    // A connection that is gone does not know its process, which may live.
    turn.ask(client.hasLeft ? .watchProcess(process, id, session.id) : .watch(client.id, id, session.id))
  }

  /// Adds a session, and begins a run if there is none.
  ///
  /// - Parameter unit: the unit of its process.
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

  /// A process that connects again without its token leaves its former session; if that owns nothing, it ends.
  private func endAbandonedSessions(of process: ClientProcess?) {
    guard let process else { return }
    for session in sessions.inOrder
    where session.client == nil && !session.facts.isDetached && session.facts.process == process
      && session.objects.isEmpty && !session.isDiscarded
    {
      end(session, .expired)
    }
  }

  /// The saved state as reported to the session (R20).
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

  /// Seals the state that the last run left, and pins it until this run has restored it (R16).
  private func beginRun() {
    // Ended sessions are kept while they were the last to claim some node (R13).
    sessions.forgetEnded(besides: Set(tree.nodes.values.compactMap { $0.claimRecord?.session }), in: &turn)
    let hasState = tree.nodes.values.contains { $0.hasState }
    if hasState, hasUnsealedContent {
      _ = generations.seal("startup", of: tree, omitting: tree.unreachedNodes, in: &turn)
    }
    generations.pinNewest(in: &turn)
    // What was left by brokers that kept it, or has been excluded since its session ended (R4).
    for node in tree.unsaved(among: tree.nodes.values) where tree.nodes[node.id] === node { drop(node) }
    runs.begin(hasState: tree.nodes.values.contains { $0.hasState }, after: sequence, at: turn.now.wall)
    trials.beginRun()
    writeRun()
  }

  /// The newest one is kept.
  func noteAffinity(_ affinity: String) {
    guard affinity != runs.affinity else { return }
    runs.affinity = affinity
    writeRun()
  }

  func writeRun() {
    runs.write(withheld: withheldCount, withholdsAll: availability == .quarantined, in: &turn)
  }
}

/// Sessions that are lost, detached, or from before the broker was restarted.
extension Application {
  /// How long a lost connection's process has to end before the session counts as merely disconnected (R30).
  static let lostMilliseconds: Int64 = 1_000
  /// A detached session ends after this long without a call.
  static let detachedMilliseconds: Int64 = 600_000

  /// The connection of a session has broken (R30).
  func lost(_ session: Session) {
    session.client = nil
    // If a process had ended before it could be identified, its session ends with the connection.
    if session.hasExited || session.facts.process == nil {
      died(session)
    } else {
      turn.ask(.setTimer(.lost(id, session.id), milliseconds: Application.lostMilliseconds))
    }
  }

  /// Nothing is in progress, and no caller waits. (The core knows the clients of detached sessions.)
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

  /// Earlier sessions: those whose processes have ended have crashed, the others may be resumed by their token.
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
    // The processes that are alive have not been logged out.
    if runs.logIn() { writeRun() }
    goOnRestoring()
    turn.beginTrials()
  }

  func unregister(_ request: UnregisterObject, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    if case .path(let path) = request.object, let node = tree.node(at: path), node.isVacant,
      session?.replacedNodes.contains(node.id) != true
    {
      if !request.keepState { forget(node) }
      if request.generations { forgetGenerations() }
      return turn.answer(caller, EmptyResult())
    }
    let node = try requireOwn(request.object, session)
    let wasOpen = session.map { trials.release(node.id, of: $0.id) } ?? false
    announceUnregistration(of: node, .unregistered, stateKept: request.keepState && canKeepState(node))
    if request.keepState {
      releaseKeepingState(node)
    } else {
      close([node])
    }
    if request.generations { forgetGenerations() }
    if wasOpen { note(.windowsClosed) }
    turn.answer(caller, EmptyResult())
  }
}
