// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationReplica
internal import SeededRandom
internal import Testing

/// What is sent of transactions that were committed (`Protocol/replica-format.md`).
@Suite struct ReplicaBatchTests {
  private static func transaction(
    _ after: SequenceNumber,
    _ random: inout SeededGenerator
  ) -> CommittedTransaction {
    let changes = (0...random.below(4)).map { number -> ArchiveChange in
      let facts = String(repeating: "x", count: random.below(300))
      return .run(RunRecord(run: Int64(number), restorations: 0, facts: facts))
    }
    let change = ChangeID(high: random.next(), low: random.next())
    return CommittedTransaction(upto: after + SequenceNumber(changes.count), change: change, changes: changes)
  }

  @Test func aBatchIsTheTransactionsThatWereTakenTogether() throws {
    var random = SeededGenerator(seed: 2)
    for _ in 0..<200 {
      var (end, transactions) = (SequenceNumber(random.below(1 << 40)), [CommittedTransaction]())
      for _ in 0...random.below(5) {
        transactions.append(Self.transaction(end, &random))
        end = transactions[transactions.count - 1].upto
      }
      let whole = ChangeBatch(after: transactions[0].after, transactions.map { .init($0.change, $0.changes) })
      let batch = ReplicaBatch(transactions.map { $0.encoded { $0 } })
      #expect((batch.after, batch.upto, batch.change) == (whole.after, end, transactions.last?.change))
      #expect(try ChangeBatch(decoding: batch.body) == whole)
      #expect(batch.body == whole.encoded { $0 })
    }
  }
}
