// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Asking owners for states, in a round or outside of one, and what they answer (R7, R11, R12, R18, R28).
extension Application {
  // MARK: Asking

  func ask(_ number: SessionID, for batch: [EncodeTarget], isPull: Bool) {
    let round = isPull ? 0 : saving.round?.number ?? 0
    guard let session = sessions[number],
      call(session, forStatesOf: batch, round: round, for: isPull ? .pull : .save(.encode))
    else { return lost(number, isBack: false, isPull: isPull) }
    // If a pull is asked for, what was told of the time before makes room, as where a state is pushed.
    tree.note(.asked(session.owner, round: round), of: batch.map(\.node), isFirst: isPull)
    if isPull { saving.pullAsked(number, in: &turn) }
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

  func ask(_ number: SessionID, _ question: SaveRound.StateMachine.Question) {
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
    else { return advanceRound { $0.machine.identified(number, question) } }
  }

  /// - Parameter isBack: the session has another connection already.
  private func lost(_ session: SessionID, isBack: Bool, isPull: Bool) {
    saving.lost(session, isBack: isBack, isPull: isPull, tree, sessions)
    performSaving()
  }

  // MARK: Answers

  /// A call of the round has ended.
  func saveCallEnded(_ call: PendingCall, _ question: SaveRound.Question, _ answer: CallAnswer) {
    switch question {
    case .decide: decided(answer)
    case .prepare: prepared(answer, by: call.session)
    case .encode:
      encoded(answer, to: call, isPull: false)
      for (call, progress) in saving.progress(at: turn.now) { tell(progress, of: call) }
    case .identify(let question): identified(answer, to: question, by: call.session)
    }
  }

  /// A session has been asked for a batch, with or without answer.
  func encoded(_ answer: CallAnswer, to call: PendingCall, isPull: Bool) {
    if case .lost = answer { return lost(call.session, isBack: sessionBack(after: call) != nil, isPull: isPull) }
    let session = call.session
    let fates = fates(of: saving.asked(of: session, isPull: isPull), answer, isPull: isPull)
    for stale in saving.answered(session, fates, isPull: isPull, tree, sessions, providers) { report(stale) }
    performSaving()
  }

  /// What an answer says about each object of the batch; what it says about others is ignored.
  private func fates(of batch: [EncodeTarget], _ answer: CallAnswer, isPull: Bool) -> [NodeID: EncodeBatcher.Fate] {
    var fates: [NodeID: EncodeBatcher.Fate] = [:]
    if case .result(let slice) = answer, let states = EncodeRestorableStateWithCoder.Answer(slice)?.states {
      // Of an object that is there twice it is unknown which is meant.
      let said = Dictionary(states.map { ($0.object, $0.outcome) }) { _, _ in .malformed }
      for target in batch {
        if let outcome = said[target.handle] { fates[target.node] = fate(of: outcome, target, isPull: isPull) }
      }
    } else if case .error(code: ErrorObject.limitExceededCode, message: _) = answer, batch.count > 1 {
      // It was over a limit of frames: that with fewer states may not be.
      for target in batch { fates[target.node] = .later }
    } else {
      let cause: StaleObject.Cause = if case .error = answer { .failed } else { .malformed }
      for target in batch { fates[target.node] = .refused(EncodeRefusal(cause)) }
      for node in concerned(batch.map(\.node)) where answer.message != nil {
        fates[node] = .refused(EncodeRefusal(cause, message: answer.message))
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

  /// Stores a state, or keeps it for the round until the commit, if it passes as a push of the owner would (R10, R12,
  /// R14, R15).
  private func take(_ encoded: EncodedObject.Encoded, of target: EncodeTarget, isPull: Bool) throws(ErrorObject) {
    // An object that it has lost or let go of since it was asked is looked after at the commit.
    guard let node = tree.node(target.node), let claim = node.claim, claim.handle == target.handle else { return }
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
      // What is there already is not written again.
      let growth = node.wasPulled(staged.digest) ? 0 : max(0, record.bytes - (node.state?.bytes ?? 0))
      let bytes = (saving.round?.stagedBytes ?? 0) + growth
      try requireRoom(for: bytes, path: tree.path(of: node))
      return saving.stage(staged, growth: growth)
    }
    guard !isUnsaved(node) else { return leaveUnstored(node, by: session) }
    guard try store(staged) else { return }
    askForUnstored()
    guard turn.hasSubscribers else { return }
    announceEncoding(at: node, bytes: record.bytes, by: session, for: nil)
  }

  /// An owner was asked for an object in vain, outside of a round: it is explained, and subscribers are told.
  func report(_ stale: EncodeBatcher.Stale) {
    guard let refusal = stale.refusal, let node = tree.node(stale.target.node),
      node.claim?.handle == stale.target.handle
    else { return }
    let owner = sessions[stale.target.session]
    node.note(.stale(owner?.owner, why: refusal.why, message: refusal.message))
    announce(.settled) {
      EncodeFailed().with {
        $0.object = stale.target.handle
        $0.path = tree.path(of: node)
        $0.session = Application.identity(of: owner)
        $0.error = refusal.failure
      }
    }
  }

  /// A data source has been asked for the identifier of an element (R28).
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
