// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// Sessions that came after the restoration, and are handed what they register of it without a call (R29).
extension Application {
  /// Whether a session that is about to register a vacant object came after the run's restoration, and may be handed
  /// what an earlier session of its process role had there (R29).
  func isLate(_ session: Session, for node: Node) -> Bool {
    guard runs.isLate(session.id), session.serves(.decodeRestorableStateWithCoder), !runs.isRefused(node),
      let claim = node.claimRecord, let role = session.facts.role, restorationPlan.lastOwner(of: node)?.role == role
    else { return false }
    return runs.isDue(node.id) || claim.released == 0 && sessions.ending(of: claim.session) == .crashed
  }

  /// The session has just registered the object.
  ///
  /// - Returns: whether what is saved of it is handed out.
  func owes(_ node: Node, to session: Session) -> Bool {
    switch handing(of: node.id, to: node.id) {
    case .nothing, .skip: return false
    case .state, .alone, .later, .afterTrials: break
    }
    handouts.add(node.id, for: session.id)
    // The next broker has to know it as well.
    if runs.addDue(node.id) { writeRun() }
    node.note(RestoringStep.located(session.owner), isFirst: true)
    return true
  }

  /// The session can be called again, perhaps by another broker: what it has not answered for is handed out once more.
  func resumeHandingOut(to number: SessionID) {
    guard let session = sessions[number], runs.isLate(number) else { return }
    for node in session.objects.values.sorted(by: { $0.id < $1.id }) where runs.isDue(node.id) {
      node.claim?.hasDecoded = false
      handouts.add(node.id, for: number)
    }
    handouts.returned(number)
    handOutLate()
  }

  /// The owner fetches the state by itself.
  func noteFetched(_ node: NodeID, by session: SessionID) {
    handouts.cancel(node, for: session)
    forgetDue([node])
  }

  /// No late session is handed these objects again.
  func forgetDue(_ nodes: [NodeID]) { if runs.forgetDue(nodes) { writeRun() } }

  /// Hands out what can be handed out now.
  func handOutLate() { for session in handouts.waiting { handOutLate(to: session) } }

  private func handOutLate(to number: SessionID) {
    guard !isRestoring, !turn.isEnding, case .open = phase, let session = sessions[number], session.isReachable else {
      return
    }
    let due = handouts.due(of: number).compactMap { tree.nodes[$0] }.filter { $0.claim?.session == number }
      .map { (node: $0, depth: tree.path(of: $0)?.components.count ?? 0) }.sorted { $0.depth < $1.depth }.map(\.node.id)
    let ways = due.map { (node: $0, handing: handing(of: $0, to: $0)) }
    let (handed, isOnTrial) = handouts.next(ways, for: number, bytesMax: batchBytesMax(of: number))
    if isOnTrial { trials.watch(in: &turn) }
    if !handed.isEmpty { handOut(handed, to: Addressee(number, isLate: true)) }
  }

  /// The session has answered for a batch, or did not get it.
  func lateHandled(_ handled: Restoration.Handled, of number: SessionID) {
    let nodes = handouts.batch(of: number).compactMap { tree.node($0) }.filter { $0.claim?.session == number }
    handouts.end(number, isLost: handled == .lost)
    switch handled {
    case .done: if let session = sessions[number] { finishHandingOut(nodes, of: session) }
    case .failed: for node in nodes { node.note(.skipped(reason: RestoreApplicationState.Reason.failed.rawValue)) }
    case .lost: break
    }
    if handled != .lost { forgetDue(nodes.map(\.id)) }
    // The next batch has waited for it, or a restoration that began meanwhile.
    note(.windowsClosed)
  }
}
