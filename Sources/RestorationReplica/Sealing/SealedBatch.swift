// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// The text of a sealed batch: its transactions, one behind the other.
///
/// A batch is sealed as a whole. So the replica is not told where its transactions end, and the 49 bytes that sealing
/// adds are added once; a transaction is often shorter than 200 bytes.
package enum SealedBatch {
  package static func text(of batch: ReplicaBatch) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(batch.bytes + batch.transactions.count * transactionBytes)
    for transaction in batch.transactions {
      text.append(number: transaction.upto)
      text.append(number: transaction.change.high)
      text.append(number: transaction.change.low)
      text.append(counted: transaction.changes)
    }
    return text
  }

  /// What a transaction takes beside its changes.
  package static let transactionBytes = 28

  /// Reads a batch that begins behind a sequence; `nil` if the text is not one.
  package static func batch(_ text: [UInt8], after: SequenceNumber) -> ReplicaBatch? {
    var rest = text[...]
    var transactions: [ReplicaTransaction] = []
    var end = after
    while !rest.isEmpty {
      guard let upto = rest.takeNumber(SequenceNumber.self), upto >= end,
        let high = rest.takeNumber(UInt64.self), let low = rest.takeNumber(UInt64.self),
        let count = rest.takeNumber(UInt32.self), let changes = rest.take(Int(count))
      else { return nil }
      let change = ChangeID(high: high, low: low)
      transactions.append(ReplicaTransaction(after: end, upto: upto, change: change, changes: Array(changes)))
      end = upto
    }
    return transactions.isEmpty ? nil : ReplicaBatch(transactions)
  }
}
