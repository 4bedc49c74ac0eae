// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

/// An archive that keeps every change and answers by going through all of them again: slow, and too simple to be wrong.
struct NaiveArchive {
  /// The content at one point.
  struct Contents {
    var nodes: [NodeID: NodeRecord] = [:]
    var nodeRows: [NodeID: SequenceNumber] = [:]
    var states: [NodeID: (sequence: SequenceNumber, record: StateRecord)] = [:]

    mutating func apply(_ change: ArchiveChange, at sequence: SequenceNumber) {
      switch change {
      case .node(let record):
        if record.isRemoved { states[record.node] = nil }
        nodes[record.node] = record.isRemoved && record.successor == nil ? nil : record
        nodeRows[record.node] = sequence
      case .state(let record): states[record.node] = (sequence, record)
      case .removeState(let node): states[node] = nil
      case .removeAll: self = Contents()
      default: break
      }
    }
  }

  private var log: [(sequence: SequenceNumber, change: ArchiveChange)] = []
  /// What going through all changes would give: it is asked for with each of them.
  private var head = Contents()
  private(set) var sequence: SequenceNumber = 0
  private var settled: Set<SequenceNumber> = []
  private(set) var generations: [SealedGeneration] = []
  private(set) var sessions: [SessionID: SessionRecord] = [:]
  private(set) var claims: [NodeID: ClaimRecord] = [:]
  private(set) var run: RunRecord?
  private(set) var withheld: [SequenceNumber: WithheldRow] = [:]
  /// The contexts that a state may name.
  private(set) var contexts: [ContextID: String] = [:]
  private(set) var lastGeneration: Int64 = 0
  private(set) var lastNode: NodeID = 0
  private(set) var lastContext: ContextID = 0
  private(set) var lastSession: SessionID = 0
  private(set) var contentSequence: SequenceNumber = 0

  mutating func apply(_ changes: [ArchiveChange]) {
    for change in changes {
      sequence += 1
      log.append((sequence, change))
      head.apply(change, at: sequence)
      switch change {
      case .node(let record): noteContent(node: record.node)
      case .state(let record):
        noteContent(node: record.node)
        lastSession = max(lastSession, record.session)
      case .removeState, .removeAll: contentSequence = sequence
      case .settle(let nodes):
        for case (let sequence, .state(let record)) in log where nodes.contains(record.node) {
          settled.insert(sequence)
        }
        for node in nodes { head.states[node]?.record.isEarly = false }
      case .withhold(let rows, let since):
        let reachable = reachable
        for row in rows where withheld[row.sequence] == nil {
          guard let record = reachable[row.sequence], record.node == row.node else { continue }
          withheld[row.sequence] = WithheldRow(row: row, since: since, bytes: record.bytes)
        }
      case .release(let rows): for row in rows { withheld[row.sequence] = nil }
      case .context(let context, let text):
        contexts[context] = text
        lastContext = max(lastContext, context)
      case .forgetContexts(let gone): for context in gone { contexts[context] = nil }
      case .seal(let record):
        generations.append(SealedGeneration(record: record, sequence: sequence, isPinned: false))
        lastGeneration = record.generation
      case .pin(let generation):
        for index in generations.indices {
          generations[index].isPinned = generations[index].record.generation == generation
        }
      case .dropGeneration(let generation): generations.removeAll { $0.record.generation == generation }
      case .session(let record):
        sessions[record.session] = record
        lastSession = max(lastSession, record.session)
      case .forgetSessions(let gone): for session in gone { sessions[session] = nil }
      case .claim(let record):
        claims[record.node] = record
        lastNode = max(lastNode, record.node)
        lastSession = max(lastSession, record.session)
      case .run(let record): run = record
      case .superseded: break
      }
    }
  }

  private mutating func noteContent(node: NodeID) {
    contentSequence = sequence
    lastNode = max(lastNode, node)
  }

  // MARK: Reading

  func contents(at point: ArchivePoint) -> Contents {
    if point == .head { return head }
    var contents = Contents()
    for (sequence, change) in log {
      if case .sequence(let last) = point, sequence > last { break }
      guard case .state(var record) = change else {
        contents.apply(change, at: sequence)
        continue
      }
      record.isEarly = record.isEarly && !settled.contains(sequence)
      if point == .beforeClaim && record.isEarly { continue }
      contents.apply(.state(record), at: sequence)
    }
    return contents
  }

  func readings(at point: ArchivePoint) -> [NodeReading] {
    let contents = contents(at: point)
    let settled = point == .head ? self.contents(at: .beforeClaim).states : [:]
    return contents.nodes.values.sorted { $0.node < $1.node }.map { node in
      let state = contents.states[node.node]
      var reading = NodeReading(node: node, state: state.map { StateSummary($0.record, at: $0.sequence) })
      if let before = settled[node.node], before.sequence != state?.sequence {
        reading.beforeClaim = StateSummary(before.record, at: before.sequence)
      }
      return reading
    }
  }

  /// Everything kept contents show.
  private var kept: [Contents] {
    [head, contents(at: .beforeClaim)] + generations.map { contents(at: .sequence($0.sequence)) }
  }

  private var reachable: [SequenceNumber: StateRecord] { reachable(in: kept) }

  private func reachable(in kept: [Contents]) -> [SequenceNumber: StateRecord] {
    var rows: [SequenceNumber: StateRecord] = [:]
    for contents in kept { for (sequence, record) in contents.states.values { rows[sequence] = record } }
    for case (let sequence, .state(let record)) in log where withheld[sequence] != nil { rows[sequence] = record }
    return rows
  }

  /// Rows that a reader can reach, in ascending order.
  var reachableRows: [StateRow] {
    reachable.map { StateRow(node: $0.value.node, sequence: $0.key) }.sorted { $0.sequence < $1.sequence }
  }

  /// Of states, of the contexts that those name, and of nodes.
  var reachableBytes: Int {
    let kept = kept
    var nodes: [SequenceNumber: Int] = [:]
    for contents in kept {
      for (node, record) in contents.nodes where !record.isRemoved {
        if let sequence = contents.nodeRows[node] { nodes[sequence] = record.textBytes }
      }
    }
    let states = reachable(in: kept).values
    let named = Set(states.map(\.context)).reduce(0) { $0 + (contexts[$1]?.utf8.count ?? 0) }
    return nodes.values.reduce(named) { $0 + $1 } + states.reduce(0) { $0 + $1.bytes }
  }

  /// Whether a reader can reach a state with this context.
  func isNamed(_ context: ContextID) -> Bool { reachable.values.contains { $0.context == context } }

  /// The opening after a reopen, which removes unused contexts.
  ///
  /// - Parameter listed: contexts that the archive still has, because rows name them that nobody can reach.
  mutating func reopen(listing listed: Set<ContextID>) -> ArchiveOpening {
    let used = Set(reachable.values.map(\.context))
    contexts = contexts.filter { used.contains($0.key) || listed.contains($0.key) }
    let shown = kept.reduce(into: Set<NodeID>()) { $0.formUnion($1.nodes.keys) }
    return ArchiveOpening(
      lease: ArchiveLease(application: "", epoch: 0),
      archive: "",
      sequence: sequence,
      contentSequence: contentSequence,
      reachableBytes: reachableBytes,
      nodes: readings(at: .head),
      contexts: contexts,
      buriedContexts: listed.subtracting(used),
      generations: generations,
      lastGeneration: lastGeneration,
      lastNode: lastNode,
      lastContext: lastContext,
      lastSession: lastSession,
      sessions: sessions.values.sorted { $0.session < $1.session },
      claims: claims.values.filter { shown.contains($0.node) }.sorted { $0.node < $1.node },
      run: run,
      withheld: withheld.values.sorted { $0.row.sequence < $1.row.sequence }
    )
  }
}
