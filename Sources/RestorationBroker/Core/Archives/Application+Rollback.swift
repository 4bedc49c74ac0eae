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
      turn.answer(job.caller, try finish(rollback))
    } catch {
      turn.refuse(job.caller, error)
    }
  }

  private func finish(_ rollback: Rollback) throws(ErrorObject) -> RollBack.Reply {
    // What was so when the call came may have changed while the generation was read.
    try requireForce(for: rollback.request)
    if let chosen = rollback.chosen { return try finish(rollback, only: chosen) }
    let former = tree
    let target = rollback.tree(beside: former, living: nodesToKeep())
    let (count, max) = (target.tree.count, turn.limits.objectsPerApplicationMax)
    guard count <= max else { throw .limitExceeded("objectsPerApplicationMax", max: max, value: count) }
    let texts = target.tree.nodes.values.textBytes - budget.texts
    try requireRoom(for: rollback.growth(of: former) + texts + origins.growth(by: rollback.contexts))
    try turn.limits.requireReadable(rollback.newTexts(beside: former), in: target.tree)
    // From here on nothing can fail but the disk.
    note(.headGivenUp)
    let kept = generations.sealHead("rollBack", of: tree, in: &turn)
    tree.become(target.tree)
    let order = tree.byAge()
    writeNodes(order, instead: former)
    writeStates(order, of: rollback, instead: former)
    carryClaims(from: former, to: target)
    carryKept(from: former, to: target)
    carryDataSources(to: target)
    for node in order where node.isVacant { release(node, instead: former.nodes[node.id]) }
    countHead()
    return sealRolledBack(rollback, damaged: rollback.unreadable.compactMap { tree.nodes[$0] }, former: kept)
  }

  /// Seals the new head as well; its owners should restore again.
  ///
  /// - Parameter damaged: objects whose states in the generation could not be read.
  func sealRolledBack(_ rollback: Rollback, damaged: [Node], former: Int64?) -> RollBack.Reply {
    if hasUnsealedContent { _ = generations.seal("rolledBack", of: tree, omitting: tree.keptNodes, in: &turn) }
    let generation = generations.newest?.generation ?? rollback.request.generation
    forgetRestoration()
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

  // MARK: Writing

  /// Writes the differences from the former tree: only what has changed since the generation (R16).
  private func writeNodes(_ order: [Node], instead former: NodeTree) {
    for node in former.byAge(where: { tree.nodes[$0.id] == nil }) {
      forgetBlame(of: node)
      if node.stored != nil { write(.removeState(node.id)) }
      write(.node(.removal(of: node.id, successor: tree.successors[node.id])))
    }
    for node in order where former.nodes[node.id]?.record != node.record { write(node) }
    for (gone, successor) in tree.successors.sorted(by: { $0.key < $1.key })
    where former.nodes[gone] == nil && former.successors[gone] != successor {
      write(.node(.removal(of: gone, successor: successor)))
    }
  }

  /// Gives nodes the states of the generation. None is early, because they were requested (R19).
  private func writeStates(_ order: [Node], of rollback: Rollback, instead former: NodeTree) {
    var settled: [NodeID] = []
    for node in order {
      let before = former.nodes[node.id]
      let restored = rollback.restored(node, beside: before)
      (node.state, node.withheld) = (nil, before?.withheld)
      switch restored {
      case .nothing:
        if before?.stored != nil { write(.removeState(node.id)) }
        acquit(node.id)
      case .same:
        if before?.stored?.isEarly == true { settled.append(node.id) }
        node.state = before?.stored
        node.state?.isEarly = false
        node.isUnreadable = before?.isUnreadable ?? false
      case .text(var record, let original):
        record.isEarly = false
        if let claim = before?.claim {
          // So that revisions continue, even after a restart (R15).
          record.session = claim.session
          record.revision = claim.revision
        }
        let copy = StateSummary(record, at: write(.state(record)))
        node.state = copy
        acquit(node.id)
        // A state that crashes processes does so in the copy as well (R35).
        if let row = node.withheld?.first(where: { $0.row.sequence == original }) { withhold(copy, of: node, as: row) }
      }
    }
    if !settled.isEmpty { write(.settle(settled)) }
  }

  // MARK: Claims

  /// Lets owners keep their objects. They have not seen the new states, so their pushes before a decode are early
  /// (R19).
  private func carryClaims(from former: NodeTree, to target: RolledBackTree) {
    let owned = former.byAge { $0.claim != nil }
    // An owner whose node exists precedes one whose path exists.
    for node in owned.filter({ tree.nodes[$0.id] != nil }) + owned.filter({ tree.nodes[$0.id] == nil }) {
      guard let claim = node.claim, let session = sessions[claim.session], let place = target.node(node.id) else {
        continue
      }
      if let owner = owner(of: place) {
        announceUnregistration(of: node, .replaced, stateKept: true)
        session.objects[claim.handle] = nil
        tell(session, that: claim.handle, isReplacedAt: place, by: owner)
        continue
      }
      setFresh(node, false, of: session)
      hold(place, claim.rolledBack(at: turn.now.monotonic), by: session)
      place.claimRecord = node.claimRecord
      if place.id != node.id {
        writeClaim(ClaimRecord(node: place.id, session: session.id, handle: claim.handle), of: place)
      }
      guard turn.hasSubscribers || session.serves(.pathChanged), case let from = former.path(of: node),
        tree.path(of: place) != from
      else { continue }
      announceMove(of: place, from: from)
      tellPath(of: place, to: session)
    }
  }

  /// States that are kept off the disk are not part of the head. Objects that the generation does not save either still
  /// have theirs.
  private func carryKept(from former: NodeTree, to target: RolledBackTree) {
    let kept = keeping.nodes.sorted().compactMap { former.nodes[$0] }
    let records = keptRecords
    forgetAllKept()
    settleKept()
    for node in kept {
      guard let place = target.node(node.id), place.kept != nil, let records = records[node.id] else { continue }
      resume(records, of: place)
    }
  }

  private func carryDataSources(to target: RolledBackTree) {
    for (view, session) in providers.dataSources where tree.nodes[view] == nil {
      setDataSource(of: view, to: nil)
      if let node = target.node(view), providers.dataSource(of: node.id) == nil {
        setDataSource(of: node.id, to: session)
      }
    }
  }

  /// The last claim of a vacant node stays known; a node that has returned is an orphan from now on (R13).
  private func release(_ node: Node, instead former: Node?) {
    node.claimRecord = former?.claimRecord
    guard former == nil || node.isPlaceholder && node.children.isEmpty else { return }
    writeRelease(of: node, at: node.record.component == nil ? 0 : turn.now.wall)
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
