// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Elements of a view whose identifiers are looked for in the data of today (R28).
struct ElementResolution {
  /// Who waits for the elements.
  enum Purpose {
    /// A batch of the restoration with this number, for the state of this node.
    case batch(Int, SessionID, NodeID)
    /// The view's owner, who decodes this state.
    case decode(Caller, StateRecord)
  }

  let view: NodeID
  let purpose: Purpose
  let elements: [RestorableElement]
  /// Those that are done; one that the data source no longer has is left out.
  var resolved: [RestorableElement] = []
  var next = 0
  var call: CallNumber?
  /// It has been noted that the data source does not say where elements are.
  var isUnresolved = false

  func isOf(_ restoring: OpenRestoration) -> Bool {
    if case .batch(let number, _, _) = purpose { number == restoring.number } else { false }
  }
}

extension Application {
  /// A data source has so long for all elements of a view.
  static let resolutionMilliseconds: Int64 = 1_000

  // MARK: Data sources

  func registerDataSource(_ request: RegisterDataSource, by session: Session, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    let served: [ServedMethod] = [.modelIdentifierForElementAtIndexPath, .indexPathForElementWithModelIdentifier]
    guard served.contains(where: { session.serves($0) }) else {
      throw Application.notServing(served.map(\.rawValue).joined(separator: " and "))
    }
    let node = try requireNode(request.view)
    if let other = dataSources[node.id].flatMap({ sessions[$0] }), other !== session, !hasGivenUp(other, for: session) {
      throw Application.alreadyServed("is the view's data source", other, path: tree.path(of: node))
    }
    if dataSources[node.id] != session.id {
      try take(in: session) { facts in
        facts.dataSources = facts.dataSources.filter { tree.nodes[$0] != nil }
        facts.dataSources.insert(node.id)
      }
      setDataSource(of: node.id, to: session.id)
    }
    if dataSources.count > tree.count { dataSources = dataSources.filter { tree.nodes[$0.key] != nil } }
    turn.answer(caller, EmptyResult())
  }

  /// The session that knows the view's elements, if it can be asked.
  private func dataSource(of view: Node) -> Session? {
    guard view.record.component != nil, let session = dataSources[view.id].flatMap({ sessions[$0] }),
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
  func resolve(_ elements: [RestorableElement], of view: Node, for purpose: ElementResolution.Purpose) -> Bool {
    guard elements.contains(where: { $0.identifier != nil }), dataSource(of: view) != nil else { return false }
    resolutionCounter += 1
    resolutions[resolutionCounter] = ElementResolution(view: view.id, purpose: purpose, elements: elements)
    turn.ask(.setTimer(.elements(id, resolutionCounter), milliseconds: Application.resolutionMilliseconds))
    askNext(resolutionCounter)
    return true
  }

  /// One element after the other: what waits for the answers is one view.
  private func askNext(_ number: Int) {
    while let resolution = resolutions[number] {
      guard resolution.next < resolution.elements.count else { return finishResolution(number) }
      let element = resolution.elements[resolution.next]
      guard let identifier = element.identifier else {
        settleElement(number, element)
        continue
      }
      guard let view = tree.node(resolution.view), let path = tree.path(of: view), let source = dataSource(of: view)
      else { return finishResolution(number) }
      let question = IndexPathForElementWithModelIdentifier().with {
        $0.view = path
        $0.identifier = identifier
        $0.role = element.role
      }
      if let call = call(source, question, for: .resolving(number)) {
        resolutions[number]?.call = call
        return
      }
      // It is there and serves the question, so that this one is too long for it.
      settleElement(number, element)
    }
  }

  private func settleElement(_ number: Int, _ element: RestorableElement?) {
    if let element { resolutions[number]?.resolved.append(element) }
    resolutions[number]?.next += 1
  }

  func elementFound(_ number: Int, _ answer: CallAnswer) {
    guard let resolution = resolutions[number] else { return }
    resolutions[number]?.call = nil
    var element = resolution.elements[resolution.next]
    if case .result(let result) = answer, let found = IndexPathForElementWithModelIdentifier.Answer(result) {
      if let identifier = element.identifier {
        let step = RestoringStep.resolved(identifier: identifier, found: found != nil)
        tree.node(resolution.view)?.note(step)
      }
      if let indexPath = found {
        element.indexPath = indexPath
        element.resolved = true
        settleElement(number, element)
      } else {
        settleElement(number, nil)
      }
    } else {
      if case .lost = answer {} else { noteUnresolved(number, answer.message) }
      settleElement(number, element)
    }
    askNext(number)
  }

  /// Notes once that the data source does not say where the elements are.
  private func noteUnresolved(_ number: Int, _ message: String?) {
    guard let resolution = resolutions[number], !resolution.isUnresolved, let view = tree.node(resolution.view),
      let source = dataSource(of: view)
    else { return }
    resolutions[number]?.isUnresolved = true
    view.note(RestoringStep.elementUnresolved(source.owner, message: message))
  }

  /// What was not found in time is handed out as it was saved.
  func finishResolution(_ number: Int) {
    guard let resolution = resolutions[number] else { return }
    if resolution.call != nil { noteUnresolved(number, nil) }
    abandonResolution(number)
    let elements = resolution.resolved + resolution.elements[resolution.next...]
    switch resolution.purpose {
    case .batch(let restoration, let session, let node):
      guard let restoring, restoring.number == restoration else { return }
      restoring.batches[session]?.elements[node] = elements
      sendWhenResolved(session, restoring)
    case .decode(let caller, let record):
      turn.ask(.unpark(caller))
      turn.ask(.respond(caller, .result(decoded(record, elements: elements.text))))
    }
  }

  func abandonResolution(_ number: Int) {
    guard let resolution = resolutions.removeValue(forKey: number) else { return }
    if let call = resolution.call { endCall(call) }
    turn.ask(.cancelTimer(.elements(id, number)))
  }

  /// The archive is opened anew: decodes that wait are answered.
  func abandonResolutions() {
    let error = Application.storeFailed("the archive was opened anew meanwhile", indeterminate: false)
    for (number, resolution) in resolutions {
      abandonResolution(number)
      guard case .decode(let caller, _) = resolution.purpose else { continue }
      turn.refuse(parked: caller, error)
    }
  }
}
