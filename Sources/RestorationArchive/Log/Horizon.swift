// SPDX-License-Identifier: Apache-2.0

/// Which contents of an archive are kept besides its head, and where the head was emptied.
struct Horizon {
  /// Sequences at which the head was emptied, ascending.
  var cuts: [SequenceNumber] = []
  /// Sequences of the kept generations, ascending.
  var kept: [SequenceNumber] = []

  /// The newest cut; 0 where there is none.
  var lastCut: SequenceNumber { cuts.last ?? 0 }

  /// The newest cut a reader at `point` knows of; 0 where there is none.
  func lastCut(upTo point: ArchivePoint) -> SequenceNumber {
    guard case .sequence(let sequence) = point else { return lastCut }
    return cuts.last { $0 <= sequence } ?? 0
  }

  /// The first cut after `sequence`; `.max` where there is none.
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
