// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
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
  private var index: [PathKey: NodeID] = [:]
  /// Nodes that live sessions claim.
  package private(set) var claimed: [ObjectHandle: Node] = [:]
  /// The newest node there ever was: no id is given again.
  package private(set) var last: NodeID = 0
  /// What took the place of nodes that are gone (R6).
  private(set) var successors: [NodeID: NodeID] = [:]
  /// Holds the application's own state; nobody sees or claims it.
  package private(set) var applicationNode: Node?
  /// Whether a move may make a state too long to be given out (R14). False once a look at all states has found none.
  private var mayHaveLongStates = true
  /// Tells nodes the time; `nil` if no application works with the tree.
  private(set) var context: CoreContext?

  /// - Parameter last: as the archive has it.
  package init(last: NodeID = 0, _ context: CoreContext? = nil) { (self.last, self.context) = (last, context) }

  /// Objects there are; the application itself is none.
  package var count: Int { applicationNode == nil ? nodes.count : nodes.count - 1 }
  /// How many paths lead to a node.
  package var pathCount: Int { index.count }

  /// Nodes in the order in which they came.
  func byAge(where condition: (Node) -> Bool = { _ in true }) -> [Node] {
    // Numbers are sorted much faster than nodes, which lie all over the memory.
    var numbers: [NodeID] = []
    numbers.reserveCapacity(nodes.count)
    for node in nodes.values where condition(node) { numbers.append(node.id) }
    numbers.sort()
    var found: [Node] = []
    found.reserveCapacity(numbers.count)
    for number in numbers { if let node = nodes[number] { found.append(node) } }
    return found
  }

  /// The node with this id, or the one that took its place.
  package func node(_ id: NodeID) -> Node? { nodes[successors.current(id)] }

  /// The nodes with these ids, and those that took their places. A damaged archive may name more than there can be.
  package func nodes(in ids: RangeSet<NodeID>) -> Set<NodeID> {
    if ids.isEmpty { return [] }
    let present = nodes.keys.filter { ids.contains($0) }
    return Set(successors.keys.filter { ids.contains($0) }.compactMap { node($0)?.id }).union(present)
  }

  /// The node a reference names; nil if there is none.
  @inline(__always)
  package func node(_ reference: ObjectReference) -> Node? {
    switch reference {
    case .path(let path): node(at: path)
    case .handle(let handle): claimed[handle]
    }
  }

  @inline(__always)
  package func node(at path: IdentifierPath) -> Node? {
    let (known, node) = walk(down: path)
    return known == path.components.count ? node : nil
  }

  /// How many components of a path lead to a node, and the last of these nodes.
  ///
  /// Inline: called, it would get a copy of the tree, whose fields are counted references.
  @inline(__always)
  package func walk(down path: IdentifierPath) -> (known: Int, node: Node?) {
    var (known, found): (Int, NodeID) = (0, 0)
    while known < path.components.count,
      let id = index[PathKey(parent: found, component: path.components[known])]
    {
      (known, found) = (known + 1, id)
    }
    return (known, nodes[found])
  }

  subscript(key: PathKey) -> NodeID? { index[key] }

  /// Sets what is at a key, for a move (`Relocation.swift`); returns what was there.
  mutating func exchange(_ key: PathKey, _ id: NodeID?) -> NodeID? {
    if let id { index.updateValue(id, forKey: key) } else { index.removeValue(forKey: key) }
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

  /// Nodes whose paths are one component longer than this one, by age, or of one component if it is `nil`; `nil` if no
  /// node has it.
  func nodes(directlyBelow path: IdentifierPath?) -> [Node]? {
    guard let path else {
      return index.lazy.filter { $0.key.parent == 0 }.map(\.value).sorted().compactMap { nodes[$0] }
    }
    guard let parent = node(at: path) else { return nil }
    return parent.children.sorted().compactMap { nodes[$0] }.filter { isPath(of: $0, below: parent) }
  }

  /// Whether the path of a node goes on behind it.
  func goesOn(_ node: Node) -> Bool {
    node.children.contains { child in nodes[child].map { isPath(of: $0, below: node) } ?? false }
  }

  private func isPath(of child: Node, below parent: Node) -> Bool {
    child.record.component != nil && pathParent(of: child) === parent
  }

  /// Bytes of the path of a node that would be `component` below `parent`; 0 without a component.
  func pathBytes(of component: String?, below parent: Node?, kind: NodeKind) -> Int {
    guard let component else { return 0 }
    var bytes = component.utf8.count
    var above = pathParent(parent, kind: kind)
    while let node = above, let name = node.record.component {
      bytes += name.utf8.count + 1
      above = pathParent(of: node)
    }
    return bytes
  }

  /// Its own identifier or that of an ancestor in its walk is null (R4). Inline, as `walk` is.
  @inline(__always)
  package func isExcluded(_ node: Node) -> Bool { nameless(of: node) != nil }

  /// The nearest of the node and its ancestors in its walk that has no identifier.
  @inline(__always)
  private func nameless(of node: Node) -> Node? {
    var current: Node? = node
    while let node = current, node.record.kind != .application {
      if node.record.component == nil { return node }
      if node.record.kind == .object { return nil }
      current = node.parent
    }
    return nil
  }

  /// The node that excludes a node: the nearest of it and its ancestors without an identifier (R4), or the ancestor
  /// that a view must not be below (R4); `nil` if it is included. Inline, as `walk` is.
  @inline(__always)
  package func excluder(of node: Node) -> Node? {
    if let nameless = nameless(of: node) { return nameless }
    guard node.record.kind == .view else { return nil }
    guard var ancestor = node.parent else { return node }
    while ancestor.record.kind != .object {
      guard let parent = ancestor.parent else { return nil }
      ancestor = parent
    }
    return ancestor
  }

  /// Whether a walk from the roots reaches it (R4). Inline, as `walk` is.
  @inline(__always)
  package func isIncluded(_ node: Node) -> Bool { excluder(of: node) == nil }

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

  // MARK: Lengths of states

  /// A node gets a state.
  mutating func noteLength(of record: StateRecord, _ limits: Limits) {
    guard !mayHaveLongStates, let table = record.references else { return }
    mayHaveLongStates = !limits.canAllBeGivenOut(record.bytes, table)
  }

  /// States that may become too long when their targets get other paths.
  mutating func findLongStates(_ limits: Limits) -> LongStates {
    guard mayHaveLongStates else { return LongStates() }
    let states = LongStates(in: self, limits)
    mayHaveLongStates = !states.isEmpty
    return states
  }

  // MARK: Changes

  /// Another tree takes the place of this one; nobody claims its nodes yet.
  package mutating func become(_ other: NodeTree) {
    let (last, context) = (last, context)
    self = other
    self.last = max(last, other.last)
    self.context = context
    for node in nodes.values { node.context = context }
  }

  /// Adds nodes with their states, as `load` does each of them.
  mutating func load(_ readings: [NodeReading]) {
    for reading in readings {
      load(reading.node)
      guard let node = nodes[reading.node.node] else { continue }
      node.state = reading.state
      node.beforeClaim = reading.beforeClaim
    }
  }

  /// So many nodes are to be loaded.
  mutating func reserve(_ count: Int) { nodes.reserveCapacity(count) }

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

  /// False if several nodes have one path, after `indexAll`; only a damaged archive has such nodes.
  var hasDistinctPaths: Bool { index.count == nodes.values.count { $0.record.component != nil } }

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
    index.reserveCapacity(nodes.count)
    for node in nodes.values { if let key = key(of: node) { index[key] = node.id } }
    return cut
  }

  private func cutCircles() -> [NodeID] {
    /// The first upward walk that reached a node.
    var walks: [NodeID: Int] = [:]
    var cut: [NodeID] = []
    for (number, start) in nodes.values.enumerated() where start.parent != nil {
      var current: Node? = start
      while let node = current, node.parent != nil {
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

  /// Removes a node without children.
  package mutating func remove(_ node: Node, successor: Node? = nil) {
    if let key = key(of: node), index[key] == node.id { index[key] = nil }
    node.parent?.children.remove(node.id)
    node.parent = nil
    nodes[node.id] = nil
    if node === applicationNode { applicationNode = nil }
    if let successor { successors[node.id] = successor.id }
  }
}

extension [NodeID: NodeID] {
  /// The last of the successors of a node; the node itself without any.
  func current(_ id: NodeID) -> NodeID {
    var id = id
    // A damaged archive may name successors in a circle.
    var left = count
    while left > 0, let successor = self[id] {
      id = successor
      left -= 1
    }
    return id
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
    var (component, other) = (left.component, right.component)
    return left.parent == right.parent
      && component.withUTF8 { component in other.withUTF8 { component.isEqual(to: $0) } }
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
    var stack = Array(byAge { $0.parent == nil }.reversed())
    if let own = stack.firstIndex(where: { $0 === applicationNode }) { stack.append(stack.remove(at: own)) }
    order.reserveCapacity(nodes.count)
    while let node = stack.popLast() {
      order.append(node)
      for child in node.children.sorted(by: >) { if let child = nodes[child] { stack.append(child) } }
    }
    guard let needed = neededNodes(omitting: omitted, keeping: kept) else { return order }
    return order.filter { needed.contains($0.id) }
  }

  /// What `namedNodes` leaves out.
  func unnamedNodes(omitting omitted: Set<NodeID>, keeping kept: Set<NodeID>) -> [Node] {
    guard let needed = neededNodes(omitting: omitted, keeping: kept) else { return [] }
    return nodes.values.filter { !needed.contains($0.id) }
  }

  /// What `namedNodes` does not leave out; `nil` if that is everything, as nearly always.
  private func neededNodes(omitting omitted: Set<NodeID>, keeping kept: Set<NodeID>) -> Set<NodeID>? {
    func isNamed(_ node: Node) -> Bool {
      (node.record.component != nil || node === applicationNode && node.hasState) && !omitted.contains(node.id)
    }
    guard !nodes.values.allSatisfy(isNamed) else { return nil }
    var needed: Set<NodeID> = []
    for node in nodes.values where isNamed(node) || kept.contains(node.id) {
      var current: Node? = node
      while let node = current, needed.insert(node.id).inserted { current = node.parent }
    }
    return needed
  }
}
