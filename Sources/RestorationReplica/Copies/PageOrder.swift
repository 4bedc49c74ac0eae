// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

/// Checks that a page begins at the requested position, so that repetitions, gaps and a wrong order are found. It
/// cannot find what the replica withholds at the end.
package enum PageOrder {
  /// Describes the fault; `nil` if there is none.
  package static func fault(in page: ReplicaPage, from position: ReplicaPosition) -> String? {
    var end = position
    for part in page.parts {
      guard end == .snapshot(part: part.number), part.number < part.count else {
        return "part \(part.number &+ 1) of \(part.count) of a snapshot does not follow"
      }
      let isLast = part.number + 1 == part.count
      end = isLast ? .batches(after: part.tip.sequence) : .snapshot(part: part.number + 1)
    }
    // The snapshot may be missing.
    if end == .snapshot(part: 0) { end = .batches(after: 0) }
    for (index, batch) in page.batches.enumerated() {
      // The first batch may begin before the position.
      guard case .batches(let after) = end, batch.upto > after, index == 0 ? batch.after <= after : batch.after == after
      else { return "the batch with the changes \(batch.after &+ 1) to \(batch.upto) does not follow" }
      end = .batches(after: batch.upto)
    }
    switch (page.next, end) {
    case (nil, .batches): return nil
    case (nil, .snapshot(let part)): return "part \(part &+ 1) of a snapshot is missing"
    case (let next?, _) where next == end && next != position: return nil
    default: return "the next page would not follow"
    }
  }
}
