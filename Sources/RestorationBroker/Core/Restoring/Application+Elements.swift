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
      throw Application.notServing(served.map(\.rawValue).joined(separator: " and "))
    }
    let node = try requireNode(request.view, at: "/view")
    let before = providers.dataSource(of: node.id)
    if let other = before.flatMap({ sessions[$0] }), other !== session, !hasGivenUp(other, for: session) {
      throw Application.alreadyServed("is the view's data source", other, path: tree.path(of: node))
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
  }

  /// The session that knows the view's elements, if it can be asked.
  private func dataSource(of view: Node) -> Session? {
    guard view.record.component != nil, let session = providers.dataSource(of: view.id).flatMap({ sessions[$0] }),
      session.isReachable, session.serves(.indexPathForElementWithModelIdentifier)
    else { return nil }
    return session
  }

  /// Whether elements of the view may have to be looked for before its owner gets them.
  func mayResolveElements(of view: Node) -> Bool { dataSource(of: view) != nil }

  // MARK: Resolving

  /// Begins to look for the elements in today's data.
  ///
  /// - Returns: false where nobody can be asked, or nothing is to be asked for: then they stay as they are.
  func resolve(_ elements: [RestorableElement], of view: Node, for purpose: ElementResolver.Purpose) -> Bool {
    guard elements.contains(where: { $0.identifier != nil }), dataSource(of: view) != nil else { return false }
    askNext(resolver.begin(elements, of: view.id, for: purpose, in: &turn))
    return true
  }

  private func askNext(_ number: Int) {
    while let element = resolver.next(of: number), let identifier = element.identifier,
      let view = resolver[number].flatMap({ tree.node($0.view) }), let path = tree.path(of: view),
      let source = dataSource(of: view)
    {
      let question = IndexPathForElementWithModelIdentifier().with {
        $0.view = path
        $0.identifier = identifier
        $0.role = element.role
      }
      if let call = call(source, question, for: .resolving(number)) { return resolver.asked(number, by: call) }
      // It is there and serves the question, so that this one is too long for it.
      resolver.settle(number, element)
    }
    finishResolution(number)
  }

  func elementFound(_ number: Int, _ answer: CallAnswer) {
    guard var element = resolver.answered(number) else { return }
    if case .result(let result) = answer, let found = IndexPathForElementWithModelIdentifier.Answer(result) {
      if let identifier = element.identifier {
        let step = RestoringStep.resolved(identifier: identifier, found: found != nil)
        resolver[number].flatMap { tree.node($0.view) }?.note(step)
      }
      if let indexPath = found { (element.indexPath, element.resolved) = (indexPath, true) }
      resolver.settle(number, found == nil ? nil : element)
    } else {
      if case .lost = answer {} else { noteUnresolved(number, answer.message) }
      resolver.settle(number, element)
    }
    askNext(number)
  }

  /// Notes once that the data source does not say where the elements are.
  private func noteUnresolved(_ number: Int, _ message: String?) {
    guard let view = resolver[number].flatMap({ tree.node($0.view) }), let source = dataSource(of: view),
      resolver.noteUnresolved(number)
    else { return }
    view.note(RestoringStep.elementUnresolved(source.owner, message: message))
  }

  /// What was not found in time is handed out as it was saved.
  func finishResolution(_ number: Int) {
    if resolver[number]?.call != nil { noteUnresolved(number, nil) }
    guard let resolution = endResolution(number) else { return }
    switch resolution.purpose {
    case .batch(let restoration, let session, let node):
      guard restoring.number == restoration else { return }
      restoring.add(resolution.elements, of: node, to: session)
      sendWhenResolved(session)
    case .decode(let caller, let record):
      turn.ask(.unpark(caller))
      turn.ask(.respond(caller, .result(decoded(record, elements: resolution.elements.text))))
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
    let error = Application.storeFailed("the archive was reopened meanwhile", indeterminate: false)
    for number in resolver.numbers {
      if case .decode(let caller, _)? = endResolution(number)?.purpose { turn.refuse(parked: caller, error) }
    }
  }
}
