// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
package import RestorationWire

/// The tree of one application: finds nodes by path and by handle, and knows which are included.
///
/// Invariants:
/// 1. A node with a null identifier has no path (R4).
/// 2. Paths restart below an ancestor with a null identifier. A plain object below an excluded parent is a root (R4).
/// 3. No two nodes have the same path (R1).
/// 4. A removed node's id leads to its successor for ever, so that references survive (R6).
package struct NodeTree {
  struct PathKey {
    /// 0 if the path begins here.
    let parent: NodeID
    let component: String
  }

  package private(set) var nodes: [NodeID: Node] = [:]
  private var index: [PathKey: NodeID] = [:]
  package private(set) var claimed: [ObjectHandle: Node] = [:]
  /// The highest id ever used; ids are never reused.
  package private(set) var last: NodeID = 0
  /// Removed nodes and the nodes that replaced them (R6).
  private(set) var successors: [NodeID: NodeID] = [:]
  /// Holds the application's own state. It cannot be claimed.
  package private(set) var applicationNode: Node?
  /// Whether a move may make a state too long to be read (R14). False after a pass over all states has found none.
  private var mayHaveLongStates = true
  private(set) var context: CoreContext?

  package init(last: NodeID = 0, _ context: CoreContext? = nil) { (self.last, self.context) = (last, context) }

  /// The objects; the application itself does not count.
  package var count: Int { applicationNode == nil ? nodes.count : nodes.count - 1 }
  /// Number of nodes with a path.
  package var pathCount: Int { index.count }

  /// Nodes in the order of their creation.
  func byAge(where condition: (Node) -> Bool = { _ in true }) -> [Node] {
    // Ids are sorted much faster than nodes, which are scattered in memory.
    var numbers: [NodeID] = []
    numbers.reserveCapacity(nodes.count)
    for node in nodes.values where condition(node) { numbers.append(node.id) }
    numbers.sort()
    var found: [Node] = []
    found.reserveCapacity(numbers.count)
    for number in numbers { if let node = nodes[number] { found.append(node) } }
    return found
  }

  /// The node with this id, or its successor.
  package func node(_ id: NodeID) -> Node? { nodes[successors.current(id)] }

  /// The nodes with these ids, and the successors of removed ones. A damaged archive may name any number.
  package func nodes(in ids: RangeSet<NodeID>) -> Set<NodeID> {
    if ids.isEmpty { return [] }
    let present = nodes.keys.filter { ids.contains($0) }
    return Set(successors.keys.filter { ids.contains($0) }.compactMap { node($0)?.id }).union(present)
  }

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

  /// The number of components of a path that lead to a node, and the last of these nodes.
  ///
  /// Inline, because a call would copy the tree, whose fields are reference-counted.
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

  /// Sets the node of a key during a move (`Relocation.swift`), and returns the former one.
  mutating func exchange(_ key: PathKey, _ id: NodeID?) -> NodeID? {
    if let id { index.updateValue(id, forKey: key) } else { index.removeValue(forKey: key) }
  }

  /// The node that is `component` below `parent`.
  package func node(_ component: String, below parent: Node?, kind: NodeKind) -> Node? {
    index[key(component, below: parent, kind: kind)].flatMap { nodes[$0] }
  }

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

  /// The nodes one component below the path, by age, or the roots for `nil`; `nil` if no node has the path.
  func nodes(directlyBelow path: IdentifierPath?) -> [Node]? {
    guard let path else {
      return index.lazy.filter { $0.key.parent == 0 }.map(\.value).sorted().compactMap { nodes[$0] }
    }
    guard let parent = node(at: path) else { return nil }
    return parent.children.sorted().compactMap { nodes[$0] }.filter { isPath(of: $0, below: parent) }
  }

  /// Whether another path continues the node's.
  func goesOn(_ node: Node) -> Bool {
    node.children.contains { child in nodes[child].map { isPath(of: $0, below: node) } ?? false }
  }

  private func isPath(of child: Node, below parent: Node) -> Bool {
    child.record.component != nil && pathParent(of: child) === parent
  }

  /// Length of the path of `component` below `parent`, in bytes; 0 without a component.
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

  /// Whether its identifier, or that of an ancestor in its walk, is null (R4). Inline like `walk`.
  @inline(__always)
  package func isExcluded(_ node: Node) -> Bool { nameless(of: node) != nil }

  /// The nearest node without an identifier, among the node and its ancestors in its walk.
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

  /// The node that excludes `node`: the nearest without an identifier, or the plain object above a view; `nil` if it is
  /// included (R4). Inline like `walk`.
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

  /// Whether a walk from the roots reaches it (R4). Inline like `walk`.
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

  /// Replaces this tree. The new nodes have no claims.
  package mutating func become(_ other: NodeTree) {
    let (last, context) = (last, context)
    self = other
    self.last = max(last, other.last)
    self.context = context
    for node in nodes.values { node.context = context }
  }

  mutating func load(_ readings: [NodeReading]) {
    for reading in readings {
      load(reading.node)
      nodes[reading.node.node]?.versions = Versions(newest: reading.state, hidden: reading.beforeClaim)
    }
  }

  mutating func reserve(_ count: Int) { nodes.reserveCapacity(count) }

  /// Adds a node of the archive. Call `indexAll` after the last one.
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

  /// False if several nodes have one path after `indexAll`; only a damaged archive has such nodes.
  var hasDistinctPaths: Bool { index.count == nodes.values.count { $0.record.component != nil } }

  /// Links the loaded nodes to their parents and paths.
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
    /// The first upward walk that reached each node.
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

  /// The path must be free.
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

  /// The node must not have children.
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
  /// The last successor of a node, or the node itself.
  func current(_ id: NodeID) -> NodeID {
    var id = id
    // The successors of a damaged archive may form a circle.
    var left = count
    while left > 0, let successor = self[id] {
      id = successor
      left -= 1
    }
    return id
  }
}

extension NodeTree {
  /// The caller removes the descendants as well.
  mutating func forget(_ node: Node) {
    if let key = key(of: node), index[key] == node.id { index[key] = nil }
    node.parent?.children.remove(node.id)
    nodes[node.id] = nil
    if node === applicationNode { applicationNode = nil }
  }
}

// Identifiers are compared by their bytes: `String` would make two spellings of an accent one path.
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
  /// All nodes, parents first and siblings by age, after the application itself. A node without a path is omitted
  /// unless a node with a path is below it, because it cannot be claimed again.
  ///
  /// - Parameters:
  ///   - omitted: nodes that a generation does not hold (R4, R7); they are omitted likewise.
  ///   - kept: nodes that are never omitted.
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

  /// The nodes that `namedNodes` omits.
  func unnamedNodes(omitting omitted: Set<NodeID>, keeping kept: Set<NodeID>) -> [Node] {
    guard let needed = neededNodes(omitting: omitted, keeping: kept) else { return [] }
    return nodes.values.filter { !needed.contains($0.id) }
  }

  /// The nodes that `namedNodes` does not omit; `nil` if these are all, as nearly always.
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
