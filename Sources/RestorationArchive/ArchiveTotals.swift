// SPDX-License-Identifier: Apache-2.0

/// What an archive's rows add up to.
struct ArchiveTotals {
  /// Bytes of the states that kept contents show.
  var reachableBytes = 0
  /// What the rows in `dead` cost, in bytes.
  var deadBytes = 0
  /// Rows that can go, those that died first in front: they lie side by side in the file, so that deleting them in this
  /// order frees whole pages.
  var dead = DeadQueue()
}

/// A row that no kept contents show.
struct DeadRow: Hashable {
  enum Log { case states, descriptions }

  let sequence: SequenceNumber
  let node: NodeID
  let log: Log
}

/// Dead rows in order of death.
struct DeadQueue {
  private var rows: [DeadRow] = []
  private var first = 0

  mutating func append(_ row: DeadRow) { rows.append(row) }

  /// Puts rows back in front.
  mutating func prepend(_ earlier: [DeadRow]) {
    guard !earlier.isEmpty else { return }
    rows = earlier + rows[first...]
    first = 0
  }

  mutating func popFirst() -> DeadRow? {
    guard first < rows.count else { return nil }
    defer {
      first += 1
      if first == rows.count || first > 4096 && first * 2 > rows.count {
        rows.removeFirst(first)
        first = 0
      }
    }
    return rows[first]
  }

  /// Loading finds rows node by node.
  mutating func sort() { rows.sort { $0.sequence < $1.sequence } }
}

/// One batch of rows that nobody can reach any more.
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
  /// Nodes of which no description is left: nobody needs their claims.
  var unshown: [NodeID] = []
  /// What the rows counted for as dead.
  var deadBytes = 0

  init(rowsMax: Int, bytesMax: Int) {
    self.rowsMax = rowsMax
    self.bytesMax = bytesMax
  }

  var isEmpty: Bool { states.isEmpty && descriptions.isEmpty && cuts.isEmpty }

  /// A batch takes at least one row, however large.
  var hasRoom: Bool { rows < rowsMax && bytes < bytesMax }

  mutating func count(_ cost: Int) {
    rows += 1
    bytes += cost
  }
}
