// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

extension Application {
  func setParent(_ request: SetRestorationParent, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireStorable()
    let node = try requireOwn(request.object, session)
    var parent: Node?
    if let reference = request.restorationParent {
      guard let found = self.node(reference) else { throw .unknownParent(reference) }
      parent = found
    }
    let relocation = Relocation(node: node, parent: parent, component: node.record.component)
    let moved = try move(relocation, by: session, takeOver: request.takeOver)
    turn.answer(caller, SetRestorationParent.Reply().with { $0.path = tree.path(of: moved) })
  }

  func setIdentifier(
    _ request: SetRestorationIdentifier,
    by session: Session?,
    for caller: Caller
  ) throws(ErrorObject) {
    try turn.requireStorable()
    let node = try requireOwn(request.object, session)
    if let identifier = request.restorationIdentifier {
      try Application.requireValid(identifier)
    } else if node.record.kind == .object {
      throw .restoration(
        .invalidIdentifier,
        "a plain object needs a restoration identifier",
        hint: "Only views and view controllers may be excluded by null.",
        path: tree.path(of: node)
      )
    }
    let component = request.restorationIdentifier.map {
      RestorationIdentifier.component($0, position: request.position)
    }
    let isPositional = request.position != nil
    let relocation = Relocation(node: node, parent: node.parent, component: component, isPositional: isPositional)
    let moved = try move(relocation, by: session, takeOver: request.takeOver)
    turn.answer(
      caller,
      SetRestorationIdentifier.Reply().with {
        $0.path = tree.path(of: moved)
        $0.included = tree.isIncluded(moved)
      }
    )
  }

  func setChildren(_ request: SetChildren, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try takeLong(for: caller) { long throws(ErrorObject) in
      self.turn.answer(caller, try await self.setChildren(request, by: session, long))
    }
  }

  private func setChildren(
    _ request: SetChildren,
    by session: Session?,
    _ long: LongTurn
  ) async throws(ErrorObject) -> SetChildren.Reply {
    try turn.requireStorable()
    let parent = try requireOwn(request.object, session)
    var relocations: [Relocation] = []
    var seen: Set<NodeID> = []
    var children: [Node] = []
    for (position, reference) in request.children.enumerated() {
      let child = try requireNode(reference, at: "/children/\(position)")
      guard child.parent === parent, seen.insert(child.id).inserted else {
        throw .invalidParameter(
          "/children/\(position)",
          "not a child of the object, or named twice",
          hint: "Name each child of the object at most once."
        )
      }
      guard let identifier = child.record.component.flatMap({ RestorationIdentifier.split($0)?.identifier }) else {
        throw .invalidParameter(
          "/children/\(position)",
          "the child's identifier is null",
          hint: "Only children with an identifier have a position."
        )
      }
      children.append(child)
      let component = RestorationIdentifier.component(identifier, position: Int64(position))
      if component != child.record.component {
        relocations.append(Relocation(node: child, parent: parent, component: component))
      }
    }
    await long.did(children.count)
    let evicted = try evictions(by: relocations, besides: seen, behind: children.count)
    let former = evicted.map { tree.path(of: $0.node) }
    await long.did(relocations.count)
    let (all, news) = (relocations + evicted, try moveNews(of: relocations + evicted, by: session))
    await long.did(all.count)
    let outcome = try relocate(all, takesOver: false, by: session)
    await long.did(all.count)
    write(outcome)
    await long.did(all.count)
    tell(news, of: session)
    askForUnstored()
    for (node, path) in zip(evicted.map(\.node), former)
    where node.isClosed || runs.facts.refused.contains(node.id) {
      close(tree.subtree(of: node), formerlyAt: path)
    }
    note(.appeared)
    // The references of the request would not do: paths among them may name other objects now.
    await long.did(children.count)
    let paths = children.map { tree.path(of: $0.id) }
    return SetChildren.Reply().with { $0.paths = paths }
  }

  /// Moves of vacant nodes that are in the way. They go behind all named children, because their processes may come
  /// back (R6).
  private func evictions(
    by relocations: [Relocation],
    besides named: Set<NodeID>,
    behind count: Int
  ) throws(ErrorObject) -> [Relocation] {
    var evicted: [Relocation] = []
    var next: [String: Int64] = [:]
    for relocation in relocations {
      guard let component = relocation.component, let identifier = RestorationIdentifier.split(component)?.identifier,
        let other = tree.node(component, below: relocation.parent, kind: relocation.kind), !named.contains(other.id)
      else { continue }
      guard tree.subtree(of: other).allSatisfy(\.isVacant) else { throw explain(.occupied(other.id), [relocation]) }
      var free: String
      repeat {
        let position = next[identifier] ?? Int64(count)
        next[identifier] = position + 1
        free = RestorationIdentifier.component(identifier, position: position)
      } while tree.node(free, below: other.parent, kind: other.record.kind).map { !named.contains($0.id) } ?? false
      evicted.append(Relocation(node: other, parent: other.parent, component: free))
    }
    return evicted
  }

  /// Moves one node, and returns the node at the new place, which may be the one that was vacant there (R6).
  private func move(_ relocation: Relocation, by session: Session?, takeOver: Bool) throws(ErrorObject) -> Node {
    let node = relocation.node
    let isSameComponent =
      switch (node.record.component, relocation.component) {
      case (let old?, let new?): old.utf8.elementsEqual(new.utf8)
      case (nil, nil): true
      case (nil, _?), (_?, nil): false
      }
    guard node.parent !== relocation.parent || !isSameComponent else { return node }
    let handle = node.claim?.handle
    try relocateAndTell([relocation], by: session, takeOver: takeOver)
    note(.appeared)
    return handle.flatMap { tree.claimed[$0] } ?? node
  }

  /// The live node of another session that a move with `takeOver` would displace (R8).
  private func displaced(by relocation: Relocation, _ session: Session?) -> Node? {
    guard let component = relocation.component,
      let other = tree.node(component, below: relocation.parent, kind: relocation.kind),
      let owner = owner(of: other), owner !== session,
      // A node in the moving subtree is not in the way.
      !Swift.sequence(first: other, next: \.parent).contains(where: { $0 === relocation.node })
    else { return nil }
    return other
  }

  /// Moves nodes, and notifies owners whose objects have new paths.
  ///
  /// - Parameter claimed: a vacant node that is about to be claimed, so it stays.
  func relocateAndTell(
    _ relocations: [Relocation],
    by session: Session?,
    takeOver: Bool,
    claiming claimed: Node? = nil
  ) throws(ErrorObject) {
    guard !relocations.isEmpty else { return }
    let news = try moveNews(of: relocations, by: session)
    let hadWindows = takeOver && trials.hasOpenWindows
    write(try relocate(relocations, takesOver: takeOver, by: session), claiming: claimed)
    // The last open window may have belonged to a displaced object.
    if hadWindows { note(.windowsClosed) }
    tell(news, of: session)
    askForUnstored()
  }

  /// Recorded before a move, for the notifications and events after it.
  private struct MoveNews {
    /// The former paths of objects of other sessions, and of those whose owners are notified.
    var before: [(handle: ObjectHandle, path: IdentifierPath?)] = []
    /// Moved nodes and their former paths, if there are subscribers.
    var moved: [(node: Node, from: IdentifierPath?)] = []
  }

  /// Throws if there is no room for the move.
  private func moveNews(of relocations: [Relocation], by session: Session?) throws(ErrorObject) -> MoveNews {
    guard let first = relocations.first else { return MoveNews() }
    try requireRoom(for: relocations.reduce(0) { $0 + $1.growth }, path: tree.path(of: first.node))
    let asked = Set(relocations.compactMap { $0.node.claim?.handle })
    var news = MoveNews()
    var seen: Set<ObjectHandle> = []
    for relocation in relocations where sessions.count > 1 || session?.serves(.pathChanged) != false {
      // Objects below a displaced one get new paths, too.
      let present = relocation.component.flatMap { tree.node($0, below: relocation.parent, kind: relocation.kind) }
      for node in [relocation.node, present].compactMap({ $0 }).flatMap({ tree.subtree(of: $0) }) {
        guard let claim = node.claim, let owner = sessions[claim.session],
          owner !== session || owner.serves(.pathChanged) && !asked.contains(claim.handle),
          seen.insert(claim.handle).inserted
        else { continue }
        news.before.append((claim.handle, tree.path(of: node)))
      }
    }
    if turn.hasSubscribers { news.moved = relocations.map { ($0.node, tree.path(of: $0.node)) } }
    return news
  }

  /// - Parameter mover: the session that asked for it.
  private func tell(_ news: MoveNews, of mover: Session?) {
    for (node, from) in news.moved { announceMove(of: node, from: from) }
    for (handle, path) in news.before {
      guard let node = tree.claimed[handle], let owner = owner(of: node), tree.path(of: node) != path else { continue }
      if let path, let mover, owner !== mover { owner.noteMove(of: node.id, from: path) }
      tellPath(of: node, to: owner)
    }
  }

  /// Tells the owner of a moved object its path, or marks it for `tellPaths` while the session is unreachable.
  func tellPath(of node: Node, to owner: Session) {
    guard let handle = node.claim?.handle, owner.serves(.pathChanged) else { return }
    node.claim?.hasMoved = !owner.isReachable
    notify(owner, PathChanged(object: handle, path: tree.path(of: node)))
  }

  /// Tells a returned session the new paths of its objects.
  func tellPaths(to session: Session) {
    for node in session.moved { tellPath(of: node, to: session) }
  }

  /// The node may have been merged into the one at its new place (R6).
  func announceMove(of node: Node, from: IdentifierPath?) {
    guard let moved = tree.node(node.id), case let path = tree.path(of: moved), path != from else { return }
    announce {
      ObjectMoved().with {
        $0.object = moved.claim?.handle
        $0.from = from
        $0.path = path
      }
    }
  }

  /// Moves nodes in memory; the caller writes the outcome.
  ///
  /// - Parameter session: the caller's. If `takesOver`, another session's object at the new place is replaced (R8).
  private func relocate(
    _ relocations: [Relocation],
    takesOver: Bool,
    by session: Session?
  ) throws(ErrorObject) -> RelocationOutcome {
    let replaced = takesOver ? relocations.compactMap { displaced(by: $0, session) } : []
    let claims = replaced.map(\.claim)
    let sealing = takesOver ? generations.next("displaced", of: tree, omitting: tree.unreachedNodes, in: turn) : nil
    // Owners are notified after the move has succeeded; until then it can be undone.
    for node in replaced { node.claim = nil }
    let outcome: RelocationOutcome
    do {
      outcome = try tree.relocate(relocations, takesOver: takesOver, within: turn.limits)
    } catch {
      for (node, claim) in zip(replaced, claims) { node.claim = claim }
      throw explain(error, relocations)
    }
    for (node, claim) in zip(replaced, claims) {
      guard let claim, let owner = sessions[claim.session], let session else { continue }
      node.claim = claim
      yield(node)
      tell(owner, that: claim.handle, isReplacedAt: tree.node(node.id) ?? node, by: session)
    }
    if let sealing, displacesText(outcome) { generations.seal(sealing, in: &turn) }
    return outcome
  }

  /// Writes each moved node, but not its descendants: their records do not change.
  private func write(_ outcome: RelocationOutcome, claiming claimed: Node? = nil) {
    for (gone, into) in outcome.merged { absorb(gone, into: into) }
    for node in outcome.changed where tree.nodes[node.id] === node { write(node) }
    reach.mayGrow()
    for node in outcome.left { prune(node, besides: claimed) }
  }

  private func displacesText(_ outcome: RelocationOutcome) -> Bool {
    outcome.merged.contains { gone, _ in (gone.state?.sequence ?? 0) > generations.sealedUpTo }
  }

  /// The node gave way to another one at the same path: its claim moves there, its state is displaced.
  private func absorb(_ gone: Node, into: Node) {
    for session in sessions.values { session.joinRevisions(of: gone, into: into) }
    into.isUnstored = into.isUnstored || gone.isUnstored
    if var claim = gone.claim, let session = sessions[claim.session] {
      gone.claim = nil
      // The owner has not received the state of that node (R19).
      if into.hasState { (claim.hasDecoded, claim.isFinished, claim.since) = (false, false, turn.now.monotonic) }
      hold(into, claim, by: session)
      trials.move(gone.id, to: into.id, of: session.id)
      deliveries.cancel(gone.id, for: session.id, isLost: true)
      writeClaim(ClaimRecord(node: into.id, session: session.id, handle: claim.handle), of: into)
      note(.released(gone.id, isGone: true))
      note(.claimed(into.id))
    }
    if let source = providers.dataSource(of: gone.id) {
      setDataSource(of: gone.id, to: nil)
      setDataSource(of: into.id, to: source)
    }
    for session in sessions.values where session.regain(gone.id) && owner(of: into) !== session {
      session.lose(at: into.id)
    }
    forgetBlame(of: gone)
    removeState(of: gone)
    gone.record.isRemoved = true
    gone.record.successor = into.id
    write(gone)
  }

  private func explain(_ failure: RelocationFailure, _ relocations: [Relocation]) -> ErrorObject {
    let path = relocations.first.flatMap { tree.path(of: $0.node) }
    switch failure {
    case .cycle:
      return .restoration(
        .parentCycle,
        "the new parent is the object itself or below it",
        hint: "Choose a parent outside the object's own subtree.",
        path: path
      )
    case .occupied(let number):
      let other = tree.node(number)
      return .occupied(
        other.flatMap { tree.path(of: $0) },
        by: other.flatMap { owner(of: $0) },
        claimant: relocations.first.flatMap { owner(of: $0.node) },
        hint: "Choose another identifier or parent, or use takeOver to displace the present object."
      )
    case .pathTooLong(let bytes):
      return .limitExceeded("pathBytesMax", max: turn.limits.pathBytesMax, value: bytes, path: path)
    case .stateTooLong(let number, let bytes):
      return .stateTooLong(bytes: bytes, turn.limits, path: tree.path(of: number))
    }
  }
}
