// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// A state that may be stored: its references lead to objects, and name node ids (R6, R14).
struct CheckedState {
  let text: ArraySlice<UInt8>
  let references: String?
  let elements: String?
  let revision: Int64?

  var bytes: Int { text.count + (references?.utf8.count ?? 0) + (elements?.utf8.count ?? 0) }

  var referencedNodes: [NodeID] { ArchiveReferences.targets(ofTable: references) }
}

/// Checks and stores states, pushed or pulled.
extension Application {
  /// Throws if the state itself is not allowed (R10).
  ///
  /// - Parameter isKnown: whether a data source knows the elements.
  /// - Returns: the text of the elements as stored; `nil` if there are none.
  func check(
    _ state: EncodedState,
    _ elements: [RestorableElement],
    isKnown: @autoclosure () -> Bool = false,
    path: @autoclosure () -> IdentifierPath?
  ) throws(ErrorObject) -> String? {
    try state.checkKeys(path: path())
    let text = elements.isEmpty ? nil : elements.stored(isKnown: isKnown()).text
    let bytes = state.text.bytes.count + (text?.count ?? 0)
    try state.checkSize(bytes: bytes, depth: state.depth, path: path(), turn.limits)
    return text?.string
  }

  /// Resolves the references of a state, or throws (R14).
  func checked(
    _ state: EncodedState,
    elements: String?,
    revision: Int64?,
    path: @autoclosure () -> IdentifierPath?
  ) throws(ErrorObject) -> CheckedState {
    let (text, references) = try resolveReferences(of: state, besides: elements?.utf8.count ?? 0, path: path())
    return CheckedState(text: text, references: references, elements: elements, revision: revision)
  }

  /// Whether a state given now would hide a confirmed one that its owner has not received (R19).
  func isEarly(at node: Node, by session: Session?) -> Bool {
    guard let session, owns(session, node), !(node.claim?.hasDecoded ?? session.hasOwnState) else { return false }
    let isAwaited = isAwaitingDelivery(node)
    return EarlyMarks.isEarly(
      node,
      session,
      isAwaited: isAwaited,
      isGivenUp: runs.isGivenUp(node) || restoring.hasRefused(node),
      in: turn
    )
  }

  /// Whether it is the session's object, or the application whose delegate the session is.
  func owns(_ session: Session?, _ node: Node) -> Bool {
    session.map { node.claim?.session == $0.id || node === tree.applicationNode && $0.facts.isDelegate } ?? false
  }

  /// The record of a state, from the node's owner, or from any session while it has none.
  func record(of state: CheckedState, at node: Node, by session: Session?, isEdit: Bool = false) -> StateRecord {
    let isOwner = owns(session, node)
    return StateRecord(
      node: node.id,
      context: originID(at: node, by: session, isEdit: isEdit),
      session: isOwner ? session?.id ?? 0 : 0,
      revision: state.revision ?? (isOwner ? node.claim?.revision : nil) ?? 0,
      isEarly: isEarly(at: node, by: session),
      written: turn.now.wall,
      text: state.text,
      references: state.references,
      elements: state.elements
    )
  }

  /// Stores the state, with all consequences of a push by its owner (R19, R31).
  func put(_ record: StateRecord, at node: Node, by session: Session?) {
    store(record, at: node)
    noteEncoding(record, at: node, by: session)
  }

  /// A session has given a state: its revision counts, and the owner's window closes (R15, R31).
  func noteEncoding(_ record: StateRecord, at node: Node, by session: Session?) {
    guard let session else { return }
    guard let claim = node.claim, claim.session == session.id else {
      if record.revision > 0 { session.revisions[node.id] = record.revision }
      if owns(session, node) {
        if record.isEarly { trials.watchEarly(since: session.began, in: &turn) } else { session.hasOwnState = true }
      }
      return
    }
    node.claim?.revision = max(claim.revision, record.revision)
    if record.isEarly {
      trials.watchEarly(since: claim.since, in: &turn)
    } else {
      // The saved state is the owner's own from now on, so a restoration need not return it (R22).
      noteDelivered(node)
      if claim.isFresh { setFresh(node, false, of: session) }
    }
    // A provisional state was sent before the owner received the saved one, so it proves nothing about that.
    if !record.isEarly { closeWindow(of: node.id, for: session.id) }
  }

  func store(_ record: StateRecord, at node: Node) {
    // The state comes from a session that ends; no later write records the run.
    let isLifted = node.isQuarantined && !record.isEarly && sessions.isEmpty
    defer { if isLifted { writeRun() } }
    if !record.isEarly {
      if node.versions.hasWithheld { liftQuarantine(of: node) }
      // Crashes count against the former state, not against the new one.
      acquit(node.id)
      if node.versions.hasFailed { setAside(node) }
    }
    replaceState(of: node, by: record)
    node.isUnstored = false
  }

  /// Writes a row, which is the newest state from now on. Blame and withheld rows stay as they are.
  func replaceState(of node: Node, by record: StateRecord) {
    origins.write(record.context, in: &turn)
    // A fast path: few states have references.
    let references = record.references != nil || node.hasReferences ? node.references : nil
    let state = StateSummary(record, at: write(.state(record)))
    headChanged(from: node.state, to: state)
    node.versions.write(state)
    if let references { reach.note(references, node.references, in: tree) }
  }

  // MARK: The writer

  /// The origin of a state. Only the object's owner has a class and a storyboard.
  ///
  /// - Parameters:
  ///   - node: `nil` if it does not exist yet.
  ///   - isEdit: whether the state is made from the present one, and takes its class and storyboard.
  func originID(at node: Node?, by session: Session?, isEdit: Bool = false) -> ContextID {
    let isOwner = node.map { owns(session, $0) } ?? false
    // The archive may have forgotten an origin without states.
    if isOwner, let known = node?.claim?.origin, node?.state?.context == known || origins[known] != nil { return known }
    let facts = isOwner || node?.isVacant ?? true ? session?.facts : nil
    let former = isEdit && !isOwner ? node?.state.flatMap { origins[$0.context] } : nil
    if facts == nil, former?.namesNothing ?? true { return origins.numberWithoutSession(in: turn) }
    let origin = StateOrigin(by: facts, in: turn.settings.systemVersion, of: isOwner ? node : nil, from: former)
    let number = origins.number(of: origin)
    if isOwner { node?.claim?.origin = number }
    return number
  }
}

extension StateOrigin {
  fileprivate var namesNothing: Bool { classes.isEmpty && storyboard == nil }

  /// `owned` is the object if its owner writes, `former` the origin of the state that the new one is made from.
  fileprivate init(by facts: SessionFacts?, in systemVersion: String?, of owned: Node?, from former: StateOrigin?) {
    self.init()
    self.systemVersion = systemVersion
    (classes, storyboard) = (owned?.claim?.classes ?? former?.classes ?? [], former?.storyboard)
    if let facts {
      (role, bundleVersion, userInterfaceIdiom) = (facts.role, facts.bundleVersion, facts.userInterfaceIdiom)
    }
    if let record = owned?.record, record.kind == .viewController {
      storyboard = record.storyboard ?? facts?.storyboard
    }
  }
}

extension [RestorableElement] {
  /// Marks all elements as unresolved: only a decode can resolve them. Those that a data source knows then need it
  /// (R28).
  func stored(isKnown: Bool) -> Self {
    map { element in
      element.with {
        $0.resolved = false
        $0.unresolved = isKnown && $0.identifier != nil ? .noDataSource : nil
      }
    }
  }
}

extension EncodedState {
  /// Throws if a key is reserved for the broker (R10).
  func checkKeys(path: @autoclosure () -> IdentifierPath?) throws(ErrorObject) {
    guard let key = reservedKey else { return }
    throw .restoration(
      .reservedKey,
      "the key \(key) is reserved for the broker",
      hint: "Use another name: UIApplicationStateRestoration… and UIStateRestoration… are read-only.",
      path: path(),
      details: ["pointer": .string("/state/\(JSONPointer.escaped(key))")]
    )
  }

  /// Throws if the state exceeds a limit; `bytes` and `depth` are its counted size.
  func checkSize(
    bytes: Int,
    depth: Int,
    path: @autoclosure () -> IdentifierPath?,
    _ limits: Limits
  ) throws(ErrorObject) {
    guard bytes <= limits.stateBytesMax else {
      throw .limitExceeded("stateBytesMax", max: limits.stateBytesMax, value: bytes, path: path())
    }
    guard depth <= limits.stateDepthMax else {
      throw .limitExceeded("stateDepthMax", max: limits.stateDepthMax, value: depth, path: path())
    }
    let count = references.count
    guard count <= limits.referencesPerStateMax else {
      throw .limitExceeded("referencesPerStateMax", max: limits.referencesPerStateMax, value: count, path: path())
    }
  }
}
