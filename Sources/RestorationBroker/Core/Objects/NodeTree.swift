// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// The tree of one application: finds nodes by path and by handle, and knows which of them are included.
///
/// Invariants:
/// 1. A node whose identifier is null has no path (R4).
/// 2. A path restarts below an ancestor whose identifier is null; a plain object below an exclusion is unscoped (R4).
/// 3. No two nodes have the same path (R1).
/// 4. A removed node's id leads to its successor for ever, so that references survive (R6).
package struct NodeTree {
  struct PathKey {
    /// 0 where the path begins.
    let parent: NodeID
    let component: String
  }

  package private(set) var nodes: [NodeID: Node] = [:]
  fileprivate var index: [PathKey: NodeID] = [:]
  /// Nodes that live sessions claim.
  package private(set) var claimed: [ObjectHandle: Node] = [:]
  /// The newest node there ever was: no id is given again.
  package private(set) var last: NodeID = 0
  /// What took the place of nodes that are gone (R6).
  private(set) var successors: [NodeID: NodeID] = [:]
  /// Holds the application's own state; nobody sees or claims it.
  package private(set) var applicationNode: Node?
  /// Tells nodes the time; `nil` if no application works with the tree.
  private(set) var context: CoreContext?

  /// - Parameter last: as the archive has it.
  package init(last: NodeID = 0, _ context: CoreContext? = nil) { (self.last, self.context) = (last, context) }

  /// What some contents of an archive show, with the states there.
  init(_ readings: [NodeReading]) {
    for reading in readings { load(reading.node) }
    indexAll()
    for reading in readings { nodes[reading.node.node]?.state = reading.state }
  }

  /// Objects there are; the application itself is none.
  package var count: Int { applicationNode == nil ? nodes.count : nodes.count - 1 }
  /// How many paths lead to a node.
  package var pathCount: Int { index.count }

  /// The node with this id, or the one that took its place.
  package func node(_ id: NodeID) -> Node? {
    var id = id
    // A damaged archive may name successors in a circle.
    var left = successors.count
    while left > 0, let successor = successors[id] {
      id = successor
      left -= 1
    }
    return nodes[id]
  }

  /// The node a reference names; nil if there is none.
  package func node(_ reference: ObjectReference) -> Node? {
    switch reference {
    case .path(let path): node(at: path)
    case .handle(let handle): claimed[handle]
    }
  }

  package func node(at path: IdentifierPath) -> Node? {
    var found: NodeID = 0
    for component in path.components {
      guard let id = index[PathKey(parent: found, component: component)] else { return nil }
      found = id
    }
    return nodes[found]
  }

  /// The node that would be `component` below `parent`.
  package func node(_ component: String, below parent: Node?, kind: NodeKind) -> Node? {
    index[key(component, below: parent, kind: kind)].flatMap { nodes[$0] }
  }

  /// The path of a node; `nil` if it has none (R4).
  package func path(of node: Node) -> IdentifierPath? {
    guard let component = node.record.component else { return nil }
    var components = [component]
    var current = node
    while let parent = pathParent(of: current), let name = parent.record.component {
      components.append(name)
      current = parent
    }
    components.reverse()
    return IdentifierPath(components)
  }

  func path(of id: NodeID) -> IdentifierPath? { node(id).flatMap { path(of: $0) } }

  /// Its own identifier or that of an ancestor in its walk is null (R4).
  package func isExcluded(_ node: Node) -> Bool {
    var current: Node? = node
    while let node = current {
      if node.record.kind == .application { return false }
      if node.record.component == nil { return true }
      if node.record.kind == .object { return false }
      current = node.parent
    }
    return false
  }

  /// The node that excludes a node: the nearest of it and its ancestors without an identifier (R4), or the ancestor
  /// that a view must not be below (R5); `nil` if it is included.
  package func excluder(of node: Node) -> Node? {
    if isIncluded(node) { return nil }
    var current: Node? = node
    while let ancestor = current {
      if ancestor.record.component == nil { return ancestor }
      if ancestor.record.kind == .object { return ancestor }
      current = ancestor.parent
    }
    return node
  }

  /// Whether a walk from the roots reaches it (R4, R5).
  package func isIncluded(_ node: Node) -> Bool {
    guard !isExcluded(node) else { return false }
    guard node.record.kind == .view else { return true }
    var current = node.parent
    guard current != nil else { return false }
    while let ancestor = current {
      if ancestor.record.kind == .object { return false }
      current = ancestor.parent
    }
    return true
  }

  /// The node and all nodes below it, parents first.
  package func subtree(of node: Node) -> [Node] {
    var found = [node]
    var next = 0
    while next < found.count {
      for child in found[next].children { if let child = nodes[child] { found.append(child) } }
      next += 1
    }
    return found
  }

  func pathParent(of node: Node) -> Node? { pathParent(node.parent, kind: node.record.kind) }

  private func pathParent(_ parent: Node?, kind: NodeKind) -> Node? {
    guard let parent, parent.record.component != nil else { return nil }
    return kind == .object && isExcluded(parent) ? nil : parent
  }

  func key(of node: Node) -> PathKey? {
    node.record.component.map { PathKey(parent: pathParent(of: node)?.id ?? 0, component: $0) }
  }

  private func key(_ component: String, below parent: Node?, kind: NodeKind) -> PathKey {
    PathKey(parent: pathParent(parent, kind: kind)?.id ?? 0, component: component)
  }

  // MARK: Claims

  package mutating func hold(_ node: Node, _ claim: Node.Claim) {
    node.claim = claim
    claimed[claim.handle] = node
  }

  package mutating func release(_ handle: ObjectHandle) { claimed[handle] = nil }

  // MARK: Changes

  /// Another tree takes the place of this one; nobody claims its nodes yet.
  package mutating func become(_ other: NodeTree) {
    let (last, context) = (last, context)
    self = other
    self.last = max(last, other.last)
    self.context = context
    for node in nodes.values { node.context = context }
  }

  /// Adds a node of the archive; call it for all nodes, then `indexAll`.
  mutating func load(_ record: NodeRecord) {
    if record.isRemoved {
      if let successor = record.successor { successors[record.node] = successor }
    } else {
      let node = Node(record: record, context)
      last = max(last, node.id)
      nodes[record.node] = node
      if record.kind == .application { applicationNode = node }
    }
  }

  /// Links parents and paths of the nodes taken in by `load`.
  ///
  /// - Returns: nodes that were their own ancestors and have become roots; only a damaged archive has such nodes.
  @discardableResult
  mutating func indexAll() -> [NodeID] {
    for node in nodes.values {
      guard let parent = node.record.parent.flatMap({ self.node($0) }) else { continue }
      node.parent = parent
      parent.children.insert(node.id)
    }
    let cut = cutCircles()
    for node in nodes.values { if let key = key(of: node) { index[key] = node.id } }
    return cut
  }

  private func cutCircles() -> [NodeID] {
    /// The first upward walk that reached a node.
    var walks: [NodeID: Int] = [:]
    walks.reserveCapacity(nodes.count)
    var cut: [NodeID] = []
    for (number, start) in nodes.values.enumerated() {
      var current: Node? = start
      while let node = current {
        if let walk = walks[node.id] {
          guard walk == number else { break }
          node.parent?.children.remove(node.id)
          node.parent = nil
          cut.append(node.id)
          break
        }
        walks[node.id] = number
        current = node.parent
      }
    }
    return cut
  }

  /// Adds a node under a path that is free.
  package mutating func insert(_ record: NodeRecord) -> Node {
    let node = Node(record: record, context)
    node.parent = record.parent.flatMap { self.node($0) }
    node.parent?.children.insert(node.id)
    last = max(last, node.id)
    nodes[node.id] = node
    if record.kind == .application { applicationNode = node }
    if let key = key(of: node) { index[key] = node.id }
    return node
  }

  /// Removes a node that was to take the place of another one, which stays there.
  mutating func remove(_ placeholder: Node, for original: NodeID) {
    remove(placeholder)
    if let node = nodes[original], let key = key(of: node) { index[key] = original }
  }

  /// Removes a node without children.
  mutating func remove(_ node: Node, successor: Node? = nil) {
    if let key = key(of: node), index[key] == node.id { index[key] = nil }
    node.parent?.children.remove(node.id)
    node.parent = nil
    nodes[node.id] = nil
    if node === applicationNode { applicationNode = nil }
    if let successor { successors[node.id] = successor.id }
  }
}

extension NodeTree {
  /// Removes a node whose descendants are removed as well.
  mutating func forget(_ node: Node) {
    if let key = key(of: node), index[key] == node.id { index[key] = nil }
    node.parent?.children.remove(node.id)
    nodes[node.id] = nil
    if node === applicationNode { applicationNode = nil }
  }
}

// Identifiers are equal if their bytes are: String's equality would make two spellings of an accent one path.
extension NodeTree.PathKey: Hashable {
  static func == (left: Self, right: Self) -> Bool {
    guard left.parent == right.parent, left.component.utf8.count == right.component.utf8.count else { return false }
    // On plain memory, because a string's UTF-8 view costs several steps for each byte.
    var (component, other) = (left.component, right.component)
    return component.withUTF8 { component in
      other.withUTF8 { other in
        for index in 0..<component.count where component[index] != other[index] { return false }
        return true
      }
    }
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(parent)
    var component = component
    component.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}

extension NodeTree {
  /// The application itself, then parents first, siblings by age. A node without a path is left out unless a node with
  /// a path is below it, because it cannot be claimed again.
  ///
  /// - Parameters:
  ///   - omitted: nodes that a generation does not hold (R4, R7), which are left out likewise.
  ///   - kept: nodes that are never left out.
  func namedNodes(omitting omitted: Set<NodeID> = [], keeping kept: Set<NodeID> = []) -> [Node] {
    var order: [Node] = []
    var stack = nodes.values.filter { $0.parent == nil }.sorted { $0.id > $1.id }
    if let own = stack.firstIndex(where: { $0 === applicationNode }) { stack.append(stack.remove(at: own)) }
    while let node = stack.popLast() {
      order.append(node)
      stack += node.children.compactMap { nodes[$0] }.sorted { $0.id > $1.id }
    }
    var needed = kept
    for node in order.reversed() {
      let isNamed = node.record.component != nil || node === applicationNode && node.hasState
      if isNamed && !omitted.contains(node.id) || needed.contains(node.id) {
        needed.insert(node.id)
        if let parent = node.parent { needed.insert(parent.id) }
      }
    }
    return order.filter { needed.contains($0.id) }
  }
}

extension NodeTree {
  /// Moves nodes with their subtrees in one step, or leaves everything as it was (R6).
  ///
  /// A vacant node in the way gives way: the one of the two that has a state stays, with the claim of the mover.
  /// - Parameter takesOver: with two states, or a state at a position, the mover's stays.
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
    let positional = relocations.filter(\.isPositional).map(\.node.id)
    // A merge on the way may have moved a node of the list once more.
    for (node, key) in rekeyed where self.key(of: node) == key {
      guard let other = index[key].flatMap({ nodes[$0] }) else {
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
