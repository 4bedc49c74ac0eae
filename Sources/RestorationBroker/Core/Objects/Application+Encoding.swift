// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

extension Application {
  /// Stores a state. The answer waits until the state is durable (R10, R14, R15, R19).
  func encode(_ request: EncodeRestorableState, by session: Session?, for caller: Caller) throws(ErrorObject) {
    if let session, session.isDiscarded {
      turn.ask(.respond(caller, .result(EncodeRestorableState.Reply.discarded)))
      return
    }
    try turn.requireKept()
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
      // The answer to a repetition promises durability, too.
      turn.answer(caller, EncodeRestorableState.Reply.superseded)
      return
    }
    if request.expecting != nil {
      let visible = existing.flatMap { $0.state(forOwner: owns(session, $0)) }
      try request.requireExpected(visible?.sequence ?? 0, path: path)
    }
    let state = try checked(request.state, elements: elements, revision: request.revision, path: path)
    let missing = try existing == nil ? missing(to: request.object) : nil
    if existing.map({ isUnsaved($0) }) ?? missing?.isExcluded ?? false {
      if let existing {
        existing.note(.pushed(bytes: state.bytes), isFirst: true)
        leaveUnstored(existing, by: session)
      }
      turn.answer(caller, EncodeRestorableState.Reply.unsaved(sequence: sequence))
      return
    }
    let growth = growth(by: state.bytes, of: originID(at: existing, by: session, isEdit: request.isEdit), at: existing)
    try requireRoom(for: growth + (missing?.bytes ?? 0), path: path)
    let node = existing ?? missing.flatMap { make($0) } ?? ownNode()
    let record = record(of: state, at: node, by: session, isEdit: request.isEdit)
    node.note(.pushed(bytes: record.bytes), isFirst: true)
    if record.isEarly { node.note(.early) }
    let isOverWithheld = node.isQuarantined && !record.isEarly
    put(record, at: node, by: session)
    askForUnstored()
    if elements != nil { nameElements(of: node) }
    if turn.hasSubscribers { announceEncoding(at: node, bytes: record.bytes, by: session, for: caller) }
    let sequence = node.state?.sequence ?? sequence
    let reply = EncodeRestorableState.Reply.stored(sequence: sequence, withheld: isOverWithheld)
    turn.answer(caller, after: sequence, reply)
  }

  private func target(of request: EncodeRestorableState, _ session: Session?) throws(ErrorObject) -> Node? {
    if case .path(let path) = request.object {
      if path.components.isEmpty {
        try requireDelegate(session)
        return tree.applicationNode
      }
      guard let node = tree.node(at: path) else {
        // It may not know yet that others have moved its object.
        return session?.formerPaths[path].flatMap { tree.node($0) }.flatMap { owns(session, $0) ? $0 : nil }
      }
      if node.isVacant, session?.replacedNodes.contains(node.id) != true { return node }
    }
    return try requireOwn(request.object, session)
  }

  /// While a delegate is live, only it may write the application's own state.
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

  /// The part of a path that is missing. Vacant plain objects are made for it.
  private struct MissingPath {
    let above: Node?
    let components: ArraySlice<String>
    /// Below an exclusion a plain object is a root, so its path would differ from the given one (R4).
    let isExcluded: Bool

    var bytes: Int { components.reduce(0) { $0 + $1.utf8.count } }
  }

  /// - Returns: `nil` for the application itself.
  private func missing(to object: ObjectReference) throws(ErrorObject) -> MissingPath? {
    guard case .path(let path) = object else { throw .unknownObject(object) }
    guard !path.components.isEmpty else { return nil }
    guard path.bytes <= turn.limits.pathBytesMax else {
      throw .limitExceeded("pathBytesMax", max: turn.limits.pathBytesMax, value: path.bytes, path: path)
    }
    guard path.isPossible else { throw .invalidComponent(of: path, "/object") }
    let (known, last) = tree.walk(down: path)
    let components = path.components[known...]
    guard tree.count + components.count <= turn.limits.objectsPerApplicationMax else {
      throw .limitExceeded(
        "objectsPerApplicationMax",
        max: turn.limits.objectsPerApplicationMax,
        value: tree.count + components.count,
        path: path
      )
    }
    return MissingPath(above: last, components: components, isExcluded: last.map { tree.isExcluded($0) } ?? false)
  }

  /// - Returns: the last node of the path; `nil` for the application itself.
  private func make(_ path: MissingPath) -> Node? {
    var node = path.above
    for component in path.components {
      node = insert(NodeRecord(node: 0, parent: node?.id, component: component, kind: .object))
    }
    note(.appeared)
    return node
  }
}

extension EncodeRestorableState {
  fileprivate var path: IdentifierPath? { if case .path(let path) = object { path } else { nil } }

  /// Whether the writer has read the state that this one replaces.
  fileprivate var isEdit: Bool { expecting ?? 0 > 0 }

  /// Throws `stateChanged` unless the caller would decode the state that it expects (R15).
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
