// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// The end of a save round: writes its states and the generation in one transaction (R12).
extension Application {
  func commit() {
    // First, so that nothing below adds to the round.
    endRoundCalls()
    guard let round = saving.round else { return }
    storeApplicationState(of: round)
    var refused: [NodeID: EncodeRefusal] = [:]
    for state in round.staged {
      do throws(ErrorObject) { _ = try store(state) } catch { refused[state.target.node] = EncodeRefusal(error) }
    }
    askForUnstored()
    // The stored states may complete the restoration; the generation records that (R16, R19).
    checkCompletion()
    let unreached = tree.unreachedNodes
    var reply = unsaved(.unchanged, since: round.begun)
    reply.stale = staleObjects(of: round, refused, unreached)
    reply.excluded = excludedObjects(unreached)
    // One event writes all of this, so that one transaction holds it: readers see the generation whole or not at all.
    if hasUnsealedContent, !isQuitAndEmpty(unreached) {
      // The generation that this run started from is not needed once the run is restored and saved (R16).
      if runs.facts.hasCompletedRestoration { generations.unpin(in: &turn) }
      let record = generations.seal("round", of: tree, omitting: unreached, in: &turn)
      (reply.saved, reply.reason) = (true, nil)
      (reply.generation, reply.objects, reply.bytes) = (record.generation, record.objects, record.bytes)
      noteSaved(record, unreached)
      tellSaved(record.generation)
    }
    saving.forgetChanges(in: &turn)
    let progress = saving.advance { $0.progress(isLast: true, at: turn.now) } ?? []
    endRound()
    for (waiting, (call, progress)) in zip(round.callers, progress) {
      tell(progress, of: call)
      turn.answer(call.caller, reply.listing(bytesMax: waiting.bytesMax))
    }
  }

  /// The user has quit the application, and nothing has been saved since (R16, R30).
  private func isQuitAndEmpty(_ unreached: Set<NodeID>) -> Bool {
    guard runs.facts.endedByUserQuit, tree.applicationNode?.state == nil else { return false }
    return !tree.nodes.values.contains { $0.hasState && !unreached.contains($0.id) }
  }

  private func tellSaved(_ generation: Int64) {
    for session in sessions.inOrder { notify(session, ApplicationStateSaved().with { $0.generation = generation }) }
  }

  private func noteSaved(_ record: GenerationRecord, _ unreached: Set<NodeID>) {
    var sharing = StepSharing()
    for node in tree.nodes.values where node.hasState && !unreached.contains(node.id) {
      sharing.note(.saved(generation: record.generation), of: node)
    }
  }

  // MARK: Storing

  private func storeApplicationState(of round: SaveRound) {
    guard let (state, session) = round.application else { return }
    let node = ownNode()
    let record = record(of: state, at: node, by: sessions[session])
    _ = put(record, StateDigest(record), at: node, by: sessions[session])
  }

  func ownNode() -> Node {
    if let node = tree.applicationNode { return node }
    let node = tree.insert(NodeRecord(node: tree.last + 1, parent: nil, component: nil, kind: .application))
    write(node)
    return node
  }

  /// Stores a requested state, unless there is a newer one. Returns whether it was written: whether it differs.
  func store(_ staged: StagedState) throws(ErrorObject) -> Bool {
    // Another session may have taken the object over, as `staleObjects` says, or its owner released or closed it.
    guard let node = tree.node(staged.target.node), isHeld(node, by: staged.target) else { return false }
    let isReplaced = node.state.map { $0.sequence > staged.sequence } ?? false
    if isReplaced || staged.record.isEarly && node.versions.isSuperseded {
      node.note(.superseded)
      return false
    }
    var record = staged.record
    // A move may have put another node in its place (R6).
    record.node = node.id
    if origins[record.context] == nil { record.context = origins.number(of: staged.origin) }
    if record.isEarly, isSettled(staged.target.session) { record.isEarly = false }
    if !staged.elements.isEmpty {
      let elements = staged.elements.compactMap { $0 }
      record.elements = elements.isEmpty ? nil : elements.text.string
    }
    var path: IdentifierPath? { tree.path(of: node) }
    // Its elements have got identifiers, and what it refers to may have moved since it came.
    try turn.limits.requireSize(of: record, in: tree, path: path)
    let came = staged.record
    let isAsItCame = staged.elements.isEmpty && (record.isEarly, record.context) == (came.isEarly, came.context)
    let digest = isAsItCame ? staged.digest : StateDigest(record)
    let growth = growth(by: record.bytes, of: record.context, at: node)
    if !node.wasPulled(digest) { try requireRoom(for: growth, path: path) }
    return put(record, digest, at: node, by: sessions[staged.target.session])
  }

  /// The session has completed its restoration, or ended without a crash: its writes are confirmed (R19).
  private func isSettled(_ number: SessionID) -> Bool {
    if let session = sessions[number] { return session.hasCompletedRestoration }
    return sessions.ended(number)?.ending != SessionEnding.crashed.rawValue
  }

  /// Writes a requested state, unless it equals the last one (R16). Returns whether it was written.
  private func put(
    _ record: StateRecord,
    _ digest: StateDigest,
    at node: Node,
    by session: Session?
  ) -> Bool {
    guard !node.wasPulled(digest) else {
      node.note(.unchanged)
      noteEncoding(record, at: node, by: session)
      return false
    }
    node.note(.encoded(bytes: record.bytes))
    if record.isEarly { node.note(.early) }
    put(record, at: node, by: session)
    if let state = node.state { node.pulled = Node.Pulled(sequence: state.sequence, digest: digest) }
    return true
  }

  // MARK: Reporting

  private func staleObjects(
    of round: SaveRound,
    _ refused: [NodeID: EncodeRefusal],
    _ unreached: Set<NodeID>
  ) -> [StaleObject] {
    var stale: [StaleObject] = []
    if let (session, owner, refusal) = round.applicationStale {
      stale.append(StaleObject(owner, refusal ?? loss(of: session)).with { $0.path = [] })
      if let refusal, isRefused(refusal) { tellRefusal(refusal, of: nil, at: nil, to: sessions[session]) }
    }
    let cases =
      round.machine.stale.map { ($0.target, replacement(of: $0.target) ?? $0.refusal ?? loss(of: $0.target.session)) }
      + round.staged.map(\.target).compactMap { target in
        (replacement(of: target) ?? refused[target.node]).map { (target, $0) }
      }
      + round.late(tree, besides: unreached, sessions).map { ($0, EncodeRefusal(.late)) }
    for (target, refusal) in cases {
      guard let node = tree.node(target.node), isKept(node, target) else { continue }
      let owner = sessions[target.session]?.owner ?? endedOwner(target.session)
      node.note(.stale(owner, why: refusal.why, message: refusal.message))
      var object = StaleObject(owner, refusal)
      object.object = node.claim?.handle == target.handle ? target.handle : nil
      object.path = tree.path(of: node)?.components
      if node.record.isConfidential { object.message = nil }
      stale.append(object)
      guard object.object != nil, isRefused(refusal) else { continue }
      tellRefusal(refusal, of: object.object, at: tree.path(of: node), to: sessions[target.session])
    }
    return stale
  }

  /// Whether the owner has answered. A late one is not told in each round: it may be stopped, and reads nothing.
  private func isRefused(_ refusal: EncodeRefusal) -> Bool {
    refusal.isNews && refusal.why != StaleObject.Cause.late.rawValue
  }

  /// Whether it was asked under the object's last claim, even if that session has ended without closing the object.
  private func isHeld(_ node: Node, by target: EncodeTarget) -> Bool {
    (node.claim?.handle ?? node.claimRecord?.handle) == target.handle
  }

  /// Whether it is still the object that was asked for; a released one is not.
  private func isKept(_ node: Node, _ target: EncodeTarget) -> Bool {
    isHeld(node, by: target) || node.claim.map { $0.session != target.session } ?? false
  }

  /// Another session has taken the object over since it was asked for (R8).
  private func replacement(of target: EncodeTarget) -> EncodeRefusal? {
    guard let claim = tree.node(target.node)?.claim, claim.session != target.session else { return nil }
    return sessions[target.session] == nil ? EncodeRefusal(.ended) : EncodeRefusal(ErrorObject.replaced())
  }

  /// The refusal of a session whose connection or process is gone.
  private func loss(of session: SessionID) -> EncodeRefusal {
    EncodeRefusal(sessions[session]?.hasExited == false ? .disconnected : .ended)
  }

  func endedOwner(_ session: SessionID) -> ObjectOwner? {
    sessions.ended(session).map { SessionFacts(stored: $0.facts).owner }
  }

  /// Live objects that the generation leaves out, and what excludes them (R4).
  private func excludedObjects(_ unreached: Set<NodeID>) -> [ExcludedObject] {
    var ancestry = Ancestry()
    return tree.claimed.filter { unreached.contains($0.value.id) }.sorted { $0.key < $1.key }.map { handle, node in
      let owner = owner(of: node)
      let excluder = ancestry.excluder(of: node).flatMap { tree.node($0) } ?? node
      let reference =
        excluder.claim.map { ObjectReference.handle($0.handle) }
        ?? tree.path(of: excluder).map { .path($0) }
      return ExcludedObject().with {
        $0.object = handle
        $0.path = tree.path(of: node)
        $0.process = owner?.facts.role
        $0.pid = owner?.facts.process?.pid
        $0.by = reference ?? .handle(handle)
      }
    }
  }
}

extension StaleObject {
  fileprivate init(_ owner: ObjectOwner?, _ refusal: EncodeRefusal) {
    self.init()
    (process, pid, why, message) = (owner?.process, owner?.pid, refusal.why, refusal.message)
  }
}

extension SaveApplicationState.Reply {
  /// The same with lists of at most `bytesMax` bytes.
  fileprivate func listing(bytesMax: Int) -> Self {
    var reply = self
    var left = bytesMax
    func fits(_ entry: some JSONWritable) -> Bool {
      left -= entry.text.count + 1
      return left >= 0
    }
    reply.stale = Array(stale.prefix { fits($0) })
    reply.excluded = Array(excluded.prefix { fits($0) })
    let omitted = stale.count - reply.stale.count + excluded.count - reply.excluded.count
    if omitted > 0 { reply.omitted = Int64(omitted) }
    return reply
  }
}
