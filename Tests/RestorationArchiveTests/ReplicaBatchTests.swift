// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import SeededRandom
internal import Testing

/// The bytes of a batch in a database, and below its seal (`Protocol/replica-format.md`).
@Suite struct ReplicaBatchTests {
  private static func random(_ random: inout SeededGenerator) -> ReplicaBatch {
    var end = SequenceNumber(random.below(1 << 40))
    return ReplicaBatch(
      (0...random.below(5)).map { _ in
        let after = end
        end += SequenceNumber(1 + random.below(4))
        let change = ChangeID(high: random.next(), low: random.next())
        let changes = (0..<random.below(300)).map { _ in UInt8(random.below(256)) }
        return ReplicaTransaction(after: after, upto: end, change: change, changes: changes)
      }
    )
  }

  @Test func batchesComeBackAsTheyWere() throws {
    var random = SeededGenerator(seed: 2)
    for _ in 0..<200 {
      let batch = Self.random(&random)
      let encoded = batch.encoded
      #expect(encoded.count == batch.bytes + batch.transactions.count * ReplicaBatch.transactionBytes)
      #expect(ReplicaBatch(encoded[...], after: batch.after) == batch)
      // Whatever the bytes are, reading them ends.
      let cut = random.below(encoded.count)
      _ = ReplicaBatch(encoded[cut...], after: batch.after)
      let shorter = ReplicaBatch(encoded[..<cut], after: batch.after)
      #expect(shorter.map { batch.transactions.starts(with: $0.transactions) } ?? true)
    }
  }

  @Test func bytesThatAreNotABatchAreNotReadAsOne() {
    let change = ChangeID(high: 1, low: .max)
    let batch = ReplicaBatch([ReplicaTransaction(after: 5, upto: 7, change: change, changes: [1, 2, 3])])
    let encoded = batch.encoded
    #expect(
      encoded == [0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1] + [UInt8](repeating: 255, count: 8)
        + [0, 0, 0, 3, 1, 2, 3]
    )
    for count in encoded.indices { #expect(ReplicaBatch(encoded[..<count], after: 5) == nil, "\(count)") }
    #expect(ReplicaBatch((encoded + [0])[...], after: 5) == nil)
    #expect(ReplicaBatch(encoded[...], after: 7) == nil, "it ends where it begins")
    #expect(ReplicaBatch(encoded[...], after: 8) == nil)
  }
}
