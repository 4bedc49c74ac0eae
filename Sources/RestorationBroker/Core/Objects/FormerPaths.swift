// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// The paths of objects at one moment. Each is stored as a component and a link to the path above, and built on demand:
/// all paths together may have thousands of times as many components as there are objects.
package struct FormerPaths {
  private struct Link {
    let above: NodeID?
    let component: String
    let jsonBytes: Int
  }

  private var links: [NodeID: Link] = [:]

  package init() {}

  package init(of nodes: some Sequence<Node>) {
    var ancestry = Ancestry()
    links.reserveCapacity(nodes.underestimatedCount)
    add(nodes, &ancestry)
  }

  /// - Parameter ancestry: of the same tree.
  mutating func add(_ nodes: some Sequence<Node>, _ ancestry: inout Ancestry) {
    for node in nodes {
      var next: Node? = node
      while let node = next, links[node.id] == nil, let component = node.record.component {
        next = ancestry.pathParent(of: node)
        links[node.id] = Link(above: next?.id, component: component, jsonBytes: ancestry.jsonBytes(of: node))
      }
    }
  }

  /// `nil` if the object had no path (R4) or is unknown.
  package subscript(node: NodeID) -> IdentifierPath? {
    var components: [String] = []
    var next: NodeID? = node
    while let link = next.flatMap({ links[$0] }) {
      components.append(link.component)
      next = link.above
    }
    return components.isEmpty ? nil : IdentifierPath(components.reversed())
  }

  /// Bytes of the path as JSON text; `nil` if the object had no path.
  package func jsonBytes(of node: NodeID) -> Int? { links[node]?.jsonBytes }

  /// Whether the path continues that of another object.
  package func continues(_ node: NodeID) -> Bool { links[node]?.above != nil }
}
