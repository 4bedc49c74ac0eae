// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Making a generation the head again (R16).
extension Application {
  /// Reads the generation piece by piece, then replaces the head in one transaction.
  func rollBack(_ request: RollBack, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let sealed = try generation(request.generation)
    try requireForce(for: request)
    let call = LongCall(caller, by: session, token: request.progressToken, at: turn.now)
    let rollback = Rollback(request, sealed, call)
    jobs.begin(.rollback(rollback, reading: []), .nodes(after: 0, at: sealed.sequence), for: caller, in: &turn)
  }

  private func requireForce(for request: RollBack) throws(ErrorObject) {
    guard !request.force else { return }
    try requireNobodyLives(
      .needsForce,
      hint: "End it first, or use force: true; headReplaced then tells its processes, which should restore again."
    )
  }

  /// A piece of the generation was read.
  func goOn(with rollback: inout Rollback, reading nodes: [NodeID], _ outcome: StoreJob.Outcome, _ job: StoreJob) {
    let sequence = rollback.generation.sequence
    switch outcome {
    case .nodes(let nodes):
      if let next = rollback.take(nodes) {
        return jobs.goOn(with: .rollback(rollback, reading: []), next, job, in: &turn)
      }
    case .states(let states): rollback.take(states, of: nodes)
    case .checked, .copied: break
    }
    do throws(ErrorObject) {
      try rollback.choose()
      guard case .open = phase else {
        throw .storeFailed("the archive is being reopened", indeterminate: false)
      }
      if case .nodes = outcome { try requireRoom(for: rollback.growth(of: tree)) }
      let piece = rollback.nextPiece(beside: tree)
      let (done, total) = rollback.progress
      tell(rollback.call.progress(done, of: total, isLast: piece.isEmpty, at: turn.now), of: rollback.call)
      if !piece.isEmpty {
        return jobs.goOn(with: .rollback(rollback, reading: piece), .states(piece, at: sequence), job, in: &turn)
      }
      // What was so when the call came may have changed while the generation was read.
      try requireForce(for: rollback.request)
      let (rollback, caller) = (rollback, job.caller)
      try takeLong(for: caller) { long throws(ErrorObject) in
        let reply =
          if let chosen = rollback.chosen {
            try self.finish(rollback, only: chosen)
          } else {
            try await HeadReplacement.carryOut(rollback, in: self, long)
          }
        self.turn.answer(caller, reply)
      }
    } catch {
      turn.refuse(job.caller, error)
    }
  }

  /// Seals the new head as well; its owners should restore again.
  ///
  /// - Parameter damaged: objects whose states in the generation could not be read.
  func sealRolledBack(_ rollback: Rollback, damaged: [Node], former: Int64?) -> RollBack.Reply {
    if hasUnsealedContent { _ = generations.seal("rolledBack", of: tree, omitting: tree.unsavedNodes, in: &turn) }
    let generation = generations.newest?.generation ?? rollback.request.generation
    forgetRestoration()
    reach.mayGrow()
    askForUnstored()
    note(.trialsEnded)
    note(.appeared)
    tellHeadReplaced(by: generation)
    let unreadable = damaged.sorted { $0.id < $1.id }.compactMap { tree.path(of: $0) }
    return RollBack.Reply().with {
      $0.generation = generation
      $0.former = former
      $0.unreadable = unreadable
    }
  }

  // MARK: Afterwards

  /// Handed-out states, and changes since the last save, belong to the former head.
  private func forgetRestoration() {
    saving.forgetChanges(in: &turn)
    for session in sessions.values where !session.isDiscarded {
      (session.hasCompletedRestoration, session.hasOwnState) = (false, false)
    }
    runs.forgetRefusals()
    if sessions.allAreDiscarded { beginAnew() } else { writeRun() }
  }

  private func tellHeadReplaced(by generation: Int64) {
    for session in sessions.inOrder where !session.isDiscarded {
      notify(session, HeadReplaced().with { $0.generation = generation })
    }
  }
}

extension Node.Claim {
  /// The claim on an object whose state was replaced (R19).
  func rolledBack(at now: Int64) -> Node.Claim {
    var claim = Node.Claim(session: session, handle: handle, since: now, classes: classes)
    (claim.revision, claim.isRolledBack, claim.isFresh, claim.hasMoved) = (revision, true, false, hasMoved)
    return claim
  }
}
