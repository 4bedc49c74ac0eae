// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Finding the state that a process crashes of (R31).
extension Application {
  // MARK: Handing out

  var hasSuspects: Bool { !runs.blame.suspects.isEmpty }

  func isSuspect(_ node: Node) -> Bool { runs.blame.suspects[node.id] != nil }

  /// Whether a state may be handed to its owner now: a suspect travels alone.
  func mayHandOut(_ node: Node, to session: Session) -> Bool {
    trials.mayHandOut(node.id, to: session.id, runs.blame, at: turn.now.monotonic)
  }

  /// Something has come from the client of a session: a sign of life.
  func heard(from session: Session) {
    // An answer that waits for the archive has not been written, so that this says nothing about its state.
    if !jobs.isWorking { trials.heard(from: session.id, at: turn.now.monotonic) }
  }

  /// The node's state is no longer suspected.
  func acquit(_ node: NodeID) {
    guard hasSuspects, runs.blame.acquit(node) else { return }
    writeRun()
  }

  /// Hands out what waited, as far as it may be now.
  func goOnHandingOut() {
    drive(.trialsChanged)
    goOnMaking()
    handOutLate()
    while let decode = trials.next(runs.blame, in: &turn, find: { node($0)?.id }) {
      do throws(ErrorObject) {
        guard let session = sessions[decode.session] else { throw .sessionEnded() }
        try self.decode(decode.request, by: session, for: decode.caller)
      } catch {
        turn.refuse(decode.caller, error)
      }
    }
  }

  // MARK: Crashes

  /// The session's process has ended abnormally: finds out what that says about the states it was handed.
  func blame(_ session: Session) {
    guard let crash = trials.crashed(session.id, isStrict: hasSuspects), !turn.settings.isDeveloperMode else { return }
    let unproven = crash.unproven.filter { tree.nodes[$0]?.hasState ?? false }
    let own = session.objects.values.map(\.id)
    let verdict = runs.blame.crashed(unproven: unproven, proven: own, isAnother: crash.isAnother)
    announce(verdict, of: session, objects: crash.objects, suspects: unproven.count)
    switch verdict {
    case .undecided, .guilty: break
    case .quarantine(let node, _): tree.nodes[node].map { quarantine($0) }
    case .quarantineArchive: quarantineAll()
    }
  }

  private func announce(_ verdict: Blame.Verdict, of session: Session, objects: Int, suspects: Int) {
    announce {
      let (guilty, strikes): (NodeID?, Int) =
        switch verdict {
        case .undecided(let strikes), .quarantineArchive(let strikes): (nil, strikes)
        case .guilty(let node, let strikes), .quarantine(let node, let strikes): (node, strikes)
        }
      return RestorationCrashed().with { message in
        message.session = Application.identity(of: session)
        message.objects = objects
        message.suspects = suspects
        message.guilty = guilty.flatMap { tree.nodes[$0] }.flatMap { tree.path(of: $0) }
        message.strikes = strikes
      }
    }
  }
}
