// SPDX-License-Identifier: Apache-2.0

struct MemoryArchive: ArchiveRows {
  let archive: String
  private var contents = Contents()

  private struct Contents {
    var tip = ArchiveTip()
    var states: [SequenceNumber: StateRecord] = [:]
    var removals: [SequenceNumber: NodeID] = [:]
    var nodes: [SequenceNumber: NodeRecord] = [:]
    var early: Set<SequenceNumber> = []
    var emptied: Set<SequenceNumber> = []
    var contexts: [ContextID: String] = [:]
    var generations: [SequenceNumber: GenerationRecord] = [:]
    var sessions: [SessionID: SessionRecord] = [:]
    var claims: [NodeID: ClaimRecord] = [:]
    var run: RunRecord?
    var withheld: [SequenceNumber: WithheldRow] = [:]
  }

  init(archive: String) { self.archive = archive }

  var bytes: Int {
    contents.states.values.reduce(0) { $0 + $1.bytes } + contents.nodes.values.reduce(0) { $0 + $1.textBytes }
  }

  // Changes are checked before a transaction begins, and no step of it can fail: there is nothing to undo.
  func begin() {}
  func commit() {}
  func rollBack() {}

  mutating func write(_ change: ArchiveChange, at sequence: SequenceNumber, _ effect: ChangeEffect) {
    switch change {
    case .state(let record):
      contents.states[sequence] = record
      if record.isEarly { contents.early.insert(sequence) }
    case .node(let record):
      if effect.writesRow { contents.nodes[sequence] = record }
      if effect.removesState { contents.removals[sequence] = record.node }
    case .removeState(let node):
      if effect.writesRow { contents.removals[sequence] = node }
    case .removeAll:
      if effect.writesRow { contents.emptied.insert(sequence) }
    case .settle: contents.early.subtract(effect.settled)
    case .withhold(_, let since):
      for row in effect.rows {
        let bytes = contents.states[row.sequence]?.bytes ?? 0
        contents.withheld[row.sequence] = WithheldRow(row: row, since: since, bytes: bytes)
      }
    case .release:
      for row in effect.rows { contents.withheld[row.sequence] = nil }
    case .context(let context, let text): contents.contexts[context] = text
    case .forgetContexts: delete(effect.contexts)
    case .seal(let record): contents.generations[sequence] = record
    case .superseded, .pin: break
    case .dropGeneration(let generation):
      contents.generations = contents.generations.filter { $0.value.generation != generation }
    case .session(let record): contents.sessions[record.session] = record
    case .forgetSessions(let sessions):
      for session in sessions { contents.sessions[session] = nil }
    case .claim(let record): contents.claims[record.node] = record
    case .run(let record): contents.run = record
    }
  }

  mutating func write(_ tip: ArchiveTip) { contents.tip = tip }

  mutating func delete(_ purge: ArchivePurge) {
    for row in purge.states {
      contents.states[row] = nil
      contents.removals[row] = nil
    }
    contents.early.subtract(purge.early)
    for row in purge.descriptions { contents.nodes[row] = nil }
    contents.emptied.subtract(purge.cuts)
    for node in purge.unshown { contents.claims[node] = nil }
  }

  mutating func delete(_ contexts: [ContextID]) { for context in contexts { contents.contexts[context] = nil } }

  func index() -> ArchiveIndex {
    var index = ArchiveIndex()
    index.tip = contents.tip
    for sequence in contents.emptied.sorted() { index.load(cut: sequence) }
    for (context, text) in contents.contexts { index.load(context, bytes: text.utf8.count) }
    for (sequence, record) in contents.generations.sorted(by: { $0.key < $1.key }) {
      let isPinned = record.generation == contents.tip.pinned
      index.load(SealedGeneration(record: record, sequence: sequence, isPinned: isPinned))
    }
    for sequence in (Array(contents.states.keys) + contents.removals.keys).sorted() {
      if let node = contents.removals[sequence] {
        index.load(NodeLog.State.removal(at: sequence), of: node)
      } else if let record = contents.states[sequence] {
        var state = NodeLog.State(summary: StateSummary(record, at: sequence))
        state.summary.isEarly = contents.early.contains(sequence)
        state.isWithheld = contents.withheld[sequence] != nil
        index.load(state, of: record.node)
      }
    }
    for (sequence, record) in contents.nodes.sorted(by: { $0.key < $1.key }) {
      index.load(NodeLog.Description(record, at: sequence), of: record.node)
    }
    index.finishLoading()
    return index
  }

  func state(at sequence: SequenceNumber) -> StateReading {
    contents.states[sequence].map { .state($0, sequence: sequence) } ?? .unreadable(sequence: sequence)
  }

  func node(at sequence: SequenceNumber) throws(ArchiveError) -> NodeRecord {
    guard let record = contents.nodes[sequence] else {
      throw ArchiveError(.unreadable, "node row \(sequence) is missing")
    }
    return record
  }

  func readMany<Value>(_ body: () throws(ArchiveError) -> Value) throws(ArchiveError) -> Value { try body() }

  func contexts() -> [ContextID: String] { contents.contexts }

  func sessions() -> [SessionRecord] { contents.sessions.values.sorted { $0.session < $1.session } }

  func claims() -> [ClaimRecord] { contents.claims.values.sorted { $0.node < $1.node } }

  func run() -> RunRecord? { contents.run }

  func damage() -> String? { nil }

  func withheld() -> [WithheldRow] { contents.withheld.values.sorted { $0.row.sequence < $1.row.sequence } }

  func forgetCached() {}

  func structureFaults() -> [String] { [] }
}
