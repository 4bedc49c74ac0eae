// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive

/// Texts that were written or read lately, so that a decode need not ask the archive's lane for them.
///
/// A row may be here before it is durable; whoever answers with one looks at that first.
///
/// Counted and bounded: the archive, not this, is where states live. Entries leave in the order they came, except that
/// one used since gets another round.
package struct StateCache {
  private struct Key: Hashable {
    let application: ApplicationID
    let node: NodeID
  }

  /// An object, so that a new record takes the place of the former one with a single look-up.
  private final class Entry {
    let key: Key
    /// Nil where the newest one is too large, and after the entry has left.
    var record: StateRecord?
    var sequence: SequenceNumber
    /// What is counted for it.
    var bytes: Int
    var wasUsed = false

    init(_ key: Key, _ record: StateRecord, _ sequence: SequenceNumber, bytes: Int) {
      (self.key, self.record, self.sequence, self.bytes) = (key, record, sequence, bytes)
    }
  }

  /// Bytes an entry takes besides its text.
  private static let overhead = 256

  package let bytesMax: Int
  package private(set) var bytes = 0
  private var entries: [Key: Entry] = [:]
  /// All of `entries`; those before `hand` have left or come again.
  private var order: [Entry] = []
  private var hand = 0

  package init(bytesMax: Int) { self.bytesMax = bytesMax }

  /// The record of `node` if it is the row with this sequence.
  package func record(_ application: ApplicationID, _ node: NodeID, sequence: SequenceNumber) -> StateRecord? {
    guard let entry = entries[Key(application: application, node: node)], entry.sequence == sequence else { return nil }
    entry.wasUsed = true
    return entry.record
  }

  /// Takes a row; the text must not be a slice of something larger, which would stay alive for it.
  package mutating func insert(_ record: StateRecord, sequence: SequenceNumber, of application: ApplicationID) {
    let key = Key(application: application, node: record.node)
    let size = record.bytes + Self.overhead
    let fits = size <= bytesMax / 8
    if let entry = entries[key] {
      bytes -= entry.bytes
      entry.record = fits ? record : nil
      entry.sequence = sequence
      entry.bytes = fits ? size : Self.overhead
      entry.wasUsed = false
      bytes += entry.bytes
    } else if fits {
      let entry = Entry(key, record, sequence, bytes: size)
      entries[key] = entry
      order.append(entry)
      bytes += entry.bytes
    }
    evict()
  }

  package mutating func removeAll(of application: ApplicationID) {
    order = order[hand...].filter { entry in
      guard entry.key.application == application else { return true }
      remove(entry)
      return false
    }
    hand = 0
  }

  private mutating func remove(_ entry: Entry) {
    entries[entry.key] = nil
    bytes -= entry.bytes
    // `order` may hold the entry for a while; its text must not stay for as long.
    entry.record = nil
  }

  private mutating func evict() {
    while bytes > bytesMax, hand < order.count {
      let entry = order[hand]
      hand += 1
      if entry.wasUsed {
        entry.wasUsed = false
        order.append(entry)
      } else {
        remove(entry)
      }
    }
    if hand > 1_024, hand > order.count / 2 {
      order.removeFirst(hand)
      hand = 0
    }
  }
}
