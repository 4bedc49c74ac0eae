// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Finds the state that makes processes crash (R31).
extension Application {
  // MARK: Handing out

  var hasSuspects: Bool { !runs.blame.suspects.isEmpty }

  func isSuspect(_ node: Node) -> Bool { runs.blame.suspects[node.id] != nil }

  /// Whether a state may be delivered to its owner now. A suspect is delivered alone.
  func mayHandOut(_ node: Node, to session: Session) -> Bool {
    trials.mayHandOut(node.id, to: session.id, runs.blame, at: turn.now.monotonic)
  }

  /// Notes a sign of life: a message from the client of a session.
  func heard(from session: Session) {
    // Earlier answers may still wait for the archive, so the message proves nothing about their states.
    if !jobs.isWorking { trials.heard(from: session.id, at: turn.now.monotonic) }
  }

  func acquit(_ node: NodeID) {
    guard hasSuspects, runs.blame.acquit(node) else { return }
    writeRun()
  }

  /// Continues what waited for states on trial, as far as possible.
  func goOnHandingOut() {
    drive(.extensionsChanged)
    goOnMaking()
    deliveries.retry()
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

  /// The session's process has ended without a goodbye. Decides whether it failed, and which states may be to blame.
  func blame(_ session: Session) {
    // A developer stops the program at any time and in any way.
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
