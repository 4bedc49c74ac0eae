// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Asks owners for states, in rounds and pulls, and takes their answers (R7, R11, R12, R18, R28).
extension Application {
  // MARK: Asking

  func ask(_ number: SessionID, for batch: [EncodeTarget], isPull: Bool) {
    let round = isPull ? 0 : saving.round?.number ?? 0
    guard let session = sessions[number],
      call(session, forStatesOf: batch, round: round, for: isPull ? .pull : .save(.encode))
    else { return lost(number, isBack: false, isPull: isPull) }
    // A pull, like a push, restarts the explanation of an object.
    tree.note(.asked(session.owner, round: round), of: batch.map(\.node), isFirst: isPull)
    if isPull { saving.pull { $0.begun(number, in: &turn) } }
  }

  /// - Returns: whether the session could be asked.
  private func call(
    _ session: Session,
    forStatesOf batch: [EncodeTarget],
    round: Int64,
    for purpose: CallPurpose
  ) -> Bool {
    let call = EncodeRestorableStateWithCoder().with {
      $0.round = round
      $0.objects = batch.map { target in
        .init(object: target.handle, path: tree.nodes[target.node].flatMap { tree.path(of: $0) })
      }
    }
    if self.call(session, call, for: purpose) != nil { return true }
    // Paths are for information: a client that reads little knows the object by its handle.
    let brief = call.with { for index in $0.objects.indices { $0.objects[index].path = nil } }
    return self.call(session, brief, for: purpose) != nil
  }

  func ask(_ number: SessionID, _ question: SaveRound.StateMachine.Question) -> [SaveRound.Action] {
    guard let element = saving.round?.staged(question.node)?.elements[question.element],
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
    else { return saving.advance { $0.machine.identified(number, question) } ?? [] }
    return []
  }

  /// - Parameter isBack: the session has another connection already.
  private func lost(_ session: SessionID, isBack: Bool, isPull: Bool) {
    guard isPull else { return advanceRound { $0.lost(session, isBack: isBack, tree, sessions) } }
    pull { $0.lost(session, isBack: isBack) }
  }

  // MARK: Answers

  func saveCallEnded(_ call: PendingCall, _ question: SaveRound.Question, _ answer: CallAnswer) {
    switch question {
    case .decide: decided(answer)
    case .prepare: prepared(answer, by: call.session)
    case .encode:
      encoded(answer, to: call, isPull: false)
      for (call, progress) in saving.advance({ $0.progress(at: turn.now) }) ?? [] { tell(progress, of: call) }
    case .identify(let question): identified(answer, to: question, by: call.session)
    }
  }

  /// A session has been asked for a batch, with or without answer.
  func encoded(_ answer: CallAnswer, to call: PendingCall, isPull: Bool) {
    if case .lost = answer { return lost(call.session, isBack: sessionBack(after: call) != nil, isPull: isPull) }
    let session = call.session
    guard isPull else {
      let fates = fates(of: saving.round?.machine.batches.asked(of: session) ?? [], answer, isPull: false)
      return advanceRound { $0.answered(session, fates, tree, sessions, providers) }
    }
    let fates = fates(of: saving.pulls.asked(of: session), answer, isPull: true)
    for stale in saving.pull({ $0.answered(session, fates) }) { report(stale) }
    pull { $0.next() }
  }

  /// The answer's outcome for each object of the batch; other objects are ignored.
  private func fates(of batch: [EncodeTarget], _ answer: CallAnswer, isPull: Bool) -> [NodeID: EncodeBatcher.Fate] {
    var fates: [NodeID: EncodeBatcher.Fate] = [:]
    if case .result(let slice) = answer, let states = EncodeRestorableStateWithCoder.Answer(slice)?.states {
      // An object that the answer has twice is ambiguous.
      let said = Dictionary(states.map { ($0.object, $0.outcome) }) { _, _ in .malformed }
      for target in batch {
        if let outcome = said[target.handle] { fates[target.node] = fate(of: outcome, target, isPull: isPull) }
      }
    } else if case .error(code: ErrorObject.limitExceededCode, message: _) = answer, batch.count > 1 {
      // The answer exceeded a frame limit: one with fewer states may not.
      for target in batch { fates[target.node] = .later }
    } else {
      let cause: StaleObject.Cause = if case .error = answer { .failed } else { .malformed }
      for target in batch { fates[target.node] = .refused(EncodeRefusal(cause, fault: answer.fault)) }
      for node in concerned(batch.map(\.node)) where answer.message != nil {
        fates[node] = .refused(EncodeRefusal(cause, message: answer.message, fault: answer.fault))
      }
    }
    return fates
  }

  private func fate(of outcome: EncodedObject.Outcome, _ target: EncodeTarget, isPull: Bool) -> EncodeBatcher.Fate {
    switch outcome {
    case .later: return .later
    case .unchanged:
      tree.nodes[target.node]?.note(.unchanged)
      return .encoded
    case .failed(let message): return .refused(EncodeRefusal(.failed, message: CallAnswer.brief(message)))
    case .malformed: return .refused(EncodeRefusal(.malformed))
    case .encoded(let encoded):
      do throws(ErrorObject) {
        try take(encoded, of: target, isPull: isPull)
        return .encoded
      } catch {
        return .refused(EncodeRefusal(error))
      }
    }
  }

  /// Stores a state, or keeps it until the round's commit, if it passes the checks of a push (R10, R12, R14, R15).
  private func take(_ encoded: EncodedObject.Encoded, of target: EncodeTarget, isPull: Bool) throws(ErrorObject) {
    // The commit handles objects that the owner has lost or released since it was asked.
    guard let node = tree.node(target.node), let claim = node.claim, claim.handle == target.handle else { return }
    try turn.requireKept()
    let isKnown = providers.dataSource(of: node.id) != nil
    let elements = try check(encoded.state, encoded.elements, isKnown: isKnown, path: tree.path(of: node))
    if let revision = encoded.revision, revision <= claim.revision {
      node.note(.superseded)
      return
    }
    let session = sessions[claim.session]
    let state = try checked(
      encoded.state.detached(),
      elements: elements,
      revision: encoded.revision,
      path: tree.path(of: node)
    )
    let record = record(of: state, at: node, by: session)
    let staged = StagedState(
      target: target,
      record: record,
      origin: origins[record.context] ?? StateOrigin(),
      elements: encoded.elements.stored(isKnown: isKnown),
      digest: StateDigest(record),
      sequence: sequence
    )
    guard isPull else {
      // An identical state is not written again.
      let growth = node.wasPulled(staged.digest) ? 0 : max(0, record.bytes - (node.state?.bytes ?? 0))
      let bytes = (saving.round?.stagedBytes ?? 0) + growth
      try requireRoom(for: bytes, path: tree.path(of: node))
      saving.advance { $0.stage(staged, growth: growth) }
      return
    }
    guard !isUnsaved(node) else { return leaveUnstored(node, by: session) }
    guard try store(staged) else { return }
    askForUnstored()
    guard turn.hasSubscribers else { return }
    announceEncoding(at: node, bytes: record.bytes, by: session, for: nil)
  }

  /// A pull of an object has failed.
  func report(_ stale: EncodeBatcher.Stale) {
    guard let refusal = stale.refusal, let node = tree.node(stale.target.node),
      node.claim?.handle == stale.target.handle
    else { return }
    let owner = sessions[stale.target.session]
    node.note(.stale(owner?.owner, why: refusal.why, message: refusal.message))
    tellRefusal(refusal, of: stale.target.handle, at: tree.path(of: node), to: owner)
  }

  /// Tells subscribers and the owner that a state is not stored. `object`: nil for the application's own state.
  func tellRefusal(
    _ refusal: EncodeRefusal,
    of object: ObjectHandle?,
    at path: IdentifierPath?,
    to asked: Session?
  ) {
    let message = EncodeFailed().with {
      $0.object = object
      $0.path = path
      $0.session = Application.identity(of: asked)
      $0.error = refusal.failure
    }
    announce(.settled) { message }
    if let asked, refusal.isNews { notify(asked, message) }
  }

  /// A data source has answered for the identifier of an element (R28).
  private func identified(_ answer: CallAnswer, to question: SaveRound.StateMachine.Question, by session: SessionID) {
    advanceRound { round in
      if case .lost = answer { return round.machine.identified(session, question) }
      if case .result(let slice) = answer, let said = ModelIdentifierForElementAtIndexPath.Answer(slice),
        said?.utf8.count ?? 0 <= Bounds.nameBytesMax
      {
        round.name(question, as: said)
      } else if let node = tree.nodes[question.node], let source = sessions[session], round.noteUnnamed(node.id) {
        node.note(.elementUnnamed(source.owner, message: answer.message))
      }
      return round.machine.identified(session, question)
    }
  }
}
