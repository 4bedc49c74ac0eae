// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Brings back some subtrees of a generation; the rest of the head stays (R16).
extension Application {
  /// - Parameter chosen: nodes of the generation, parents first.
  func finish(_ rollback: Rollback, only chosen: [Node]) throws(ErrorObject) -> RollBack.Reply {
    let (count, max) = (tree.count + chosen.count, turn.limits.objectsPerApplicationMax)
    guard count <= max else { throw .limitExceeded("objectsPerApplicationMax", max: max, value: count) }
    let texts = tree.missing(of: chosen).textBytes
    try requireRoom(for: rollback.growth(of: tree) + texts + origins.growth(by: rollback.contexts))
    let states = chosen.map { rollback.restored($0, beside: tree.nodes[$0.id]) }
    let past = Dictionary(chosen.map { ($0.id, $0) }) { first, _ in first }
    try tree.requireReadable(besides: rollback.newTexts(beside: tree), turn.limits) { [tree] in
      tree.node($0) ?? past[$0]
    }
    // From here on only the disk can fail.
    note(.headGivenUp)
    let kept = generations.sealHead("rollBack", of: tree, in: &turn)
    var places: [NodeID: Node] = [:]
    for (node, state) in zip(chosen, states) {
      let place = place(node, below: node.parent.flatMap { places[$0.id] })
      places[node.id] = place
      bringBack(state, at: place)
    }
    let back = Set(places.values.map(\.id))
    for node in chosen where node.parent.map({ places[$0.id] == nil }) ?? true {
      guard let top = places[node.id] else { continue }
      for later in tree.subtree(of: top).reversed() where !back.contains(later.id) && later.isVacant { drop(later) }
    }
    return sealRolledBack(rollback, damaged: rollback.unreadable.compactMap { places[$0] }, former: kept)
  }

  /// The node for an object of the generation: the same node, else the one at its path, else the same node again.
  private func place(_ past: Node, below parent: Node?) -> Node {
    if let node = tree.node(past.id) { return node }
    var parent = parent
    if parent == nil, let above = past.parent { parent = place(above, below: nil) }
    if let component = past.record.component, let node = tree.node(component, below: parent, kind: past.record.kind) {
      return node
    }
    var record = past.record
    record.parent = parent?.id
    let node = tree.insert(record)
    write(node)
    writeRelease(of: node, at: node.record.component == nil ? 0 : turn.now.wall)
    return node
  }

  /// Gives a node a former state. It is not provisional, because it was requested (R19).
  private func bringBack(_ state: Rollback.Restored, at node: Node) {
    switch state {
    case .nothing: removeState(of: node)
    case .same:
      node.versions.endSuperseding()
      settle([node])
      node.versions.forgetFailure()
    case .text(var record, let original):
      (record.node, record.isEarly) = (node.id, false)
      // So that revisions continue, even after a restart (R15).
      (record.session, record.revision) = (node.claim?.session ?? 0, node.claim?.revision ?? 0)
      replaceState(of: node, by: record)
      node.isUnstored = false
      withholdCopy(of: original, at: node)
    }
    acquit(node.id)
    if let claim = node.claim, let session = sessions[claim.session] {
      setFresh(node, false, of: session)
      hold(node, claim.rolledBack(at: turn.now.monotonic), by: session)
    }
  }

  /// A retained text was read. It replaces the object's state, which is retained as withheld in turn (R35).
  func reinstate(_ reading: StateReading?, _ row: StateRow, for caller: Caller) {
    let reply = ReleaseQuarantine.Reply()
    guard case .state(let record, row.sequence)? = reading, let node = tree.nodes[row.node], !node.isQuarantined,
      node.versions.withheld.contains(where: { $0.row == row })
    else { return turn.answer(caller, reply) }
    do throws(ErrorObject) {
      try turn.requireWritable()
      try tree.requireReadable(besides: [record], turn.limits) { [tree] in tree.node($0) }
      try requireRoom(for: record.bytes - (node.state?.bytes ?? 0), path: tree.path(of: node))
    } catch {
      return turn.refuse(caller, error)
    }
    settle([node])
    release([row])
    if let state = node.versions.shown, !node.versions.isWithheld(state) { withhold(state, of: node) }
    bringBack(.text(record, of: row.sequence), at: node)
    announce {
      QuarantineEnded().with {
        $0.cause = .released
        $0.path = tree.path(of: node)
        $0.objects = 1
      }
    }
    turn.answer(caller, reply.with { $0.released = 1 })
    note(.trialsEnded)
  }
}

extension NodeTree {
  /// Those of these nodes and their ancestors that are gone.
  fileprivate func missing(of past: [Node]) -> [Node] {
    let needed = past.flatMap { node in Swift.sequence(first: node, next: \.parent).map { ($0.id, $0) } }
    return Dictionary(needed) { first, _ in first }.values.filter { node($0.id) == nil }
  }
}
