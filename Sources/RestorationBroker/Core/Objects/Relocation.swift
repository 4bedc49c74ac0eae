// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// The target of a node's move.
package struct Relocation {
  package var node: Node
  package var parent: Node?
  package var component: String?
  package var kind: NodeKind
  /// It never takes over a state at its target: a position says where an object is, not which it is (R6).
  package var isPositional: Bool

  package init(node: Node, parent: Node?, component: String?, kind: NodeKind? = nil, isPositional: Bool = false) {
    (self.node, self.parent, self.component, self.isPositional) = (node, parent, component, isPositional)
    self.kind = kind ?? node.record.kind
  }

  /// Growth of the head's texts in bytes.
  var growth: Int { (component?.utf8.count ?? 0) - (node.record.component?.utf8.count ?? 0) }
}

/// The result of a move, for the archive, the owners and the budget.
package struct RelocationOutcome {
  /// Nodes whose records changed, in the order of writing.
  package var changed: [Node] = []
  /// Nodes whose paths changed, parents first.
  package var moved: [Node] = []
  /// Nodes that gave way to another one at their path; they have left the tree.
  package var merged: [(gone: Node, into: Node)] = []
  /// Nodes that get the claims of nodes that gave way to them.
  var given: Set<NodeID> = []
  /// Nodes that have lost a child, and may be useless placeholders now.
  package var left: [Node] = []

  func isVacant(_ node: Node) -> Bool { node.isVacant && !given.contains(node.id) }
}

package enum RelocationFailure: Error {
  case cycle
  /// Another node occupies the target.
  case occupied(NodeID)
  case pathTooLong(bytes: Int)
  /// The state of this node refers to a moved one, and would become too long to be read (R14).
  case stateTooLong(NodeID, bytes: Int)
}

extension NodeTree {
  /// Moves nodes with their subtrees in one step, or leaves everything unchanged (R6).
  ///
  /// A vacant node at a target gives way. Of the two nodes the one with a state stays, with the mover's claim.
  ///
  /// - Parameter takesOver: if both have a state, or a positional move finds one, the mover's stays.
  package mutating func relocate(
    _ relocations: [Relocation],
    takesOver: Bool,
    within limits: Limits
  ) throws(RelocationFailure) -> RelocationOutcome {
    var journal = RelocationJournal()
    var outcome = RelocationOutcome()
    let long = findLongStates(limits)
    outcome.left = relocations.compactMap(\.node.parent)
    do throws(RelocationFailure) {
      try place(relocations, takesOver: takesOver, journal: &journal, outcome: &outcome)
      outcome.moved = subtrees(of: outcome.changed)
      var ancestry = Ancestry()
      for node in outcome.moved {
        let bytes = ancestry.place(of: node).pathBytes
        guard bytes <= limits.pathBytesMax else { throw .pathTooLong(bytes: bytes) }
      }
      let suspects = long.suspects(in: self)
      if let (node, bytes) = suspects.tooLong({ self.node($0) }) { throw .stateTooLong(node, bytes: bytes) }
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

  /// - Parameter arePresent: whether the nodes were at the target, and make way for arriving ones.
  private mutating func place(
    _ relocations: [Relocation],
    takesOver: Bool,
    arePresent: Bool = false,
    journal: inout RelocationJournal,
    outcome: inout RelocationOutcome
  ) throws(RelocationFailure) {
    let affected = rekeyed(by: relocations)
    let before = keys(of: affected)
    let newlyHung = relocations.filter { $0.node.parent !== $0.parent }.map(\.node)
    for relocation in relocations {
      journal.note(relocation.node)
      if relocation.node.parent !== relocation.parent {
        relocation.node.parent?.children.remove(relocation.node.id)
        relocation.node.parent = relocation.parent
        relocation.parent?.children.insert(relocation.node.id)
      }
      relocation.node.record.parent = relocation.parent?.id
      relocation.node.record.component = relocation.component
      relocation.node.record.kind = relocation.kind
      outcome.changed.append(relocation.node)
    }
    for node in newlyHung where hasCycle(from: node) { throw .cycle }
    var rekeyed: [(node: Node, key: PathKey)] = []
    for (node, (old, new)) in zip(affected, zip(before, keys(of: affected))) where new != old {
      if let old { journal.clear(old, of: node.id, in: &self) }
      if let new { rekeyed.append((node, new)) }
    }
    let positional = relocations.filter(\.isPositional).map(\.node.id)
    let merges = outcome.merged.count
    // A merge may already have moved a node of the list again.
    for (node, key) in rekeyed where outcome.merged.count == merges || self.key(of: node) == key {
      guard let other = self[key].flatMap({ nodes[$0] }) else {
        journal.set(key, node.id, in: &self)
        continue
      }
      let pair = arePresent ? (arriving: other, present: node) : (arriving: node, present: other)
      let displaces = positional.contains(node.id)
      try merge(pair, at: key, takesOver: takesOver, displaces: displaces, journal: &journal, outcome: &outcome)
    }
  }

  /// Two nodes have come to the same path: one gives way, and its children move to the other.
  ///
  /// If both have a state, the arriving one stays, unless only the present one has an owner.
  ///
  /// - Parameter displaces: whether the arriving node stays, with or without a state.
  private mutating func merge(
    _ pair: (arriving: Node, present: Node),
    at key: PathKey,
    takesOver: Bool,
    displaces: Bool,
    journal: inout RelocationJournal,
    outcome: inout RelocationOutcome
  ) throws(RelocationFailure) {
    let (arriving, present) = pair
    let (arrivingIsVacant, presentIsVacant) = (outcome.isVacant(arriving), outcome.isVacant(present))
    guard presentIsVacant || arrivingIsVacant else { throw .occupied(present.id) }
    guard takesOver || !(present.hasState && (arriving.hasState || displaces)) else { throw .occupied(present.id) }
    let presentStays =
      !displaces && (present.hasState == arriving.hasState ? !presentIsVacant : present.hasState)
    let (gone, into) = presentStays ? (arriving, present) : (present, arriving)
    journal.note(gone)
    journal.note(into)
    journal.set(key, into.id, in: &self)
    outcome.merged.append((gone, into))
    if !(presentStays ? arrivingIsVacant : presentIsVacant) {
      outcome.given.insert(into.id)
      try become(into, as: gone, takesOver: takesOver, journal: &journal, outcome: &outcome)
    }
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

  /// The claimed object keeps its description. From the vacant path it gets the state, and what its own record lacks.
  private mutating func become(
    _ vacant: Node,
    as owned: Node,
    takesOver: Bool,
    journal: inout RelocationJournal,
    outcome: inout RelocationOutcome
  ) throws(RelocationFailure) {
    let (former, record) = (vacant.record, owned.record)
    vacant.record.classes = record.classes ?? former.classes
    vacant.record.restorationClass = record.restorationClass ?? former.restorationClass
    vacant.record.storyboard = record.storyboard ?? former.storyboard
    vacant.record.keepsForever = record.keepsForever || former.keepsForever
    vacant.record.isConfidential = record.isConfidential || former.isConfidential
    if vacant.parent !== owned.parent || former.kind != record.kind {
      // Below two excluded parents both may have the path; and an exclusion does not scope every kind (R4).
      if let parent = vacant.parent { outcome.left.append(parent) }
      let place = Relocation(node: vacant, parent: owned.parent, component: record.component, kind: record.kind)
      try self.place([place], takesOver: takesOver, journal: &journal, outcome: &outcome)
    } else if vacant.record != former {
      outcome.changed.append(vacant)
    }
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

  /// The nodes whose keys may change. A key names the parent, so nodes below a moving one keep theirs, unless their
  /// paths begin elsewhere than before (R4).
  private func rekeyed(by relocations: [Relocation]) -> [Node] {
    let moving = relocations.map(\.node)
    let parent = relocations.first?.parent
    let isExcluded = parent.map { self.isExcluded($0) } ?? false
    var (former, wasExcluded) = (parent, isExcluded)
    for relocation in relocations {
      let record = relocation.node.record
      if relocation.node.parent !== former {
        former = relocation.node.parent
        wasExcluded = former.map { self.isExcluded($0) } ?? false
      }
      // With several parents, one may itself be about to move.
      guard relocation.parent === parent, (relocation.component == nil) == (record.component == nil),
        (relocation.kind != .object && isExcluded) == (record.kind != .object && wasExcluded)
      else { return subtrees(of: moving) }
    }
    return moving
  }

  private func keys(of nodes: [Node]) -> [PathKey?] {
    // Fast path for a single node.
    guard nodes.count > 1 else { return nodes.map { key(of: $0) } }
    var ancestry = Ancestry()
    return nodes.map { node in
      node.record.component.map { PathKey(parent: ancestry.pathParent(of: node)?.id ?? 0, component: $0) }
    }
  }

  /// These nodes and all below them, without duplicates.
  private func subtrees(of roots: [Node]) -> [Node] {
    if roots.count == 1 { return subtree(of: roots[0]) }
    var seen: Set<NodeID> = []
    var found = roots.filter { seen.insert($0.id).inserted }
    var next = 0
    while next < found.count {
      for child in found[next].children where seen.insert(child).inserted {
        if let child = nodes[child] { found.append(child) }
      }
      next += 1
    }
    return found
  }
}

/// Records the changes of a move, so that a failed one can be undone.
private struct RelocationJournal {
  private var nodes: [(node: Node, record: NodeRecord, parent: Node?)] = []
  private var keys: [(key: NodeTree.PathKey, old: NodeID?)] = []

  mutating func note(_ node: Node) { nodes.append((node, node.record, node.parent)) }

  mutating func set(_ key: NodeTree.PathKey, _ id: NodeID?, in tree: inout NodeTree) {
    keys.append((key, tree.exchange(key, id)))
  }

  /// Clears the key only if this node is there.
  mutating func clear(_ key: NodeTree.PathKey, of id: NodeID, in tree: inout NodeTree) {
    let former = tree.exchange(key, nil)
    if former == id { keys.append((key, id)) } else { _ = tree.exchange(key, former) }
  }

  func undo(in tree: inout NodeTree) {
    for (key, old) in keys.reversed() { _ = tree.exchange(key, old) }
    for (node, record, parent) in nodes.reversed() {
      node.parent?.children.remove(node.id)
      node.record = record
      node.parent = parent
      parent?.children.insert(node.id)
    }
  }
}
