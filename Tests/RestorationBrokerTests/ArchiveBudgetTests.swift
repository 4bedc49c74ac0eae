// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

@Suite struct ArchiveBudgetTests {
  private static func room(_ budget: ArchiveBudget) throws -> Int {
    var limits = Limits()
    limits.archiveBytesMax = 1_000
    let event = try TurnFixture(limits)
    return (0...1_000).last { bytes in (try? budget.requireRoom(for: bytes, in: event.turn)) != nil } ?? -1
  }

  @Test func whatIsWrittenCountsAtOnce() throws {
    var budget = ArchiveBudget(reachable: 600)
    #expect(try Self.room(budget) == 400)
    budget.grow(by: 300, at: 1)
    #expect(try Self.room(budget) == 100)
    budget.grow(by: -50, at: 2)
    #expect(try Self.room(budget) == 150)
  }

  @Test func theArchivesCountReplacesWhatItIncludesAndWasWrittenSinceComesOnTop() throws {
    var budget = ArchiveBudget()
    for sequence: Int64 in 1...3 { budget.grow(by: 100, at: sequence) }
    // Upkeep has freed some of it.
    budget.settle(ArchiveReceipt(sequence: 2, reachableBytes: 120))
    #expect(try Self.room(budget) == 1_000 - 120 - 100)
    budget.settle(ArchiveReceipt(sequence: 3, reachableBytes: 220))
    #expect(try Self.room(budget) == 1_000 - 220)
  }

  @Test func theHeadIsCountedByItself() {
    var budget = ArchiveBudget(reachable: 600)
    budget.growHead(by: 30)
    budget.growHead(by: -10)
    #expect(budget.head == 20)
    budget.emptyHead()
    #expect(budget.head == 0)
  }
}
