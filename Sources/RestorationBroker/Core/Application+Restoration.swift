// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// Decode windows, early marks and the completion of a restoration (R19, R31).
extension Application {
  /// A window closes by itself after so many milliseconds (R31), an early mark so long after the claim (R19).
  static let windowMilliseconds: Int64 = 10_000
  static let earlyMilliseconds: Int64 = 60_000

  /// A state was handed to its owner: what happens next tells whether it was good (R31).
  func openWindow(of node: Node, for session: Session) {
    guard !session.facts.isDetached else { return }
    if !hasWindowTimer {
      hasWindowTimer = true
      context.emit(.setTimer(.windows(id), milliseconds: Application.windowMilliseconds))
    }
    session.windows[node.id] = context.now.monotonic + Application.windowMilliseconds
    hasOpenedWindow = true
  }

  func closeWindow(of node: NodeID, for session: Session) {
    guard session.windows.removeValue(forKey: node) != nil || brokenWindows.contains(node) else { return }
    brokenWindows.remove(node)
    checkCompletion()
  }

  func windowTimerFired() {
    hasWindowTimer = false
    var earliest: Int64?
    for session in sessions.values {
      for (node, deadline) in session.windows {
        if deadline <= context.now.monotonic {
          session.windows[node] = nil
          brokenWindows.remove(node)
        } else {
          earliest = min(earliest ?? deadline, deadline)
        }
      }
    }
    if let earliest {
      hasWindowTimer = true
      context.emit(.setTimer(.windows(id), milliseconds: max(1, earliest - context.now.monotonic)))
    }
    checkCompletion()
  }

  /// A session says that it is restored: its pushes hide nothing any more, and its windows are closed (R19).
  func completeRestoration(of session: Session) -> Int {
    session.hasCompletedRestoration = true
    settle(session.objects.values.filter { $0.state?.isEarly == true })
    for node in session.windows.keys {
      brokenWindows.remove(node)
    }
    session.windows = [:]
    checkCompletion()
    return sessions.values.count { !$0.windows.isEmpty }
  }

  /// The application's restoration completes once a run, when nobody's window is open any more (R19).
  func checkCompletion() {
    guard sessions.values.allSatisfy({ $0.windows.isEmpty }) else { return }
    if hasWindowTimer {
      hasWindowTimer = false
      context.emit(.cancelTimer(.windows(id)))
    }
    guard hasOpenedWindow, !runFacts.hasCompletedRestoration, brokenWindows.isEmpty, runFacts.isOpen else { return }
    runFacts.hasCompletedRestoration = true
    run.restorations += 1
    retireOrphans()
    let day: Int64 = 24 * 3_600 * 1_000
    if context.now.wall - runFacts.backedUp >= day {
      runFacts.backedUp = context.now.wall
      context.emit(.backUp(id))
    }
    writeRun()
  }

  // MARK: Early marks

  /// Whether a push of the owner would hide an older state it has not looked at (R19).
  func isEarly(_ node: Node, _ claim: Node.Claim, _ session: Session) -> Bool {
    !claim.hasDecoded && !session.hasCompletedRestoration && node.hasState
      && (node.state?.session != session.id || node.state?.isEarly == true || claim.isRolledBack)
      && context.now.monotonic - claim.since < Application.earlyMilliseconds
  }

  /// Sees to it that early marks of the node are cleared in time.
  func watchEarlyMark(since: Int64) {
    let due = since + Application.earlyMilliseconds
    if let earlyDue, earlyDue <= due { return }
    earlyDue = due
    context.emit(.setTimer(.early(id), milliseconds: max(1, due - context.now.monotonic)))
  }

  func earlyTimerFired() {
    earlyDue = nil
    var ripe: [Node] = []
    var earliest: Int64?
    for node in nodesByHandle.values where node.state?.isEarly == true {
      guard let claim = node.claim else { continue }
      if context.now.monotonic - claim.since >= Application.earlyMilliseconds {
        ripe.append(node)
      } else {
        earliest = min(earliest ?? claim.since, claim.since)
      }
    }
    settle(ripe)
    if let earliest { watchEarlyMark(since: earliest) }
  }
}
