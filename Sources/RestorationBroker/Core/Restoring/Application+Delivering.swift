// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// In a run that restores, what is saved is given to whoever registers it, without a call (R29).
extension Application {
  /// The session has just claimed the object: is it to be given what is saved of it, now and apart from a restoration?
  ///
  /// - Returns: whether it is given.
  func deliver(_ node: Node, to session: Session) -> Bool {
    guard isDue(node), !restoring.awaits(node.id), isDelivered(node, to: session) else {
      return false
    }
    deliveries.add(node.id, depth: tree.path(of: node)?.components.count ?? 0, for: session.id)
    node.note(RestoringStep.located(session.owner), isFirst: true)
    return true
  }

  private func isDelivered(_ node: Node, to session: Session) -> Bool {
    guard session.serves(.decodeRestorableStateWithCoder), let state = node.stateBeforeClaim, runs.delivers(state),
      !runs.isRefused(node), !restoring.hasRefused(node)
    else { return false }
    switch handing(of: node.id) {
    case .nothing, .skip: return false
    case .state, .alone, .later, .afterTrials: return true
    }
  }

  /// The session can be called again, perhaps by another broker, or serves other methods: what it has not answered for
  /// is given (again).
  func resumeDelivering(to number: SessionID) {
    guard let session = sessions[number] else { return }
    for node in session.objects.values where isDue(node) { _ = deliver(node, to: session) }
    deliveries.returned(number)
    deliverNext()
  }

  /// A restoration is over: what it did not give to those who have it is due all the same.
  func resumeDelivering() {
    let late = tree.claimed.values.filter { isDue($0) }.sorted { $0.id < $1.id }
    for node in late { if let session = owner(of: node) { _ = deliver(node, to: session) } }
    deliverNext()
  }

  /// The owner fetches the state by itself.
  func noteFetched(_ node: Node, by session: SessionID) {
    deliveries.cancel(node.id, for: session)
    noteDelivered(node)
  }

  private func isDue(_ node: Node) -> Bool { node.claimRecord?.delivery == .due }

  /// The owner has been given what there was for it, or it wrote what counts: nothing is due.
  ///
  /// - Parameter isToBeTold: it is told when the restoration is over (R21).
  func noteDelivered(_ node: Node, isToBeTold: Bool = false) {
    node.claim?.hasDecoded = true
    if isDue(node) { note(node, isToBeTold ? .given : .none) }
  }

  /// What the owner wrote counts in this run.
  func noteNothingDue(_ node: Node) { if isDue(node) { note(node, .none) } }

  /// The owner is told that its restoration is over.
  func noteTold(_ node: Node) { if node.claimRecord?.delivery == .given { note(node, .none) } }

  private func note(_ node: Node, _ delivery: ClaimRecord.Delivery) {
    guard let record = node.claimRecord else { return }
    writeClaim(ClaimRecord(node: node.id, session: record.session, handle: record.handle, delivery), of: node)
  }

  /// Whether the owner is about to be given what is saved: only that settles what it writes before (R19).
  func isAwaitingDelivery(_ node: Node) -> Bool {
    guard let claim = node.claim, !claim.hasDecoded, node.hasState, let owner = sessions[claim.session] else {
      return false
    }
    return restoring.awaits(node.id) || isDue(node) && isDelivered(node, to: owner)
  }

  /// The owner could not take in what it was given: what it writes counts. What that replaces is set aside (R35).
  func failDelivery(of node: Node) {
    guard node.claim != nil else { return }
    noteDelivered(node)
    node.hasFailed = true
    guard node.state?.isEarly == true else { return }
    setAside(node)
    settle([node])
  }

  /// The owners show what was saved before: what they wrote until then is dropped (R19).
  func dropProvisional(_ nodes: [Node]) {
    let rows = nodes.filter { $0.state?.isEarly == true }.compactMap { node in
      node.beforeClaim.map { StateRequest.Row(node: node.id, sequence: $0.sequence) }
    }
    if !rows.isEmpty { read(rows, for: .shown) }
  }

  func dropProvisional(_ readings: [StateReading?]) {
    for case .state(let record, let sequence)? in readings {
      if let node = tree.nodes[record.node] { dropProvisional(of: node, showing: record, at: sequence) }
    }
  }

  /// - Parameter sequence: of the record, which is stored anew as the newest.
  /// - Returns: whether there was anything to drop.
  @discardableResult
  func dropProvisional(of node: Node, showing record: StateRecord, at sequence: SequenceNumber) -> Bool {
    // One that is withheld is shown by nobody.
    guard node.state?.isEarly == true, let older = node.beforeClaim, older.sequence == sequence,
      !node.isWithheld(older)
    else { return false }
    origins.write(record.context, in: &turn)
    let state = StateSummary(record, at: write(.state(record)))
    headChanged(from: node.state, to: state)
    (node.state, node.beforeClaim) = (state, nil)
    return true
  }

  /// Gives what can be given now.
  func deliverNext() { for session in deliveries.waiting { deliverNext(to: session) } }

  private func deliverNext(to number: SessionID) {
    guard !isRestoring, !turn.isEnding, case .open = phase, let session = sessions[number], session.isReachable else {
      return
    }
    guard var choice = deliveries.choose(for: number, bytesMax: batchBytesMax(of: number)) else { return }
    while let id = choice.next() {
      guard tree.nodes[id]?.claim?.session == number else { continue }
      choice.take(handing(of: id))
    }
    deliveries.begin(choice)
    if choice.isOnTrial { trials.watch(in: &turn) }
    if !choice.handouts.isEmpty { handOut(choice.handouts, to: Addressee(number, isLate: true)) }
  }

  /// The session has answered for a batch, or did not get it.
  func delivered(_ handled: Restoration.Handled, to number: SessionID) {
    let nodes = deliveries.batch(of: number).compactMap { tree.node($0) }.filter { $0.claim?.session == number }
    let given = nodes.filter { !deliveries.isDeferred($0.id, to: number) }
    deliveries.end(number, isLost: handled == .lost)
    switch handled {
    case .done:
      if let session = sessions[number] { finishHandingOut(nodes, of: session) }
      for node in nodes { noteDelivered(node) }
      dropProvisional(given)
    case .failed:
      for node in nodes {
        node.note(.skipped(reason: RestoreApplicationState.Reason.failed.rawValue))
        failDelivery(of: node)
      }
    case .lost: break
    }
    // The next batch has waited for it, or a restoration that began meanwhile.
    note(.windowsClosed)
  }
}
