// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Bringing back some subtrees of a generation; everything else stays as it is (R16).
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
    // From here on nothing can fail but the disk.
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

  /// The node that becomes an object of the generation: itself, or what has its path, or itself again at that path.
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

  /// Gives a node the state of the generation. It is not early, because it was requested (R19).
  private func bringBack(_ state: Rollback.Restored, at node: Node) {
    switch state {
    case .nothing: removeState(of: node)
    case .same: settle([node])
    case .text(var record, let original):
      (record.node, record.isEarly) = (node.id, false)
      // So that revisions continue, even after a restart (R15).
      (record.session, record.revision) = (node.claim?.session ?? 0, node.claim?.revision ?? 0)
      let withheld = node.withheld
      node.withheld = nil
      store(record, at: node)
      node.withheld = withheld
      // A state that crashes processes does so in the copy as well (R35).
      if let copy = node.state, let row = withheld?.first(where: { $0.row.sequence == original }) {
        withhold(copy, of: node, as: row)
      }
    }
    acquit(node.id)
    node.isUnreadable = false
    if let claim = node.claim, let session = sessions[claim.session] {
      setFresh(node, false, of: session)
      hold(node, claim.rolledBack(at: turn.now.monotonic), by: session)
    }
  }
}

extension NodeTree {
  /// Nodes of a generation that are gone, of these and of those above them.
  fileprivate func missing(of past: [Node]) -> [Node] {
    let needed = past.flatMap { node in Swift.sequence(first: node, next: \.parent).map { ($0.id, $0) } }
    return Dictionary(needed) { first, _ in first }.values.filter { node($0.id) == nil }
  }
}
