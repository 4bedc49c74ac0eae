// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

/// A row of the state log or of the node log, without its texts.
protocol LogRow {
  var sequence: SequenceNumber { get }
  var bytes: UInt32 { get }
  /// Says that there is nothing from here on; needed only behind an older row.
  var isTombstone: Bool { get }
  /// No kept contents show it.
  var isDead: Bool { get }
}

extension LogRow {
  /// What a row costs besides its texts, in the file and in memory; keeps floods of tiny dead rows small.
  static var overhead: Int { 256 }

  /// Bytes a dead row counts for.
  var cost: Int { Int(bytes) + Self.overhead }
}

/// The rows of one log of one node, in ascending order of sequence.
extension Deque where Element: LogRow {
  /// Index of the newest row at or before `sequence`; -1 where there is none.
  func indexOfNewest(upTo sequence: SequenceNumber) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if self[middle].sequence <= sequence { low = middle + 1 } else { high = middle }
    }
    return low - 1
  }

  /// The newest row at or before `sequence`.
  func newest(upTo sequence: SequenceNumber) -> Element? {
    let index = indexOfNewest(upTo: sequence)
    return index < 0 ? nil : self[index]
  }

  /// Index of the row of exactly this sequence.
  func index(of sequence: SequenceNumber) -> Int? {
    let index = indexOfNewest(upTo: sequence)
    return index >= 0 && self[index].sequence == sequence ? index : nil
  }

  /// The sequence from which on the row is no longer seen; `.max` where the head shows it.
  func end(of index: Int, under horizon: Horizon) -> SequenceNumber {
    let next = index + 1 < count ? self[index + 1].sequence : .max
    return Swift.min(next, horizon.firstCut(after: self[index].sequence))
  }

  /// Whether a reader at one of `points`, which ascend, sees the row.
  func isShown(_ index: Int, at points: [SequenceNumber], under horizon: Horizon) -> Bool {
    var low = 0
    var high = points.count
    while low < high {
      let middle = (low + high) / 2
      if points[middle] < self[index].sequence { low = middle + 1 } else { high = middle }
    }
    return low < points.count && points[low] < end(of: index, under: horizon)
  }

  /// Takes out a dead row, and leading tombstones, which have lost what they hid.
  ///
  /// Mostly it is the oldest one: taking it costs no more than its distance from the nearer end.
  mutating func remove(_ sequence: SequenceNumber, noting note: (Element) -> Void) {
    guard let index = index(of: sequence), self[index].isDead else { return }
    note(remove(at: index))
    while let tombstone = first, tombstone.isTombstone { note(removeFirst()) }
  }
}

extension [SequenceNumber] {
  /// The same numbers in ascending order, each run of consecutive ones as a range.
  var runs: [ClosedRange<SequenceNumber>] {
    var runs: [ClosedRange<SequenceNumber>] = []
    for number in sorted() {
      if let last = runs.last, last.upperBound + 1 == number {
        runs[runs.count - 1] = last.lowerBound...number
      } else {
        runs.append(number...number)
      }
    }
    return runs
  }
}
