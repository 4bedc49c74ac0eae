// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// A batch as one piece of bytes (`Protocol/replica-format.md`, "In a database").
package enum BatchFrame {
  private static let version: UInt8 = 1

  package static func encode(_ batch: ReplicaBatch) -> [UInt8] {
    var bytes = [version] + BigEndian.bytes(UInt64(bitPattern: batch.after))
    bytes.reserveCapacity(bytes.count + batch.bytes + 32 * batch.transactions.count)
    for transaction in batch.transactions {
      bytes += BigEndian.bytes(UInt64(bitPattern: transaction.upto))
      bytes += BigEndian.bytes(transaction.change.high) + BigEndian.bytes(transaction.change.low)
      bytes += BigEndian.bytes(UInt64(transaction.changes.count))
      bytes += transaction.changes
    }
    return bytes
  }

  /// `nil` if the bytes are not a batch: they come from outside.
  package static func decode(_ bytes: [UInt8]) -> ReplicaBatch? {
    var rest = bytes[...]
    func number() -> UInt64? {
      guard rest.count >= 8 else { return nil }
      defer { rest = rest.dropFirst(8) }
      return BigEndian.number(rest.prefix(8))
    }
    guard rest.popFirst() == version, var after = number().map({ SequenceNumber(bitPattern: $0) }) else { return nil }
    var transactions: [ReplicaTransaction] = []
    while !rest.isEmpty {
      guard let upto = number().map({ SequenceNumber(bitPattern: $0) }), upto > after,
        let high = number(), let low = number(), let count = number(), count <= UInt64(rest.count)
      else { return nil }
      let changes = Array(rest.prefix(Int(count)))
      rest = rest.dropFirst(Int(count))
      let change = ChangeID(high: high, low: low)
      transactions.append(ReplicaTransaction(after: after, upto: upto, change: change, changes: changes))
      after = upto
    }
    return transactions.isEmpty ? nil : ReplicaBatch(transactions)
  }
}
