// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

extension Application {
  /// Claims a path for the session, and answers when the claim is durable (R1).
  ///
  /// - Returns: blocking sessions whose processes may have ended. The caller probes them and calls this again.
  func register(
    _ request: RegisterObjectForStateRestoration,
    by session: Session,
    for caller: Caller
  ) throws(ErrorObject) -> [SessionID] {
    try turn.requireStorable()
    let (parent, awaited) = try parent(for: request)
    if let awaited, let milliseconds = request.awaitParentMilliseconds {
      try parentWaits.wait(
        for: awaited,
        with: request,
        milliseconds: milliseconds,
        by: session.id,
        for: caller,
        in: &turn
      )
      return []
    }
    let component = try self.component(of: request)
    let kind = NodeKind(request.kind)
    let existing =
      component.flatMap { tree.node($0, below: parent, kind: kind) }
      ?? formerNode(of: request, below: parent, kind: kind, session)
    var hadWindows = false
    if let existing, let owner = owner(of: existing), owner !== session {
      hadWindows = trials.hasOpenWindows
      let contested = try contest(existing, owner, by: session, takeOver: request.takeOver)
      guard contested.isEmpty else { return contested }
    }
    let isHeld = existing?.claim?.session == session.id
    let node = try self.node(for: request, component: component, parent: parent, existing: existing)
    // The former owner loses the node only now, when nothing can fail any more.
    if let owner = owner(of: node), owner !== session {
      hadWindows = hadWindows || trials.hasOpenWindows
      replace(node, owner, by: session)
    }
    claim(node, by: session, classes: request.classes, isFresh: request.isFresh)
    if node.isUnstored { askForUnstored([node]) }
    if node.record.isConfidential, let path = tree.path(of: node) { forgetClosed(at: path) }
    // The last open window may have belonged to the former owner.
    if hadWindows { note(.windowsClosed) }
    if request.isFresh {
      noteFetched(node, by: session.id)
      // A state that the session wrote is its own, even if it registers the object again.
      if isHeld, !node.versions.isSuperseded, node.state?.session == session.id {
        settle([node])
      } else {
        setFresh(node, node.hasState, of: session)
      }
    }
    var reply = reply(for: node, session)
    reply.existing = isHeld
    if session.isUnannounced {
      session.isUnannounced = false
      reply.session = session.token
    }
    reply.restoration.handing = !isHeld && deliver(node, to: session)
    turn.answer(caller, reply)
    if reply.restoration.handing { note(.deliverable) }
    return []
  }

  /// Throws if any session's registration would be refused.
  func check(_ request: RegisterObjectForStateRestoration) throws(ErrorObject) {
    if try parent(for: request).awaited == nil { _ = try component(of: request) }
  }

  /// The parent, or the reference to a parent to wait for; neither for a root.
  private func parent(
    for request: RegisterObjectForStateRestoration
  ) throws(ErrorObject) -> (found: Node?, awaited: ObjectReference?) {
    guard let reference = request.restorationParent else { return (nil, nil) }
    if let found = node(reference) { return (found, nil) }
    guard (request.awaitParentMilliseconds ?? 0) > 0, reference.isPossible else {
      throw .unknownParent(reference)
    }
    return (nil, reference)
  }

  private func component(of request: RegisterObjectForStateRestoration) throws(ErrorObject) -> String? {
    guard let identifier = request.restorationIdentifier else {
      guard request.kind != .object else {
        throw .restoration(
          .invalidIdentifier,
          "a plain object needs a restoration identifier",
          hint: "Give restorationIdentifier; only views and view controllers may be excluded by null."
        )
      }
      return nil
    }
    try Application.requireValid(identifier)
    return RestorationIdentifier.component(identifier, position: request.position)
  }

  static func requireValid(_ identifier: String) throws(ErrorObject) {
    guard RestorationIdentifier.isValid(identifier) else {
      throw .restoration(
        .invalidIdentifier,
        "invalid restoration identifier: \(JSONText(.string(identifier)).brief)",
        hint: "Use 1 to 255 bytes of UTF-8 without '/', '#' and control characters.",
        details: ["pointer": "/restorationIdentifier"]
      )
    }
  }

  /// The node at an identifier that the client has renamed. It moves to its new name when it is claimed.
  private func formerNode(
    of request: RegisterObjectForStateRestoration,
    below parent: Node?,
    kind: NodeKind,
    _ session: Session
  ) -> Node? {
    guard let identifier = request.restorationIdentifier else { return nil }
    for (old, new) in session.facts.aliases.identifiers.sorted(by: { $0.key < $1.key }) where new == identifier {
      let component = RestorationIdentifier.component(old, position: request.position)
      if let node = tree.node(component, below: parent, kind: kind), node.isVacant { return node }
    }
    return nil
  }

  /// Another session owns the path. It loses the path if its process has ended, if it is a lost session of the same
  /// process, or if the call takes over (R1, R8).
  ///
  /// - Returns: the owner, if its process must be probed first.
  private func contest(
    _ node: Node,
    _ owner: Session,
    by session: Session,
    takeOver: Bool
  ) throws(ErrorObject) -> [SessionID] {
    let isOwnPredecessor =
      owner.client == nil && !owner.facts.isDetached
      && owner.facts.process != nil && owner.facts.process == session.facts.process
    if owner.hasExited || isOwnPredecessor {
      // An unsaved state ends with its session (R4).
      if owner.hasExited, isUnsaved(node) { removeState(of: node) }
      yield(node)
    } else if takeOver {
      return []
    } else if owner.facts.isDetached || owner.facts.process == nil || sessions.isVerified(owner) {
      throw .duplicatePath(tree.path(of: node), owner, session)
    } else {
      return [owner.id]
    }
    return []
  }

  /// Ends the owner's claim without a notification: the owner has gone.
  func yield(_ node: Node) {
    guard let claim = node.claim else { return }
    announceUnregistration(of: node, .replaced, stateKept: true)
    release(claim, of: node)
    if claim.revision > 0 { sessions[claim.session]?.revisions[node.id] = claim.revision }
    trials.release(node.id, of: claim.session)
    node.claim = nil
    note(.released(node.id, isGone: false))
  }

  /// Ends the owner's claim, and notifies the owner (R8).
  func replace(_ node: Node, _ owner: Session, by session: Session) {
    guard let claim = node.claim else { return }
    yield(node)
    tell(owner, that: claim.handle, isReplacedAt: node, by: session)
  }

  /// Notifies the owner. Its later writes to the node fail with `replaced` (R8).
  func tell(_ owner: Session, that handle: ObjectHandle, isReplacedAt node: Node, by session: Session) {
    owner.lose(handle, at: node.id)
    if let path = tree.path(of: node) {
      let notification = RegistrationReplaced().with {
        $0.object = handle
        $0.path = path
        $0.by = session.owner
      }
      notify(owner, notification)
    }
  }

  private func node(
    for request: RegisterObjectForStateRestoration,
    component: String?,
    parent: Node?,
    existing: Node?
  ) throws(ErrorObject) -> Node {
    var record = existing?.record ?? NodeRecord(node: 0, parent: nil, component: nil, kind: .object)
    record.parent = parent?.id
    record.component = component
    record.kind = NodeKind(request.kind)
    record.classes = StateOrigin.text(ofClasses: request.classes)
    // Members that the call omits keep their recorded values (R1).
    if let name = request.restorationClass { record.restorationClass = name.isEmpty ? nil : name }
    if let unit = request.storyboard?.unit { record.storyboard = unit.isEmpty ? nil : unit }
    if let keep = request.keep { record.keepsForever = keep == .forever }
    if let isConfidential = request.confidential { record.isConfidential = isConfidential }
    guard let existing else { return try newNode(record) }
    guard record != existing.record else { return existing }
    try requireRoom(for: record.textBytes - existing.record.textBytes, path: tree.path(of: existing))
    if record.parent != existing.record.parent || record.component != existing.record.component
      || record.kind != existing.record.kind
    {
      let relocation = Relocation(node: existing, parent: parent, component: component, kind: record.kind)
      try relocateAndTell([relocation], by: nil, takeOver: false, claiming: existing)
    }
    // A former child may be at its path now, and have replaced it.
    let node = tree.node(existing.id) ?? existing
    record.node = node.id
    node.record = record
    write(node)
    return node
  }

  private func newNode(_ record: NodeRecord) throws(ErrorObject) -> Node {
    let limits = turn.limits
    let parent = record.parent.flatMap { tree.node($0) }
    var path: IdentifierPath? {
      record.component.map { IdentifierPath((parent.flatMap { tree.path(of: $0) }?.components ?? []) + [$0]) }
    }
    let max = limits.objectsPerApplicationMax
    guard tree.count < max else {
      throw .limitExceeded("objectsPerApplicationMax", max: max, value: tree.count + 1, path: path)
    }
    let bytes = tree.pathBytes(of: record.component, below: parent, kind: record.kind)
    guard bytes <= limits.pathBytesMax else {
      throw .limitExceeded("pathBytesMax", max: limits.pathBytesMax, value: bytes, path: path)
    }
    try requireRoom(for: record.textBytes, path: path)
    return insert(record)
  }

  func insert(_ record: NodeRecord) -> Node {
    var record = record
    record.node = tree.last + 1
    let node = tree.insert(record)
    write(node)
    return node
  }

  /// Makes the session the node's owner. If it owns the node already, the handle stays (R1).
  private func claim(_ node: Node, by session: Session, classes: [String], isFresh: Bool) {
    if let held = node.claim, held.session == session.id {
      node.claim?.classes = classes
      return
    }
    node.versions.forgetFailure()
    let isDue = node.ownerState != nil && !isFresh
    var claim = Node.Claim(session: session.id, handle: turn.nextHandle, since: turn.now.monotonic, classes: classes)
    claim.wasLeft = sessions.orphaned(node) != nil
    session.lastRegistered = turn.now.monotonic
    hold(node, claim, by: session)
    session.regain(node.id)
    setFresh(node, false, of: session)
    let record = ClaimRecord(node: node.id, session: session.id, handle: claim.handle, isDue ? .due : .none)
    writeClaim(record, of: node)
    announceRegistration(of: node, claim, by: session)
    note(.claimed(node.id))
  }

  /// Notes whether the owner registered the object as `fresh`; this outlives the broker (R29).
  func setFresh(_ node: Node, _ isFresh: Bool, of session: Session) {
    node.claim?.isFresh = isFresh
    guard session.facts.fresh.contains(node.id) != isFresh else { return }
    let range = node.id..<(node.id + 1)
    if isFresh { session.facts.fresh.insert(contentsOf: range) } else { session.facts.fresh.remove(contentsOf: range) }
    write(.session(session.record))
  }

  private func reply(for node: Node, _ session: Session) -> RegisterObjectForStateRestoration.Reply {
    let state = node.ownerState
    return RegisterObjectForStateRestoration.Reply().with { message in
      message.object = node.claim?.handle ?? 0
      message.path = tree.path(of: node)
      message.included = tree.isIncluded(node)
      message.restoration = ObjectRestoration().with { restoration in
        restoration.state = status(of: node)
        restoration.classMatches = state.map { classMatches(node, $0) } ?? true
      }
    }
  }

  private func status(of node: Node) -> RestorationState {
    if node.claim?.isFresh == true { return .none }
    if node.versions.isUnreadable { return .unreadable }
    if node.isQuarantined { return .quarantined }
    return node.ownerState == nil ? .none : .available
  }

  func classMatches(_ node: Node, _ state: StateSummary) -> Bool {
    guard let claim = node.claim, !claim.classes.isEmpty, let archived = origins[state.context]?.classes.first else {
      return true
    }
    let today = sessions[claim.session]?.facts.aliases.classes[archived]
    return claim.classes.contains(archived) || today.map { claim.classes.contains($0) } ?? false
  }

  // MARK: Waiting for a parent

  /// Registers the objects whose parent exists now; each may be the parent of others.
  func admitWaiting() {
    parentWaits.appeared()
    while let ready = parentWaits.next(in: &turn, isThere: { node($0) != nil }) {
      finish(ready.request, by: ready.session, for: ready.caller)
    }
  }

  func parentTimerFired(_ number: Int) {
    if parentWaits.timerFired(number, isSettled: !isUnsettled, in: &turn) { note(.appeared) }
  }

  func finish(_ request: RegisterObjectForStateRestoration, by number: SessionID, for caller: Caller) {
    do throws(ErrorObject) {
      guard let session = sessions[number] else { throw .sessionEnded() }
      if session.isDiscarded { return turn.ask(.respond(caller, .result(EncodeRestorableState.Reply.discarded))) }
      let contested = try register(request, by: session, for: caller)
      if !contested.isEmpty { sessions.probe(contested, for: .registration(caller, number, request), in: &turn) }
    } catch {
      turn.refuse(caller, error)
    }
  }
}

extension NodeKind {
  init(_ kind: ObjectKind) {
    switch kind {
    case .object: self = .object
    case .viewController: self = .viewController
    case .view: self = .view
    }
  }

  /// The application itself never appears on the wire.
  var wire: ObjectKind {
    switch self {
    case .object, .application: .object
    case .viewController: .viewController
    case .view: .view
    }
  }
}
