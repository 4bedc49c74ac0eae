// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// Where a node is to go.
package struct Relocation {
  package var node: Node
  package var parent: Node?
  package var component: String?
  package var kind: NodeKind
  /// It never takes over a state that it finds there: a position says where an object is, not who (R6).
  package var isPositional: Bool

  package init(node: Node, parent: Node?, component: String?, kind: NodeKind? = nil, isPositional: Bool = false) {
    (self.node, self.parent, self.component, self.isPositional) = (node, parent, component, isPositional)
    self.kind = kind ?? node.record.kind
  }

  /// By how many bytes of texts the head grows.
  var growth: Int { (component?.utf8.count ?? 0) - (node.record.component?.utf8.count ?? 0) }
}

/// What a move did: everything the archive, the owners and the accounts must hear of.
package struct RelocationOutcome {
  /// Nodes whose record changed, in the order they are to be written.
  package var changed: [Node] = []
  /// Nodes whose path changed; parents first.
  package var moved: [Node] = []
  /// Nodes that gave way to another one at their path; gone from the tree.
  package var merged: [(gone: Node, into: Node)] = []
  /// Nodes that get the claims of those that gave way to them.
  var given: Set<NodeID> = []
  /// Nodes that have lost a child, and may be there for nothing now.
  package var left: [Node] = []

  func isVacant(_ node: Node) -> Bool { node.isVacant && !given.contains(node.id) }
}

/// Why a move cannot be.
package enum RelocationFailure: Error {
  case cycle
  /// This node is in the way.
  case occupied(NodeID)
  case pathTooLong(bytes: Int)
  /// The state of this node refers to what moves, and could not be given out any longer (R14).
  case stateTooLong(NodeID, bytes: Int)
}

extension NodeTree {
  /// Moves nodes with their subtrees in one step, or leaves everything as it was (R6).
  ///
  /// A vacant node in the way gives way: the one of the two that has a state stays, with the claim of the mover.
  /// - Parameter takesOver: with two states, or a state at a position, the mover's stays.
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

  /// - Parameter arePresent: they were at the place the move leads to, and make way for what arrives there.
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
    // A merge on the way may have moved a node of the list once more.
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

  /// Two nodes have come to the same path: one gives way and its children go to the other.
  ///
  /// Of two states the arriving one stays, unless only the present one has an owner.
  /// - Parameter displaces: the arriving node stays, with or without a state.
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

  /// What has an owner stays what it is: of a vacant path it gets the state, and what it does not record itself.
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
      // Of two excluded parents both may have the path, and not every kind is scoped by one (R4).
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

  /// The nodes that may come under another key. A key names the parent, so those below a node that moves keep theirs,
  /// unless paths begin elsewhere than before (R4).
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
      // Of several parents one may itself be about to move.
      guard relocation.parent === parent, (relocation.component == nil) == (record.component == nil),
        (relocation.kind != .object && isExcluded) == (record.kind != .object && wasExcluded)
      else { return subtrees(of: moving) }
    }
    return moving
  }

  private func keys(of nodes: [Node]) -> [PathKey?] {
    // Nearly always it is one.
    guard nodes.count > 1 else { return nodes.map { key(of: $0) } }
    var ancestry = Ancestry()
    return nodes.map { node in
      node.record.component.map { PathKey(parent: ancestry.pathParent(of: node)?.id ?? 0, component: $0) }
    }
  }

  /// These nodes and all below them, each once.
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

/// Remembers what a move changed, so that one that fails half way leaves no trace.
private struct RelocationJournal {
  private var nodes: [(node: Node, record: NodeRecord, parent: Node?)] = []
  private var keys: [(key: NodeTree.PathKey, old: NodeID?)] = []

  mutating func note(_ node: Node) { nodes.append((node, node.record, node.parent)) }

  mutating func set(_ key: NodeTree.PathKey, _ id: NodeID?, in tree: inout NodeTree) {
    keys.append((key, tree.exchange(key, id)))
  }

  /// If it is this node that is at the key.
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
