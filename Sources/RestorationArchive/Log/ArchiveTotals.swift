// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

struct ArchiveTotals {
  /// Bytes of the texts that kept contents show: of states, of the contexts that those name, and of nodes.
  var reachableBytes = 0
  /// The cost of the rows in `dead`, and the texts of contexts that only those name, in bytes.
  var deadBytes = 0
  var dead = DeadQueue()
  private var contexts: [ContextID: Context] = [:]
  /// Stored contexts that no row names.
  private(set) var unnamed: Set<ContextID> = []

  private struct Context {
    /// `nil` if it is not stored.
    var bytes: Int?
    /// Rows that name it, and those of them that are not dead.
    var rows = 0
    var shown = 0

    // Each gives the bytes whose count it changes, so that a change of a row finds its context once.

    mutating func name() -> Int? {
      rows += 1
      shown += 1
      return shown == 1 ? bytes : nil
    }

    mutating func bury() -> Int? {
      shown -= 1
      return shown == 0 ? bytes : nil
    }

    /// Whether a row is left.
    mutating func unname() -> Bool {
      rows -= 1
      return rows > 0
    }
  }

  // MARK: Contexts

  func isStored(_ context: ContextID) -> Bool { contexts[context]?.bytes != nil }

  /// Contexts that are not stored although a row that is not dead names them.
  func missing(upTo last: ContextID) -> Set<ContextID> {
    Set(contexts.filter { $0.value.bytes == nil && $0.value.shown > 0 && last.hasGivenOut($0.key) }.keys)
  }

  /// Stored contexts that only dead rows name.
  var buried: Set<ContextID> {
    Set(contexts.filter { $0.value.bytes != nil && $0.value.rows > 0 && $0.value.shown == 0 }.keys)
  }

  mutating func store(_ context: ContextID, bytes: Int) {
    let use = contexts[context] ?? Context()
    contexts[context] = Context(bytes: bytes, rows: use.rows, shown: use.shown)
    if use.shown > 0 { reachableBytes += bytes } else { deadBytes += bytes }
    if use.rows == 0 { unnamed.insert(context) }
  }

  /// A row that a reader can reach names it.
  mutating func name(_ context: ContextID) {
    guard let bytes = contexts[context, default: Context()].name() else { return }
    reachableBytes += bytes
    deadBytes -= bytes
    unnamed.remove(context)
  }

  /// A row that names it has died.
  mutating func bury(_ context: ContextID) {
    guard let bytes = contexts[context]?.bury() else { return }
    reachableBytes -= bytes
    deadBytes += bytes
  }

  /// A dead row that names it has been deleted.
  mutating func unname(_ context: ContextID) {
    guard contexts[context]?.unname() == false else { return }
    if isStored(context) { unnamed.insert(context) } else { contexts[context] = nil }
  }

  /// Contexts are deleted that no row names.
  mutating func forget(_ gone: [ContextID]) {
    for context in gone {
      deadBytes -= contexts[context]?.bytes ?? 0
      unnamed.remove(context)
      contexts[context]?.bytes = nil
      if contexts[context]?.rows == 0 { contexts[context] = nil }
    }
  }
}

struct DeadRow: Hashable {
  enum Log { case states, descriptions }

  let sequence: SequenceNumber
  let node: NodeID
  let log: Log
}

/// Dead rows, roughly from the oldest to the newest: neighbours lie side by side in the file and free whole pages.
struct DeadQueue {
  /// Rows die in another order than they were written; this many are sorted at a time.
  private static let sortedAtOnce = 4096

  private var rows: Deque<DeadRow> = []
  /// The next to go, in descending order.
  private var next: [DeadRow] = []

  mutating func append(_ row: DeadRow) { rows.append(row) }

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

struct ArchivePurge {
  let rowsMax: Int
  let bytesMax: Int
  private var rows = 0
  private var bytes = 0
  var states: [SequenceNumber] = []
  /// Those of `states` that have an early mark.
  var early: [SequenceNumber] = []
  /// The contexts of those of `states` that are no tombstones, once for each row.
  var contexts: [ContextID] = []
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
