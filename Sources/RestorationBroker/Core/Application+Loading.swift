// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import RestorationWire

/// An opened archive and the tree of its head.
package struct OpenedArchive {
  package let opening: ArchiveOpening
  let tree: NodeTree

  init(_ opening: ArchiveOpening) {
    self.opening = opening
    var tree = NodeTree()
    tree.reserve(opening.nodes.count)
    tree.load(opening.nodes)
    tree.indexAll()
    self.tree = tree
  }
}

extension Application {
  /// Loads the archive. Earlier sessions exist again, without a connection: a live process resumes its session by its
  /// token, and the service reports which processes have ended.
  func load(_ opened: OpenedArchive) {
    let opening = opened.opening
    let connected = sessions.values
    let former = formerSessions
    // These states were received, but lost with their transaction.
    let hasLost = tree.claimed.values.contains { ($0.pulled?.sequence ?? 0) > opening.sequence }
    reset(at: opening.sequence)
    turn.readOnly = opening.readOnly
    turn.begin(opening.archive, after: opening.sequence, content: opening.contentSequence)
    budget = ArchiveBudget(counted: opening.sequence)
    reach = Reach()
    generations = GenerationHistory(opening.generations, last: opening.lastGeneration)
    tree = NodeTree(last: opening.lastNode, tree.context)
    runs.load(opening.run, damage: opening.damage)
    runs.keepFormer(opening.hasFormer, in: turn)
    origins = StateOrigins(
      stored: opening.contexts,
      buried: opening.buriedContexts,
      last: opening.lastContext
    )
    tree.become(opened.tree)
    countHead()
    sessions.load(opening.sessions, last: opening.lastSession, former: former.sessions, lastUsed: turn.now.monotonic)
    loadRoles()
    for session in connected where sessions[session.id] == nil {
      abandonPoll(of: session)
      turn.ask(.unwatch(id, session.id))
    }
    trials.resume(former.trials) { sessions[$0] != nil }
    loadClaims(opening.claims, former: former.claims)
    loadOwnState(former: former.sessions)
    turn.phase = .open
    if opening.damage != nil { writeRun() }
    loadWithheld(opening.withheld)
    // Those that were about to be dropped when a transaction failed.
    if !former.claims.isEmpty {
      dropProvisional(tree.claimed.values.filter { $0.claim?.hasDecoded == true && $0.claimRecord?.delivery == .due })
    }
    // Placeholders that existed only for a former broker are removed.
    for node in tree.nodes.values where node.isPlaceholder && node.children.isEmpty { prune(node) }
    note(.sessionsChanged)
    invalidate(former.pulled)
    if hasLost { saving.noteChange(in: &turn) }
  }

  private func reset(at sequence: SequenceNumber) {
    endCalls { _ in true }
    jobs.reset(at: sequence)
    saving.reset(in: &turn)
  }

  /// - Parameter former: claims from before a transaction failed.
  private func loadClaims(_ claims: [ClaimRecord], former: [ObjectHandle: Node.Claim]) {
    // A fresh object may have another number since its registration.
    let freshOf = sessions.inOrder.reduce(into: [:]) { fresh, session in
      fresh[session.id] = tree.nodes(in: session.facts.fresh)
    }
    for record in claims {
      guard let node = tree.nodes[record.node] else { continue }
      node.claimRecord = record
      guard record.released == 0, let session = sessions[record.session] else { continue }
      // Former brokers did not record pending deliveries. If the last push was provisional, a delivery was pending.
      let isEarly = node.versions.isProvisional && node.state?.session == session.id
      let classes = node.record.classes.map { StateOrigin.classes(inText: $0) } ?? []
      let before = former[record.handle]
      let since = before?.since ?? turn.now.monotonic
      var claim = Node.Claim(session: session.id, handle: record.handle, since: since, classes: classes)
      claim.hasDecoded = before?.hasDecoded ?? !(record.delivery == .due || isEarly)
      claim.isFinished = before?.isFinished ?? false
      if record.delivery == .given, before == nil { trials.fetched(node.id, by: session.id) }
      claim.isFresh = freshOf[session.id]?.contains(node.id) ?? false
      (claim.isRolledBack, claim.hasMoved) = (before?.isRolledBack ?? false, before?.hasMoved ?? false)
      // The states that the owner has sent to a former broker are unknown.
      let mayBeUnstored = before == nil && !node.hasState && !session.serves(.encodeRestorableStateWithCoder)
      if mayBeUnstored || !tree.isIncluded(node) { noteUnstored(node) }
      hold(node, claim, by: session)
    }
  }

  /// Treats the application's own state like a claim of the delegate, whose deliveries are unknown.
  private func loadOwnState(former: [SessionID: Session]) {
    guard let state = tree.applicationNode?.state, state.isEarly, let delegate = liveDelegate else { return }
    if former[delegate.id] == nil { delegate.hasOwnState = state.session != delegate.id }
    trials.watchEarly(since: delegate.began, in: &turn)
  }

  /// Makes `session` the live owner of `node` in memory. Its revisions continue from those of an earlier claim, because
  /// after a restart the two could not be told apart (R15).
  func hold(_ node: Node, _ claim: Node.Claim, by session: Session) {
    var claim = claim
    claim.origin = nil
    claim.revision = max(claim.revision, session.revision(of: node))
    session.objects[claim.handle] = node
    tree.hold(node, claim)
    if node.versions.isProvisional { trials.watchEarly(since: claim.since, in: &turn) }
  }
}
