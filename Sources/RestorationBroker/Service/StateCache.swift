// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive

/// Texts that were committed or read lately, so that a decode need not ask the archive's thread for them.
///
/// Counted and bounded: the archive, not this, is where states live. Entries leave in the order they came, except that
/// one used since gets another round.
package struct StateCache {
  private struct Key: Hashable {
    let application: ApplicationID
    let node: NodeID
  }

  private struct Entry {
    var record: StateRecord
    var sequence: SequenceNumber
    var wasUsed: Bool
  }

  /// Bytes an entry takes besides its text.
  private static let overhead = 256

  package let bytesMax: Int
  package private(set) var bytes = 0
  private var entries: [Key: Entry] = [:]
  private var order: [Key] = []
  private var hand = 0

  package init(bytesMax: Int) {
    self.bytesMax = bytesMax
  }

  /// The record of `node` if it is the row with this sequence.
  package mutating func record(_ application: ApplicationID, _ node: NodeID, sequence: SequenceNumber) -> StateRecord? {
    let key = Key(application: application, node: node)
    guard let index = entries.index(forKey: key), entries.values[index].sequence == sequence else { return nil }
    entries.values[index].wasUsed = true
    return entries.values[index].record
  }

  package mutating func insert(_ record: StateRecord, sequence: SequenceNumber, of application: ApplicationID) {
    let size = record.bytes + Self.overhead
    guard size <= bytesMax / 8 else { return remove(Key(application: application, node: record.node)) }
    let key = Key(application: application, node: record.node)
    // The text may be a slice of a much larger frame, which must not stay alive for it.
    var record = record
    record.text = Array(record.text)[...]
    if let old = entries.updateValue(Entry(record: record, sequence: sequence, wasUsed: false), forKey: key) {
      bytes -= old.record.bytes + Self.overhead
    } else {
      order.append(key)
    }
    bytes += size
    evict()
  }

  package mutating func removeAll(of application: ApplicationID) {
    for key in entries.keys.filter({ $0.application == application }) {
      remove(key)
    }
    order = order[hand...].filter { $0.application != application }
    hand = 0
  }

  private mutating func remove(_ key: Key) {
    if let old = entries.removeValue(forKey: key) { bytes -= old.record.bytes + Self.overhead }
  }

  private mutating func evict() {
    while bytes > bytesMax, hand < order.count {
      let key = order[hand]
      hand += 1
      guard let index = entries.index(forKey: key) else { continue }
      if entries.values[index].wasUsed {
        entries.values[index].wasUsed = false
        order.append(key)
      } else {
        remove(key)
      }
    }
    if hand > 1_024, hand > order.count / 2 {
      order.removeFirst(hand)
      hand = 0
    }
  }
}
