// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive

/// Recently written or read texts, so that most decodes need not read the archive.
/// A row may be here before it is durable; a caller that answers with it must check that first.
///
/// Bounded, because the archive is where states live. Entries leave in the order of their arrival, except that an entry
/// used since gets another round.
package struct StateCache {
  private struct Key: Hashable {
    let application: ApplicationID
    let node: NodeID
  }

  /// An object, so that a new record replaces the former one by a single look-up.
  private final class Entry {
    let key: Key
    /// `nil` if the newest record is too large, and after the entry was evicted.
    var record: StateRecord?
    var sequence: SequenceNumber
    var bytes: Int
    var wasUsed = false

    init(_ key: Key, _ record: StateRecord, _ sequence: SequenceNumber, bytes: Int) {
      (self.key, self.record, self.sequence, self.bytes) = (key, record, sequence, bytes)
    }
  }

  /// Bytes of an entry besides its text.
  private static let overhead = 256

  package let bytesMax: Int
  package private(set) var bytes = 0
  private var entries: [Key: Entry] = [:]
  /// All of `entries`; those before `hand` were evicted or appended again.
  private var order: [Entry] = []
  private var hand = 0

  package init(bytesMax: Int) { self.bytesMax = bytesMax }

  /// The record of `node` if it is the row with this sequence.
  package func record(_ application: ApplicationID, _ node: NodeID, sequence: SequenceNumber) -> StateRecord? {
    guard let entry = entries[Key(application: application, node: node)], entry.sequence == sequence else { return nil }
    entry.wasUsed = true
    return entry.record
  }

  /// Adds a row. The text must not be a slice of a larger array, which would stay in memory.
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
    // `order` may hold the entry for longer than its text should live.
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
