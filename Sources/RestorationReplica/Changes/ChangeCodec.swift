// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// Consecutive transactions of one archive, in the form that hosts exchange (`Protocol/replica-format.md`).
///
/// Encoded batches come from outside: decoding any bytes either throws or yields a batch that encodes to the same
/// bytes.
package struct ChangeBatch: Hashable, Sendable {
  package struct Transaction: Hashable, Sendable {
    package var changeID: ChangeID
    package var changes: [ArchiveChange]

    package init(_ changeID: ChangeID, _ changes: [ArchiveChange]) {
      (self.changeID, self.changes) = (changeID, changes)
    }
  }

  /// The sequence of the last change before the batch.
  package var after: SequenceNumber
  /// Each begins where the former one ends.
  package var transactions: [Transaction]

  package init(after: SequenceNumber, _ transactions: [Transaction]) {
    (self.after, self.transactions) = (after, transactions)
  }

  /// The sequence of the batch's last change; each change takes one.
  package var upto: SequenceNumber { transactions.reduce(after) { $0 + SequenceNumber($1.changes.count) } }

  package static let version: UInt8 = 1

  package static let sequenceMax = ArchiveTip.sequenceMax

  /// - Parameter shared: reduces a session's record to what other hosts may know.
  package func encoded(shared: @escaping @Sendable (SessionRecord) -> SessionRecord) -> [UInt8] {
    var writer = ChangeWriter(shared: shared)
    writer.begin(after, count: transactions.count)
    for transaction in transactions { writer.write(transaction) }
    return writer.bytes
  }
}

extension ReplicaBatch {
  /// - Parameter transactions: at least one; each begins where the former one ends.
  package init(_ transactions: [ReplicaTransaction]) {
    let (first, last) = (transactions[0], transactions[transactions.count - 1])
    var writer = ChangeWriter { $0 }
    writer.makeRoom(64 + transactions.bytes + 16 * transactions.count)
    writer.begin(first.after, count: transactions.count)
    for transaction in transactions {
      writer.write(transaction.change.high)
      writer.write(transaction.change.low)
      writer.content(transaction.changes)
    }
    self.init(after: first.after, upto: last.upto, change: last.change, body: writer.bytes)
  }
}

extension CommittedTransaction {
  /// - Parameter shared: reduces a session's record to what other hosts may know.
  package func encoded(shared: @escaping @Sendable (SessionRecord) -> SessionRecord) -> ReplicaTransaction {
    var writer = ChangeWriter(shared: shared)
    // The buffer stays in memory until it is sent, so it should not be much larger than needed.
    writer.makeRoom(changes.reduce(8) { $0 + $1.encodedBytes })
    writer.write(changes)
    return ReplicaTransaction(after: after, upto: upto, change: change, changes: writer.bytes)
  }
}

extension ArchiveChange {
  /// About how many bytes the change takes in a batch: its texts and, if it has any, the numbers beside them.
  fileprivate var encodedBytes: Int { textBytes > 0 ? textBytes + 96 : 8 }
}

protocol ChangeField {
  func write(to writer: inout ChangeWriter)
  init(from reader: inout ChangeReader) throws(ChangeBatchError)
}

/// A value with fields, which one walk visits in the order in which they are written and read.
protocol ChangeRecord: ChangeField {
  static var blank: Self { get }
  mutating func walk<Walk: ChangeWalk>(_ fields: inout Walk) throws(Walk.Failure)
}

extension ChangeRecord {
  func write(to writer: inout ChangeWriter) {
    var record = self
    record.walk(&writer)
  }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) {
    self = Self.blank
    try walk(&reader)
  }
}

protocol ChangeWalk {
  associatedtype Failure: Error
  mutating func visit(_ field: inout some ChangeField) throws(Failure)
}

struct ChangeWriter: ChangeWalk {
  private(set) var bytes: [UInt8] = []
  let shared: @Sendable (SessionRecord) -> SessionRecord

  /// The greatest number of an archive. Numbers out of range are clamped, as in the archive's file.
  static let numberMax: Int64 = 1 << 53

  init(shared: @escaping @Sendable (SessionRecord) -> SessionRecord) { self.shared = shared }

  mutating func makeRoom(_ count: Int) { bytes.reserveCapacity(count) }

  /// Begins a batch, before its transactions.
  mutating func begin(_ after: SequenceNumber, count: Int) {
    byte(ChangeBatch.version)
    number(after)
    number(Int64(count))
  }

  mutating func byte(_ byte: UInt8) { bytes.append(byte) }

  mutating func write(_ field: some ChangeField) { field.write(to: &self) }

  mutating func visit(_ field: inout some ChangeField) throws(Never) { write(field) }

  mutating func write(_ tag: UInt8, _ field: some ChangeField) {
    byte(tag)
    write(field)
  }

  /// Seven bits a byte, the lowest first; every byte but the last has the highest bit.
  mutating func number(_ number: Int64) {
    var rest = min(max(0, number), Self.numberMax)
    while rest > 0x7f {
      bytes.append(UInt8(rest & 0x7f | 0x80))
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  mutating func content(_ content: some Collection<UInt8>) { bytes.append(contentsOf: content) }
}
