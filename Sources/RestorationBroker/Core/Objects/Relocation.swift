// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import RestorationWire

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
}
