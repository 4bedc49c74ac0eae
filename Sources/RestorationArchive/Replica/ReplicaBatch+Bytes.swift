// SPDX-License-Identifier: Apache-2.0

/// Concatenated transactions, as stored in a database and as sealed (`Protocol/replica-format.md`).
extension ReplicaBatch {
  /// Bytes of a transaction besides its changes.
  package static let transactionBytes = 28

  package var encoded: [UInt8] {
    var encoded: [UInt8] = []
    encoded.reserveCapacity(bytes + transactions.count * Self.transactionBytes)
    for transaction in transactions {
      encoded.append(number: transaction.upto)
      encoded.append(transaction.change)
      encoded.append(counted: transaction.changes)
    }
    return encoded
  }

  /// - Parameters:
  ///   - encoded: untrusted; `nil` is returned unless it holds one or more transactions, each of one or more changes.
  ///   - after: where the batch begins.
  package init?(_ encoded: ArraySlice<UInt8>, after: SequenceNumber) {
    var (rest, end) = (encoded, after)
    var transactions: [ReplicaTransaction] = []
    while !rest.isEmpty {
      guard let upto = rest.takeNumber(SequenceNumber.self), upto > end, let change = rest.takeChange(),
        let count = rest.takeNumber(UInt32.self), let changes = rest.take(Int(count))
      else { return nil }
      transactions.append(ReplicaTransaction(after: end, upto: upto, change: change, changes: Array(changes)))
      end = upto
    }
    guard !transactions.isEmpty else { return nil }
    self.init(transactions)
  }
}
