// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
package import RestorationWire

/// What a restoration sends to sessions, and their answers.
extension Application {
  /// Bytes that an object takes in a message besides its path, state and coder: its handle, and names of members.
  private static let objectBytes = 96

  /// A client has answered a call of the restoration, or cannot.
  func callEnded(_ purpose: RestoringCall, _ answer: CallAnswer, by session: SessionID) {
    switch purpose {
    case .ask:
      // Only a plain no is one: who cannot say it has not refused.
      if case .result(let result) = answer, let decision = Bool(result) {
        drive(.decided(decision))
      } else {
        drive(.decided(true))
      }
    case .tell: drive(.told)
    case .make(let node):
      // Whether an answer that is lost comes of a crash is known when the session ends.
      if case .lost = answer {} else if trials.closeFactory(node, of: session) { note(.windowsClosed) }
      restoring.note(answer.message, of: [node])
      drive(.made(node, made(answer, by: session), by: session))
    case .handOut(let addressee):
      switch answer {
      case .result:
        if sessions[session] != nil {
          trials.acknowledge(batch(of: addressee), by: session)
          note(.trialsEnded)
        }
        handled(.done, of: addressee)
      case .error:
        if !addressee.isLate { restoring.note(answer.message, of: Array(concerned(batch(of: addressee)))) }
        handled(.failed, of: addressee)
      case .lost:
        markUndelivered(addressee)
        handled(.lost, of: addressee)
      }
    }
  }

  private func handled(_ handled: Restoration.Handled, of addressee: Addressee) {
    if addressee.isLate {
      delivered(handled, to: addressee.session)
    } else {
      drive(.handled(addressee.session, handled))
    }
  }

  /// What it has been handed and has not answered.
  func batch(of addressee: Addressee) -> [NodeID] {
    addressee.isLate ? deliveries.batch(of: addressee.session) : restoring.batch(of: addressee.session)
  }

  private func isHanding(_ node: NodeID, to addressee: Addressee) -> Bool {
    addressee.isLate
      ? deliveries.batch(of: addressee.session).contains(node) : restoring.isHanding(node, to: addressee.session)
  }

  private func withhold(_ node: NodeID, _ outcome: Restoration.Outcome, from addressee: Addressee) {
    guard addressee.isLate else { return drive(.withheld(node, outcome)) }
    deliveries.withhold(node, from: addressee.session)
    if let node = tree.node(node) { noteDelivered(node) }
  }

  /// States that may never have come: their owner gets them again when it comes back.
  private func markUndelivered(_ addressee: Addressee) {
    for node in batch(of: addressee) where isHanding(node, to: addressee) {
      if let object = tree.node(node), object.claim?.session == addressee.session { object.claim?.hasDecoded = false }
    }
  }

  /// The state to hand out. If a no was taken back, that is what the run started from, unless it was written since.
  private func outgoingState(of node: Node) -> StateSummary? {
    (runs.facts.decision == .restoring ? runs.declinedState(of: node) : nil) ?? node.stateBeforeClaim
  }

  // MARK: Making

  func make(_ number: NodeID, _ lookup: RestoringStep.Lookup, by session: SessionID) {
    guard let node = tree.node(number) else { return drive(.made(number, .failed, by: session)) }
    var rows: [StateRequest.Row] = []
    if let state = outgoingState(of: node), !node.isWithheld(state), !node.isUnreadable,
      state.bytes <= batchBytesMax(of: session)
    {
      rows.append(StateRequest.Row(node: number, sequence: state.sequence))
    }
    read(rows, for: .make(number, lookup, session))
  }

  /// Calls the factory, its object's state at hand where it has one that can be sent.
  func send(_ number: NodeID, _ lookup: RestoringStep.Lookup, _ record: StateRecord?, to session: SessionID) {
    guard restoring.item(of: number)?.place == .asked(session), let node = tree.node(number),
      let path = tree.path(of: node), let session = sessions[session]
    else { return drive(.made(number, .failed, by: session)) }
    let summary = outgoingState(of: node)
    let text = record.map { tree.splice($0) }
    let coder = summary.flatMap { self.coder(of: $0) }
    let isSent =
      text.map { text in
        text.count + path.jsonBytes + Self.objectBytes + (coder?.count ?? 0) <= batchBytesMax(of: session.id)
      } ?? false
    guard !isSent || mayHandOut(node, to: session) else {
      restoring.hold((number, lookup, session.id))
      return trials.watch(in: &turn)
    }
    let classes = summary.flatMap { origins[$0.context]?.classes } ?? []
    var saved = SavedObject().with { saved in
      saved.identifierPath = path
      saved.kind = node.record.kind.wire
      saved.objectClass = classes.first ?? node.record.classes.flatMap { StateOrigin.classes(inText: $0).first }
      saved.state = isSent ? text : nil
      saved.coder = coder
      saved.isDeferred = !isSent && summary.map { !node.isWithheld($0) && !node.isUnreadable } ?? false
    }
    var sent = callFactory(saved, lookup, node, by: session)
    if sent == nil, !isSent {
      // It may fetch the coder together with the state.
      saved.coder = nil
      sent = callFactory(saved, lookup, node, by: session)
    }
    guard sent != nil else { return drive(.made(number, .lost, by: session.id)) }
    if isSent { openWindow(of: node, for: session, byCall: true, toFactory: true) }
  }

  private func callFactory(
    _ saved: SavedObject,
    _ lookup: RestoringStep.Lookup,
    _ node: Node,
    by session: Session
  ) -> CallNumber? {
    guard lookup == .restorationClass else {
      let call = ViewControllerWithRestorationIdentifierPath().with { $0.saved = saved }
      return self.call(session, call, for: .restoring(.make(node.id)))
    }
    let restorationClass = node.record.restorationClass ?? ""
    let call = ObjectWithRestorationIdentifierPath().with {
      $0.restorationClass = restorationClass
      $0.saved = saved
    }
    return self.call(session, call, for: .restoring(.make(node.id)))
  }

  /// Calls the factories that were held up behind a suspect, as far as they may be now (R31).
  func goOnMaking() { for (node, lookup, session) in restoring.takeHeldCalls() { make(node, lookup, by: session) } }

  /// The object of a factory must be one of its session (R24).
  private func made(_ answer: CallAnswer, by session: SessionID) -> Restoration.Made {
    switch answer {
    case .lost: return .lost
    case .error: return .failed
    case .result(let result):
      switch LocatedObject(result) {
      case .object(let handle):
        return tree.claimed[handle]?.claim?.session == session ? .object : .failed
      case .refused: return .null
      case .forgotten: return .forgotten
      case .awaited: return .awaited
      case .passed: return .passed
      case nil: return .failed
      }
    }
  }

  // MARK: Handing out

  func handOut(_ batch: [Restoration.Handout], to addressee: Addressee) {
    deliveries.begin(OutgoingBatch(handouts: batch), to: addressee)
    let rows = batch.filter { !$0.isDeferred }.compactMap { handout in
      tree.node(handout.node).flatMap { outgoingState(of: $0) }.map {
        StateRequest.Row(node: handout.node, sequence: $0.sequence)
      }
    }
    read(rows, for: .batch(addressee))
  }

  /// The states of a batch have been read.
  func take(_ readings: [StateReading?]?, of rows: [StateRequest.Row], for addressee: Addressee) {
    for (index, row) in rows.enumerated() {
      let reading = readings.flatMap { $0[index] }
      switch reading {
      case .state(let record, row.sequence)?: deliveries.add(record, of: row.node, to: addressee)
      case .unreadable(let sequence)?:
        if let node = tree.node(row.node), node.state?.sequence == sequence { node.isUnreadable = true }
        withhold(row.node, .skipped(.unreadable), from: addressee)
      case .state?, nil:
        // Its owner has written a newer one meanwhile, so that there is nothing to bring back; or all is unreadable.
        withhold(row.node, readings == nil ? .skipped(.unreadable) : .restored, from: addressee)
      }
    }
    sendWhenResolved(addressee)
  }

  /// Sends a batch as soon as the elements of all its views have been found in today's data (R28).
  func sendWhenResolved(_ addressee: Addressee) {
    while let (handout, record) = deliveries.unresolved(of: addressee, where: { isHanding($0, to: addressee) }) {
      let elements = Application.elements(of: record)
      let purpose = ElementResolver.Purpose.batch(restoring.number, addressee, handout.node)
      let milliseconds =
        addressee.isLate ? ElementResolver.milliseconds : restoring.awaitedMilliseconds(at: turn.now.monotonic)
      if let object = tree.node(handout.node), resolve(elements, of: object, for: purpose, awaiting: milliseconds) {
        return
      }
      deliveries.add(elements, of: handout.node, to: addressee)
    }
    if let resolved = deliveries.takeBatch(of: addressee) { send(resolved, to: addressee) }
  }

  private func send(_ batch: OutgoingBatch, to addressee: Addressee) {
    let number = addressee.session
    guard let session = sessions[number] else { return }
    var left = batchBytesMax(of: number)
    var objects: [DecodeRestorableStateWithCoder.Object] = []
    var sent: [(node: Node, isDeferred: Bool)] = []
    for handout in batch.handouts where isHanding(handout.node, to: addressee) {
      guard let object = tree.node(handout.node), let claim = object.claim, claim.session == number else { continue }
      var content: DecodeRestorableStateWithCoder.Content?
      let path = tree.path(of: object)
      if let record = batch.records[handout.node] {
        let elements = batch.elements[handout.node].map { $0.text }
        let decoded = decoded(record)
        let coder = decoded.coderText
        // References may take more room than they do in the archive. Where all room is taken by them, there still is as
        // much again for those that are deferred.
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
      sent.append((object, content == nil))
    }
    guard !objects.isEmpty else { return handled(.done, of: addressee) }
    guard call(session, toDecode: objects, for: .restoring(.handOut(addressee))) != nil else {
      // One that is there and serves it does not read even a batch that is all deferred.
      let readsTooLittle = session.isReachable && session.serves(.decodeRestorableStateWithCoder)
      return handled(readsTooLittle ? .failed : .lost, of: addressee)
    }
    for (node, isDeferred) in sent {
      node.note(.handedOut(session.owner, deferred: isDeferred))
      guard !isDeferred else {
        if addressee.isLate {
          deliveries.noteDeferred(node.id, for: addressee.session)
        } else {
          restoring.noteDeferred(node.id)
        }
        continue
      }
      openWindow(of: node, for: session, byCall: true, isPart: addressee.isLate || restoring.scope != nil)
    }
  }

  /// The session has answered for these objects of it: their windows close, and it is told that they are restored.
  func finishHandingOut(_ nodes: [Node], of session: Session) {
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

  /// The elements of a state as they are stored, none of them found in today's data yet.
  static func elements(of record: StateRecord) -> [RestorableElement] {
    guard let text = record.elements,
      let slice = try? JSONSlice.scan(Array(text.utf8), vocabulary: EncodedState.vocabulary, limits: FrameLimits())
    else { return [] }
    return (slice.elements ?? []).compactMap { try? RestorableElement(wire: $0) }
  }
}

// MARK: - Facts

extension Application: RestorationFacts {
  package func registrant(of node: NodeID) -> SessionID? { tree.nodes[node].flatMap { owner(of: $0) }?.id }

  package func makers(of node: NodeID, by lookup: RestoringStep.Lookup) -> [Restoration.Maker] {
    switch lookup {
    case .restorationClass:
      guard let node = tree.node(node), let name = node.record.restorationClass else { return [] }
      let sessions = providers.makers(of: name).compactMap { callable($0, .objectWithRestorationIdentifierPath) }
      guard providers.isShared(name) else { return sessions.map { Restoration.Maker($0.id) } }
      let plan = restorationPlan
      return sessions.map { Restoration.Maker($0.id, plan.nearness(of: $0, to: node), isShared: true) }
    case .delegate:
      return delegate(serving: .viewControllerWithRestorationIdentifierPath).map { [Restoration.Maker($0)] } ?? []
    case .existing, .storyboard: return []
    }
  }

  package func delegate(serving method: ServedMethod) -> SessionID? {
    sessions.values.first { $0.facts.isDelegate && !$0.isDiscarded && $0.isReachable && $0.serves(method) }?.id
  }

  private func callable(_ session: SessionID, _ method: ServedMethod) -> Session? {
    guard let session = sessions[session], session.isReachable, session.serves(method) else { return nil }
    return session
  }

  package func handing(of node: NodeID) -> Restoration.Handing {
    guard let node = tree.node(node), let claim = node.claim, let owner = sessions[claim.session] else { return .later }
    guard let state = outgoingState(of: node) else { return .nothing(because: .noState) }
    // It fetched the state by itself.
    if claim.hasDecoded { return .nothing(because: nil) }
    if let since = node.withheldSince(state.sequence) {
      return .skip(.quarantined, because: .quarantined(since: Timestamp(milliseconds: since)))
    }
    if node.isUnreadable { return .skip(.unreadable, because: nil) }
    guard classMatches(node, state) else {
      let saved = origins[state.context]?.classes.first ?? ""
      return .skip(.classMismatch, because: .classMismatch(saved: saved, declared: claim.classes))
    }
    guard owner.serves(.decodeRestorableStateWithCoder) else { return .skip(.notServed, because: nil) }
    guard !deliveries.isHanding(to: owner.id) else { return .later }
    guard mayHandOut(node, to: owner) else { return .afterTrials }
    let deferred = (tree.path(of: node)?.jsonBytes ?? 0) + Self.objectBytes
    let bytes = state.bytes + coderBytes(of: state) + deferred
    return isSuspect(node) ? .alone(bytes: bytes) : .state(bytes: bytes, deferred: deferred)
  }

  package func awaitedUntil(_ role: String) -> Int64? { restorationPlan.awaitedUntil(role, at: turn.now.monotonic) }

  package func isOfRole(_ session: SessionID, _ role: String?) -> Bool { sessions[session]?.facts.role == role }

  package func batchBytesMax(of session: SessionID) -> Int {
    sessions[session]?.batchBytesMax(frameBytesMax: turn.limits.frameBytesMax) ?? 0
  }

  package func isExtended(_ session: SessionID) -> Bool { trials.isExtended(session) }

  // MARK: Explaining

  /// Keeps with the object what was decided about it.
  func note(_ note: Restoration.Note, of number: NodeID) {
    guard let node = tree.node(number) else { return }
    let owner = { (session: SessionID) in
      self.sessions[session]?.owner ?? ObjectOwner(process: nil, pid: 0)
    }
    switch note {
    case .lookedUp(let lookup, let session): node.note(.lookedUp(lookup, session.map(owner)))
    case .located(let session): node.note(.located(owner(session)))
    case .refused(let lookup): node.note(.refused(lookup))
    case .passed(let session): node.note(.passed(owner(session)))
    case .awaited: node.note(.awaited)
    case .suspected: node.note(.suspected)
    case .because(let step): node.note(step)
    case .settled(.restored):
      markDecoded(number)
      // What was not sent is still to be fetched.
      if !restoring.deferred.contains(number), let node = tree.node(number) { dropProvisional([node]) }
    case .settled(.skipped(let reason)):
      node.note(.skipped(reason: reason.rawValue, message: reason == .failed ? restoring.messages[number] : nil))
      switch reason {
      case .quarantined, .unreadable: markDecoded(number)
      case .failed: if let node = tree.node(number) { failDelivery(of: node) }
      case .classMismatch, .refused, .parentSkipped, .sameObject, .notServed, .late, .ended, .discarded: break
      }
    case .settled(.absent): node.note(.absent)
    }
  }

  /// Its owner has had what there is for it, be it nothing: from now on what it writes counts, and no further
  /// restoration concerns it (R19, R22).
  private func markDecoded(_ number: NodeID) {
    if let node = tree.node(number) { noteDelivered(node, isToBeTold: true) }
  }
}
