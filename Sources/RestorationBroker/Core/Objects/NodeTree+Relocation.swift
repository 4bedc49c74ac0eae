// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import RestorationWire

/// Where a node is to go.
package struct Relocation {
  package var node: Node
  package var parent: Node?
  package var component: String?
  package var kind: NodeKind

  package init(node: Node, parent: Node?, component: String?, kind: NodeKind? = nil) {
    (self.node, self.parent, self.component) = (node, parent, component)
    self.kind = kind ?? node.record.kind
  }
}

/// What a move did: everything the archive, the owners and the accounts must hear of.
package struct RelocationOutcome {
  /// Nodes whose record changed, in the order they are to be written.
  package var changed: [Node] = []
  /// Nodes whose path changed; parents first.
  package var moved: [Node] = []
  /// Nodes that gave way to another one at their path; gone from the tree.
  package var merged: [(gone: Node, into: Node)] = []
  /// Nodes that have lost a child, and may be there for nothing now.
  package var left: [Node] = []
}

/// Why a move cannot be.
package enum RelocationFailure: Error {
  case cycle
  /// This node is in the way.
  case occupied(NodeID)
  case pathTooLong(bytes: Int)
}

extension NodeTree {
  /// Moves nodes with their subtrees in one step, or leaves everything as it was (R6).
  ///
  /// A vacant node in the way gives way: the one of the two that has a state stays, with the claim of the mover.
  /// - Parameter takesOver: with two states, the mover's stays.
  package mutating func relocate(
    _ relocations: [Relocation],
    takesOver: Bool,
    pathBytesMax: Int
  ) throws(RelocationFailure) -> RelocationOutcome {
    var journal = RelocationJournal()
    var outcome = RelocationOutcome()
    outcome.left = relocations.compactMap(\.node.parent)
    do throws(RelocationFailure) {
      try place(relocations, takesOver: takesOver, journal: &journal, outcome: &outcome)
      for node in outcome.moved where nodes[node.id] === node {
        if let bytes = path(of: node)?.bytes, bytes > pathBytesMax { throw .pathTooLong(bytes: bytes) }
      }
    } catch {
      journal.undo(in: &self)
      throw error
    }
    for (gone, into) in outcome.merged {
      if let parent = gone.parent { outcome.left.append(parent) }
      remove(gone, successor: into)
    }
    return outcome
  }

  /// - Parameter arePresent: they were at the place the move leads to, and make way for what arrives there.
  private mutating func place(
    _ relocations: [Relocation],
    takesOver: Bool,
    arePresent: Bool = false,
    journal: inout RelocationJournal,
    outcome: inout RelocationOutcome
  ) throws(RelocationFailure) {
    let affected = uniqueSubtrees(of: relocations.map(\.node))
    let before = affected.map { key(of: $0) }
    for relocation in relocations {
      journal.note(relocation.node)
      relocation.node.parent?.children.remove(relocation.node.id)
      relocation.node.parent = relocation.parent
      relocation.parent?.children.insert(relocation.node.id)
      relocation.node.record.parent = relocation.parent?.id
      relocation.node.record.component = relocation.component
      relocation.node.record.kind = relocation.kind
      outcome.changed.append(relocation.node)
    }
    for relocation in relocations where hasCycle(from: relocation.node) { throw .cycle }
    var rekeyed: [(node: Node, key: PathKey)] = []
    for (node, old) in zip(affected, before) {
      let new = key(of: node)
      guard new != old else { continue }
      if let old, index[old] == node.id { journal.set(old, nil, in: &self) }
      if let new { rekeyed.append((node, new)) }
    }
    outcome.moved.append(contentsOf: affected)
    // A merge on the way may have moved a node of the list once more.
    for (node, key) in rekeyed where self.key(of: node) == key {
      guard let other = index[key].flatMap({ nodes[$0] }) else {
        journal.set(key, node.id, in: &self)
        continue
      }
      let pair = arePresent ? (arriving: other, present: node) : (arriving: node, present: other)
      try merge(pair, at: key, takesOver: takesOver, journal: &journal, outcome: &outcome)
    }
  }

  /// Two nodes have come to the same path: one gives way and its children go to the other.
  ///
  /// Of two states the arriving one stays, unless only the present one has an owner.
  private mutating func merge(
    _ pair: (arriving: Node, present: Node),
    at key: PathKey,
    takesOver: Bool,
    journal: inout RelocationJournal,
    outcome: inout RelocationOutcome
  ) throws(RelocationFailure) {
    let (arriving, present) = pair
    guard present.isVacant || arriving.isVacant else { throw .occupied(present.id) }
    guard takesOver || !(present.hasState && arriving.hasState) else { throw .occupied(present.id) }
    let presentStays = present.hasState && (!arriving.hasState || arriving.isVacant && !present.isVacant)
    let (gone, into) = presentStays ? (arriving, present) : (present, arriving)
    journal.note(gone)
    journal.note(into)
    journal.set(key, into.id, in: &self)
    outcome.merged.append((gone, into))
    let children = gone.children.sorted().compactMap { nodes[$0] }
    guard !children.isEmpty else { return }
    try place(
      children.map { Relocation(node: $0, parent: into, component: $0.record.component) },
      takesOver: takesOver,
      arePresent: !presentStays,
      journal: &journal,
      outcome: &outcome
    )
  }

  private func hasCycle(from node: Node) -> Bool {
    var current = node.parent
    var steps = 0
    while let ancestor = current, steps <= nodes.count {
      if ancestor === node { return true }
      current = ancestor.parent
      steps += 1
    }
    return current != nil
  }

  private func uniqueSubtrees(of roots: [Node]) -> [Node] {
    guard roots.count > 1 else { return roots.flatMap { subtree(of: $0) } }
    var seen: Set<NodeID> = []
    var found: [Node] = []
    for root in roots { for node in subtree(of: root) where seen.insert(node.id).inserted { found.append(node) } }
    return found
  }
}

/// Remembers what a move changed, so that one that fails half way leaves no trace.
private struct RelocationJournal {
  private var nodes: [(node: Node, record: NodeRecord, parent: Node?)] = []
  private var keys: [(key: NodeTree.PathKey, old: NodeID?)] = []

  mutating func note(_ node: Node) { nodes.append((node, node.record, node.parent)) }

  mutating func set(_ key: NodeTree.PathKey, _ id: NodeID?, in tree: inout NodeTree) {
    keys.append((key, tree.index[key]))
    tree.index[key] = id
  }

  func undo(in tree: inout NodeTree) {
    for (key, old) in keys.reversed() { tree.index[key] = old }
    for (node, record, parent) in nodes.reversed() {
      node.parent?.children.remove(node.id)
      node.record = record
      node.parent = parent
      parent?.children.insert(node.id)
    }
  }
}
