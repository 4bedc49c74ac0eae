// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Decode windows and the completion of a restoration (R19, R31).
extension Application {
  /// A state was given to its owner. A detached session has no process that it could crash.
  ///
  /// - Parameter isPart: whether only some objects are restored, or late ones; that completes nothing (R19, R29).
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

  /// The owner has confirmed the state, by a new encode or by the end of its restoration (R31).
  func closeWindow(of node: NodeID, for session: SessionID) {
    guard trials.close(node, of: session) else { return }
    acquit(node)
    note(.windowsClosed)
  }

  func closeWindows(of session: Session) { for node in trials.closeAll(of: session.id) { acquit(node) } }

  func windowTimerFired() {
    for node in trials.timerFired(in: &turn) { acquit(node) }
    note(.windowsClosed)
  }

  func earlyTimerFired() { settleRipe() }

  /// Confirms provisional states after their timeout, unless their owners are about to get the older ones.
  func settleRipe() {
    let nodes = Array(tree.claimed.values) + (tree.applicationNode.map { [$0] } ?? [])
    forgetReach(byHiddenStatesOf: nodes)
    let early = nodes.filter(\.versions.isUndecided)
    let isHeld = { node in self.restoring.mayConcern(node.id) || self.isAwaitingDelivery(node) }
    trials.earlyTimerFired(early, since: liveDelegate?.began, unless: isHeld, in: &turn)
    for node in early where !node.versions.isProvisional { noteDelivered(node) }
  }

  /// Confirms all states of the session, unless it is about to get the older ones.
  func settle(_ session: Session) {
    let own = session.facts.isDelegate ? tree.applicationNode.map { [$0] } ?? [] : []
    settle(session.objects.values.filter { !isAwaitingDelivery($0) } + own)
  }

  /// Confirms the nodes' provisional states.
  ///
  /// - Parameter mayBeAskedFor: whether the owner may still get the older state if that is requested again.
  func settle(_ nodes: [Node], mayBeAskedFor: Bool = false) {
    forgetReach(byHiddenStatesOf: nodes)
    let early = nodes.filter(\.versions.isUndecided)
    EarlyMarks.clear(early, in: &turn)
    for node in early { if mayBeAskedFor { noteNothingDue(node) } else { noteDelivered(node) } }
  }

  private func forgetReach(byHiddenStatesOf nodes: [Node]) {
    if nodes.contains(where: { $0.versions.hidden?.references != nil }) { reach.mayShrink() }
  }

  // MARK: The end of a restoration

  func extendRestoration(_: ExtendStateRestoration, by session: Session, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    trials.extend(session.id, until: restoring.decisions?.deadline, in: &turn)
    turn.answer(caller, ExtendStateRestoration.Reply().with { $0.pending = Int64(trials.restoringCount) })
  }

  /// A session reports that it is restored: its states are confirmed, and its windows close (R19).
  func completeRestoration(_: CompleteStateRestoration, by session: Session, for caller: Caller) {
    if trials.endExtension(of: session.id) {
      session.hasCompletedRestoration = true
      settle(session)
      closeWindows(of: session)
      note(.windowsClosed)
    }
    turn.answer(caller, CompleteStateRestoration.Reply().with { $0.pending = Int64(trials.restoringCount) })
  }

  /// Completes the restoration of the run, once, when the last window has closed (R19).
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

  /// When no session is restoring, tells sessions of the objects whose states they have fetched themselves (R21).
  private func tellUnfinished() {
    guard !isRestoring else { return }
    for (number, nodes) in trials.takeUnfinished() {
      guard let session = sessions[number] else { continue }
      let own = nodes.compactMap { tree.nodes[$0] }.filter { $0.claim?.session == number }
      tellFinished(own, of: session, isDurable: false)
    }
  }

  /// Tells a session which of its objects are restored, each once (R21).
  ///
  /// - Parameter isDurable: whether everything written so far is durable already.
  func tellFinished(_ nodes: [Node], of session: Session, isDurable: Bool) {
    let nodes = nodes.filter { $0.claim?.isFinished == false }
    guard session.isReachable || !session.serves(.applicationFinishedRestoringState) else {
      // It is told when it is back.
      for node in nodes { trials.fetched(node.id, by: session.id) }
      return
    }
    for node in nodes {
      node.claim?.isFinished = true
      node.note(.finished)
      noteTold(node)
    }
    // A handle and its comma take at most 17 bytes.
    let most = max(1, session.pushBytesMax / 2 / 17)
    let handles = nodes.compactMap { $0.claim?.handle }
    for start in stride(from: 0, to: handles.count, by: most) {
      let some = Array(handles[start..<min(start + most, handles.count)])
      let notification = ApplicationFinishedRestoringState().with { $0.objects = some }
      if isDurable { tell(session, notification) } else { notify(session, notification) }
    }
  }
}
