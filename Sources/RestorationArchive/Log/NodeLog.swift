// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

/// The rows of one node, without their texts, and which of them a reader can reach.
///
/// Invariants:
/// 1. A row is seen from its own sequence up to, but not including, its *end*: the sequence of the node's next row of
///    the same log, or that of the first cut after it.
/// 2. A row is *dead* if neither the head, nor a kept generation, nor an owner that decodes is shown it, and it is not
///    withheld. A dead row stays dead: kept contents are never added in the past, and a dead row is never withheld.
/// 3. The rows that are not dead, and what they name, make up `totals.reachableBytes`; the dead ones are all in
///    `totals.dead`.
struct NodeLog {
  struct State: LogRow {
    static let log = DeadRow.Log.states
    var summary: StateSummary
    var isTombstone = false
    /// Kept until it is released (R35).
    var isWithheld = false
    var isDead = false

    var sequence: SequenceNumber { summary.sequence }
    var bytes: UInt32 { summary.size }
    var shownBytes: Int { Int(bytes) }
  }

  struct Description: LogRow {
    static let log = DeadRow.Log.descriptions
    var sequence: SequenceNumber
    var bytes: UInt32
    var isRemoved: Bool
    var isTombstone: Bool
    var isDead = false

    /// The texts of a removed node are of no use.
    var shownBytes: Int { isRemoved ? 0 : Int(bytes) }
  }

  let node: NodeID
  private(set) var states: Deque<State> = []
  private(set) var descriptions: Deque<Description> = []
  /// Index of the newest state row that is not early; -1 if all are early.
  private var settled = -1

  init(_ node: NodeID) { self.node = node }

  var isEmpty: Bool { states.isEmpty && descriptions.isEmpty }

  // MARK: Reading

  /// The state row that a reader at `point` sees; `nil` if it sees no row, or a removal.
  func state(at point: ArchivePoint, under horizon: Horizon) -> State? {
    let row: State? =
      switch point {
      case .head: states.last
      case .beforeClaim: settled < 0 ? nil : states[settled]
      case .sequence(let sequence): states.newest(upTo: sequence)
      }
    guard let row, !row.isTombstone, row.sequence > horizon.lastCut(upTo: point) else { return nil }
    return row
  }

  /// The node row that a reader at `point` sees; `nil` if it sees no row, or a removal.
  func description(at point: ArchivePoint, under horizon: Horizon) -> Description? {
    let row: Description? =
      switch point {
      case .head, .beforeClaim: descriptions.last
      case .sequence(let sequence): descriptions.newest(upTo: sequence)
      }
    guard let row, !row.isTombstone, row.sequence > horizon.lastCut(upTo: point) else { return nil }
    return row
  }

  /// Whether any kept contents show the node.
  var isShown: Bool { descriptions.contains { !$0.isDead && !$0.isTombstone } }

  // MARK: Writing

  mutating func append(_ state: State, under horizon: Horizon, _ totals: inout ArchiveTotals) {
    let head = states.count - 1
    let formerlySettled = settled
    states.append(state)
    count(state, &totals)
    if !state.summary.isEarly { settled = states.count - 1 }
    refreshState(head, under: horizon, &totals)
    refreshState(formerlySettled, under: horizon, &totals)
  }

  mutating func append(_ description: Description, under horizon: Horizon, _ totals: inout ArchiveTotals) {
    descriptions.append(description)
    totals.reachableBytes += description.shownBytes
    descriptions.bury(descriptions.count - 2, of: node, under: horizon, &totals)
  }

  /// Removes all early marks; returns the sequences that had one.
  mutating func settle(under horizon: Horizon, _ totals: inout ArchiveTotals) -> [SequenceNumber] {
    var marked: [SequenceNumber] = []
    for index in states.indices where states[index].summary.isEarly {
      states[index].summary.isEarly = false
      marked.append(states[index].sequence)
    }
    let formerlySettled = settled
    settled = states.count - 1
    refreshState(formerlySettled, under: horizon, &totals)
    return marked
  }

  /// Keeps a row until it is released; false if no reader can reach it, or it is kept already.
  mutating func withhold(_ sequence: SequenceNumber) -> Bool {
    guard let index = states.index(of: sequence), !states[index].isTombstone, !states[index].isDead,
      !states[index].isWithheld
    else { return false }
    states[index].isWithheld = true
    return true
  }

  /// False if the row was not withheld.
  mutating func unwithhold(_ sequence: SequenceNumber, under horizon: Horizon, _ totals: inout ArchiveTotals) -> Bool {
    guard let index = states.index(of: sequence), states[index].isWithheld else { return false }
    states[index].isWithheld = false
    refreshState(index, under: horizon, &totals)
    return true
  }

  /// Called when the head has been emptied, after every row of the log.
  mutating func cut(under horizon: Horizon, _ totals: inout ArchiveTotals) {
    refreshState(states.count - 1, under: horizon, &totals)
    refreshState(settled, under: horizon, &totals)
    descriptions.bury(descriptions.count - 1, of: node, under: horizon, &totals)
  }

  /// Called when the contents at `sequence` are no longer kept.
  mutating func release(_ sequence: SequenceNumber, under horizon: Horizon, _ totals: inout ArchiveTotals) {
    refreshState(states.indexOfNewest(upTo: sequence), under: horizon, &totals)
    descriptions.bury(descriptions.indexOfNewest(upTo: sequence), of: node, under: horizon, &totals)
  }

  // MARK: Loading

  mutating func load(_ state: State) {
    states.append(state)
    if !state.summary.isEarly { settled = states.count - 1 }
  }

  mutating func load(_ description: Description) { descriptions.append(description) }

  /// Finds out which of the loaded rows are dead.
  mutating func finishLoading(under horizon: Horizon, _ totals: inout ArchiveTotals) {
    for index in states.indices {
      count(states[index], &totals)
      refreshState(index, under: horizon, &totals)
    }
    for index in descriptions.indices {
      totals.reachableBytes += descriptions[index].shownBytes
      descriptions.bury(index, of: node, under: horizon, &totals)
    }
  }

  // MARK: Upkeep

  /// Whether a reader at one of `points`, which ascend, sees a row.
  func isShown(_ row: DeadRow, at points: [SequenceNumber], under horizon: Horizon) -> Bool {
    guard !points.isEmpty else { return false }
    switch row.log {
    case .states:
      return states.index(of: row.sequence).map { states.isShown($0, at: points, under: horizon) } ?? false
    case .descriptions:
      return descriptions.index(of: row.sequence).map { descriptions.isShown($0, at: points, under: horizon) } ?? false
    }
  }

  /// Removes a dead row of this node, and tombstones that hide nothing any more.
  mutating func remove(_ row: DeadRow, noting purge: inout ArchivePurge) {
    switch row.log {
    case .states:
      let newestSettled = settled < 0 ? nil : states[settled].sequence
      states.remove(row.sequence) { gone in
        purge.note(gone)
        purge.states.append(gone.sequence)
        if gone.summary.isEarly { purge.early.append(gone.sequence) }
        if !gone.isTombstone { purge.contexts.append(gone.summary.context) }
      }
      // Found by its sequence: any number of early rows may follow it.
      guard let newestSettled else { return }
      settled = states.index(of: newestSettled) ?? states.lastIndex { !$0.summary.isEarly } ?? -1
    case .descriptions:
      guard !descriptions.isEmpty else { return }
      descriptions.remove(row.sequence) { gone in
        purge.note(gone)
        purge.descriptions.append(gone.sequence)
      }
      if descriptions.isEmpty { purge.unshown.append(node) }
    }
  }

  private mutating func refreshState(_ index: Int, under horizon: Horizon, _ totals: inout ArchiveTotals) {
    guard index >= 0, !states[index].isWithheld else { return }
    if index == settled, states[index].sequence > horizon.lastCut { return }
    guard states.bury(index, of: node, under: horizon, &totals), !states[index].isTombstone else { return }
    totals.bury(states[index].summary.context)
  }

  private func count(_ state: State, _ totals: inout ArchiveTotals) {
    totals.reachableBytes += state.shownBytes
    if !state.isTombstone { totals.name(state.summary.context) }
  }
}

extension NodeLog.State {
  static func removal(at sequence: SequenceNumber) -> NodeLog.State {
    let nothing = StateRecord(node: 0, context: 0, written: 0, text: [])
    return NodeLog.State(summary: StateSummary(nothing, at: sequence), isTombstone: true)
  }
}

extension NodeLog.Description {
  init(_ record: NodeRecord, at sequence: SequenceNumber) {
    self.init(
      sequence: sequence,
      bytes: UInt32(clamping: record.textBytes),
      isRemoved: record.isRemoved,
      isTombstone: record.leavesNothing
    )
  }
}

extension NodeRecord {
  package var textBytes: Int {
    [component, classes, restorationClass, storyboard].reduce(0) { $0 + ($1?.utf8.count ?? 0) }
  }

  var leavesNothing: Bool { isRemoved && successor == nil }
}
