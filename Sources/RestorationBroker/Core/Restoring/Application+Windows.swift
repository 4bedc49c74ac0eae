// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Decode windows, early marks and the completion of a restoration (R19, R31).
extension Application {
  /// An early mark is cleared so many milliseconds after the claim (R19).
  static let earlyMilliseconds: Int64 = 60_000

  /// A state was handed to its owner: what happens next tells whether it was good (R31).
  ///
  /// - Parameter byCall: in a call of the broker, whose answer `acknowledged` is told of.
  /// - Parameter toFactory: for it to make the object, which is not restored by that yet.
  func openWindow(of node: Node, for session: Session, byCall: Bool = false, toFactory: Bool = false) {
    guard !session.facts.isDetached else { return }
    if !hasWindowTimer { setWindowTimer(DecodeWindow.milliseconds) }
    session.handedOut += 1
    session.crashesBefore = crashCount
    session.windows[node.id] = DecodeWindow(
      opened: turn.now.monotonic,
      number: session.handedOut,
      isByCall: byCall,
      isOfFactory: toFactory
    )
    if !toFactory { hasOpenedWindow = true }
  }

  /// A factory has outlived the state. What is held against it stays until the object has taken it in, too.
  func closeFactoryWindow(of node: NodeID, for number: SessionID) {
    guard let session = sessions[number], session.windows[node]?.isOfFactory == true else { return }
    session.windows[node] = nil
    checkCompletion()
    goOnHandingOut()
  }

  // MARK: The end of a restoration

  /// A session holds back the end, for so long at the most where the broker does not drive the restoration.
  static let extensionMilliseconds: Int64 = 10_000

  func extendRestoration(_: ExtendStateRestoration, by session: Session, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    session.extensions += 1
    // Until the deadline of the restoration that is under way; else for as long as a window is open.
    let end = turn.now.monotonic + Application.extensionMilliseconds
    session.extensionEnd = max(end, restoring?.decisions.deadline ?? end)
    if !hasWindowTimer { setWindowTimer(Application.extensionMilliseconds) }
    turn.answer(caller, ExtendStateRestoration.Reply().with { $0.pending = pendingSessions })
  }

  /// How many are still restoring.
  private var pendingSessions: Int64 { Int64(sessions.values.count { !$0.windows.isEmpty || $0.extensions > 0 }) }

  /// Sessions that have fetched states by themselves are told of those objects when nobody restores any more (R21).
  private func checkBarrier() {
    guard !isRestoring else { return }
    guard sessions.values.allSatisfy({ $0.windows.isEmpty && $0.extensions == 0 }) else { return }
    for session in sessions.inOrder where !session.unfinished.isEmpty {
      let nodes = session.unfinished.sorted().compactMap { tree.node($0) }.filter { $0.claim?.session == session.id }
      session.unfinished = []
      tellFinished(nodes, of: session, isDurable: false)
    }
  }

  /// Tells a session that these objects of it are restored (R21).
  ///
  /// - Parameter isDurable: whether nothing of this moment has yet to be stored first.
  func tellFinished(_ nodes: [Node], of session: Session, isDurable: Bool) {
    for node in nodes { node.note(.finished) }
    // A handle takes at most 17 bytes with its comma.
    let most = max(1, session.pushBytesMax / 2 / 17)
    let handles = nodes.compactMap { $0.claim?.handle }
    for start in stride(from: 0, to: handles.count, by: most) {
      let some = Array(handles[start..<min(start + most, handles.count)])
      let notification = ApplicationFinishedRestoringState().with { $0.objects = some }
      if isDurable { tell(session, notification) } else { notify(session, notification) }
    }
  }

  // MARK: Windows

  /// The owner has answered for the state: by encoding it anew, or because its restoration is over (R31).
  func closeWindow(of node: NodeID, for session: Session) {
    guard session.windows.removeValue(forKey: node) != nil || brokenWindows.contains(node) else { return }
    windowHasClosed(of: node)
    checkCompletion()
    goOnHandingOut()
  }

  /// A window closed without a crash.
  private func windowHasClosed(of node: NodeID) {
    brokenWindows.remove(node)
    acquit(node)
  }

  /// All windows of a session close without a crash.
  func closeWindows(of session: Session) { closeWindows(of: session, for: Array(session.windows.keys)) }

  func closeWindows(of session: Session, for nodes: [NodeID]) {
    for node in nodes where session.windows.removeValue(forKey: node) != nil || brokenWindows.contains(node) {
      windowHasClosed(of: node)
    }
  }

  func windowTimerFired() {
    hasWindowTimer = false
    var earliest: Int64?
    for session in sessions.values {
      for (node, window) in session.windows {
        if window.closes <= turn.now.monotonic {
          session.windows[node] = nil
          windowHasClosed(of: node)
        } else {
          earliest = min(earliest ?? window.closes, window.closes)
        }
      }
      guard session.extensions > 0 else { continue }
      if session.extensionEnd <= turn.now.monotonic {
        session.extensions = 0
        drive(.extensionsChanged)
      } else {
        earliest = min(earliest ?? session.extensionEnd, session.extensionEnd)
      }
    }
    if let earliest { setWindowTimer(max(1, earliest - turn.now.monotonic)) }
    checkCompletion()
  }

  private func setWindowTimer(_ milliseconds: Int64) {
    hasWindowTimer = true
    turn.ask(.setTimer(.windows(id), milliseconds: milliseconds))
  }

  /// A session says that it is restored: its pushes hide nothing any more, and its windows are closed (R19).
  func completeRestoration(_: CompleteStateRestoration, by session: Session, for caller: Caller) {
    // As often as it was extended; only the last time is it over.
    if session.extensions > 1 {
      session.extensions -= 1
    } else {
      session.extensions = 0
      session.hasCompletedRestoration = true
      settle(session.objects.values)
      closeWindows(of: session)
      checkCompletion()
      goOnHandingOut()
      drive(.extensionsChanged)
    }
    turn.answer(caller, CompleteStateRestoration.Reply().with { $0.pending = pendingSessions })
  }

  /// The application's restoration completes once a run, when nobody's window is open any more (R19).
  func checkCompletion() {
    guard sessions.values.allSatisfy({ $0.windows.isEmpty }) else { return }
    checkBarrier()
    if hasWindowTimer, sessions.values.allSatisfy({ $0.extensions == 0 }) {
      hasWindowTimer = false
      turn.ask(.cancelTimer(.windows(id)))
    }
    guard hasOpenedWindow, brokenWindows.isEmpty, runs.facts.isOpen else { return }
    let hasCleared = runs.blame != Blame() && runs.blame.restorationCompleted()
    if runs.completeRestoration() {
      retireOrphans()
      runs.forgetOldUnits()
      if runs.isBackupDue(in: turn) { turn.ask(.backUp(id)) }
    } else if !hasCleared {
      return
    }
    writeRun()
  }

  // MARK: Early marks

  /// Whether a push of the owner would hide an older state it has not looked at (R19).
  func isEarly(_ node: Node, _ claim: Node.Claim, _ session: Session) -> Bool {
    !claim.hasDecoded && !session.hasCompletedRestoration && node.hasState
      && (node.state?.session != session.id || node.state?.isEarly == true || claim.isRolledBack)
      && turn.now.monotonic - claim.since < Application.earlyMilliseconds
      // There is nothing to hide where the owner would not be given it (R35).
      && !node.isQuarantined
  }

  /// Sees to it that early marks of the node are cleared in time.
  func watchEarlyMark(since: Int64) {
    let due = since + Application.earlyMilliseconds
    if let earlyDue, earlyDue <= due { return }
    earlyDue = due
    turn.ask(.setTimer(.early(id), milliseconds: max(1, due - turn.now.monotonic)))
  }

  func earlyTimerFired() {
    earlyDue = nil
    var ripe: [Node] = []
    var earliest: Int64?
    for node in nodesByHandle.values where node.state?.isEarly == true {
      guard let claim = node.claim else { continue }
      if turn.now.monotonic - claim.since >= Application.earlyMilliseconds {
        ripe.append(node)
      } else {
        earliest = min(earliest ?? claim.since, claim.since)
      }
    }
    settle(ripe)
    if let earliest { watchEarlyMark(since: earliest) }
  }
}
