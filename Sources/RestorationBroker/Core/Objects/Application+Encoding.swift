// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

extension Application {
  /// Stores a state; the answer waits until it is durable (R10, R14, R15, R19).
  func encode(_ request: EncodeRestorableState, by session: Session?, for caller: Caller) throws(ErrorObject) {
    if let session, session.isDiscarded {
      turn.ask(.respond(caller, .result(EncodeRestorableState.Reply.discarded)))
      return
    }
    try turn.requireStorable()
    var path: IdentifierPath? { request.path ?? self.node(request.object).flatMap { tree.path(of: $0) } }
    guard request.path?.components.isEmpty != true || request.elements.isEmpty else {
      throw .invalidParameter(
        "/elements",
        "the application's own state has no elements",
        hint: "Give elements with the state of the view that shows them."
      )
    }
    let elements = try check(
      request.state,
      request.elements,
      isKnown: self.node(request.object).map { providers.dataSource(of: $0.id) != nil } ?? false,
      path: path
    )
    let existing = try target(of: request, session)
    if let existing, let session, let revision = request.revision, revision <= session.revision(of: existing) {
      // Acknowledged means on disk, even for the push that this one repeats.
      turn.answer(caller, EncodeRestorableState.Reply.superseded)
      return
    }
    if request.expecting != nil {
      let visible = existing.map { visibleState(of: $0, isOwner: owns(session, $0)) }
      try request.requireExpected(visible.map { $0.node.number(of: $0.state) } ?? 0, path: path)
    }
    let state = try checked(request.state, elements: elements, revision: request.revision, path: path)
    let growth = growth(by: state.bytes, of: originID(at: existing, by: session, isEdit: request.isEdit), at: existing)
    let node: Node
    if let existing {
      try requireRoom(for: growth, path: path)
      node = existing
    } else {
      guard case .path(let path) = request.object else { throw .unknownObject(request.object) }
      let missing = path.components[tree.walk(down: path).known...]
      try requireRoom(for: growth + missing.reduce(0) { $0 + $1.utf8.count }, path: path)
      node = path.components.isEmpty ? ownNode() : try makePath(path)
    }
    if node.isVacant, node.kept == nil, !tree.isIncluded(node), tree.unsavedNodes.contains(node.id) {
      read(keep(node), for: .keeping, after: sequence)
    }
    let record = record(of: state, at: node, by: session, isEdit: request.isEdit)
    node.note(.pushed(bytes: record.bytes), isFirst: true)
    if record.isEarly { node.note(.early) }
    put(record, at: node, by: session)
    guard node.kept == nil else {
      node.note(.excluded(by: tree.excluder(of: node).flatMap { tree.path(of: $0) }))
      turn.answer(caller, EncodeRestorableState.Reply.kept(sequence: sequence))
      return
    }
    if keeping.isStale { settleKept() }
    if elements != nil { nameElements(of: node) }
    if turn.hasSubscribers { announceEncoding(at: node, bytes: record.bytes, by: session, for: caller) }
    let sequence = node.state?.sequence ?? sequence
    turn.answer(caller, after: sequence, EncodeRestorableState.Reply.stored(sequence: sequence))
  }

  /// The node of a push: the caller's own, or an unowned one; `nil` if the path is new.
  private func target(of request: EncodeRestorableState, _ session: Session?) throws(ErrorObject) -> Node? {
    if case .path(let path) = request.object {
      if path.components.isEmpty {
        try requireDelegate(session)
        return tree.applicationNode
      }
      guard let node = tree.node(at: path) else { return nil }
      if node.isVacant, session?.replacedNodes.contains(node.id) != true { return node }
    }
    return try requireOwn(request.object, session)
  }

  /// While there is a delegate, the application's own state is its own.
  private func requireDelegate(_ session: Session?) throws(ErrorObject) {
    guard let delegate = liveDelegate, delegate !== session else { return }
    throw .restoration(
      .notOwner,
      "the application's own state belongs to its delegate, \(delegate.words)",
      hint: "Push it from the delegate's session, or when no delegate is live.",
      path: IdentifierPath([]),
      details: ["owners": [delegate.ownerJSON]]
    )
  }

  /// The node at a path; what is missing is made, vacant.
  private func makePath(_ path: IdentifierPath) throws(ErrorObject) -> Node {
    guard path.bytes <= turn.limits.pathBytesMax else {
      throw .limitExceeded("pathBytesMax", max: turn.limits.pathBytesMax, value: path.bytes, path: path)
    }
    guard path.isPossible else { throw .invalidComponent(of: path, "/object") }
    let (known, last) = tree.walk(down: path)
    let missing = path.components.count - known
    guard tree.count + missing <= turn.limits.objectsPerApplicationMax else {
      throw .limitExceeded(
        "objectsPerApplicationMax",
        max: turn.limits.objectsPerApplicationMax,
        value: tree.count + missing,
        path: path
      )
    }
    // A plain object below an exclusion would be unscoped, and its path would differ from the given one (R4).
    let kind: NodeKind = last.map { tree.isExcluded($0) } ?? false ? .viewController : .object
    var parent = last
    for component in path.components[known...] {
      parent = insert(NodeRecord(node: 0, parent: parent?.id, component: component, kind: kind))
    }
    guard let node = parent else { throw .unknownObject(.path(path)) }
    note(.appeared)
    return node
  }
}

extension EncodeRestorableState {
  /// The path the call names, if it names one.
  fileprivate var path: IdentifierPath? { if case .path(let path) = object { path } else { nil } }

  /// The writer has read the state that this one replaces.
  fileprivate var isEdit: Bool { expecting ?? 0 > 0 }

  /// What the caller can read of the object has to be what it expects (R15).
  fileprivate func requireExpected(_ sequence: SequenceNumber, path: IdentifierPath?) throws(ErrorObject) {
    guard let expecting, expecting != sequence else { return }
    let subject = path.map { $0.components.isEmpty ? "the application itself" : $0.description } ?? "the object"
    throw .restoration(
      .stateChanged,
      "\(subject) has \(sequence == 0 ? "no saved state" : "the state of change \(sequence)")",
      hint: "Decode the object again, apply the change to what it has now, and expect the sequence of that.",
      path: path,
      details: ["sequence": .integer(sequence)]
    )
  }
}
