// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

/// The content of an open archive, without any text: every row of every node, and which rows a reader can reach.
///
/// Pure: it returns the rows to write. Engines rebuild it from storage after a failed transaction.
///
/// Invariants:
/// 1. `totals.reachableBytes` is exactly the bytes of the rows that are not dead (`NodeLog`): of states, of nodes that
///    are not removed, and once of each stored context that such a state names.
/// 2. `objects` is exactly the number of nodes whose description at the head says that they are not removed.
/// 3. Every dead row is in `totals.dead` or in `waiting`, and costs its share of `totals.deadBytes`.
struct ArchiveIndex {
  var tip = ArchiveTip()
  private(set) var horizon = Horizon()
  private(set) var generations: [SealedGeneration] = []
  private(set) var totals = ArchiveTotals()
  /// Nodes at the head that are not removed.
  private(set) var objects = 0
  private var logs: [NodeID: NodeLog] = [:]
  /// Keys of `logs`, ascending; `nil` if they must be sorted again.
  private var order: [NodeID]? = []
  /// False after a change that may have made a cut superfluous.
  private var cutsAreChecked = false
  /// Dead rows that stayed because of `held`.
  private var waiting: [DeadRow] = []
  private var held: [SequenceNumber] = []

  // MARK: Reading

  func state(of node: NodeID, at point: ArchivePoint) -> NodeLog.State? { logs[node]?.state(at: point, under: horizon) }

  func description(of node: NodeID, at point: ArchivePoint) -> NodeLog.Description? {
    logs[node]?.description(at: point, under: horizon)
  }

  func isShown(_ node: NodeID) -> Bool { logs[node]?.isShown ?? false }

  func nodeRows(of node: NodeID) -> NodeLog? { logs[node] }

  var rowsOfNodes: some Sequence<NodeLog> { logs.values }

  var nodeCount: Int { logs.count }

  /// How many of them have an id of at most `node`.
  mutating func nodeCount(upTo node: NodeID) -> Int { sortedNodes(after: node).startIndex }

  /// Up to `limit` nodes with all their rows in ascending order, beginning after `node`.
  mutating func logs(after node: NodeID, limit: Int) -> [NodeLog] {
    sortedNodes(after: node).prefix(limit).compactMap { logs[$0] }
  }

  /// All nodes in ascending order; the slice begins after `node`.
  private mutating func sortedNodes(after node: NodeID) -> ArraySlice<NodeID> {
    let sorted = order ?? logs.keys.sorted()
    order = sorted
    return sorted[sorted.partitioningIndex { $0 > node }...]
  }

  /// Up to `limit` nodes shown at `point` in ascending order, beginning after `node`.
  mutating func nodes(after node: NodeID, limit: Int, at point: ArchivePoint) -> [NodeID] {
    var found: [NodeID] = []
    for candidate in sortedNodes(after: node) {
      guard found.count < limit else { break }
      if description(of: candidate, at: point) != nil { found.append(candidate) }
    }
    return found
  }

  // MARK: Writing

  /// Refuses invalid changes before anything is touched.
  func validate(_ changes: [ArchiveChange]) throws(ArchiveError) {
    var lastGeneration = tip.lastGeneration
    var known = Set(generations.map(\.record.generation))
    var added: Set<ContextID> = []
    for change in changes {
      switch change {
      case .seal(let record):
        guard record.generation > lastGeneration else {
          throw ArchiveError(.definite, "generation \(record.generation) does not follow \(lastGeneration)")
        }
        lastGeneration = record.generation
        known.insert(record.generation)
      case .dropGeneration(let generation):
        known.remove(generation)
      case .pin(let generation?):
        guard known.contains(generation) else {
          throw ArchiveError(.definite, "generation \(generation) to pin does not exist")
        }
      case .context(let context, _):
        guard !totals.isStored(context), added.insert(context).inserted else {
          throw ArchiveError(.definite, "context \(context) exists already")
        }
      case .state(let record):
        guard record.bytes <= Self.rowBytesMax else {
          throw ArchiveError(.definite, "a state of \(record.bytes) bytes does not fit into a row")
        }
      case .superseded, .node, .removeState, .removeAll, .settle, .withhold, .release, .forgetContexts, .pin(nil),
        .session, .forgetSessions, .claim, .run:
        break
      }
    }
  }

  /// Bytes of a row that every engine can hold.
  private static let rowBytesMax = 900_000_000

  /// Records a change under the next sequence; returns the rows to write.
  mutating func record(_ change: ArchiveChange) -> ChangeEffect {
    tip.sequence += 1
    if change.isContent { tip.content = tip.sequence }
    var effect = ChangeEffect()
    switch change {
    case .node(let record):
      effect = append(record)
    case .state(let record):
      append(record)
    case .removeState(let node):
      effect.writesRow = removeState(of: node)
    case .removeAll:
      effect.writesRow = cut()
    case .settle(let nodes):
      for node in nodes { effect.settled += settle(node) }
    case .withhold(let rows, _):
      effect.rows = rows.filter { logs[$0.node]?.withhold($0.sequence) ?? false }
    case .release(let rows):
      effect.rows = rows.filter { release($0) }
    case .context(let context, let text):
      totals.store(context, bytes: text.utf8.count)
      tip.lastContext = max(tip.lastContext, context)
    case .forgetContexts(let contexts):
      effect.contexts = contexts.filter(totals.unnamed.contains)
      totals.forget(effect.contexts)
    case .seal(let record):
      tip.lastGeneration = record.generation
      generations.append(SealedGeneration(record: record, sequence: tip.sequence, isPinned: false))
      horizon.kept.append(tip.sequence)
    case .pin(let generation):
      pin(generation)
    case .dropGeneration(let generation):
      drop(generation)
    case .session(let record):
      tip.lastSession = max(tip.lastSession, record.session)
    case .claim(let record):
      tip.lastNode = max(tip.lastNode, record.node)
      tip.lastSession = max(tip.lastSession, record.session)
    case .superseded, .forgetSessions, .run:
      break
    }
    return effect
  }

  private mutating func append(_ record: StateRecord) {
    tip.lastNode = max(tip.lastNode, record.node)
    tip.lastSession = max(tip.lastSession, record.session)
    tip.written = max(tip.written, record.written)
    let row = NodeLog.State(summary: StateSummary(record, at: tip.sequence))
    update(record.node) { $0.append(row, under: $1, &$2) }
  }

  private mutating func append(_ record: NodeRecord) -> ChangeEffect {
    tip.lastNode = max(tip.lastNode, record.node)
    var effect = ChangeEffect()
    let former = description(of: record.node, at: .head)
    effect.writesRow = !record.leavesNothing || former != nil
    if former?.isRemoved == false { objects -= 1 }
    if !record.isRemoved { objects += 1 }
    if effect.writesRow {
      let row = NodeLog.Description(record, at: tip.sequence)
      update(record.node) { $0.append(row, under: $1, &$2) }
    }
    effect.removesState = record.isRemoved && removeState(of: record.node)
    return effect
  }

  private mutating func removeState(of node: NodeID) -> Bool {
    // If the head shows no state, an owner that decodes is shown none either: a removal is never early.
    guard state(of: node, at: .head) != nil else { return false }
    let row = NodeLog.State.removal(at: tip.sequence)
    update(node) { $0.append(row, under: $1, &$2) }
    return true
  }

  private mutating func settle(_ node: NodeID) -> [SequenceNumber] {
    guard logs[node] != nil else { return [] }
    return update(node) { $0.settle(under: $1, &$2) }
  }

  private mutating func release(_ row: StateRow) -> Bool {
    guard logs[row.node] != nil else { return false }
    return update(row.node) { $0.unwithhold(row.sequence, under: $1, &$2) }
  }

  private mutating func cut() -> Bool {
    let showsAnything = logs.values.contains { log in
      log.description(at: .head, under: horizon) != nil || log.state(at: .head, under: horizon) != nil
    }
    guard showsAnything else { return false }
    horizon.cuts.append(tip.sequence)
    objects = 0
    cutsAreChecked = false
    for node in Array(logs.keys) { update(node) { $0.cut(under: $1, &$2) } }
    return true
  }

  private mutating func pin(_ generation: Int64?) {
    tip.pinned = generation
    for index in generations.indices {
      generations[index].isPinned = generations[index].record.generation == generation
    }
  }

  private mutating func drop(_ generation: Int64) {
    guard let index = generations.firstIndex(where: { $0.record.generation == generation }) else { return }
    let sequence = generations.remove(at: index).sequence
    horizon.kept.remove(at: index)
    if tip.pinned == generation { tip.pinned = nil }
    for node in Array(logs.keys) { update(node) { $0.release(sequence, under: $1, &$2) } }
  }

  private mutating func update<Value>(
    _ node: NodeID,
    _ body: (_ log: inout NodeLog, _ horizon: borrowing Horizon, _ totals: inout ArchiveTotals) -> Value
  ) -> Value {
    let count = logs.count
    defer { if logs.count != count { insertIntoOrder(node) } }
    return body(&logs[node, default: NodeLog(node)], horizon, &totals)
  }

  private mutating func insertIntoOrder(_ node: NodeID) {
    guard let last = order?.last else {
      if order?.isEmpty == true { order = [node] }
      return
    }
    if node > last { order?.append(node) } else { order = nil }
  }

  // MARK: Loading

  mutating func load(_ state: NodeLog.State, of node: NodeID) { logs[node, default: NodeLog(node)].load(state) }

  mutating func load(_ description: NodeLog.Description, of node: NodeID) {
    logs[node, default: NodeLog(node)].load(description)
  }

  mutating func load(cut sequence: SequenceNumber) { horizon.cuts.append(sequence) }

  mutating func load(_ context: ContextID, bytes: Int) { totals.store(context, bytes: bytes) }

  mutating func load(_ generation: SealedGeneration) {
    generations.append(generation)
    horizon.kept.append(generation.sequence)
  }

  mutating func finishLoading() {
    order = nil
    for node in Array(logs.keys) { update(node) { $0.finishLoading(under: $1, &$2) } }
    totals.dead.sort()
    objects = logs.values.count { $0.description(at: .head, under: horizon)?.isRemoved == false }
  }

  // MARK: Upkeep

  /// Removes dead rows up to the limits of `purge`; the engine deletes the same ones.
  ///
  /// - Parameter holding: sequences that are still read at, in any order.
  mutating func purge(_ purge: inout ArchivePurge, holding held: [SequenceNumber]) {
    let held = held.sorted()
    if held != self.held {
      totals.dead.prepend(waiting)
      waiting = []
      self.held = held
    }
    while purge.hasRoom, let row = totals.dead.popFirst() {
      guard let index = logs.index(forKey: row.node) else { continue }
      guard !logs.values[index].isShown(row, at: held, under: horizon) else {
        waiting.append(row)
        continue
      }
      logs.values[index].remove(row, noting: &purge)
      guard logs.values[index].isEmpty else { continue }
      logs.remove(at: index)
      order = nil
    }
    totals.deadBytes -= purge.deadBytes
    for context in purge.contexts { totals.unname(context) }
    if !purge.isEmpty { cutsAreChecked = false }
    if purge.isEmpty { purge.cuts = superfluousCuts() }
  }

  mutating func forget(_ unused: [ContextID]) { totals.forget(unused) }

  /// Cuts without a row between them and the previous cut: the rows they hid are gone, or hidden by the earlier one.
  private mutating func superfluousCuts() -> [SequenceNumber] {
    guard !cutsAreChecked, !horizon.cuts.isEmpty else { return [] }
    cutsAreChecked = true
    var needed: Set<SequenceNumber> = []
    for log in logs.values {
      for row in log.states { needed.insert(horizon.firstCut(after: row.sequence)) }
      for row in log.descriptions { needed.insert(horizon.firstCut(after: row.sequence)) }
    }
    let superfluous = horizon.cuts.filter { !needed.contains($0) }
    horizon.cuts.removeAll { !needed.contains($0) }
    return superfluous
  }
}
