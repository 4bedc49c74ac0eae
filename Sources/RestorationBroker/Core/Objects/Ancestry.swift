// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import RestorationWire

/// Facts about nodes that depend on their ancestors. Each is computed once for each node with children, so that a pass
/// over many nodes takes one step each, at any depth.
///
/// Valid until a node moves.
package struct Ancestry {
  fileprivate struct Traits {
    // Ids, because reference counting of nodes would take longer than all the rest.
    /// The nearest node without an identifier, among the node and its ancestors in its walk (R4).
    var nameless: NodeID?
    /// The nearest plain object above the node; no view may be below one (R4).
    var object: NodeID?
    /// Bytes of the path as `pathBytesMax` counts them; 0 without a path.
    var pathBytes = 0
    /// Bytes of the path as JSON text.
    var jsonBytes = 0
  }

  private var known: [NodeID: Traits] = [:]

  package init() {}

  package var count: Int { known.count }

  /// As `NodeTree.isExcluded`.
  package mutating func isExcluded(_ node: Node) -> Bool { traits(of: node).nameless != nil }

  /// As `NodeTree.isIncluded`.
  package mutating func isIncluded(_ node: Node) -> Bool { excluder(of: node) == nil }

  /// As `NodeTree.excluder`.
  package mutating func excluder(of node: Node) -> NodeID? { excluder(of: node, traits(of: node)) }

  private func excluder(of node: Node, _ traits: Traits) -> NodeID? {
    if let nameless = traits.nameless { return nameless }
    guard node.record.kind == .view else { return nil }
    return traits.object ?? (node.parent == nil ? node.id : nil)
  }

  /// As `NodeTree.pathParent`.
  mutating func pathParent(of node: Node) -> Node? {
    guard let parent = node.parent, parent.record.component != nil else { return nil }
    return node.record.kind == .object && isExcluded(parent) ? nil : parent
  }

  package mutating func place(of node: Node) -> (pathBytes: Int, isIncluded: Bool) {
    let traits = traits(of: node)
    return (traits.pathBytes, excluder(of: node, traits) == nil)
  }

  package mutating func jsonBytes(of node: Node) -> Int { traits(of: node).jsonBytes }

  private mutating func traits(of node: Node) -> Traits {
    // A leaf's traits are not stored: no other node needs them.
    if node.children.isEmpty { return Traits(of: node, below: node.parent.map { traits(of: $0) } ?? Traits()) }
    if let traits = known[node.id] { return traits }
    var unknown = [node]
    var above = Traits()
    while let parent = unknown.last?.parent {
      if let traits = known[parent.id] {
        above = traits
        break
      }
      unknown.append(parent)
    }
    for node in unknown.reversed() {
      above = Traits(of: node, below: above)
      known[node.id] = above
    }
    return above
  }
}

extension Ancestry.Traits {
  fileprivate init(of node: Node, below above: Self) {
    object = node.parent?.record.kind == .object ? node.parent?.id : above.object
    guard let component = node.record.component else {
      nameless = node.record.kind == .application ? nil : node.id
      return
    }
    nameless = node.record.kind == .object ? nil : above.nameless
    let beginsPath =
      node.parent?.record.component == nil || node.record.kind == .object && above.nameless != nil
    pathBytes = component.utf8.count + (beginsPath ? 0 : above.pathBytes + 1)
    jsonBytes = IdentifierPath.jsonBytes(of: component) + (beginsPath ? 2 : above.jsonBytes + 1)
  }
}
