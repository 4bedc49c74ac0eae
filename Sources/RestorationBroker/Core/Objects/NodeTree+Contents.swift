// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

extension NodeTree {
  /// The application itself, then parents first, siblings by age. What has no path is left out unless something with a
  /// path is below it: nobody can claim it again.
  ///
  /// - Parameters:
  ///   - omitted: nodes that a generation does not hold (R4, R7); they are left out in the same way.
  ///   - kept: nodes that are not left out in any case.
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
