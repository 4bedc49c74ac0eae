// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import Testing

@Suite struct GenerationHistoryTests {
  private let event: TurnFixture
  private var generations = GenerationHistory(last: 4)
  private var tree = NodeTree()

  init() throws { event = try TurnFixture() }

  private mutating func addNode(
    _ id: NodeID,
    _ component: String?,
    below parent: NodeID? = nil,
    to target: NodeID? = nil
  ) {
    let node = tree.insert(NodeRecord(node: id, parent: parent, component: component, kind: .viewController))
    let text = [UInt8](repeating: UInt8(ascii: " "), count: 100)
    let references = target.map { "[[0,20,\($0)]]" }
    let record = StateRecord(node: id, context: 1, written: 0, text: text[...], references: references)
    node.versions.write(StateSummary(record, at: id))
  }

  private mutating func seal(omitting omitted: Set<NodeID>? = nil) -> GenerationRecord {
    let record = generations.next("round", of: tree, omitting: omitted ?? tree.unreachedNodes, in: event.turn)
    generations.seal(record, in: &event.turn)
    return record
  }

  @Test mutating func aGenerationHoldsWhatIsIncludedAndWhatThatRefersTo() {
    addNode(1, "a", to: 3)
    addNode(2, nil)
    addNode(3, nil, below: 2)
    #expect(tree.unreachedNodes == [2])
    let record = seal()
    #expect((record.generation, record.objects, record.bytes) == (5, 2, 200 + "[[0,20,3]]".utf8.count))
    #expect(record.omitted == [2])
    #expect(event.written() == [.seal(record)])
  }

  @Test mutating func oneThatShowsWhatTheHeadDoesIsNotGivenUpForRoom() {
    let first = seal().generation
    let sealed = generations.sealedUpTo
    #expect(!generations.giveUpOldest(upTo: sealed, in: &event.turn))
    event.turn.write(.removeState(1))
    #expect(!generations.giveUpOldest(upTo: sealed - 1, in: &event.turn))
    #expect(generations.giveUpOldest(upTo: sealed, in: &event.turn))
    #expect(event.written().last == .dropGeneration(first))
  }

  @Test mutating func aHiddenStateGivesWayUnlessAGenerationShowsIt() throws {
    addNode(10, "a")
    let node = try #require(tree.nodes[10])
    let text = Array("{}".utf8)[...]
    let record = StateRecord(node: 10, context: 1, isEarly: true, written: 0, text: text)
    node.versions.write(StateSummary(record, at: 20))
    func hidden(_ sealed: SequenceNumber...) -> NodeID? {
      let record = GenerationRecord(generation: 1, kind: "round", committed: 0, objects: 0, bytes: 0, omitted: [])
      let generations = sealed.map { SealedGeneration(record: record, sequence: $0, isPinned: true) }
      return tree.largestHidden(beside: generations)?.id
    }
    #expect(hidden() == 10)
    // They show what was there before, and the early state.
    #expect(hidden(9, 20, 30) == 10)
    #expect(hidden(10) == nil)
    #expect(hidden(19, 30) == nil)
  }

  @Test mutating func threeAreKeptBesideThePinnedOne() {
    let first = seal().generation
    generations.pinNewest(in: &event.turn)
    for _ in 1...4 { _ = seal() }
    #expect(generations.all.map(\.record.generation) == [first, 7, 8, 9])
    #expect(event.written().last == .dropGeneration(6))
    // An older one still waits to be restored.
    generations.pinNewest(in: &event.turn)
    #expect(event.written() == [])
    generations.unpin(in: &event.turn)
    #expect(event.written() == [.pin(generation: nil)])
    _ = seal()
    #expect(generations.all.map(\.record.generation) == [8, 9, 10])
  }

  @Test mutating func whatWasWrittenSinceTheNewestOneIsNotSealed() {
    #expect(generations.hasUnsealedContent(in: event.turn) == false)
    event.turn.write(.removeState(1))
    #expect(generations.hasUnsealedContent(in: event.turn) == true)
    _ = seal()
    #expect(generations.hasUnsealedContent(in: event.turn) == false)
    // Who claims it is no content.
    event.turn.write(.claim(ClaimRecord(node: 1, session: 1, handle: 1)))
    #expect(generations.hasUnsealedContent(in: event.turn) == false)
    #expect(generations.sealedUpTo == 2)
  }

  @Test mutating func numbersOfRemovedGenerationsAreNotGivenAgain() {
    _ = seal()
    generations.pinNewest(in: &event.turn)
    _ = event.written()
    generations.removeAll(in: &event.turn)
    #expect(event.written() == [.pin(generation: nil), .dropGeneration(5)])
    #expect(generations.newest == nil)
    #expect(seal().generation == 6)
  }
}
