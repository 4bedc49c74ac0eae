// SPDX-License-Identifier: Apache-2.0

extension SQLiteConnection {
  func forEachRow(_ sql: String, _ body: (SQLiteStatement) throws(SQLiteFailure) -> Void) throws(SQLiteFailure) {
    let statement = try prepare(sql)
    while try statement.step() { try body(statement) }
  }

  func rows<Row>(_ sql: String, _ make: (SQLiteStatement) throws(SQLiteFailure) -> Row) throws(SQLiteFailure) -> [Row] {
    var rows: [Row] = []
    try forEachRow(sql) { row throws(SQLiteFailure) in rows.append(try make(row)) }
    return rows
  }

  func sessions() throws(SQLiteFailure) -> [SessionRecord] {
    try rows("SELECT session, ended, restorationsAtEnd, token, ending, facts FROM session ORDER BY session") { row in
      SessionRecord(
        session: row.integer(0),
        token: row.string(3) ?? "",
        facts: row.string(5) ?? "",
        ending: row.string(4),
        ended: row.clamped(1),
        restorationsAtEnd: row.clamped(2)
      )
    }
  }

  func runRecord() throws(SQLiteFailure) -> RunRecord? {
    try rows("SELECT run, restorations, facts FROM run") { row in
      RunRecord(run: row.clamped(0), restorations: row.clamped(1), facts: row.string(2) ?? "")
    }.last
  }

  /// Reads every row of an archive, states without their texts. Leaves out damaged rows of nodes and contexts.
  ///
  /// Fails as damage if a number is beyond the tip: a later row would collide with it.
  func archiveIndex() throws(SQLiteFailure) -> (index: ArchiveIndex, faults: RowFaults) {
    var index = ArchiveIndex()
    var faults = RowFaults()
    index.tip = try archiveTip()
    try check(index.tip)
    try forEachRow("SELECT sequence FROM emptied ORDER BY sequence") { index.load(cut: $0.integer(0)) }
    try loadContexts(into: &index, &faults)
    try loadGenerations(into: &index)
    try loadStates(into: &index)
    let parents = try loadNodes(into: &index, &faults)
    index.finishLoading()
    try findMissing(in: index, parents, &faults)
    return (index, faults)
  }

  private func loadContexts(into index: inout ArchiveIndex, _ faults: inout RowFaults) throws(SQLiteFailure) {
    let isChecked = try hasChecksums()
    let selection = isChecked ? CheckedRow.context.selection : CheckedRow.context.formerSelection
    try forEachRow(selection) { row throws(SQLiteFailure) in
      let context = row.integer(0)
      guard !isChecked || row.isSound(.context) else { return faults.contexts.append(context) }
      guard (0...index.tip.lastContext).contains(context) else {
        throw .unsound("context.context is \(context), and the last number given out is \(index.tip.lastContext)")
      }
      index.load(context, bytes: row.text(1)?.count ?? 0)
    }
  }

  private func loadGenerations(into index: inout ArchiveIndex) throws(SQLiteFailure) {
    let generations = """
      SELECT sequence, generation, committed, objects, bytes, kind, omitted FROM generation ORDER BY sequence
      """
    try forEachRow(generations) { row in
      let record = GenerationRecord(
        generation: row.integer(1),
        kind: row.string(5) ?? "",
        committed: row.clamped(2),
        objects: Int(row.clamped(3)),
        bytes: Int(row.clamped(4)),
        omitted: row.string(6)?.split(separator: " ").compactMap { NodeID($0) } ?? []
      )
      let isPinned = record.generation == index.tip.pinned
      index.load(SealedGeneration(record: record, sequence: row.integer(0), isPinned: isPinned))
    }
  }

  private func loadStates(into index: inout ArchiveIndex) throws(SQLiteFailure) {
    let early = Set(try rows("SELECT sequence FROM early") { $0.integer(0) })
    let withheld = Set(try rows("SELECT sequence FROM withheld") { $0.integer(0) })
    let states = """
      SELECT sequence, node, context, session, revision, written, bytes, checksum, links FROM state
      ORDER BY sequence
      """
    try forEachRow(states) { row throws(SQLiteFailure) in
      let sequence = row.integer(0)
      let node = row.integer(1)
      try index.tip.require(sequence, node, in: "state")
      let summary = StateSummary(
        sequence: sequence,
        context: row.clamped(2),
        session: row.clamped(3),
        revision: row.clamped(4),
        isEarly: early.contains(sequence),
        written: row.clamped(5),
        bytes: Int(row.clamped(6)),
        references: row.string(8)
      )
      let isWithheld = withheld.contains(sequence)
      let state = NodeLog.State(summary: summary, isTombstone: row.isNull(7), isWithheld: isWithheld)
      index.load(state, of: node)
    }
  }

  private func loadNodes(
    into index: inout ArchiveIndex,
    _ faults: inout RowFaults
  ) throws(SQLiteFailure) -> [(child: StateRow, parent: NodeID)] {
    var parents: [(child: StateRow, parent: NodeID)] = []
    let isChecked = try hasChecksums()
    let selection = isChecked ? CheckedRow.node.selection : CheckedRow.node.formerSelection
    try forEachRow(selection) { row throws(SQLiteFailure) in
      let place = StateRow(node: row.integer(1), sequence: row.integer(0))
      guard !isChecked || row.isSound(.node) else { return faults.nodes.append(place) }
      try index.tip.require(place.sequence, place.node, in: "node")
      let description = NodeLog.Description(
        sequence: place.sequence,
        bytes: UInt32(clamping: row.integer(12)),
        isRemoved: row.bool(6),
        isTombstone: row.bool(6) && row.id(7) == nil
      )
      index.load(description, of: place.node)
      if let parent = row.id(2) { parents.append((place, parent)) }
    }
    return parents
  }

  /// Finds missing rows that sound rows of the head need. A damaged state proves nothing.
  private func findMissing(
    in index: ArchiveIndex,
    _ parents: [(child: StateRow, parent: NodeID)],
    _ faults: inout RowFaults
  ) throws(SQLiteFailure) {
    for row in index.statesWithoutNode() where try isSound(row) { faults.orphans.append(row) }
    faults.orphans += index.missingParents(among: parents)
    for (context, row) in index.statesWithoutContext() where try isSound(row) && !faults.contexts.contains(context) {
      faults.contexts.append(context)
    }
    guard !faults.isEmpty else { return }
    for gap in index.gaps(in: faults) {
      let newer = try index.nextDescription(of: gap.node, after: gap.sequence).map { sequence throws(SQLiteFailure) in
        try node(at: sequence)
      }
      faults.substitutes.append((gap.sequence, newer ?? RowFaults.unknown(gap.node)))
    }
  }

  private func isSound(_ row: StateRow) throws(SQLiteFailure) -> Bool {
    guard case .state(let record, _) = try state(at: row.sequence) else { return false }
    return record.node == row.node
  }

  private func check(_ tip: ArchiveTip) throws(SQLiteFailure) {
    let tables = [
      ("emptied", "sequence", tip.sequence), ("generation", "sequence", tip.sequence),
      ("generation", "generation", tip.lastGeneration), ("early", "sequence", tip.sequence),
      ("withheld", "sequence", tip.sequence),
      ("session", "session", tip.lastSession), ("claim", "session", tip.lastSession), ("claim", "node", tip.lastNode),
    ]
    for (table, column, last) in tables {
      try forEachRow("SELECT min(\(column)), max(\(column)) FROM \(table)") { row throws(SQLiteFailure) in
        for value in [row.integer(0), row.integer(1)] where !(0...last).contains(value) {
          throw .unsound("\(table).\(column) is \(value), and the last number given out is \(last)")
        }
      }
    }
  }

  func archiveTip() throws(SQLiteFailure) -> ArchiveTip {
    let sql = """
      SELECT sequence, changeHigh, changeLow, lastNode, lastContext, lastSession, lastGeneration, pinned, written,
      content FROM tip
      """
    let tips = try rows(sql) { row throws(SQLiteFailure) in
      var changeID: ChangeID?
      if let high = row.optionalInteger(1), let low = row.optionalInteger(2) {
        changeID = ChangeID(high: UInt64(bitPattern: high), low: UInt64(bitPattern: low))
      }
      return ArchiveTip(
        sequence: try row.number(0, through: ArchiveTip.sequenceMax),
        changeID: changeID,
        lastNode: try row.number(3),
        lastContext: try row.number(4),
        lastSession: try row.number(5),
        lastGeneration: try row.number(6),
        pinned: row.optionalInteger(7),
        written: row.clamped(8),
        content: try row.number(9)
      )
    }
    guard let tip = tips.last else { throw .missing("the tip row") }
    return tip
  }
}

extension ArchiveTip {
  fileprivate func require(_ sequence: SequenceNumber, _ node: NodeID, in table: StaticString) throws(SQLiteFailure) {
    guard (0...self.sequence).contains(sequence), (0...lastNode).contains(node) else {
      throw .unsound(
        "\(table) has sequence \(sequence) and node \(node); the last given out are \(self.sequence) and \(lastNode)"
      )
    }
  }
}
