// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// The walk of a save round, and the states that come (R7, R11, R12, R28).
extension Application {
  // MARK: Walking

  /// Finds whom to ask: what is included, parents first and in the order of registration, then what the application's
  /// own state refers to.
  func walk(_ round: SaveRound) {
    round.walked = turn.now.monotonic
    let order = walkOrder()
    var included: [NodeID] = []
    for node in order {
      if tree.isIncluded(node) {
        node.note(.included, isFirst: true)
        included.append(node.id)
      } else {
        node.note(.excluded(by: tree.excluder(of: node).flatMap { tree.path(of: $0) }), isFirst: true)
      }
    }
    let own = round.application?.state.referencedNodes ?? tree.applicationNode?.state?.referencedNodes ?? []
    find(reach(included, by: nil, for: round) + reach(own, by: .application, for: round))
  }

  /// All nodes, parents before children, siblings by age. An object below an exclusion is unscoped: a root (R4).
  private func walkOrder() -> [Node] {
    func isRoot(_ node: Node) -> Bool {
      guard let parent = node.parent else { return true }
      return node.record.kind == .object && tree.isExcluded(parent)
    }
    var order: [Node] = []
    order.reserveCapacity(tree.count)
    var stack = tree.nodes.values.filter { isRoot($0) && $0.record.kind != .application }.sorted { $0.id > $1.id }
    while let node = stack.popLast() {
      order.append(node)
      guard !node.children.isEmpty else { continue }
      stack += node.children.sorted(by: >).compactMap { tree.nodes[$0] }.filter { !isRoot($0) }
    }
    return order
  }

  /// Who refers to a node.
  private enum Referrer {
    case application
    case node(Node)
  }

  /// Takes nodes into the round, with all that they refer to by states that will not change any more (R7).
  ///
  /// - Returns: those whose owners are to be asked; what these refer to is known when they have answered.
  private func reach(_ nodes: [NodeID], by referrer: Referrer?, for round: SaveRound) -> [EncodeTarget] {
    var targets: [EncodeTarget] = []
    var next = nodes.map { (id: $0, referrer: referrer) }[...]
    while let (id, referrer) = next.popFirst() {
      guard let node = tree.node(id), round.reached.insert(node.id).inserted else { continue }
      switch referrer {
      case .application: node.note(.referenced(by: nil))
      case .node(let source): node.note(.referenced(by: tree.path(of: source)))
      case nil: break
      }
      if let target = target(node) {
        targets.append(target)
        continue
      }
      if let owner = owner(of: node) { node.note(.notServed(owner.owner)) } else { node.note(.orphaned) }
      next += (node.state?.referencedNodes ?? []).map { (id: $0, referrer: .node(node)) }
    }
    return targets
  }

  /// The node as one to be asked for; nil where nobody can be.
  func target(_ node: Node) -> EncodeTarget? {
    guard let claim = node.claim, let owner = sessions[claim.session], !owner.isDiscarded,
      owner.serves(.encodeRestorableStateWithCoder)
    else { return nil }
    let bytes = (tree.path(of: node)?.jsonBytes ?? 0) + 64 + (node.state?.bytes ?? 0)
    return EncodeTarget(node: node.id, handle: claim.handle, session: owner.id, bytes: bytes)
  }

  private func find(_ targets: [EncodeTarget]) {
    var bytesMax: [SessionID: Int] = [:]
    for target in targets where bytesMax[target.session] == nil {
      bytesMax[target.session] = batchBytesMax(sessions[target.session])
    }
    advanceRound { $0.found(targets, bytesMax: bytesMax) }
  }

  /// Bytes of one batch for a session, and about of its answer (`Protocol/limits.md`).
  func batchBytesMax(_ session: Session?) -> Int {
    max(0, min(session?.pushBytesMax ?? 0, turn.limits.frameBytesMax) - Application.batchEnvelopeBytes) / 2
  }

  /// What a message has around the objects of a batch.
  private static let batchEnvelopeBytes = 192

  // MARK: Asking

  func ask(_ number: SessionID, for batch: [EncodeTarget], of round: SaveRound) {
    guard let session = sessions[number] else { return lost(number) }
    guard self.call(session, forStatesOf: batch, round: round.number, for: .save(.encode)) else { return lost(number) }
    for target in batch { tree.nodes[target.node]?.note(.asked(session.owner, round: round.number)) }
  }

  /// Asks a session for the states of a batch.
  ///
  /// - Returns: whether it could be asked.
  func call(_ session: Session, forStatesOf batch: [EncodeTarget], round: Int64, for purpose: CallPurpose) -> Bool {
    let objects = batch.map { target in
      let path = tree.nodes[target.node].flatMap { tree.path(of: $0) }
      return EncodeRestorableStateWithCoder.Object(object: target.handle, path: path)
    }
    let call = EncodeRestorableStateWithCoder().with {
      $0.round = round
      $0.objects = objects
    }
    if self.call(session, call, for: purpose) != nil { return true }
    // Paths are for information: an object is known by its handle, also to a client that reads but little.
    let brief = call.with { for index in $0.objects.indices { $0.objects[index].path = nil } }
    return self.call(session, brief, for: purpose) != nil
  }

  func ask(_ number: SessionID, _ question: SaveRound.StateMachine.Question) {
    guard let element = round?.staged(question.node)?.elements[question.element],
      let session = sessions[number], let path = tree.nodes[question.node].flatMap({ tree.path(of: $0) }),
      call(
        session,
        ModelIdentifierForElementAtIndexPath().with {
          $0.view = path
          $0.indexPath = element.indexPath
          $0.role = element.role
        },
        for: .save(.identify(question))
      ) != nil
    else { return advanceRound { $0.identified(number, question) } }
  }

  /// A session cannot be asked now. What its objects refer to is saved with them as they are (R7).
  private func lost(_ session: SessionID) {
    guard let round else { return }
    let states = round.machine.unanswered(by: session)
    find(reachFromHead(states.map(\.node), for: round))
    advanceRound { $0.lost(session) }
  }

  // MARK: Answers

  /// A call of the round has ended.
  func saveCallEnded(_ call: PendingCall, _ question: SaveRound.Question, _ answer: CallAnswer) {
    guard let round else { return }
    switch question {
    case .decide: decided(answer)
    case .prepare: prepared(answer, by: call.session)
    case .encode:
      take(answer, to: call, for: round)
      tellProgress(of: round)
    case .identify(let identified):
      take(answer, to: identified, by: call.session, for: round)
      advanceRound { $0.identified(call.session, identified) }
    }
  }

  /// What a data source has said of an element (R28).
  private func take(
    _ answer: CallAnswer,
    to question: SaveRound.StateMachine.Question,
    by session: SessionID,
    for round: SaveRound
  ) {
    if case .lost = answer { return }
    if case .result(let slice) = answer, let said = ModelIdentifierForElementAtIndexPath.Answer(slice),
      said?.utf8.count ?? 0 <= Bounds.nameBytesMax
    {
      return round.identify(question, as: said)
    }
    guard let node = tree.nodes[question.node], let source = sessions[session],
      round.unnamed.insert(node.id).inserted
    else { return }
    node.note(.elementUnnamed(source.owner, message: answer.message))
  }

  private func take(_ answer: CallAnswer, to call: PendingCall, for round: SaveRound) {
    let session = call.session
    let batch = round.machine.asked(of: session)
    switch answer {
    case .lost where sessionBack(after: call) != nil: return advanceRound { $0.asksAgain(session) }
    case .lost: return lost(session)
    case .error:
      for node in concerned(batch.map(\.node)) { round.messages[node] = answer.message }
      find(reachFromHead(batch.map(\.node), for: round))
      return advanceRound { $0.failed(session, .failed) }
    case .result(let slice):
      guard let answer = EncodeRestorableStateWithCoder.Answer(slice) else {
        find(reachFromHead(batch.map(\.node), for: round))
        return advanceRound { $0.failed(session, .malformed) }
      }
      take(answer.states, of: batch, by: session, for: round)
    }
  }

  private func take(_ states: [EncodedObject], of batch: [EncodeTarget], by session: SessionID, for round: SaveRound) {
    let targets = Dictionary(batch.map { ($0.handle, $0) }) { first, _ in first }
    var fates: [NodeID: SaveRound.StateMachine.Fate] = [:]
    var found: [EncodeTarget] = []
    let counts = Dictionary(states.map { ($0.object, 1) }, uniquingKeysWith: +)
    for state in states {
      // What is said of an object that was not asked for is not listened to.
      guard let target = targets[state.object] else { continue }
      // Of one that is there twice it is not known which is meant.
      fates[target.node] =
        counts[state.object] == 1
        ? fate(of: state, target, for: round) : .refused(StaleObject.Cause.malformed.rawValue)
    }
    for target in batch {
      switch fates[target.node] {
      case .encoded:
        let node = tree.nodes[target.node]
        let references = round.staged(target.node)?.referencedNodes ?? node?.state?.referencedNodes ?? []
        found += reach(references, by: node.map { .node($0) }, for: round)
      case .refused, nil: found += reachFromHead([target.node], for: round)
      case .later: break
      }
    }
    // Before the answer is taken, so that the round is not over while there is something to ask.
    find(found)
    askForIdentifiers(of: batch.filter { fates[$0.node] == .encoded }, for: round)
    advanceRound { $0.answered(session, fates) }
  }

  private func reachFromHead(_ nodes: [NodeID], for round: SaveRound) -> [EncodeTarget] {
    nodes.flatMap { id -> [EncodeTarget] in
      guard let node = tree.nodes[id] else { return [] }
      return reach(node.state?.referencedNodes ?? [], by: .node(node), for: round)
    }
  }

  private func fate(
    of state: EncodedObject,
    _ target: EncodeTarget,
    for round: SaveRound
  ) -> SaveRound.StateMachine.Fate {
    switch state.outcome {
    case .later: return .later
    case .unchanged:
      tree.nodes[target.node]?.note(.unchanged)
      return .encoded
    case .failed(let message):
      round.messages[target.node] = CallAnswer.brief(message)
      return .refused(StaleObject.Cause.failed.rawValue)
    case .malformed: return .refused(StaleObject.Cause.malformed.rawValue)
    case .encoded(let encoded):
      do throws(ErrorObject) {
        try stage(encoded.state, encoded.elements, encoded.revision, at: target, for: round)
        return .encoded
      } catch {
        return .refused(error.kind)
      }
    }
  }

  /// Keeps a state until the commit, if it would be stored now as a push of the owner (R10, R12, R14, R15).
  private func stage(
    _ encoded: EncodedState,
    _ elements: [RestorableElement],
    _ revision: Int64?,
    at target: EncodeTarget,
    for round: SaveRound
  ) throws(ErrorObject) {
    // An object that it has lost or let go of since it was asked is looked after at the commit.
    guard let node = tree.node(target.node), let claim = node.claim, claim.handle == target.handle else { return }
    let path = tree.path(of: node)
    try check(encoded, elements, path: path)
    let state = try checked(encoded.detached(), elements: elements, revision: revision)
    if let revision, revision <= claim.revision {
      node.note(.superseded)
      return
    }
    let record = record(of: state, at: node, by: sessions[claim.session])
    let digest = StateDigest(record)
    // What is there already is not written again.
    let growth = node.wasPulled(digest) ? 0 : max(0, record.bytes - freed(byWritingTo: node, early: record.isEarly))
    try checkArchiveLimit(round.stagedBytes + growth, replacing: nil, path: path)
    let staged = StagedState(
      target: target,
      record: record,
      elements: state.elements,
      digest: digest,
      sequence: sequence
    )
    round.stage(staged, growth: growth)
  }

  /// Asks who knows what the views show for the identifiers of elements that have none (R28).
  private func askForIdentifiers(of batch: [EncodeTarget], for round: SaveRound) {
    for target in batch {
      guard let source = providers.dataSource(of: target.node).flatMap({ sessions[$0] }), source.isReachable,
        source.serves(.modelIdentifierForElementAtIndexPath), let staged = round.staged(target.node)
      else { continue }
      let questions = staged.elements.indices.filter { staged.elements[$0]?.identifier == nil }
        .map { SaveRound.StateMachine.Question(node: target.node, element: $0) }
      if !questions.isEmpty { advanceRound { $0.ask(source.id, questions) } }
    }
  }
}

extension StagedState {
  /// The nodes its references lead to.
  var referencedNodes: [NodeID] { StateSummary.targets(ofTable: record.references) }
}
