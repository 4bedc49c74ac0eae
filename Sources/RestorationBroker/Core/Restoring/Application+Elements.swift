// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Resolves elements of views to current index paths (R28).
extension Application {
  // MARK: Data sources

  func registerDataSource(_ request: RegisterDataSource, by session: Session, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let served: [ServedMethod] = [.modelIdentifierForElementAtIndexPath, .indexPathForElementWithModelIdentifier]
    guard served.contains(where: { session.serves($0) }) else {
      throw .notServing(served.map(\.rawValue).joined(separator: " and "))
    }
    let node = try requireNode(request.view, at: "/view")
    let before = providers.dataSource(of: node.id)
    if let other = before.flatMap({ sessions[$0] }), other !== session, !hasGivenUp(other, for: session) {
      throw .alreadyServed("is the view's data source", other, path: tree.path(of: node))
    }
    if before != session.id {
      try take(in: session) { facts in
        facts.dataSources = facts.dataSources.filter { tree.nodes[$0] != nil }
        facts.dataSources.insert(node.id)
      }
      setDataSource(of: node.id, to: session.id)
    }
    providers.forgetViews(beyond: tree.count) { tree.nodes[$0] == nil }
    turn.answer(caller, EmptyResult())
    goOnResolving()
    nameElements(of: node)
  }

  /// The session that serves the view's elements, if it can be asked.
  private func dataSource(
    of view: Node,
    serving method: ServedMethod = .indexPathForElementWithModelIdentifier
  ) -> Session? {
    guard view.record.component != nil, let session = providers.dataSource(of: view.id).flatMap({ sessions[$0] }),
      session.isReachable, session.serves(method)
    else { return nil }
    return session
  }

  func mayResolveElements(of view: Node) -> Bool { dataSource(of: view) != nil }

  // MARK: Naming

  /// Names elements after a push of the view's owner or a data source's registration. Save rounds name their own.
  func nameElements(of view: Node) {
    for number in resolver.numbers(naming: view.id) { endResolution(number) }
    guard let state = view.state, let claim = view.claim, claim.session == state.session,
      !view.versions.isWithheld(state), view.pulled?.sequence != state.sequence,
      dataSource(of: view, serving: .modelIdentifierForElementAtIndexPath) != nil
    else { return }
    let row = StateRequest.Row(node: view.id, sequence: state.sequence)
    let request = StateRequest(caller: .nobody, purpose: .nameElements(of: view.id), rows: [row])
    jobs.read(.read(id, request, after: state.sequence), in: &turn)
  }

  /// Continues after the state was read, if it is still the newest.
  func name(_ reading: StateReading?, of view: NodeID) {
    guard case .state(let record, let sequence)? = reading, let view = tree.node(view), view.state?.sequence == sequence
    else { return }
    askNext(resolver.begin(Application.elements(of: record), of: view.id, for: .name(record, at: sequence), in: &turn))
  }

  private func store(_ elements: [RestorableElement], in record: StateRecord, at sequence: SequenceNumber) {
    guard let view = tree.node(record.node), view.state?.sequence == sequence else { return }
    var named = record
    named.node = view.id
    named.elements = elements.isEmpty ? nil : elements.stored(isKnown: true).text.string
    guard named.elements != record.elements,
      (try? turn.limits.requireSize(of: named, in: tree, path: nil)) != nil, (try? turn.requireWritable()) != nil,
      (try? requireRoom(for: growth(by: named.bytes, of: named.context, at: view))) != nil
    else { return }
    store(named, at: view)
  }

  // MARK: Resolving

  /// Resolves elements; waits `milliseconds` for a missing data source that has known elements. Returns false if there
  /// is nothing to ask: the elements then stay as they are.
  func resolve(
    _ elements: [RestorableElement],
    of view: Node,
    for purpose: ElementResolver.Purpose,
    awaiting milliseconds: Int64
  ) -> Bool {
    guard view.record.component != nil else { return false }
    let isThere = dataSource(of: view) != nil
    guard isThere || milliseconds > 0,
      elements.contains(where: { isThere ? $0.identifier != nil : $0.unresolved != nil })
    else { return false }
    askNext(resolver.begin(elements, of: view.id, for: purpose, awaiting: isThere ? nil : milliseconds, in: &turn))
    return true
  }

  /// A data source has come, or can be asked again.
  func goOnResolving() { for number in resolver.awaiting { askNext(number) } }

  private func askNext(_ number: Int) {
    while let resolution = resolver[number], let element = resolver.next(of: number),
      let view = tree.node(resolution.view), let path = tree.path(of: view)
    {
      guard let source = dataSource(of: view, serving: resolution.method) else {
        if resolution.isAwaiting { return }
        break
      }
      resolver.found(number, in: &turn)
      if let call = ask(source, for: element, of: path, number) { return resolver.asked(number, by: call) }
      // It is reachable and serves the method, so this question is too long for it.
      resolver.settle(number, unresolved: element)
    }
    finishResolution(number)
  }

  private func ask(
    _ source: Session,
    for element: RestorableElement,
    of view: IdentifierPath,
    _ number: Int
  ) -> CallNumber? {
    if let identifier = element.identifier {
      let question = IndexPathForElementWithModelIdentifier().with {
        $0.view = view
        $0.identifier = identifier
        $0.role = element.role
      }
      return call(source, question, for: .resolving(number))
    }
    let question = ModelIdentifierForElementAtIndexPath().with {
      $0.view = view
      $0.indexPath = element.indexPath
      $0.role = element.role
    }
    return call(source, question, for: .resolving(number))
  }

  func elementFound(_ number: Int, _ answer: CallAnswer) {
    guard let element = resolver.answered(number) else { return }
    if case .result(let result) = answer, let settled = settled(element, by: result) {
      if let identifier = element.identifier {
        let step = RestoringStep.resolved(identifier: identifier, found: settled != nil)
        resolver[number].flatMap { tree.node($0.view) }?.note(step)
      }
      resolver.settle(number, settled)
    } else {
      if case .lost = answer { resolver.lost(number) } else { noteUnresolved(number, answer.message) }
      resolver.settle(number, unresolved: element)
    }
    askNext(number)
  }

  /// The data source's answer for an element: inner `nil` drops the element, outer `nil` is an invalid answer.
  private func settled(_ element: RestorableElement, by result: JSONSlice) -> RestorableElement?? {
    if element.identifier == nil {
      guard let said = ModelIdentifierForElementAtIndexPath.Answer(result), said?.utf8.count ?? 0 <= Bounds.nameBytesMax
      else { return nil }
      return .some(said.map { identifier in element.with { $0.identifier = identifier } })
    }
    guard let found = IndexPathForElementWithModelIdentifier.Answer(result) else { return nil }
    return .some(
      found.map { indexPath in
        element.with { ($0.indexPath, $0.resolved, $0.unresolved) = (indexPath, true, nil) }
      }
    )
  }

  /// Notes, once for each view, that the data source did not name or find its elements.
  private func noteUnresolved(_ number: Int, _ message: String?) {
    guard let resolution = resolver[number], let view = tree.node(resolution.view),
      let source = dataSource(of: view, serving: resolution.method), resolver.noteUnresolved(number)
    else { return }
    switch resolution.purpose {
    case .name: view.note(.elementUnnamed(source.owner, message: message))
    case .delivery, .decode: view.note(RestoringStep.elementUnresolved(source.owner, message: message))
    }
  }

  /// Ends a resolution. Unresolved elements are delivered as they were saved.
  func finishResolution(_ number: Int) {
    if resolver[number]?.call != nil { noteUnresolved(number, nil) }
    guard let resolution = endResolution(number) else { return }
    switch resolution.purpose {
    case .delivery(let session, let batch, let node):
      guard deliveries.batch(of: session)?.number == batch else { return }
      deliveries.add(resolution.elements, of: node, to: session)
      sendWhenResolved(session, batch: batch)
    case .decode(let caller, let record, let sequence):
      turn.ask(.unpark(caller))
      turn.ask(.respond(caller, .result(decoded(record, at: sequence, elements: resolution.elements.text))))
    case .name(let record, let sequence): store(resolution.elements, in: record, at: sequence)
    }
  }

  @discardableResult
  func endResolution(_ number: Int) -> ElementResolver.Resolution? {
    let resolution = resolver.end(number, in: &turn)
    if let call = resolution?.call { endCall(call) }
    return resolution
  }

  /// The archive was reopened: refuses waiting decodes.
  func abandonResolutions() {
    let error = ErrorObject.storeFailed("the archive was reopened meanwhile", indeterminate: false)
    for number in resolver.numbers {
      if case .decode(let caller, _, _)? = endResolution(number)?.purpose { turn.refuse(parked: caller, error) }
    }
  }
}
