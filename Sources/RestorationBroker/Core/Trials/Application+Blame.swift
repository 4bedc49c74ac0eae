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
    deliverNext()
    while let decode = trials.next(runs.blame, in: &turn, find: { node($0)?.id }) {
      do throws(ErrorObject) {
        guard let session = sessions[decode.session] else { throw .sessionEnded() }
        try self.decode(decode.request, by: session, for: decode.caller)
      } catch {
        turn.refuse(decode.caller, error)
      }
    }
  }

  // MARK: Failures

  /// The session's process has ended without a goodbye: finds out whether it failed, and what that says about the
  /// states it was handed.
  func blame(_ session: Session) {
    // Who develops a program stops it at any time and in any way.
    let ending: ProcessEnding = turn.settings.isDeveloperMode ? .stopped : session.exit?.ending ?? .unknown
    let ended = trials.ended(session.id, ending, isStrict: hasSuspects, at: turn.now.monotonic)
    guard let failure = ended?.blaming(where: { tree.nodes[$0]?.hasState ?? false }) else { return }
    let strikes = runs.blame.strikes + (failure.isAnother ? 1 : 0)
    let verdict = runs.blame.failed(failure)
    announce {
      RestorationCrashed().with { message in
        message.session = Application.identity(of: session)
        message.objects = failure.objects
        message.suspects = failure.unproven.count
        message.guilty = failure.only.flatMap { tree.nodes[$0] }.flatMap { tree.path(of: $0) }
        message.strikes = strikes
      }
    }
    switch verdict {
    case .undecided: break
    case .quarantine(let node): tree.nodes[node].map { quarantine($0) }
    case .quarantineArchive: quarantineAll()
    }
  }
}
