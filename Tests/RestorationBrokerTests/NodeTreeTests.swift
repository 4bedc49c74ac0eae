// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import SeededRandom
internal import TestSupport
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

  @Test mutating func aDamagedListOfMoreNodesThanThereCanBeNamesThoseThatThereAre() {
    let nodes = [insert(5), insert(6), insert(7)]
    tree.remove(nodes[0], successor: nodes[2])
    #expect(tree.nodes(in: RangeSet(0..<NodeID.max)) == [6, 7])
    #expect(tree.nodes(in: RangeSet(0..<6)) == [7] && tree.nodes(in: RangeSet(8..<9)) == [])
  }

  // MARK: Deep trees

  /// Objects of all kinds below each other, some without an identifier.
  private static func randomTree(_ seed: UInt64, count: NodeID = 60) -> (NodeTree, SeededGenerator) {
    var (tree, random) = (NodeTree(), SeededGenerator(seed: seed))
    for id in 1...count {
      let kind: NodeKind = [.object, .viewController, .viewController, .view].randomElement(using: &random) ?? .view
      let isNamed = kind == .object || Int.random(in: 0..<6, using: &random) > 0
      let parent = id > 3 ? NodeID.random(in: max(1, id - 6)..<id, using: &random) : nil
      _ = tree.insert(NodeRecord(node: id, parent: parent, component: isNamed ? "n\"\(id)" : nil, kind: kind))
    }
    return (tree, random)
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func whatNodesHaveByTheirAncestorsIsFoundOnceForEachNodeWithChildren(_ seed: UInt64) {
    let (tree, _) = Self.randomTree(seed)
    var ancestry = Ancestry()
    for node in tree.nodes.values {
      #expect(ancestry.isExcluded(node) == tree.isExcluded(node))
      #expect(ancestry.isIncluded(node) == tree.isIncluded(node))
      #expect(ancestry.place(of: node).pathBytes == tree.path(of: node)?.bytes ?? 0)
      #expect(ancestry.place(of: node).isIncluded == tree.isIncluded(node))
      #expect(ancestry.jsonBytes(of: node) == tree.path(of: node)?.jsonBytes ?? 0)
    }
    #expect(ancestry.count == tree.nodes.values.count { !$0.children.isEmpty })
  }

  /// A key names the parent, so that a move leaves most of a subtree alone; which of it, the tree itself tells.
  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func whateverMovesEachPathLeadsToItsNode(_ seed: UInt64) {
    var (tree, random) = Self.randomTree(seed)
    var limits = Limits()
    limits.pathBytesMax = 60
    for step in 1...30 {
      let movers = tree.nodes.keys.sorted().shuffled(using: &random).prefix(Int.random(in: 1...3, using: &random))
      let relocations = movers.compactMap { tree.nodes[$0] }.enumerated().map { place, node in
        let isNamed = node.record.kind == .object || Bool.random(using: &random)
        let parent = Bool.random(using: &random) ? node.parent : tree.nodes[NodeID.random(in: 0...60, using: &random)]
        return Relocation(node: node, parent: parent, component: isNamed ? "s\(step % 4 * 3 + place)" : nil)
      }
      let outcome = try? tree.relocate(relocations, takesOver: true, within: limits)
      let named = tree.nodes.values.filter { $0.record.component != nil }
      #expect(tree.pathCount == named.count)
      for node in named {
        let path = tree.path(of: node)
        #expect(path.map { tree.node(at: $0) === node } == true)
      }
      for node in outcome?.moved ?? [] where tree.nodes[node.id] === node {
        #expect(tree.path(of: node)?.bytes ?? 0 <= 60)
      }
    }
  }

  /// One that a lowered limit has made too long is not in the way of other moves.
  @Test func r14AStateThatIsTooLongMustNotGrow() {
    var (tree, limits) = (NodeTree(), Limits())
    limits.frameBytesMax = 512
    let nodes = (1...3).map { tree.insert(NodeRecord(node: $0, parent: nil, component: "n\($0)", kind: .object)) }
    let references = (0..<8).map { "[\($0 * 20),19,1]" }.joined(separator: ",")
    let state = StateSummary(
      sequence: 1,
      context: 0,
      session: 0,
      revision: 0,
      isEarly: false,
      written: 0,
      bytes: 200,
      references: "[\(references)]"
    )
    nodes[2].versions.write(state)
    func isMoved(_ node: Node, _ component: String) -> Bool {
      let relocation = Relocation(node: node, parent: nil, component: component)
      return (try? tree.relocate([relocation], takesOver: false, within: limits)) != nil
    }
    #expect(isMoved(nodes[1], "another"))
    #expect(isMoved(nodes[0], "o1"))
    #expect(!isMoved(nodes[0], "n11"))
    #expect(tree.path(of: nodes[0]) == ["o1"])
    #expect(isMoved(nodes[0], "n"))
    #expect(!isMoved(nodes[0], "n1"))
  }

  @Test func aPathIsFollowedAsFarAsItIsKnown() {
    var tree = NodeTree()
    _ = tree.insert(NodeRecord(node: 1, parent: nil, component: "a", kind: .object))
    let last = tree.insert(NodeRecord(node: 2, parent: 1, component: "b", kind: .object))
    let found = tree.walk(down: ["a", "b", "c", "d"])
    #expect((found.known, found.node === last) == (2, true))
    #expect(tree.walk(down: ["x"]).known == 0)
  }
}
