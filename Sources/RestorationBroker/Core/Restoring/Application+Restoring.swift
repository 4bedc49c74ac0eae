// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Restorations that the broker drives (R21 – R25, R34): carries out what `Restoration` decides.
extension Application {
  /// How many units that failed an answer names.
  private static let failedUnitsMax = 64

  /// No save round begins by itself meanwhile (R12).
  package var isRestoring: Bool { restoring != nil }

  func restore(_ request: RestoreApplicationState, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let bytesMax = Application.pageBytes(for: session?.facts.messageBytesMax)
    let call = LongCall(caller, by: session, token: request.progressToken, at: turn.now)
    if let restoring {
      guard caller.call != nil else { return }
      try turn.requireRoom(toWaitBeside: restoring.callers.count { $0.call.caller.client == caller.client })
      restoring.callers.append((call, bytesMax))
      turn.ask(.park(caller))
      return
    }
    guard tree.nodes.values.contains(where: { concerns($0) }) else {
      turn.answer(caller, RestoreApplicationState.Reply())
      return
    }
    let begun = turn.now.monotonic
    restorationCounter += 1
    let deadline = request.deadlineMilliseconds ?? RestoreApplicationState.deadlineMillisecondsDefault
    let restoring = OpenRestoration(number: restorationCounter, Restoration(begun: begun, deadline: begun + deadline))
    restoring.callers.append((call, bytesMax))
    self.restoring = restoring
    trials.prolong(until: restoring.decisions.deadline)
    turn.ask(.park(caller))
    drive(.started)
  }

  /// The caller does not wait any more; the restoration goes on, because half of one is worse than all of it.
  ///
  /// - Returns: whether it waited.
  func leaveRestoration(_ caller: Caller) -> Bool {
    guard let restoring, let index = restoring.callers.firstIndex(where: { $0.call.caller == caller }) else {
      return false
    }
    restoring.callers.remove(at: index)
    turn.ask(.unpark(caller))
    return true
  }

  /// The archive was lost on the way, or the broker ends: nothing that was decided holds any more.
  func abandonRestoration(
    for error: ErrorObject = Application.storeFailed(
      "the archive was reopened during the restoration",
      indeterminate: false
    )
  ) {
    guard let restoring else { return }
    self.restoring = nil
    close(restoring)
    for (call, _) in restoring.callers { turn.refuse(parked: call.caller, error) }
    note(.restorationEnded)
  }

  private func close(_ restoring: OpenRestoration) {
    for call in restoring.calls.sorted() { endCall(call) }
    for number in resolver.numbers(of: restoring.number) { endResolution(number) }
    if restoring.timerDue != nil { turn.ask(.cancelTimer(.restoration(id))) }
  }

  // MARK: Deciding

  /// Lets the open restoration, if there is one, take in an event, and carries out what it decides.
  func drive(_ event: Restoration.Event) {
    guard let restoring else { return }
    restoring.actions += restoring.decisions.handle(event, self)
    guard !restoring.isPerforming else { return }
    restoring.isPerforming = true
    var next = 0
    while next < restoring.actions.count, self.restoring === restoring {
      perform(restoring.actions[next], restoring)
      next += 1
    }
    restoring.actions = []
    restoring.isPerforming = false
    guard self.restoring === restoring else { return }
    tellProgress(of: restoring)
    setTimer(of: restoring)
  }

  private func tellProgress(of restoring: OpenRestoration) {
    let (done, total) = (restoring.decisions.settledCount, restoring.decisions.items.count)
    for index in restoring.callers.indices where total > 0 {
      let progress = restoring.callers[index].call.progress(done, of: total, at: turn.now)
      tell(progress, of: restoring.callers[index].call)
    }
  }

  private func setTimer(of restoring: OpenRestoration) {
    let due = restoring.decisions.due
    guard due != restoring.timerDue else { return }
    restoring.timerDue = due
    if let due {
      turn.ask(.setTimer(.restoration(id), milliseconds: max(1, due - turn.now.monotonic)))
    } else {
      turn.ask(.cancelTimer(.restoration(id)))
    }
  }

  func restorationTimerFired() {
    restoring?.timerDue = nil
    drive(.time(turn.now.monotonic))
  }

  private func perform(_ action: Restoration.Action, _ restoring: OpenRestoration) {
    switch action {
    case .ask(let session): callDelegate(session, isAsking: true, restoring)
    case .startDelegate: startDelegate(restoring)
    case .plan:
      restoring.units = objectUnits()
      startMissingUnits(restoring)
      let plan = restorationPlan(restoring)
      for planned in plan {
        guard let node = tree.node(planned.node) else { continue }
        restoring.paths[planned.node] = tree.path(of: node)
        node.forgetRestoringSteps()
      }
      drive(.planned(plan, at: turn.now.monotonic))
    case .make(let node, let lookup, let session): make(node, lookup, by: session, restoring)
    case .startUnit(let node): startUnit(of: node, restoring)
    case .handOut(let session, let handouts): handOut(handouts, to: session, restoring)
    case .watchTrials: trials.watch(in: &turn)
    case .tell(let session): callDelegate(session, isAsking: false, restoring)
    case .note(let node, let note): self.note(note, of: node)
    case .end:
      // What has just been registered is answered first: its owner does not know the handle before.
      read([], for: .end, restoring)
    }
  }

  // MARK: Planning

  /// What is to be restored, parents first, siblings by age (R34).
  func restorationPlan(_ restoring: OpenRestoration) -> [Restoration.Planned] {
    var plan: [Restoration.Planned] = []
    let roots = tree.nodes.values.filter { $0.parent == nil }.sorted { $0.id > $1.id }
    var next: [(node: Node, above: NodeID?)] = roots.map { ($0, nil) }
    while let (node, above) = next.popLast() {
      let isPlanned = concerns(node)
      if isPlanned {
        plan.append(
          Restoration.Planned(
            node: node.id,
            parent: above,
            lookups: lookups(for: node, restoring.units[node.id]),
            isExpected: isExpected(node),
            hasUnit: restoring.isStarting && !isKnown(node)
          )
        )
      }
      let nearest = isPlanned ? node.id : above
      for child in node.children.sorted(by: >) { if let child = tree.nodes[child] { next.append((child, nearest)) } }
    }
    return plan
  }

  /// Whether there is something to bring back: not what its present owner has decoded, or written itself (R34).
  private func concerns(_ node: Node) -> Bool {
    guard node.record.component != nil, node.claim?.hasDecoded != true, node !== tree.applicationNode else {
      return false
    }
    return node.hasState || node.record.restorationClass != nil
      || node.record.kind == .viewController && node.claimRecord != nil
  }

  /// Whether somebody may be about to register it: not what was missing already when a restoration completed.
  private func isExpected(_ node: Node) -> Bool {
    guard node.isVacant else { return true }
    return orphaned(node).map { $0.restorations >= runs.restorations } ?? false
  }

  /// Whether anybody ever registered it; what only has a state may belong to any process.
  private func isKnown(_ node: Node) -> Bool { (node.claimRecord?.session ?? 0) != 0 }

  /// In which ways an object is looked for (R22, R23).
  private func lookups(for node: Node, _ unit: UnitName?) -> [RestoringStep.Lookup] {
    guard node.record.kind == .view || node.record.restorationClass == nil else { return [.restorationClass] }
    let ways: [RestoringStep.Lookup] = node.record.kind == .viewController ? [.delegate, .existing] : [.existing]
    return unit == nil ? ways : ways + [.storyboard]
  }

  // MARK: Ending

  /// Everything was decided: sessions are told of their objects, then the callers get their answer (R21).
  private func finish(_ restoring: OpenRestoration) {
    self.restoring = nil
    close(restoring)
    let finished = restoring.decisions.finished
    for session in finished.keys.sorted() {
      guard let session = sessions[session] else { continue }
      let nodes = (finished[session.id] ?? []).compactMap { tree.node($0) }.filter { $0.claim?.session == session.id }
      for node in nodes where trials.close(node.id, of: session.id) { acquit(node.id) }
      trials.finished(nodes.map(\.id), of: session.id)
      tellFinished(nodes, of: session, isDurable: true)
    }
    // Windows opened for a node whose state another object got (R24).
    for item in restoring.decisions.items where item.place == .settled(.restored) && item.object != item.node {
      if let owner = item.owner, sessions[owner] != nil, trials.close(item.node, of: owner) { acquit(item.node) }
    }
    trials.endExtensions(of: restoring.decisions.participants)
    note(.windowsClosed)
    for (call, bytesMax) in restoring.callers {
      var call = call
      let (settled, total) = (restoring.decisions.settledCount, restoring.decisions.items.count)
      tell(call.progress(settled, of: total, isLast: true, at: turn.now), of: call)
      turn.ask(.unpark(call.caller))
      turn.answer(call.caller, reply(restoring, bytesMax: bytesMax))
    }
    note(.restorationEnded)
  }

  private func reply(_ restoring: OpenRestoration, bytesMax: Int) -> RestoreApplicationState.Reply {
    let milliseconds = turn.now.monotonic - restoring.decisions.begun
    var reply = RestoreApplicationState.Reply().with {
      $0.declined = restoring.decisions.isDeclined
      $0.milliseconds = milliseconds
    }
    reply.failedUnits = restoring.failedUnits.sorted { $0.key < $1.key }.prefix(Application.failedUnitsMax)
      .map { unit in
        .init().with {
          $0.unit = unit.key
          $0.message = unit.value
        }
      }
    var bytes = reply.failedUnits.reduce(0) { $0 + $1.unit.utf8.count + $1.message.utf8.count + 40 }
    for item in restoring.decisions.items {
      guard case .settled(let outcome) = item.place,
        let path = tree.path(of: item.node) ?? restoring.paths[item.node]
      else { continue }
      let isConfidential = tree.node(item.node)?.record.isConfidential ?? true
      let message = outcome == .skipped(.failed) && !isConfidential ? restoring.messages[item.node] : nil
      // Quotes and commas of the components, and what a reason takes.
      bytes += path.bytes + 3 * path.components.count + 40 + (message.map { JSONText(.string($0)).count + 11 } ?? 0)
      guard bytes <= bytesMax else {
        reply.omitted = (reply.omitted ?? 0) + 1
        continue
      }
      switch outcome {
      case .restored: reply.restored.append(path)
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
  func read(_ rows: [StateRequest.Row], for purpose: RestoringRead, _ restoring: OpenRestoration) {
    read(rows, for: .restoring(restoring.number, purpose), after: sequence)
  }

  /// - Parameter readings: nil where the archive could not be read.
  func finishReading(_ purpose: RestoringRead, of number: Int, _ request: StateRequest, _ readings: [StateReading?]?) {
    guard let restoring, restoring.number == number else { return }
    switch purpose {
    case .application(let session, let isAsking):
      if case .state(let record, _)?? = readings?.first { restoring.application?.state = splice(record) }
      sendToDelegate(session, isAsking: isAsking, restoring)
    case .make(let node, let lookup, let session):
      var record: StateRecord?
      if case .state(let found, _)?? = readings?.first { record = found }
      send(node, lookup, record, to: session, restoring)
    case .batch(let session): take(readings, of: request.rows, for: session, restoring)
    case .end: finish(restoring)
    }
  }

  // MARK: The delegate

  private func callDelegate(_ session: SessionID, isAsking: Bool, _ restoring: OpenRestoration) {
    // One that has just come gets the answer to its `initialize` first.
    if restoring.application != nil, !isAsking { return sendToDelegate(session, isAsking: isAsking, restoring) }
    let coder = sessions[session].flatMap { situation(for: $0).coder }
    restoring.application = ApplicationState(state: nil, coder: coder)
    read(ownState.map { [$0] } ?? [], for: .application(session, isAsking: isAsking), restoring)
  }

  private func sendToDelegate(_ session: SessionID, isAsking: Bool, _ restoring: OpenRestoration) {
    let application = restoring.application ?? ApplicationState(state: nil, coder: nil)
    guard let session = sessions[session] else { return drive(isAsking ? .decided(true) : .told) }
    let number =
      isAsking
      ? call(session, ShouldRestoreApplicationState.self, with: application, for: .restoring(.ask))
      : call(session, DidDecodeRestorableState.self, with: application, for: .restoring(.tell))
    guard let number else { return drive(isAsking ? .decided(true) : .told) }
    restoring.calls.insert(number)
  }
}
