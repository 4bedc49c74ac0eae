// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

extension Application {
  /// Ends a session. The ending decides what happens to its objects (R30).
  func end(_ session: Session, _ ending: SessionEnding) {
    guard sessions[session.id] === session else { return }
    abandonPoll(of: session)
    forgetUnfetchedStates(of: session)
    noteEnd(of: session, ending)
    announceEnd(of: session, ending)
    if !session.isDiscarded { leaveObjects(of: session, ending) }
    for handle in session.objects.keys { tree.release(handle) }
    (session.facts.restorationClasses, session.facts.sharedClasses, session.facts.dataSources) = ([], [], [])
    session.facts.fresh = RangeSet()
    // The session still counts as the owner of its objects here, so they count for the completion.
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
      // In developer mode a quit keeps the state: the developer wants it again after the next start.
      settle(session)
      vacate(session)
    case .userQuit where quitsApplication(session):
      emptyHead(discarding: sessions.values.filter { $0 !== session })
      announceDiscard(.userQuit)
      runs.userQuit()
    case .closed, .userQuit:
      settle(session)
      let objects = session.objects.values.sorted { $0.id < $1.id }
      for node in objects { node.claim = nil }
      close(objects)
    case .logout where session.hasExited, .stopped:
      // It has not declared that its provisional states may replace older ones (R19).
      vacate(session)
    case .restart, .logout, .expired:
      settle(session)
      vacate(session)
    case .crashed:
      blame(session)
      vacate(session)
    }
    closeWindows(of: session)
  }

  /// Whether this goodbye quits the whole application, not only its process.
  private func quitsApplication(_ session: Session) -> Bool {
    session.facts.isDelegate || isLast(session) && liveDelegate == nil
  }

  private func isLast(_ session: Session) -> Bool { sessions.values.allSatisfy { $0 === session || $0.isDiscarded } }

  var liveDelegate: Session? { sessions.values.first { $0.facts.isDelegate && !$0.isDiscarded } }

  private func vacate(_ session: Session) {
    let objects = session.objects.values.sorted { $0.id < $1.id }
    for node in objects { node.claim = nil }
    for node in tree.unsaved(among: objects) where tree.nodes[node.id] === node { drop(node) }
  }

  func noteOutcome(of session: Session, _ ending: SessionEnding) {
    guard !session.isDiscarded else { return }
    forgetUnit(of: session, ending)
    let isLast = sessions.allAreDiscarded
    let outcome: RunFacts.Outcome = ending == .crashed ? .crashed : .clean
    runs.sessionEnded(outcome, role: session.facts.role, isLast: isLast, at: turn.now.wall)
    writeRun()
  }

  /// Removes all objects and states by one change. Later writes of the given sessions are not stored (R30).
  func emptyHead(discarding discarded: [Session]) {
    clearHead()
    for node in tree.nodes.values { node.claim = nil }
    tree.become(NodeTree())
    countHead()
    for session in sessions.values { session.revisions = [:] }
    for session in discarded where !session.isDiscarded {
      session.isDiscarded = true
      write(.session(session.record))
    }
    runs.forgetRoles()
    runs.units = []
  }

  /// Clears the archive's head and the shelf. The caller changes the tree and counts the head anew.
  func clearHead() {
    note(.headGivenUp)
    forgetBlame()
    emptyShelf()
    write(.removeAll)
    reach.mayShrink()
  }

  // MARK: Single objects

  /// Removes an object and its state. If it has descendants, its node stays as a vacant one (R3).
  func drop(_ node: Node) {
    let wasClaimed = node.claim != nil
    if let claim = node.claim { release(claim, of: node) }
    node.claim = nil
    for session in sessions.values { session.revisions[node.id] = nil }
    forgetBlame(of: node)
    removeState(of: node)
    node.isUnstored = false
    if !node.children.isEmpty, node.claimRecord != nil {
      writeClaim(ClaimRecord(node: node.id, session: 0, handle: 0), of: node)
    } else {
      node.claimRecord = nil
    }
    forgetDescription(of: node)
    prune(node)
    runs.forget(node.id, isGone: tree.nodes[node.id] !== node)
    if wasClaimed { note(.released(node.id, isGone: true)) }
  }

  /// Keeps only the node's place: a state pushed to its path later belongs to another object.
  private func forgetDescription(of node: Node) {
    let (record, kind) = (node.record, node.record.kind)
    let blank = NodeRecord(node: node.id, parent: record.parent, component: record.component, kind: kind)
    guard !node.children.isEmpty, record != blank else { return }
    node.record = blank
    write(node)
  }

  /// Drops a vacant object and all vacant ones below it; nodes above live objects stay (R3, R13).
  func forget(_ node: Node, by session: Session? = nil) {
    for node in tree.subtree(of: node).reversed() where node.isVacant && tree.nodes[node.id] === node {
      if !node.isPlaceholder { announceUnregistration(of: node, .unregistered, stateKept: false, by: session) }
      drop(node)
      note(.released(node.id, isGone: true))
    }
  }

  func removeState(of node: Node) {
    guard let state = node.state else { return }
    let references = node.references
    budget.grow(by: -state.bytes, at: write(.removeState(node.id)))
    origins.exchange([state.context], for: [], at: sequence)
    node.versions.remove()
    reach.note(references, node.references, in: tree)
  }

  /// Releases an object whose session continues. The state stays if it is saved (R4, R13).
  func releaseKeepingState(_ node: Node) {
    guard canKeepState(node) else { return drop(node) }
    if !isAwaitingDelivery(node) { settle([node]) }
    let claim = node.claim
    if let claim {
      release(claim, of: node)
      if claim.revision > 0 { sessions[claim.session]?.revisions[node.id] = claim.revision }
    }
    node.claim = nil
    writeRelease(of: node, at: turn.now.wall, by: claim?.session ?? 0)
    note(.released(node.id, isGone: false))
  }

  func canKeepState(_ node: Node) -> Bool { node.record.component != nil && !isUnsaved(node) }

  func writeClaim(_ record: ClaimRecord, of node: Node) {
    node.claimRecord = record
    write(.claim(record))
  }

  /// Records when the node became unclaimed (0 if it must not be retired), and its last owner (0 if it had none) (R13).
  func writeRelease(of node: Node, at released: Int64, by session: SessionID = 0) {
    let record = ClaimRecord(
      node: node.id,
      session: session,
      handle: 0,
      released: released,
      restorationsAtRelease: runs.restorations
    )
    writeClaim(record, of: node)
  }

  /// The session no longer has the object. The caller ends the node's claim.
  func release(_ claim: Node.Claim, of node: Node) {
    tree.release(claim.handle)
    deliveries.cancel(node.id, for: claim.session, isLost: true)
    sessions[claim.session]?.objects[claim.handle] = nil
  }

  /// Removes a placeholder without descendants, and then each ancestor that has become one.
  ///
  /// - Parameter claimed: stays, because it is about to be claimed.
  func prune(_ node: Node, besides claimed: Node? = nil) {
    var current: Node? = node
    while let node = current, node !== claimed, node.isPlaceholder, node.children.isEmpty, tree.nodes[node.id] === node
    {
      current = node.parent
      node.record.isRemoved = true
      write(node)
      tree.remove(node)
    }
  }

  // MARK: Orphans

  /// Closes orphans that were unclaimed for 90 days and for 20 completed restorations (R13). Neither suffices alone:
  /// the clock may have been wrong, and a program may start twenty times a day.
  func retireOrphans() {
    let days90: Int64 = 90 * 24 * 3_600 * 1_000
    let orphans = tree.nodes.values.filter { node in
      guard !node.record.keepsForever, let orphan = sessions.orphaned(node) else { return false }
      return runs.restorations - orphan.restorations >= 20 && turn.now.wall - orphan.since >= days90
    }
    close(orphans.sorted { $0.id < $1.id }, areRetired: true)
  }
}
