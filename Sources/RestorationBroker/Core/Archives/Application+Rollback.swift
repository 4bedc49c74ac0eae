// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Makes a generation the head again (R16).
extension Application {
  /// Reads the generation piece by piece, then replaces the head in one transaction.
  func rollBack(_ request: RollBack, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireKept()
    let sealed = try generation(request.generation)
    try requireForce(for: request)
    let call = LongCall(caller, by: session, token: request.progressToken, at: turn.now)
    jobs.begin(Rollback(request, sealed, call), in: &turn)
  }

  private func requireForce(for request: RollBack) throws(ErrorObject) {
    guard !request.force else { return }
    try requireNobodyLives(
      .needsForce,
      hint: "End it first, or use force: true; headReplaced then tells its processes, which should restore again."
    )
  }

  func goOnRollingBack(with nodes: [NodeReading], isLast: Bool) throws(ErrorObject) {
    let growth = try jobs.withRollback { rollback throws(ErrorObject) in
      rollback.take(nodes)
      guard isLast else { return 0 }
      try rollback.choose()
      return rollback.growth(of: tree)
    }
    if isLast { try requireRoom(for: growth) }
  }

  func goOnRollingBack(with states: [StateReading?], of rows: [StateRequest.Row]) throws(ErrorObject) {
    try jobs.withRollback { $0.take(states, of: rows) }
  }

  /// The rows whose texts are read next. If the head lacks none, the generation becomes the head.
  func nextOfRollback() throws(ErrorObject) -> [StateRequest.Row] {
    guard case .open = phase else {
      throw .storeFailed("the archive is being reopened", indeterminate: false)
    }
    let (piece, progress, call) = try jobs.withRollback { rollback in
      let piece = rollback.nextPiece(beside: tree)
      let (done, total) = rollback.progress
      return (piece, rollback.call.progress(done, of: total, isLast: piece.isEmpty, at: turn.now), rollback.call)
    }
    tell(progress, of: call)
    if piece.isEmpty, let rollback = jobs.takeRollback() { try finish(rollback, for: call.caller) }
    return piece
  }

  private func finish(_ rollback: Rollback, for caller: Caller) throws(ErrorObject) {
    // The conditions of the call may have changed while the generation was read.
    try requireForce(for: rollback.request)
    try takeLong(for: caller) { long throws(ErrorObject) in
      let reply =
        if let chosen = rollback.chosen {
          try self.finish(rollback, only: chosen)
        } else {
          try await HeadReplacement.carryOut(rollback, in: self, long)
        }
      self.turn.answer(caller, reply)
    }
  }

  /// Seals the new head; its owners should restore again. `damaged`: objects whose states could not be read.
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
