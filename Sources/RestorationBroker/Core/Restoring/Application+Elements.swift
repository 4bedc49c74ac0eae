// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Elements of a view in the data of today (R28).
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

  /// The session that knows the view's elements, if it can be asked.
  private func dataSource(
    of view: Node,
    serving method: ServedMethod = .indexPathForElementWithModelIdentifier
  ) -> Session? {
    guard view.record.component != nil, let session = providers.dataSource(of: view.id).flatMap({ sessions[$0] }),
      session.isReachable, session.serves(method)
    else { return nil }
    return session
  }

  /// Whether elements of the view may have to be looked for before its owner gets them.
  func mayResolveElements(of view: Node) -> Bool { dataSource(of: view) != nil }

  // MARK: Naming

  /// The view's owner has pushed elements, or their data source has come since: those without identifier get one. What
  /// it was asked for is named in a round.
  func nameElements(of view: Node) {
    for number in resolver.numbers(naming: view.id) { endResolution(number) }
    guard let state = view.state, let claim = view.claim, claim.session == state.session, !view.isWithheld(state),
      view.pulled?.sequence != state.sequence,
      dataSource(of: view, serving: .modelIdentifierForElementAtIndexPath) != nil
    else { return }
    let row = StateRequest.Row(node: view.id, sequence: state.sequence)
    let request = StateRequest(caller: .nobody, purpose: .nameElements(of: view.id), rows: [row])
    jobs.read(.read(id, request, after: state.sequence), in: &turn)
  }

  /// The state was read; only the newest one is of interest.
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

  /// Begins to look for the elements in today's data.
  ///
  /// - Parameter milliseconds: how long a data source is awaited that knows elements and is not there.
  /// - Returns: false if nobody can be asked, or nothing is to be asked for: then they stay as they are.
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
      // It is there and serves the question, so that this one is too long for it.
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

  /// What the data source says of an element: nil takes it out. Nil altogether if the answer is invalid.
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

  /// Notes once that the data source does not say what the elements are, or where.
  private func noteUnresolved(_ number: Int, _ message: String?) {
    guard let resolution = resolver[number], let view = tree.node(resolution.view),
      let source = dataSource(of: view, serving: resolution.method), resolver.noteUnresolved(number)
    else { return }
    switch resolution.purpose {
    case .name: view.note(.elementUnnamed(source.owner, message: message))
    case .batch, .decode: view.note(RestoringStep.elementUnresolved(source.owner, message: message))
    }
  }

  /// What was not found in time is handed out as it was saved.
  func finishResolution(_ number: Int) {
    if resolver[number]?.call != nil { noteUnresolved(number, nil) }
    guard let resolution = endResolution(number) else { return }
    switch resolution.purpose {
    case .batch(let restoration, let addressee, let node):
      guard addressee.isLate || restoring.number == restoration else { return }
      deliveries.add(resolution.elements, of: node, to: addressee)
      sendWhenResolved(addressee)
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

  /// The archive is opened anew: decodes that wait are answered.
  func abandonResolutions() {
    let error = ErrorObject.storeFailed("the archive was reopened meanwhile", indeterminate: false)
    for number in resolver.numbers {
      if case .decode(let caller, _, _)? = endResolution(number)?.purpose { turn.refuse(parked: caller, error) }
    }
  }
}
