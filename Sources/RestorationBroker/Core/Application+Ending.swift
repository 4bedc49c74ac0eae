// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

extension Application {
  /// Ends a session; how it ended decides what happens to its objects (R30).
  func end(_ session: Session, _ ending: SessionEnding) {
    guard sessions[session.id] === session else { return }
    abandonPoll(of: session)
    forgetUnfetchedStates(of: session)
    noteEnd(of: session, ending)
    announceEnd(of: session, ending)
    if !session.isDiscarded { leaveObjects(of: session, ending) }
    for handle in session.objects.keys { tree.release(handle) }
    // What ended has no roles.
    (session.facts.restorationClasses, session.facts.dataSources) = ([], [])
    // What completes with it has still had its objects.
    checkCompletion()
    sessions.end(session, ending, restorations: runs.restorations, in: &turn)
    turn.ask(.unwatch(id, session.id))
    turn.ask(.cancelTimer(.lost(id, session.id)))
    if session.facts.isDetached { turn.ask(.cancelTimer(.detached(id, session.id))) }
    note(.sessionEnded(session, ending))
  }

  /// Ends a session whose process has ended without a goodbye (R30).
  func died(_ session: Session) { end(session, SessionEnding(session.exit ?? ProcessEnd())) }

  private func leaveObjects(of session: Session, _ ending: SessionEnding) {
    switch ending {
    case .userQuit where quitsApplication(session) && turn.settings.isDeveloperMode:
      // What a developer quits is to be there again; nothing is emptied.
      early.clear(session.objects.values, in: &turn)
      vacate(session)
    case .userQuit where quitsApplication(session):
      emptyHead(discarding: sessions.values.filter { $0 !== session })
      announceDiscard(.userQuit)
      runs.userQuit()
    case .closed, .userQuit:
      let objects = session.objects.values.sorted { $0.id < $1.id }
      for node in objects { node.claim = nil }
      for node in objects where tree.nodes[node.id] === node { drop(node) }
    case .logout where session.hasExited, .stopped:
      // It has not declared that its blank pushes may hide older states (R19).
      vacate(session)
    case .restart, .logout, .expired:
      early.clear(session.objects.values, in: &turn)
      vacate(session)
    case .crashed:
      blame(session)
      vacate(session)
    }
    closeWindows(of: session)
  }

  /// Whether the user quits the whole application by it, not only this process.
  private func quitsApplication(_ session: Session) -> Bool {
    session.facts.isDelegate || isLast(session) && !hasDelegate
  }

  private func isLast(_ session: Session) -> Bool { sessions.values.allSatisfy { $0 === session || $0.isDiscarded } }

  var hasDelegate: Bool { sessions.values.contains { $0.facts.isDelegate && !$0.isDiscarded } }

  private func vacate(_ session: Session) {
    let objects = session.objects.values.sorted { $0.id < $1.id }
    for node in objects { node.claim = nil }
    for node in tree.unsaved(among: objects) where tree.nodes[node.id] === node { drop(node) }
  }

  func noteOutcome(of session: Session, _ ending: SessionEnding) {
    guard !session.isDiscarded else { return }
    forgetUnit(of: session, ending)
    let isLast = sessions.allAreDiscarded
    runs.sessionEnded(ending == .crashed ? .crashed : .clean, role: session.facts.role, isLast: isLast)
    writeRun()
  }

  /// Empties the head in one row; writes of the given sessions are no longer stored (R30).
  func emptyHead(discarding discarded: [Session]) {
    note(.headGivenUp)
    forgetBlame()
    write(.removeAll)
    for node in tree.nodes.values { node.claim = nil }
    tree.become(NodeTree())
    for session in sessions.values { session.revisions = [:] }
    budget.emptyHead()
    for session in discarded where !session.isDiscarded {
      session.isDiscarded = true
      write(.session(session.record))
    }
    runs.forgetRoles()
    runs.units = []
  }

  // MARK: Single objects

  /// Removes an object and its state; its node stays, vacant, while it has descendants (R3).
  func drop(_ node: Node) {
    let wasClaimed = node.claim != nil
    if let claim = node.claim { release(claim) }
    node.claim = nil
    for session in sessions.values { session.revisions[node.id] = nil }
    forgetBlame(of: node)
    if node.hasState {
      budget.growHead(by: -(node.state?.bytes ?? 0))
      node.state = nil
      node.beforeClaim = nil
      write(.removeState(node.id))
    }
    if !node.children.isEmpty, node.claimRecord != nil {
      writeClaim(ClaimRecord(node: node.id, session: 0, handle: 0), of: node)
    } else {
      node.claimRecord = nil
    }
    prune(node)
    if wasClaimed { note(.released(node.id, isGone: true)) }
  }

  /// Releases an object whose session continues; the state stays (R13).
  func releaseKeepingState(_ node: Node) {
    guard node.record.component != nil else {
      drop(node)
      return
    }
    if let claim = node.claim {
      release(claim)
      if claim.revision > 0 { sessions[claim.session]?.revisions[node.id] = claim.revision }
    }
    node.claim = nil
    early.clear([node], in: &turn)
    writeRelease(of: node, at: turn.now.wall)
    note(.released(node.id, isGone: false))
  }

  func writeClaim(_ record: ClaimRecord, of node: Node) {
    node.claimRecord = record
    write(.claim(record))
  }

  /// When the node became unclaimed; 0 if it must not be retired (R13).
  func writeRelease(of node: Node, at released: Int64) {
    let record = ClaimRecord(
      node: node.id,
      session: 0,
      handle: 0,
      released: released,
      restorationsAtRelease: runs.restorations
    )
    writeClaim(record, of: node)
  }

  private func release(_ claim: Node.Claim) {
    tree.release(claim.handle)
    sessions[claim.session]?.objects[claim.handle] = nil
  }

  /// Removes a node that is only a placeholder without descendants, and then each ancestor that is one.
  func prune(_ node: Node) {
    var current: Node? = node
    while let node = current, node.isPlaceholder, node.children.isEmpty, tree.nodes[node.id] === node {
      current = node.parent
      node.record.isRemoved = true
      write(node)
      tree.remove(node)
    }
  }

  // MARK: Orphans

  /// Retires orphans that were unclaimed for 20 completed restorations or 90 days (R13).
  func retireOrphans() {
    let days90: Int64 = 90 * 24 * 3_600 * 1_000
    for node in tree.nodes.values.sorted(by: { $0.id > $1.id }) where !node.record.keepsForever {
      guard let orphan = sessions.orphaned(node) else { continue }
      if runs.restorations - orphan.restorations >= 20 || turn.now.wall - orphan.since >= days90 { drop(node) }
    }
  }
}
