// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

/// The plainest possible archive: the list of all changes. Everything else is found by replaying them.
struct NaiveArchive {
  let uuid: String
  /// The change with sequence n is at n − 1.
  private(set) var log: [ArchiveChange] = []
  /// The content of the whole log.
  private(set) var head = Contents()
  private var epoch: Int64 = 0
  /// Sequences of state rows that can no longer be read.
  var damaged: Set<SequenceNumber> = []

  init(uuid: String) {
    self.uuid = uuid
  }

  var sequence: SequenceNumber { SequenceNumber(log.count) }

  mutating func append(_ changes: [ArchiveChange]) {
    for change in changes {
      log.append(change)
      head.apply(change, at: sequence)
    }
  }

  func contents(at sequence: SequenceNumber) -> Contents {
    var contents = Contents()
    for (index, change) in log.prefix(Int(sequence)).enumerated() {
      contents.apply(change, at: SequenceNumber(index + 1))
    }
    return contents
  }

  /// The state written as `sequence`.
  func state(_ sequence: SequenceNumber) -> StateReading? {
    if damaged.contains(sequence) { return .unreadable(sequence: sequence) }
    guard case .state(let record) = log[Int(sequence) - 1] else { return nil }
    return .state(record, sequence: sequence)
  }

  /// Replaces a change that was made by another one.
  mutating func replace(_ sequence: SequenceNumber, with change: ArchiveChange) {
    log[Int(sequence) - 1] = change
    head = contents(at: self.sequence)
  }

  /// The rows of one node, then the structure.
  func check(_ position: VerificationPosition?) -> VerificationPiece {
    var piece = VerificationPiece()
    let nodes = head.nodes.keys.sorted()
    piece.total = nodes.count
    piece.done = nodes.count
    guard case .rows(let after) = position ?? .rows(after: 0), let node = nodes.first(where: { $0 > after }) else {
      return piece
    }
    piece.done = nodes.firstIndex(of: node).map { $0 + 1 } ?? 0
    piece.next = node == nodes.last ? .structure : .rows(after: node)
    for state in head.states[node] ?? [] {
      let isLast = state.sequence == head.states[node]?.last?.sequence
      let shown = VerificationPiece.Shown(isCurrent: isLast, generations: [])
      let reading = self.state(state.sequence) ?? .unreadable(sequence: state.sequence)
      piece.rows.append(VerificationPiece.Row(node: node, reading: reading, fault: nil, shown: shown))
    }
    return piece
  }

  mutating func open(_ application: String) -> ArchiveOpening {
    epoch += 1
    return ArchiveOpening(
      lease: ArchiveLease(application: application, epoch: epoch),
      archive: uuid,
      sequence: sequence,
      contentSequence: head.contentSequence,
      reachableBytes: reachableBytes,
      nodes: head.readings,
      contexts: head.contexts,
      generations: head.generations,
      lastGeneration: head.lastGeneration,
      lastNode: head.lastNode,
      lastContext: head.contexts.keys.max() ?? 0,
      lastSession: head.lastSession,
      sessions: head.sessions.values.sorted { $0.session < $1.session },
      claims: head.claims.values.filter { head.nodes[$0.node] != nil }.sorted { $0.node < $1.node },
      run: head.run,
      withheld: head.withheld.values.sorted { $0.row.sequence < $1.row.sequence }
    )
  }

  func summary(_ application: String) -> ArchiveSummary {
    ArchiveSummary(
      application: application,
      state: .available,
      objects: head.nodes.count,
      generation: head.generations.last?.record.generation ?? 0,
      bytes: 4096,
      modified: head.modified,
      run: head.run
    )
  }

  /// Bytes of the head, of what early states hide, and of all kept generations, each row once.
  var reachableBytes: Int {
    var rows: [SequenceNumber: Int] = [:]
    for reading in head.readings {
      for state in [reading.state, reading.beforeClaim] {
        if let state { rows[state.sequence] = state.bytes }
      }
    }
    for generation in head.generations {
      for reading in contents(at: generation.sequence).readings {
        if let state = reading.state { rows[state.sequence] = state.bytes }
      }
    }
    for sequence in head.withheld.keys {
      if case .state(let record, _) = state(sequence) { rows[sequence] = record.bytes }
    }
    return rows.values.reduce(0, +)
  }

  /// The content of a log.
  struct Contents {
    var nodes: [NodeID: NodeRecord] = [:]
    var states: [NodeID: [StateSummary]] = [:]
    var contexts: [ContextID: String] = [:]
    var generations: [SealedGeneration] = []
    var sessions: [SessionID: SessionRecord] = [:]
    var claims: [NodeID: ClaimRecord] = [:]
    var run: RunRecord?
    var withheld: [SequenceNumber: WithheldRow] = [:]
    var contentSequence: SequenceNumber = 0
    var lastGeneration: Int64 = 0
    var lastNode: NodeID = 0
    var lastSession: SessionID = 0
    var modified: Int64 = 0

    /// Nodes in ascending order of id, with the states seen.
    var readings: [NodeReading] {
      nodes.values.sorted { $0.node < $1.node }.map { record in
        let rows = states[record.node] ?? []
        let settled = rows.last { !$0.isEarly }
        return NodeReading(
          node: record,
          state: rows.last,
          beforeClaim: settled?.sequence == rows.last?.sequence ? nil : settled
        )
      }
    }

    mutating func apply(_ change: ArchiveChange, at sequence: SequenceNumber) {
      switch change {
      case .node, .state, .removeState, .removeAll: contentSequence = sequence
      default: break
      }
      switch change {
      case .node(let record):
        lastNode = max(lastNode, record.node)
        if record.isRemoved { states[record.node] = nil }
        nodes[record.node] = record.isRemoved && record.successor == nil ? nil : record
      case .state(let record):
        states[record.node, default: []].append(StateSummary(record, at: sequence))
        modified = max(modified, record.written)
      case .removeState(let node): states[node] = nil
      case .removeAll:
        nodes = [:]
        states = [:]
      case .settle(let settled):
        for node in settled {
          for index in states[node]?.indices ?? 0..<0 { states[node]?[index].isEarly = false }
        }
      case .withhold(let rows, let since):
        for row in rows {
          let bytes = states[row.node]?.first { $0.sequence == row.sequence }?.bytes ?? 0
          withheld[row.sequence] = WithheldRow(row: row, since: since, bytes: bytes)
        }
      case .release(let rows): for row in rows { withheld[row.sequence] = nil }
      case .context(let id, let text): contexts[id] = text
      case .session(let record):
        sessions[record.session] = record
        lastSession = max(lastSession, record.session)
      case .forgetSessions(let forgotten): for session in forgotten { sessions[session] = nil }
      case .claim(let record): claims[record.node] = record
      case .run(let record): run = record
      case .seal, .pin, .dropGeneration: applyGeneration(change, at: sequence)
      }
    }

    private mutating func applyGeneration(_ change: ArchiveChange, at sequence: SequenceNumber) {
      switch change {
      case .seal(let record):
        lastGeneration = record.generation
        generations.append(SealedGeneration(record: record, sequence: sequence, isPinned: false))
      case .pin(let generation):
        for index in generations.indices {
          generations[index].isPinned = generations[index].record.generation == generation
        }
      case .dropGeneration(let generation): generations.removeAll { $0.record.generation == generation }
      default: break
      }
    }
  }
}

extension StateSummary {
  init(_ record: StateRecord, at sequence: SequenceNumber) {
    self.init(
      sequence: sequence,
      context: record.context,
      session: record.session,
      revision: record.revision,
      isEarly: record.isEarly,
      written: record.written,
      bytes: record.bytes,
      references: record.references
    )
  }
}
