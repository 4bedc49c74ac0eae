// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

struct ArchiveTotals {
  /// Bytes of the states that kept contents show.
  var reachableBytes = 0
  /// The cost of the rows in `dead`, in bytes.
  var deadBytes = 0
  var dead = DeadQueue()
}

/// A row that no kept contents show.
struct DeadRow: Hashable {
  enum Log { case states, descriptions }

  let sequence: SequenceNumber
  let node: NodeID
  let log: Log
}

/// Dead rows, roughly from the oldest to the newest: rows of neighbouring sequence lie side by side in the file, and
/// deleting them together frees whole pages.
struct DeadQueue {
  /// Rows die in another order than they were written; this many are sorted at a time.
  private static let sortedAtOnce = 4096

  private var rows: Deque<DeadRow> = []
  /// The next to go, in descending order.
  private var next: [DeadRow] = []

  mutating func append(_ row: DeadRow) { rows.append(row) }

  /// Puts rows back in front.
  mutating func prepend(_ earlier: [DeadRow]) { next.append(contentsOf: earlier.reversed()) }

  mutating func popFirst() -> DeadRow? {
    if next.isEmpty {
      next.append(contentsOf: rows.prefix(Self.sortedAtOnce))
      rows.removeFirst(next.count)
      next.sort { $0.sequence > $1.sequence }
    }
    return next.popLast()
  }

  /// Needed after loading, which finds rows node by node.
  mutating func sort() { rows.sort { $0.sequence < $1.sequence } }
}

/// One batch of dead rows.
struct ArchivePurge {
  let rowsMax: Int
  let bytesMax: Int
  private var rows = 0
  private var bytes = 0
  var states: [SequenceNumber] = []
  /// Those of `states` that have an early mark.
  var early: [SequenceNumber] = []
  var descriptions: [SequenceNumber] = []
  var cuts: [SequenceNumber] = []
  /// Nodes that have no description left: their claims go too.
  var unshown: [NodeID] = []
  /// The cost that the rows counted as dead.
  var deadBytes = 0

  init(rowsMax: Int, bytesMax: Int) { (self.rowsMax, self.bytesMax) = (rowsMax, bytesMax) }

  var isEmpty: Bool { states.isEmpty && descriptions.isEmpty && cuts.isEmpty }

  /// A batch takes at least one row of any size.
  var hasRoom: Bool { rows < rowsMax && bytes < bytesMax }

  mutating func note(_ row: some LogRow) {
    rows += 1
    bytes += row.cost
    if row.isDead { deadBytes += row.cost }
  }
}
