// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Restorations that the broker drives (R21 – R25): carries out the decisions of `Restoration`.
extension Application {
  private static let failedUnitsMax = 64

  package var isRestoring: Bool { restoring.isUnderWay }

  var restorationPlan: RestorationPlan { RestorationPlan(tree: tree, sessions: sessions, origins: origins, runs: runs) }

  /// The delegate has neither received nor written the application's own state (R22).
  private var isOwnStateDue: Bool {
    guard ownState(forDelegate: true) != nil else { return false }
    guard let delegate = liveDelegate else { return isDelegateMissing }
    return !delegate.hasOwnState
      && (delegate.serves(.shouldRestoreApplicationState) || delegate.serves(.didDecodeRestorableState))
  }

  func restore(_ request: RestoreApplicationState, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let bytesMax = Application.pageBytes(for: session?.facts.messageBytesMax)
    let call = LongCall(caller, by: session, token: request.progressToken, in: request.trace, at: turn.now)
    var plan = restorationPlan
    if let objects = request.objects {
      plan.scope = []
      for (index, reference) in objects.enumerated() {
        plan.scope?.insert(try requireNode(reference, at: "/objects/\(index)").id)
      }
    }
    guard isRestoring || plan.scope == nil && isOwnStateDue || !plan.isEmpty else {
      // Nothing is left to be restored, so the restoration is complete.
      if plan.scope == nil {
        runs.restore()
        writeRun()
        trials.beginRestored()
        note(.windowsClosed)
      }
      turn.answer(caller, RestoreApplicationState.Reply())
      return
    }
    if isRestoring, !restoring.covers(plan.scope) {
      return try restoring.postpone((request, session?.id, caller), in: &turn)
    }
    // A notification needs no answer from the restoration under way.
    if isRestoring, caller.call == nil { return }
    guard !turn.isEnding else { throw .shuttingDown() }
    let milliseconds = request.deadlineMilliseconds ?? RestoreApplicationState.deadlineMillisecondsDefault
    let deadline = try restoring.begin(
      for: call,
      bytesMax: bytesMax,
      milliseconds: milliseconds,
      of: plan.scope,
      isDecided: runs.facts.decision == .restoring,
      in: &turn
    )
    guard let deadline else { return }
    trials.prolong(until: deadline)
    drive(.started)
  }

  /// The former broker ended during a restoration, and the sessions still wait for its end.
  func goOnRestoring() {
    guard runs.facts.isRestoring, !isRestoring, !sessions.allAreDiscarded, !turn.isEnding else { return }
    let milliseconds = RestoreApplicationState.deadlineMillisecondsDefault
    trials.prolong(until: restoring.begin(milliseconds: milliseconds, of: nil, isDecided: true, in: &turn))
    drive(.started)
  }

  /// A session that makes objects has joined a run that restores: it is asked for the vacant ones (R22).
  func locate(_ isMade: (Node) -> Bool) {
    guard runs.facts.decision == .restoring, !isRestoring, !turn.isEnding else { return }
    let vacant = Set(restorationPlan.vacant(where: isMade))
    guard !vacant.isEmpty else { return }
    let milliseconds = RestoreApplicationState.deadlineMillisecondsDefault
    trials.prolong(until: restoring.begin(milliseconds: milliseconds, of: vacant, isDecided: true, in: &turn))
    drive(.started)
  }

  /// The archive was reopened, or the broker ends: all decisions are void.
  func abandonRestoration(
    for error: ErrorObject = .storeFailed("the archive was reopened during the restoration", indeterminate: false)
  ) {
    guard let over = endRestoration() else { return }
    for (call, _) in over.callers { turn.refuse(parked: call.caller, error) }
    for (_, _, caller) in restoring.takePostponed(in: &turn) { turn.refuse(caller, error) }
    note(.restorationEnded)
  }

  func restorePostponed() {
    for (request, session, caller) in restoring.takePostponed(in: &turn) {
      do throws(ErrorObject) {
        try restore(request, by: session.flatMap { sessions[$0] }, for: caller)
      } catch {
        turn.refuse(caller, error)
      }
    }
  }

  private func endRestoration() -> Restoring? {
    guard let over = restoring.end(in: &turn) else { return nil }
    endCalls { if case .restoring = $0.purpose { true } else { false } }
    return over
  }

  // MARK: Deciding

  /// Passes an event to the restoration under way, if any, and performs its actions.
  func drive(_ event: Restoration.Event) {
    guard restoring.take(event, self) else { return }
    while let action = restoring.next() { perform(action) }
    actionsEnded()
  }

  /// The same in pieces.
  private func drive(_ event: Restoration.Event, _ long: LongTurn) async {
    guard restoring.take(event, self) else { return }
    while let action = restoring.next() {
      perform(action)
      await long.did(1)
    }
    actionsEnded()
  }

  private func actionsEnded() {
    for (progress, call) in restoring.progress(at: turn.now) { tell(progress, of: call) }
    restoring.watch(in: &turn)
    if deliveries.isReady { note(.deliverable) }
  }

  func restorationTimerFired() {
    restoring.timerFired()
    drive(.time(turn.now.monotonic))
  }

  private func perform(_ action: Restoration.Action) {
    switch action {
    case .ask(let session): callDelegate(session, isAsking: true)
    case .startDelegate: startDelegate()
    case .plan: takeLong { await self.plan($0) }
    case .make(let node, let lookup, let session): make(node, lookup, by: session)
    case .startUnit(let node): startUnit(of: node)
    case .forget(let number): if let node = tree.node(number) { forget(node) }
    case .deliver(let node, let session): deliver(node, to: session)
    case .tell(let session): callDelegate(session, isAsking: false)
    case .note(let node, let note): self.note(note, of: node)
    case .end:
      // First the answers to new registrations must be sent: the owners do not know their handles before.
      read([], for: .end)
    }
  }

  private func plan(_ long: LongTurn) async {
    var plan = restorationPlan
    plan.scope = restoring.scope
    let units = plan.units
    restoring.setUnits(units)
    if plan.scope == nil {
      runs.restore(isUnderWay: true)
      writeRun()
      startMissingUnits()
    }
    let objects = plan.objects(units, isStarting: restoring.isStarting)
    await long.did(objects.count)
    let nodes = objects.compactMap { tree.node($0.node) }
    for node in nodes { node.forgetRestoringSteps() }
    restoring.setPaths(FormerPaths(of: nodes))
    await long.did(objects.count)
    await drive(.planned(objects, at: turn.now.monotonic), long)
  }

  // MARK: Ending

  /// All is decided: sessions learn which of their objects are restored, then the callers get their answer (R21).
  private func finishRestoration(_ long: LongTurn) async {
    guard var over = endRestoration(), let decisions = over.decisions else { return }
    let (count, finished) = (decisions.items.count, decisions.finished)
    await long.did(count)
    for session in finished.keys.sorted().compactMap({ sessions[$0] }) {
      let nodes = (finished[session.id] ?? []).compactMap { tree.node($0) }.filter { $0.claim?.session == session.id }
      finishDelivery(of: nodes, to: session)
      await long.did(nodes.count)
    }
    trials.endExtensions(of: decisions.participants)
    if !decisions.isDeclined, !over.isVoid, over.scope == nil {
      let delegates = over.shown.compactMap { sessions[$0] }
      for delegate in delegates { delegate.hasOwnState = true }
      if !delegates.isEmpty, let node = tree.applicationNode { dropProvisional([node]) }
      // Only the application's own state was restored.
      if decisions.items.isEmpty { trials.beginRestored() }
    }
    note(.windowsClosed)
    // They name the former paths of objects, even if the objects move now.
    var replies: [RestoreApplicationState.Reply] = []
    for (_, bytesMax) in over.callers {
      replies.append(reply(over, decisions, bytesMax: bytesMax))
      await long.did(count)
    }
    if over.scope == nil { runs.endRestoration() }
    if !over.isVoid {
      settleEarlyStates(after: decisions, of: over)
      await long.did(count)
      writeRun()
    }
    for (progress, call) in over.progress(isLast: true, at: turn.now) { tell(progress, of: call) }
    for ((call, _), reply) in zip(over.callers, replies) {
      turn.ask(.unpark(call.caller))
      turn.answer(call.caller, reply)
    }
    note(.restorationEnded)
  }

  /// Refused and declined states no longer replace what their owners have written (R19).
  private func settleEarlyStates(after decisions: Restoration, of over: Restoring) {
    let nodes = { (ids: [NodeID]) in ids.compactMap { self.tree.node($0) } }
    let refused = nodes(decisions.refused)
    if decisions.isDeclined {
      let declined = tree.subtrees(of: over.scope)
      runs.decline(declined, below: over.scope.map { Array($0) }, upTo: sequence)
      settle(declined.filter { ($0.state?.sequence ?? 0) > runs.facts.began }, mayBeAskedFor: true)
      for node in declined where node.hasState && node.claim?.hasDecoded != true {
        node.note(RestoringStep.skipped(reason: "declined"), isFirst: true)
      }
      if over.scope == nil { deliveries.forgetAll() }
    } else {
      let gone = refused.flatMap { tree.subtree(of: $0) }
      runs.refuse(decisions.refused, of: decisions.items.map(\.node), settling: gone.map(\.id))
      settle(gone, mayBeAskedFor: true)
    }
    settleRipe()
  }

  private func reply(_ over: Restoring, _ decisions: Restoration, bytesMax: Int) -> RestoreApplicationState.Reply {
    let milliseconds = turn.now.monotonic - decisions.begun
    var reply = RestoreApplicationState.Reply().with {
      $0.declined = decisions.isDeclined
      $0.milliseconds = milliseconds
    }
    reply.failedUnits = over.failedUnits.sorted { $0.key < $1.key }.prefix(Application.failedUnitsMax)
      .map { unit in
        .init().with {
          $0.unit = unit.key
          $0.message = unit.value
        }
      }
    var bytes = reply.failedUnits.reduce(0) { $0 + $1.unit.utf8.count + $1.message.utf8.count + 40 }
    var ancestry = Ancestry()
    for item in decisions.items {
      let today = tree.node(item.node).flatMap { $0.record.component == nil ? nil : $0 }
      guard case .settled(let outcome) = item.place,
        let pathBytes = today.map({ ancestry.jsonBytes(of: $0) }) ?? over.paths.jsonBytes(of: item.node)
      else { continue }
      let isConfidential = tree.node(item.node)?.record.isConfidential ?? true
      let message = outcome == .skipped(.failed) && !isConfidential ? over.messages[item.node] : nil
      // With the length of a reason.
      bytes += pathBytes + 40 + (message.map { JSONText(.string($0)).count + 11 } ?? 0)
      guard bytes <= bytesMax, let path = today.flatMap({ tree.path(of: $0) }) ?? over.paths[item.node] else {
        reply.omitted = (reply.omitted ?? 0) + 1
        continue
      }
      switch outcome {
      case .restored: if !item.isAncestor { reply.restored.append(path) }
      case .skipped(let reason):
        let skipped = SkippedObject().with {
          $0.path = path
          $0.reason = reason.rawValue
          $0.message = message
        }
        reply.skipped.append(skipped)
      case .absent: reply.absent.append(path)
      }
    }
    return reply
  }

  // MARK: Reading

  /// Reads states once everything written so far is durable.
  func read(_ rows: [StateRequest.Row], for purpose: RestoringRead) {
    read(rows, for: .restoring(restoring.number, purpose), after: sequence)
  }

  /// - Parameter readings: `nil` if the archive could not be read.
  func finishReading(_ purpose: RestoringRead, of number: Int, _ readings: [StateReading?]?) {
    guard isRestoring, restoring.number == number else { return }
    let first: StateRecord? = if case .state(let record, _)?? = readings?.first { record } else { nil }
    switch purpose {
    case .application(let session, let isAsking):
      if let first { restoring.setApplication(first, coder: restoring.application?.coder) }
      sendToDelegate(session, isAsking: isAsking)
    case .make(let node, let lookup, let session): send(node, lookup, first, to: session)
    case .end: takeLong { await self.finishRestoration($0) }
    }
  }

  // MARK: The delegate

  private func callDelegate(_ session: SessionID, isAsking: Bool) {
    // A delegate that has just joined gets the answer to its `initialize` first.
    if restoring.application != nil, !isAsking { return sendToDelegate(session, isAsking: isAsking) }
    restoring.setApplication(coder: sessions[session].flatMap { situation(for: $0).coder })
    read(ownState(forDelegate: true).map { [$0] } ?? [], for: .application(session, isAsking: isAsking))
  }

  private func sendToDelegate(_ session: SessionID, isAsking: Bool) {
    let saved = restoring.application
    let application = ApplicationState(state: saved?.record.map { tree.splice($0) }, coder: saved?.coder)
    let number = sessions[session].flatMap { session in
      isAsking
        ? call(session, ShouldRestoreApplicationState.self, with: application, for: .restoring(.ask))
        : call(session, DidDecodeRestorableState.self, with: application, for: .restoring(.tell))
    }
    if number != nil { restoring.noteShown(to: session) }
    if number == nil { drive(isAsking ? .decided(true) : .told) }
  }
}
