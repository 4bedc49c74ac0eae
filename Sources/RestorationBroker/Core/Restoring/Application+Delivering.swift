// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Delivers saved states to the sessions that register their objects: at once in a run that restores without a call
/// (R29), in a restoration once the objects above are there (R21).
extension Application {
  /// Bytes that an object takes in a message besides its path, state and coder: its handle, and names of members.
  static let objectBytes = 96

  // MARK: Due deliveries

  /// The session has claimed the object. Returns whether its saved state is delivered now, apart from a restoration.
  func deliver(_ node: Node, to session: Session) -> Bool {
    guard isDue(node), !restoring.awaits(node.id), isDelivered(node, to: session) else { return false }
    deliver(node, for: session.id)
    node.note(RestoringStep.located(session.owner), isFirst: true)
    return true
  }

  /// A restoration has located the object.
  func deliver(_ node: NodeID, to session: SessionID) {
    if let node = tree.node(node) { deliver(node, for: session) }
  }

  private func deliver(_ node: Node, for session: SessionID) {
    deliveries.add(node.id, depth: tree.path(of: node)?.components.count ?? 0, for: session)
  }

  private func isDelivered(_ node: Node, to session: Session) -> Bool {
    guard session.serves(.decodeRestorableStateWithCoder), let state = node.ownerState, runs.delivers(state),
      !runs.isRefused(node), !restoring.hasRefused(node)
    else { return false }
    if case .none = manner(of: node, to: session) { return false }
    return true
  }

  /// The session can be called again, or serves other methods: unanswered deliveries are repeated.
  func resumeDelivering(to number: SessionID) {
    guard let session = sessions[number] else { return }
    for node in session.objects.values where isDue(node) { _ = deliver(node, to: session) }
    deliveries.returned(number)
    deliverNext()
    // What was restored meanwhile is to be told.
    note(.windowsClosed)
  }

  /// A restoration is over: objects that were registered before it located anything are due as well.
  func resumeDelivering() {
    for node in tree.claimed.values where isDue(node) {
      if let session = owner(of: node) { _ = deliver(node, to: session) }
    }
    deliverNext()
  }

  /// The owner fetches the state itself.
  func noteFetched(_ node: Node, by session: SessionID) {
    deliveries.cancel(node.id, for: session)
    noteDelivered(node)
    if isRestoring, !deliveries.isDelivering(node.id, to: session) {
      drive(.delivered(node.id, .restored, because: nil))
    }
  }

  private func isDue(_ node: Node) -> Bool { node.claimRecord?.delivery == .due }

  /// The owner has its state, or wrote the one that counts. `isToBeTold` at the end of the restoration (R21).
  func noteDelivered(_ node: Node, isToBeTold: Bool = false) {
    node.claim?.hasDecoded = true
    // If the broker is killed before the provisional state is dropped, the owner is given the older one again.
    if isDue(node), !node.versions.isSuperseded { note(node, isToBeTold ? .given : .none) }
  }

  /// The owner's writes count in this run.
  func noteNothingDue(_ node: Node) { if isDue(node) { note(node, .none) } }

  /// The owner is told that its restoration is over.
  func noteTold(_ node: Node) { if node.claimRecord?.delivery == .given { note(node, .none) } }

  private func note(_ node: Node, _ delivery: ClaimRecord.Delivery) {
    guard let record = node.claimRecord else { return }
    writeClaim(ClaimRecord(node: node.id, session: record.session, handle: record.handle, delivery), of: node)
  }

  /// Whether a delivery is due: only its end decides on the owner's provisional writes (R19).
  func isAwaitingDelivery(_ node: Node) -> Bool {
    guard let claim = node.claim, !claim.hasDecoded, node.hasState, let owner = sessions[claim.session] else {
      return false
    }
    return restoring.awaits(node.id) || isDue(node) && isDelivered(node, to: owner)
  }

  /// The owner failed to decode its state: its writes count. The state that they replace is withheld (R35).
  func failDelivery(of node: Node) {
    guard node.claim != nil else { return }
    noteDelivered(node)
    node.versions.noteFailed()
    guard node.versions.isProvisional else { return }
    setAside(node)
    settle([node])
  }

  /// The owners show the saved states: their provisional writes are dropped (R19).
  func dropProvisional(_ nodes: [Node]) {
    let rows = nodes.compactMap { node in
      node.versions.supersede()
      return node.versions.hidden.map { StateRequest.Row(node: node.id, sequence: $0.sequence) }
    }
    if !rows.isEmpty { read(rows, for: .dropProvisional, after: sequence) }
  }

  /// The older state of this row was read: it is stored again as the newest. Nothing happens if it no longer counts.
  ///
  /// - Parameter reading: nil if it could not be read.
  /// - Returns: its new sequence; nil if nothing was dropped.
  @discardableResult
  func dropProvisional(of row: StateRequest.Row, showing reading: StateReading?) -> SequenceNumber? {
    guard let node = tree.nodes[row.node], node.versions.isSuperseded, node.versions.hidden?.sequence == row.sequence
    else { return nil }
    defer {
      if let claim = node.claim, claim.hasDecoded, isDue(node) { note(node, claim.isFinished ? .none : .given) }
    }
    guard case .state(var record, row.sequence)? = reading else {
      node.versions.endSuperseding()
      if let claim = node.claim { trials.watchEarly(since: claim.since, in: &turn) }
      return nil
    }
    record.isEarly = false
    replaceState(of: node, by: record)
    node.note(.dropped)
    return node.state?.sequence
  }

  // MARK: Delivering

  /// The state to deliver. After a revoked no it is that from the start of the run, unless it was written since.
  func outgoingState(of node: Node) -> StateSummary? {
    (runs.facts.decision == .restoring ? runs.declinedState(of: node) : nil) ?? node.ownerState
  }

  package func manner(of node: Node, to owner: Session) -> Deliveries.Manner {
    guard let claim = node.claim, let state = outgoingState(of: node) else {
      return .none(.restored, because: .noState)
    }
    // The owner fetched the state itself.
    if claim.hasDecoded { return .none(.restored) }
    if let since = node.versions.withheldSince(state.sequence) {
      return .none(.skipped(.quarantined), because: .quarantined(since: Timestamp(milliseconds: since)))
    }
    if node.versions.isUnreadable { return .none(.skipped(.unreadable)) }
    guard classMatches(node, state) else {
      let saved = origins[state.context]?.classes.first ?? ""
      return .none(.skipped(.classMismatch), because: .classMismatch(saved: saved, declared: claim.classes))
    }
    guard owner.serves(.decodeRestorableStateWithCoder) else { return .none(.skipped(.notServed)) }
    guard mayHandOut(node, to: owner) else { return .afterTrials }
    let deferred = (tree.path(of: node)?.jsonBytes ?? 0) + Self.objectBytes
    let bytes = state.bytes + coderBytes(of: state) + deferred
    return isSuspect(node) ? .alone(bytes: bytes) : .state(bytes: bytes, deferred: deferred)
  }

  /// Bytes of states that one message to the session may have.
  func batchBytesMax(of session: SessionID) -> Int {
    sessions[session]?.batchBytesMax(frameBytesMax: turn.limits.frameBytesMax) ?? 0
  }

  func deliverNext() {
    guard !turn.isEnding, case .open = phase else { return }
    while let session = deliveries.nextReady() { deliverNext(to: session) }
  }

  private func deliverNext(to number: SessionID) {
    // If the session cannot be reached, its batch is lost and waits. Objects without a delivery are settled.
    guard let session = sessions[number],
      var choice = deliveries.choose(for: number, bytesMax: batchBytesMax(of: number))
    else { return }
    var ended: [(node: Node, outcome: Restoration.Outcome, step: RestoringStep?)] = []
    while let id = choice.next() {
      guard let node = tree.nodes[id], node.claim?.session == number else { continue }
      let isPutOff = choice.isLater(Swift.sequence(first: node, next: \.parent))
      let manner = isPutOff ? nil : manner(of: node, to: session)
      choice.take(manner)
      if case .none(let outcome, let step)? = manner { ended.append((node, outcome, step)) }
    }
    deliveries.begin(choice)
    if choice.isOnTrial { trials.watch(in: &turn) }
    for (node, outcome, step) in ended { settle(node, outcome, because: step) }
    guard let batch = deliveries.batch(of: number), batch.number == choice.number else { return }
    for node in batch.nodes.compactMap({ tree.nodes[$0] }) where isSuspect(node) { node.note(.suspected) }
    let rows = batch.nodes.filter { !batch.deferred.contains($0) }.compactMap { id in
      tree.node(id).flatMap { outgoingState(of: $0) }.map { StateRequest.Row(node: id, sequence: $0.sequence) }
    }
    read(rows, for: .delivery(number, batch: batch.number), after: sequence)
  }

  /// The states of a batch were read; `readings` is nil if the archive could not be read.
  func take(_ readings: [StateReading?]?, of rows: [StateRequest.Row], for session: SessionID, batch: Int) {
    guard deliveries.batch(of: session)?.number == batch else { return }
    for (index, row) in rows.enumerated() {
      let reading = readings.flatMap { $0[index] }
      switch reading {
      case .state(let record, row.sequence)?: deliveries.add(record, to: session)
      case .unreadable(let sequence)?:
        tree.node(row.node)?.versions.noteUnreadable(sequence)
        withhold(row.node, .skipped(.unreadable), from: session)
      case .state?, nil:
        // The owner has written a newer one meanwhile; or all is unreadable.
        withhold(row.node, readings == nil ? .skipped(.unreadable) : .restored, from: session)
      }
    }
    sendWhenResolved(session, batch: batch)
    if deliveries.isReady { note(.deliverable) }
  }

  private func withhold(_ node: NodeID, _ outcome: Restoration.Outcome, from session: SessionID) {
    deliveries.withhold(node, from: session)
    if let node = tree.node(node) { settle(node, outcome) }
  }

  /// Sends a batch as soon as the elements of all its views have been found in today's data (R28).
  func sendWhenResolved(_ session: SessionID, batch number: Int) {
    while let batch = deliveries.batch(of: session), batch.number == number, !batch.isSent {
      guard let record = batch.unresolved else { return send(batch, to: session) }
      let elements = Application.elements(of: record)
      let purpose = ElementResolver.Purpose.delivery(session, batch: number, record.node)
      let milliseconds = restoring.awaitedMilliseconds(at: turn.now.monotonic)
      if let view = tree.node(record.node), resolve(elements, of: view, for: purpose, awaiting: milliseconds) { return }
      deliveries.add(elements, of: record.node, to: session)
    }
  }

  private func send(_ batch: Deliveries.Batch, to number: SessionID) {
    guard let session = sessions[number] else { return }
    var left = batchBytesMax(of: number)
    var objects: [DecodeRestorableStateWithCoder.Object] = []
    var deferred: Set<NodeID> = []
    for node in batch.nodes {
      guard let object = tree.node(node), let claim = object.claim, claim.session == number else { continue }
      var content: DecodeRestorableStateWithCoder.Content?
      let path = tree.path(of: object)
      if let record = batch.records[node] {
        let elements = batch.elements[node].map { $0.text }
        let decoded = decoded(record)
        let coder = decoded.coderText
        // References may take more room than in the archive. If they take it all, deferred states have as much again.
        let text = decoded.state.count + (elements?.count ?? 0) + (coder?.count ?? 0)
        let bytes = text + (path?.jsonBytes ?? 0) + Self.objectBytes
        if bytes <= left {
          left -= bytes
          content = DecodeRestorableStateWithCoder.Content().with {
            $0.state = decoded.state
            $0.coder = coder
            if let elements { $0.elements = elements }
          }
        }
      }
      objects.append(.init(object: claim.handle, path: path, content: content))
      if content == nil { deferred.insert(node) }
    }
    deliveries.sent(to: number, deferred: deferred)
    guard !objects.isEmpty else { return delivered(.done, to: number) }
    guard call(session, toDecode: objects, for: .delivery(batch: batch.number)) != nil else {
      // A reachable session that serves the method cannot read even a batch of deferred states.
      let readsTooLittle = session.isReachable && session.serves(.decodeRestorableStateWithCoder)
      return delivered(readsTooLittle ? .failed : .lost, to: number)
    }
    for object in batch.nodes.compactMap({ tree.node($0) }) where object.claim?.session == number {
      let isDeferred = deferred.contains(object.id)
      object.note(.handedOut(session.owner, deferred: isDeferred))
      guard !isDeferred else { continue }
      openWindow(of: object, for: session, byCall: true, isPart: !restoring.isWhole(with: object.id))
    }
  }

  // MARK: Answers

  /// The session has answered the call with this batch, or will not.
  func deliveryEnded(_ answer: CallAnswer, batch number: Int, by session: SessionID) {
    guard let batch = deliveries.batch(of: session), batch.number == number else { return }
    switch answer {
    case .result:
      if sessions[session] != nil {
        trials.acknowledge(batch.nodes, by: session)
        note(.trialsEnded)
      }
      delivered(.done, to: session)
    case .error:
      if isRestoring { restoring.note(answer.message, of: concerned(batch.nodes)) }
      delivered(.failed, to: session)
    case .lost:
      // They may never have come, nor have the answers to the owner's own decodes.
      for node in batch.nodes.compactMap({ tree.node($0) }) where node.claim?.session == session {
        node.claim?.hasDecoded = false
      }
      delivered(.lost, to: session)
    }
  }

  private func delivered(_ end: Deliveries.End, to number: SessionID) {
    let deferred = deliveries.batch(of: number)?.deferred ?? []
    let nodes = deliveries.end(end, to: number).compactMap { tree.node($0) }.filter { $0.claim?.session == number }
    let others = nodes.filter { !restoring.isDelivering($0.id) }
    if end == .done { dropProvisional(nodes.filter { !deferred.contains($0.id) }) }
    for node in nodes { settle(node, end == .done ? .restored : .skipped(.failed)) }
    if end == .done {
      if let session = sessions[number] { finishDelivery(of: others, to: session) }
    }
    // The next batch has waited for it.
    note(.windowsClosed)
  }

  /// The delivery of the object's state has ended.
  private func settle(_ node: Node, _ outcome: Restoration.Outcome, because step: RestoringStep? = nil) {
    if restoring.isDelivering(node.id) { return drive(.delivered(node.id, outcome, because: step)) }
    if let step { node.note(step) }
    note(.settled(outcome), of: node.id)
  }

  /// The session has answered for these objects: their windows close, and it is told that they are restored.
  func finishDelivery(of nodes: [Node], to session: Session) {
    for node in nodes where trials.close(node.id, of: session.id) { acquit(node.id) }
    trials.finished(nodes.map(\.id), of: session.id)
    tellFinished(nodes, of: session, isDurable: true)
  }

  /// Paths are for information, and are left out where the call would be too long with them.
  private func call(
    _ session: Session,
    toDecode objects: [DecodeRestorableStateWithCoder.Object],
    for purpose: CallPurpose
  ) -> CallNumber? {
    let whole = DecodeRestorableStateWithCoder().with { $0.objects = objects }
    if let call = call(session, whole, for: purpose) { return call }
    let brief = whole.with { for index in $0.objects.indices { $0.objects[index].path = nil } }
    return call(session, brief, for: purpose)
  }

  /// The stored elements of a state, all unresolved.
  static func elements(of record: StateRecord) -> [RestorableElement] {
    guard let text = record.elements,
      let slice = try? JSONSlice.scan(Array(text.utf8), vocabulary: EncodedState.vocabulary, limits: FrameLimits())
    else { return [] }
    return (slice.elements ?? []).compactMap { try? RestorableElement(wire: $0) }
  }
}
