// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// What a session is asked for because it said that it has changed.
struct StatePull {
  var lane: EncodeLane
  /// When the batch under way has had its time.
  var due: Int64 = 0
}

/// Pulling the states of single objects into the head, outside of rounds (R18).
extension Application {
  /// Invalidations that come within this time are pulled together.
  static let gatheringMilliseconds: Int64 = 100
  /// What a session has not answered by then is given up.
  static let pullMilliseconds: Int64 = 5_000

  func invalidate(_ request: InvalidateRestorableState, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let node = try requireOwn(request.object, session)
    guard let session, session.serves(.encodeRestorableStateWithCoder) else {
      throw .invalidParameter(
        "/object",
        "the session does not serve encodeRestorableStateWithCoder, so its states cannot be fetched",
        hint: "List it in serves of initialize, or encode the state."
      )
    }
    schedule.noteChange(in: &turn)
    invalidate([node.id])
    turn.ask(.respond(caller, .result(EmptyResult())))
  }

  /// What the session has said of its objects is not known any more: it is asked for all of them once.
  func invalidateAll(of session: Session) {
    guard session.serves(.encodeRestorableStateWithCoder), !session.objects.isEmpty else { return }
    invalidate(session.objects.values.map(\.id))
  }

  /// They are asked for together with what is invalidated soon after.
  private func invalidate(_ nodes: [NodeID]) {
    if invalidated.isEmpty {
      turn.ask(.setTimer(.invalidated(id), milliseconds: Application.gatheringMilliseconds))
    }
    invalidated.formUnion(nodes)
  }

  /// These were to be asked for when the archive was closed, and are still.
  func invalidate(_ targets: [EncodeTarget]) {
    let nodes = targets.filter { tree.nodes[$0.node]?.claim?.handle == $0.handle }.map(\.node)
    guard !nodes.isEmpty else { return }
    schedule.noteChange(in: &turn)
    invalidate(nodes)
  }

  func invalidationTimerFired() {
    var asked: Set<SessionID> = []
    for id in invalidated.sorted() {
      guard let node = tree.nodes[id], let target = target(node) else { continue }
      let bytesMax = batchBytesMax(sessions[target.session])
      pulls[target.session, default: StatePull(lane: EncodeLane(bytesMax: bytesMax))].lane.add(target)
      asked.insert(target.session)
    }
    invalidated = []
    for session in asked.sorted() { pull(from: session) }
  }

  /// Asks for the next batch, if there is one and none is asked for.
  func pull(from number: SessionID) {
    guard var pull = pulls[number] else { return }
    guard let session = sessions[number], let batch = pull.lane.next() else {
      if !pull.lane.isAsking { pulls[number] = nil }
      return
    }
    pull.due = turn.now.monotonic + Application.pullMilliseconds
    if !call(session, forStatesOf: batch, round: 0, for: .pull) {
      // It is asked when it is there again.
      pull.lane.lost()
    } else {
      // What was told of the time before makes room, as where a state is pushed.
      for target in batch { tree.nodes[target.node]?.note(.asked(session.owner, round: 0), isFirst: true) }
      if !pulls.values.contains(where: \.lane.isAsking) {
        turn.ask(.setTimer(.pulls(id), milliseconds: Application.pullMilliseconds))
      }
    }
    pulls[number] = pull
  }

  func pullTimerFired() {
    let now = turn.now.monotonic
    for (session, pull) in pulls.sorted(by: { $0.key < $1.key }) where pull.lane.isAsking && pull.due <= now {
      endCalls { call in
        if case .pull = call.purpose { call.session == session } else { false }
      }
      pulls[session] = nil
      var lane = pull.lane
      for target in lane.giveUp() { brought(nothingOf: target, .late) }
    }
    if let due = pulls.values.filter(\.lane.isAsking).map(\.due).min() {
      turn.ask(.setTimer(.pulls(id), milliseconds: max(1, due - now)))
    }
  }

  /// A pull has ended, with or without answer.
  func pullEnded(_ call: PendingCall, _ answer: CallAnswer) {
    guard var pull = pulls[call.session] else { return }
    let batch = pull.lane.asked
    var late: EncodeTarget?
    switch answer {
    case .lost:
      pull.lane.lost()
      pulls[call.session] = pull
      // It may have come back by another connection meanwhile.
      if let session = sessionBack(after: call) { self.pull(from: session.id) }
      return
    case .error:
      _ = pull.lane.answered { _ in false }
      let concerned = concerned(batch.map(\.node))
      for target in batch {
        brought(nothingOf: target, .failed, message: concerned.contains(target.node) ? answer.message : nil)
      }
    case .result(let slice):
      let states = EncodeRestorableStateWithCoder.Answer(slice)?.states
      let later = take(states ?? [], of: batch)
      late = pull.lane.answered { later.contains($0.handle) }
    }
    pulls[call.session] = pull
    if let late { brought(nothingOf: late, .late) }
    self.pull(from: call.session)
  }

  /// Stores the states as pushes of their owner.
  ///
  /// - Returns: those that are to be asked for again.
  private func take(_ states: [EncodedObject], of batch: [EncodeTarget]) -> Set<ObjectHandle> {
    let said = Dictionary(states.map { ($0.object, $0.outcome) }) { _, last in last }
    var later: Set<ObjectHandle> = []
    for target in batch {
      do throws(ErrorObject) {
        switch said[target.handle] {
        case .later: later.insert(target.handle)
        case .unchanged: break
        case .failed(let message): brought(nothingOf: target, .failed, message: CallAnswer.brief(message))
        case .malformed: brought(nothingOf: target, .malformed)
        case nil: brought(nothingOf: target, .missing)
        case .encoded(let encoded): try take(encoded.state, encoded.elements, encoded.revision, at: target)
        }
      } catch {
        brought(nothingOf: target, EncodeFailed.Failure(error))
      }
    }
    return later
  }

  private func take(
    _ encoded: EncodedState,
    _ elements: [RestorableElement],
    _ revision: Int64?,
    at target: EncodeTarget
  ) throws(ErrorObject) {
    guard let node = tree.nodes[target.node], let claim = node.claim, claim.handle == target.handle else { return }
    let path = tree.path(of: node)
    try check(encoded, elements, path: path)
    if let revision, revision <= claim.revision { return }
    let state = try checked(encoded, elements: elements, revision: revision)
    try checkArchiveLimit(state.bytes, replacing: node, path: path)
    let session = sessions[claim.session]
    let record = record(of: state, at: node, by: session)
    let before = node.state?.sequence
    putPulled(record, at: node, by: session)
    guard turn.hasSubscribers, node.state?.sequence != before else { return }
    announceEncoding(at: node, bytes: record.bytes, by: session, for: nil)
  }

  /// The owner was asked for an object in vain: it is explained, and subscribers are told.
  ///
  /// - Parameter message: what the owner says of it.
  private func brought(nothingOf target: EncodeTarget, _ error: EncodeFailed.Failure, message: String? = nil) {
    guard let node = tree.nodes[target.node], node.claim?.handle == target.handle else { return }
    let why = error == .late ? StaleObject.Cause.late.rawValue : error.kind
    node.note(.stale(sessions[target.session]?.owner, why: why, message: message))
    announce(.settled) {
      EncodeFailed().with {
        $0.object = target.handle
        $0.path = tree.path(of: node)
        $0.session = Application.identity(of: sessions[target.session])
        $0.error = error
      }
    }
  }
}

/// An owner that was asked and gave nothing, in the words of `stale`.
extension EncodeFailed.Failure {
  fileprivate static let late = Self(code: ErrorCode.timedOut.rawValue, kind: ErrorCode.timedOut.kind)
  fileprivate static let failed = Self(code: -32603, kind: StaleObject.Cause.failed.rawValue)
  fileprivate static let malformed = Self(code: -32602, kind: StaleObject.Cause.malformed.rawValue)
  fileprivate static let missing = Self(code: -32602, kind: StaleObject.Cause.missing.rawValue)
}
