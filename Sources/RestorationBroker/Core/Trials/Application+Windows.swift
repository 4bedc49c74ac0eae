// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Decode windows and the completion of a restoration (R19, R31).
extension Application {
  /// A state was handed to its owner. A detached session has no process that could crash of it.
  ///
  /// - Parameter isPart: only some objects are restored, or late ones; that completes nothing (R19, R29).
  func openWindow(
    of node: Node,
    for session: Session,
    byCall: Bool = false,
    toFactory: Bool = false,
    isPart: Bool = false
  ) {
    guard !session.facts.isDetached else { return }
    trials.open(node.id, for: session.id, byCall: byCall, toFactory: toFactory, isPart: isPart, in: &turn)
  }

  /// The owner has answered for the state: by encoding it anew, or because its restoration is over (R31).
  func closeWindow(of node: NodeID, for session: SessionID) {
    guard trials.close(node, of: session) else { return }
    acquit(node)
    note(.windowsClosed)
  }

  /// All windows of a session close without a crash.
  func closeWindows(of session: Session) { for node in trials.closeAll(of: session.id) { acquit(node) } }

  func windowTimerFired() {
    for node in trials.timerFired(in: &turn) { acquit(node) }
    note(.windowsClosed)
  }

  func earlyTimerFired() { settleRipe() }

  /// Clears early marks whose time is over, unless their owners are about to be given what is older.
  func settleRipe() {
    let nodes = Array(tree.claimed.values) + (tree.applicationNode.map { [$0] } ?? [])
    forgetReach(byHiddenStatesOf: nodes)
    let early = nodes.filter { $0.state?.isEarly == true }
    let isHeld = { node in self.restoring.mayConcern(node.id) || self.isAwaitingDelivery(node) }
    trials.earlyTimerFired(early, since: liveDelegate?.began, unless: isHeld, in: &turn)
    for node in early where node.state?.isEarly == false { noteDelivered(node) }
  }

  /// What the session has written so far hides nothing, unless it is about to be given what is older.
  func settle(_ session: Session) {
    let own = session.facts.isDelegate ? tree.applicationNode.map { [$0] } ?? [] : []
    settle(session.objects.values.filter { !isAwaitingDelivery($0) } + own)
  }

  /// What was written to the nodes so far hides nothing.
  ///
  /// - Parameter mayBeAskedFor: the owner may still be given what is older, if that is asked for again.
  func settle(_ nodes: [Node], mayBeAskedFor: Bool = false) {
    forgetReach(byHiddenStatesOf: nodes)
    let early = nodes.filter { $0.state?.isEarly == true }
    EarlyMarks.clear(early, in: &turn)
    for node in early { if mayBeAskedFor { noteNothingDue(node) } else { noteDelivered(node) } }
  }

  private func forgetReach(byHiddenStatesOf nodes: [Node]) {
    if nodes.contains(where: { $0.beforeClaim?.references != nil }) { reach.mayShrink() }
  }

  // MARK: The end of a restoration

  func extendRestoration(_: ExtendStateRestoration, by session: Session, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    trials.extend(session.id, until: restoring.decisions?.deadline, in: &turn)
    turn.answer(caller, ExtendStateRestoration.Reply().with { $0.pending = Int64(trials.restoringCount) })
  }

  /// A session says that it is restored: its pushes hide nothing from now on, and its windows are closed (R19).
  func completeRestoration(_: CompleteStateRestoration, by session: Session, for caller: Caller) {
    if trials.endExtension(of: session.id) {
      session.hasCompletedRestoration = true
      settle(session)
      closeWindows(of: session)
      note(.windowsClosed)
    }
    turn.answer(caller, CompleteStateRestoration.Reply().with { $0.pending = Int64(trials.restoringCount) })
  }

  /// The application's restoration completes once a run, when the last window has closed (R19).
  func checkCompletion() {
    guard !trials.hasOpenWindows else { return }
    tellUnfinished()
    trials.stopTimerIfIdle(in: &turn)
    guard trials.isRestored, runs.facts.isOpen else { return }
    let hasCleared = runs.blame != Blame() && runs.blame.restorationCompleted()
    if runs.completeRestoration() {
      retireOrphans()
      runs.forgetOldUnits()
    } else if !hasCleared {
      return
    }
    writeRun()
  }

  /// Sessions that have fetched states by themselves are told of those objects when no session is restoring (R21).
  private func tellUnfinished() {
    guard !isRestoring else { return }
    for (number, nodes) in trials.takeUnfinished() {
      guard let session = sessions[number] else { continue }
      let own = nodes.compactMap { tree.nodes[$0] }.filter { $0.claim?.session == number }
      tellFinished(own, of: session, isDurable: false)
    }
  }

  /// Tells a session that these objects of it are restored, each once (R21).
  ///
  /// - Parameter isDurable: whether nothing of this moment has yet to be stored first.
  func tellFinished(_ nodes: [Node], of session: Session, isDurable: Bool) {
    let nodes = nodes.filter { $0.claim?.isFinished == false }
    for node in nodes {
      node.claim?.isFinished = true
      node.note(.finished)
      noteTold(node)
    }
    // A handle takes at most 17 bytes with its comma.
    let most = max(1, session.pushBytesMax / 2 / 17)
    let handles = nodes.compactMap { $0.claim?.handle }
    for start in stride(from: 0, to: handles.count, by: most) {
      let some = Array(handles[start..<min(start + most, handles.count)])
      let notification = ApplicationFinishedRestoringState().with { $0.objects = some }
      if isDurable { tell(session, notification) } else { notify(session, notification) }
    }
  }
}
