// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

/// A row of the state log or of the node log, without its texts.
protocol LogRow {
  var sequence: SequenceNumber { get }
  var bytes: UInt32 { get }
  /// Bytes that count while a reader can reach it.
  var shownBytes: Int { get }
  /// Nothing is shown from here on; needed only behind an older row.
  var isTombstone: Bool { get }
  var isDead: Bool { get set }
  static var log: DeadRow.Log { get }
}

extension LogRow {
  /// The cost of a row besides its texts, in the file and in memory: many tiny dead rows count too.
  static var overhead: Int { 256 }

  var cost: Int { Int(bytes) + Self.overhead }
}

/// The rows of one log of one node, in ascending order of sequence.
extension Deque where Element: LogRow {
  /// Index of the newest row at or before `sequence`; -1 if all rows are newer.
  func indexOfNewest(upTo sequence: SequenceNumber) -> Int { partitioningIndex { $0.sequence > sequence } - 1 }

  func newest(upTo sequence: SequenceNumber) -> Element? {
    let index = indexOfNewest(upTo: sequence)
    return index < 0 ? nil : self[index]
  }

  func index(of sequence: SequenceNumber) -> Int? {
    let index = indexOfNewest(upTo: sequence)
    return index >= 0 && self[index].sequence == sequence ? index : nil
  }

  /// The sequence from which on the row is no longer seen; `.max` if the head shows it.
  func end(of index: Int, under horizon: Horizon) -> SequenceNumber {
    let next = index + 1 < count ? self[index + 1].sequence : .max
    return Swift.min(next, horizon.firstCut(after: self[index].sequence))
  }

  /// Whether a reader at one of `points`, which ascend, sees the row.
  func isShown(_ index: Int, at points: [SequenceNumber], under horizon: Horizon) -> Bool {
    let sequence = self[index].sequence
    let first = points.partitioningIndex { $0 >= sequence }
    return first < points.count && points[first] < end(of: index, under: horizon)
  }

  /// Marks a row as dead if neither the head nor a kept generation shows it; returns whether it died by that.
  @discardableResult
  mutating func bury(_ index: Int, of node: NodeID, under horizon: Horizon, _ totals: inout ArchiveTotals) -> Bool {
    guard index >= 0, !self[index].isDead else { return false }
    let end = end(of: index, under: horizon)
    if end == .max || horizon.keeps(self[index].sequence, until: end) { return false }
    self[index].isDead = true
    totals.reachableBytes -= self[index].shownBytes
    totals.deadBytes += self[index].cost
    totals.dead.append(DeadRow(sequence: self[index].sequence, node: node, log: Element.log))
    return true
  }

  /// Removes a dead row, and leading tombstones, which hide nothing any more. Removing the oldest row is cheap.
  mutating func remove(_ sequence: SequenceNumber, noting note: (Element) -> Void) {
    guard let index = index(of: sequence), self[index].isDead else { return }
    note(remove(at: index))
    while let tombstone = first, tombstone.isTombstone { note(removeFirst()) }
  }
}

/// Which contents of an archive are kept besides its head, and at which sequences the head was emptied.
struct Horizon {
  /// Ascending.
  var cuts: [SequenceNumber] = []
  /// Sequences of the kept generations, ascending.
  var kept: [SequenceNumber] = []

  /// 0 if the head was never emptied.
  var lastCut: SequenceNumber { cuts.last ?? 0 }

  /// The newest cut that a reader at `point` sees; 0 if it sees no cut.
  func lastCut(upTo point: ArchivePoint) -> SequenceNumber {
    guard case .sequence(let sequence) = point else { return lastCut }
    return cuts.last { $0 <= sequence } ?? 0
  }

  /// `.max` if no cut follows.
  func firstCut(after sequence: SequenceNumber) -> SequenceNumber {
    guard let last = cuts.last, last > sequence else { return .max }
    return cuts[cuts.partitioningIndex { $0 > sequence }]
  }

  /// Whether a kept generation shows what is seen from `start` up to, but not including, `end`.
  func keeps(_ start: SequenceNumber, until end: SequenceNumber) -> Bool {
    guard let newest = kept.last(where: { $0 < end }) else { return false }
    return newest >= start
  }
}

extension RandomAccessCollection where Index == Int {
  /// Index of the first element that belongs in the second part, as all elements after it do; `endIndex` if none does.
  func partitioningIndex(where isInSecondPart: (Element) -> Bool) -> Int {
    var low = startIndex
    var high = endIndex
    while low < high {
      let middle = low + (high - low) / 2
      if isInSecondPart(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

extension [SequenceNumber] {
  /// Each run of consecutive numbers as a range, in ascending order.
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
