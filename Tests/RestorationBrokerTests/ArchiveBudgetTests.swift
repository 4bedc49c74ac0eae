// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

@Suite struct ArchiveBudgetTests {
  private static func room(_ budget: ArchiveBudget, origins: Int = 0) throws -> Int {
    var limits = Limits()
    limits.archiveBytesMax = 1_000
    let event = try TurnFixture(limits)
    return (0...1_000).last { bytes in (try? budget.requireRoom(for: bytes, origins: origins, in: event.turn)) != nil }
      ?? -1
  }

  @Test func theHeadAloneIsLimitedWithTheTextsOfItsNodesAndItsOrigins() throws {
    var budget = ArchiveBudget()
    budget.grow(by: 300, at: 1)
    budget.growTexts(by: 100, at: 2)
    #expect(budget.states == 300 && budget.head == 400)
    #expect(try Self.room(budget) == 600)
    #expect(try Self.room(budget, origins: 50) == 550)
    budget.grow(by: -50, at: 3)
    #expect(try Self.room(budget) == 650)
    budget.settle(ArchiveReceipt(sequence: 3, reachableBytes: 1_350), origins: 0, max: 1_000)
    #expect(try Self.room(budget) == 650)
  }

  @Test func whatIsOverALimitThatWasLoweredMayShrink() throws {
    var budget = ArchiveBudget()
    budget.grow(by: 1_200, at: 1)
    #expect(try Self.room(budget) == 0)
    let event = try TurnFixture()
    try budget.requireRoom(for: -1, in: event.turn)
  }

  @Test func whatIsKeptBesidesTheHeadHasAsMuchAgain() {
    var budget = ArchiveBudget(counted: 4)
    let name = String(repeating: "n", count: 100)
    let node = Node(record: NodeRecord(node: 1, parent: nil, component: name, kind: .object))
    let text = Array(repeating: UInt8(ascii: "1"), count: 500)
    node.versions.write(StateSummary(StateRecord(node: 1, context: 1, written: 0, text: text[...]), at: 2))
    budget.count([node], at: 4)
    #expect(budget.states == 500 && budget.texts == 100)
    func excess(_ reachable: Int, at sequence: SequenceNumber) -> Int {
      budget.settle(ArchiveReceipt(sequence: sequence, reachableBytes: reachable), origins: 30, max: 1_000)
      return budget.excess
    }
    #expect(excess(1_630, at: 5) == 0)
    #expect(excess(1_631, at: 6) == 1)
    // The archive has not counted it yet.
    budget.grow(by: 400, at: 8)
    #expect(excess(1_631, at: 7) == 1)
    #expect(excess(2_031, at: 8) == 1)
    #expect(excess(2_030, at: 9) == 0)
  }

  @Test func whereNothingWasFoundToGiveUpIsLookedAgainOnlyIfThereMayBeMore() throws {
    var budget = ArchiveBudget()
    var sequence: SequenceNumber = 0
    func reach(_ bytes: Int) {
      sequence += 1
      budget.settle(ArchiveReceipt(sequence: sequence, reachableBytes: 1_000 + bytes), origins: 0, max: 1_000)
    }
    reach(300)
    #expect(budget.mayFindMore(beside: []))
    budget.giveUp(at: 1, after: 1, beside: [])
    reach(300)
    #expect(!budget.mayFindMore(beside: []))
    let record = GenerationRecord(generation: 1, kind: "round", committed: 0, objects: 0, bytes: 0, omitted: [])
    #expect(budget.mayFindMore(beside: [SealedGeneration(record: record, sequence: 2, isPinned: false)]))
    reach(301)
    #expect(budget.mayFindMore(beside: []))
    // Less, and then more again.
    budget.giveUp(at: 3, after: 3, beside: [])
    reach(100)
    #expect(!budget.mayFindMore(beside: []))
    budget.giveUp(at: 4, after: 4, beside: [])
    reach(200)
    #expect(budget.mayFindMore(beside: []))
    budget.giveUp(at: 5, after: 5, beside: [])
    reach(0)
    reach(100)
    #expect(budget.mayFindMore(beside: []))
    // Something was found.
    budget.giveUp(at: 8, after: 7, beside: [])
    sequence = 8
    reach(100)
    #expect(budget.excess == 100 && budget.mayFindMore(beside: []))
  }
}
