// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
package import RestorationWire

/// Makes the objects of a restoration by their factories (R22, R24).
extension Application {
  func callEnded(_ purpose: RestoringCall, _ answer: CallAnswer, by session: SessionID) {
    switch purpose {
    case .ask:
      // Only an explicit no counts as one.
      if case .result(let result) = answer, let decision = Bool(result) {
        drive(.decided(decision))
      } else {
        drive(.decided(true))
      }
    case .tell: drive(.told)
    case .make(let node):
      // If the answer is lost, the end of the session tells whether that was a crash.
      if case .lost = answer {} else if trials.closeFactory(node, of: session) { note(.windowsClosed) }
      restoring.note(answer.message, of: [node])
      drive(.made(node, made(answer, by: session), by: session))
    }
  }

  func make(_ number: NodeID, _ lookup: RestoringStep.Lookup, by session: SessionID) {
    guard let node = tree.node(number) else { return drive(.made(number, .failed, by: session)) }
    var rows: [StateRequest.Row] = []
    if let state = outgoingState(of: node), node.versions.mayGive(state),
      state.bytes <= batchBytesMax(of: session)
    {
      rows.append(StateRequest.Row(node: number, sequence: state.sequence))
    }
    read(rows, for: .make(number, lookup, session))
  }

  /// Calls the factory, with the object's state if there is one that can be sent.
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
      saved.isDeferred = !isSent && summary.map { node.versions.mayGive($0) } ?? false
    }
    var sent = callFactory(saved, lookup, node, by: session)
    if sent == nil, !isSent {
      // Without the coder it may be short enough. The factory can fetch the coder with the state.
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

  /// Calls factories that had to wait for a suspect (R31).
  func goOnMaking() { for (node, lookup, session) in restoring.takeHeldCalls() { make(node, lookup, by: session) } }

  /// The object of a factory must belong to its session (R24).
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

  package func awaitedUntil(_ role: String) -> Int64? { restorationPlan.awaitedUntil(role, at: turn.now.monotonic) }

  package func isOfRole(_ session: SessionID, _ role: String?) -> Bool { sessions[session]?.facts.role == role }

  package func isExtended(_ session: SessionID) -> Bool { trials.isExtended(session) }

  // MARK: Explaining

  /// Adds a decision to the steps of its object.
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
    case .because(let step): node.note(step)
    case .settled(.restored): noteDelivered(node, isToBeTold: isRestoring)
    case .settled(.skipped(let reason)):
      node.note(.skipped(reason: reason.rawValue, message: reason == .failed ? restoring.messages[number] : nil))
      switch reason {
      case .quarantined, .unreadable: noteDelivered(node, isToBeTold: isRestoring)
      case .failed: failDelivery(of: node)
      case .classMismatch, .refused, .parentSkipped, .sameObject, .notServed, .late, .ended, .discarded: break
      }
    case .settled(.absent): node.note(.absent)
    }
  }
}
