// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Objects that factories have brought back under other paths than those they were saved at (R24).
extension Application {
  /// Moves what was saved of such objects to the paths that they have now. If the old path has an owner, or the
  /// object's session has ended, nothing moves.
  func moveToAnswers(_ over: Restoring, _ decisions: Restoration) {
    for item in decisions.items where item.object != item.node && item.place == .settled(.restored) {
      guard let node = tree.node(item.node), node.isVacant, let object = tree.nodes[item.object],
        let owner = item.owner, object.claim?.session == owner, tree.isIncluded(object)
      else { continue }
      let isHandedOut = over.handedOut[node.id] == node.stateBeforeClaim?.sequence
      // If nobody got the saved state, it must not give way to one that the object has written since.
      guard isHandedOut || !object.hasState, move(node, onto: object) else { continue }
      tree.node(object.id)?.claim?.hasDecoded = isHandedOut
    }
  }

  /// Moves a vacant node with what is vacant below it onto a live one (R6).
  ///
  /// - Returns: whether it could be moved.
  private func move(_ node: Node, onto object: Node) -> Bool {
    let (moving, staying) = tree.divide(node, onto: object)
    guard let old = tree.path(of: node), let new = tree.path(of: object),
      moving.allSatisfy({ (tree.path(of: $0)?.bytes ?? 0) - old.bytes + new.bytes <= turn.limits.pathBytesMax })
    else { return false }
    var placeholders: [NodeID: Node] = [:]
    let left = staying.map { child in
      let parent = tree.standIn(for: child.parent, below: node, &placeholders)
      return Relocation(node: child, parent: parent, component: child.record.component)
    }
    let parent = object.parent.flatMap { placeholders[$0.id] } ?? object.parent
    let arriving = Relocation(node: node, parent: parent, component: object.record.component, kind: object.record.kind)
    do {
      try relocateAndTell([arriving] + left, by: nil, takeOver: true)
    } catch {
      turn.ask(.log(.error, "\(old) was not moved to \(new): \(error.message)", of: name))
      for (original, placeholder) in placeholders { tree.remove(placeholder, for: original) }
      return false
    }
    for placeholder in placeholders.values.sorted(by: { $0.id < $1.id }) { write(placeholder) }
    return true
  }
}

extension NodeTree {
  /// The node and all below it, when it moves onto another one: what moves along, and what stays where it is. Live
  /// objects stay, and nodes that would displace a state; so does everything below them.
  fileprivate func divide(_ node: Node, onto object: Node) -> (moving: [Node], staying: [Node]) {
    var (moving, staying): ([Node], [Node]) = ([], [])
    var next: [(node: Node, target: Node?)] = [(node, object)]
    while let (node, target) = next.popLast() {
      moving.append(node)
      for child in node.children.sorted().compactMap({ nodes[$0] }) {
        let other = target.flatMap { target in
          child.record.component.flatMap { self.node($0, below: target, kind: child.record.kind) }
        }
        if child.isVacant, !child.hasState || other?.hasState != true {
          next.append((child, other))
        } else {
          staying.append(child)
        }
      }
    }
    return (moving, staying)
  }

  /// A placeholder for a node that is about to move while some nodes below it stay.
  fileprivate mutating func standIn(for node: Node?, below root: Node, _ placeholders: inout [NodeID: Node]) -> Node? {
    guard let node else { return nil }
    if let known = placeholders[node.id] { return known }
    let parent = node === root ? node.parent : standIn(for: node.parent, below: root, &placeholders)
    let placeholder = insert(
      NodeRecord(node: last + 1, parent: parent?.id, component: node.record.component, kind: node.record.kind)
    )
    placeholders[node.id] = placeholder
    return placeholder
  }
}
