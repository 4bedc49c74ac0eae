// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// A state that may be stored: its references lead somewhere, and name archive ids (R6, R14).
struct CheckedState {
  let text: ArraySlice<UInt8>
  let references: String?
  /// The text of the elements as it is stored; nil if there are none.
  let elements: String?
  /// Nil if the writer gave none.
  let revision: Int64?

  /// Bytes that the archive limit counts for it.
  var bytes: Int { text.count + (references?.utf8.count ?? 0) + (elements?.utf8.count ?? 0) }

  /// The nodes its references lead to.
  var referencedNodes: [NodeID] { ArchiveReferences.targets(ofTable: references) }
}

/// What every state goes through on its way into the archive, pushed or pulled.
extension Application {
  /// Passes what is allowed in a state by itself (R10).
  ///
  /// - Parameter isKnown: whether a data source knows the elements.
  /// - Returns: the text of the elements as it is stored; nil if there are none.
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

  /// The state as it will be stored, if all its references lead somewhere (R14).
  func checked(
    _ state: EncodedState,
    elements: String?,
    revision: Int64?,
    path: @autoclosure () -> IdentifierPath?
  ) throws(ErrorObject) -> CheckedState {
    let (text, references) = try resolveReferences(of: state, besides: elements?.utf8.count ?? 0, path: path())
    return CheckedState(text: text, references: references, elements: elements, revision: revision)
  }

  /// Whether a state given now would hide one that its owner has not looked at (R19).
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

  /// What will be written of a state: by the owner of the node, or by somebody else while it has none.
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

  /// Writes the state, and all that follows from the owner's having given it (R19, R31).
  func put(_ record: StateRecord, at node: Node, by session: Session?) {
    store(record, at: node)
    noteEncoding(record, at: node, by: session)
  }

  /// A session has given a state: its revision counts, and the owner's window is closed (R15, R31).
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
      // The saved state is its own from now on, so a restoration need not return it (R22).
      if !claim.hasDecoded { noteDelivered(node) }
      if claim.isFresh { setFresh(node, false, of: session) }
    }
    // What was on the way when the state was given says nothing about it.
    if !record.isEarly { closeWindow(of: node.id, for: session.id) }
  }

  func store(_ record: StateRecord, at node: Node) {
    // A session that ends writes it.
    let isLifted = node.isQuarantined && !record.isEarly && sessions.isEmpty
    defer { if isLifted { writeRun() } }
    if !record.isEarly {
      if node.withheld != nil { liftQuarantine(of: node) }
      // Crashes count against the former state, not against the one that replaces it.
      acquit(node.id)
      if node.hasFailed { setAside(node) }
    }
    origins.write(record.context, in: &turn)
    // Nearly all states refer to nothing.
    let references = record.references != nil || node.hasReferences ? node.references : nil
    let state = StateSummary(record, at: write(.state(record)))
    headChanged(from: node.state, to: state)
    if record.isEarly {
      if let old = node.state, !old.isEarly { node.beforeClaim = old }
    } else {
      node.beforeClaim = nil
    }
    (node.isUnreadable, node.isUnstored) = (false, false)
    node.state = state
    if let references { reach.note(references, node.references, in: tree) }
  }

  // MARK: The writer

  /// The origin of a state: only the object's owner has a class and a storyboard.
  ///
  /// - Parameters:
  ///   - node: nil for one that is still to be made.
  ///   - isEdit: it is made from the present state, whose class and storyboard are then those of whoever wrote that.
  func originID(at node: Node?, by session: Session?, isEdit: Bool = false) -> ContextID {
    let isOwner = node.map { owns(session, $0) } ?? false
    // The archive may have forgotten one that no state has.
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

  /// - Parameters:
  ///   - owned: the object, if its owner writes.
  ///   - former: the origin of the state it is made from.
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
  /// Whether they are found again is said when they are decoded. Until then, what a data source knows has to be asked
  /// for (R28).
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
  /// Passes unless it writes what only the broker does (R10).
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

  /// Passes within the limits of a state; `bytes` and `depth` are what counts of it.
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
