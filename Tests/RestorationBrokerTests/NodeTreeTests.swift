// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// What an application's tree knows besides paths, which the tests of moves go through.
@Suite struct NodeTreeTests {
  private var tree = NodeTree(last: 4)

  private mutating func insert(_ id: NodeID) -> Node {
    tree.insert(NodeRecord(node: id, parent: nil, component: "n\(id)", kind: .object))
  }

  @Test mutating func aClaimedNodeIsFoundByHandleUntilItIsReleased() {
    let node = insert(5)
    tree.hold(node, Node.Claim(session: 1, handle: 9, since: 0, classes: []))
    #expect(tree.node(.handle(9)) === node)
    #expect(tree.node(.path(["n5"])) === node)
    #expect(node.claim?.handle == 9)
    tree.release(9)
    #expect(tree.node(.handle(9)) == nil)
  }

  @Test mutating func noIdIsGivenAgainWhateverTakesThePlaceOfTheTree() {
    #expect(tree.last == 4)
    _ = insert(7)
    _ = insert(6)
    #expect(tree.last == 7)
    tree.become(NodeTree())
    #expect(tree.last == 7)
    #expect(tree.claimed.isEmpty)
    #expect(tree.count == 0)
  }
}
