// SPDX-License-Identifier: Apache-2.0

extension SQLiteConnection {
  func forEachRow(_ sql: String, _ body: (SQLiteStatement) -> Void) throws(SQLiteFailure) {
    let statement = try prepare(sql)
    while try statement.step() { body(statement) }
  }

  /// Reads every row of an archive up to its texts, which lie behind the columns read and are not touched.
  func archiveIndex() throws(SQLiteFailure) -> ArchiveIndex {
    var index = ArchiveIndex()
    index.tip = try archiveTip()
    try forEachRow("SELECT sequence FROM emptied ORDER BY sequence") { index.load(cut: $0.integer(0)) }
    try forEachRow("SELECT context FROM context") { index.load($0.integer(0)) }
    let generations = """
      SELECT sequence, generation, committed, objects, bytes, kind, omitted FROM generation ORDER BY sequence
      """
    try forEachRow(generations) { row in
      let record = GenerationRecord(
        generation: row.integer(1),
        kind: row.string(5) ?? "",
        committed: row.integer(2),
        objects: Int(row.integer(3)),
        bytes: Int(row.integer(4)),
        omitted: row.string(6)?.split(separator: " ").compactMap { NodeID($0) } ?? []
      )
      let isPinned = record.generation == index.tip.pinned
      index.load(SealedGeneration(record: record, sequence: row.integer(0), isPinned: isPinned))
    }
    var early: Set<SequenceNumber> = []
    try forEachRow("SELECT sequence FROM early") { early.insert($0.integer(0)) }
    var withheld: Set<SequenceNumber> = []
    try forEachRow("SELECT sequence FROM withheld") { withheld.insert($0.integer(0)) }
    let states = """
      SELECT sequence, node, context, session, revision, written, bytes, checksum, links FROM state
      ORDER BY sequence
      """
    try forEachRow(states) { row in
      let sequence = row.integer(0)
      let state = NodeLog.State(
        sequence: sequence,
        context: row.integer(2),
        session: row.integer(3),
        revision: row.integer(4),
        written: row.integer(5),
        bytes: UInt32(clamping: row.integer(6)),
        isTombstone: row.isNull(7),
        isEarly: early.contains(sequence),
        isWithheld: withheld.contains(sequence),
        references: row.string(8)
      )
      index.load(state, of: row.integer(1))
    }
    try forEachRow("SELECT sequence, node, isRemoved, successor, bytes FROM node ORDER BY sequence") { row in
      let description = NodeLog.Description(
        sequence: row.integer(0),
        bytes: UInt32(clamping: row.integer(4)),
        isRemoved: row.bool(2),
        isTombstone: row.bool(2) && row.isNull(3)
      )
      index.load(description, of: row.integer(1))
    }
    index.finishLoading()
    return index
  }

  private func archiveTip() throws(SQLiteFailure) -> ArchiveTip {
    var tip: ArchiveTip?
    let sql = """
      SELECT sequence, changeHigh, changeLow, lastNode, lastContext, lastSession, lastGeneration, pinned, written,
      content FROM tip
      """
    try forEachRow(sql) { row in
      var changeID: ChangeID?
      if let high = row.optionalInteger(1), let low = row.optionalInteger(2) {
        changeID = ChangeID(high: UInt64(bitPattern: high), low: UInt64(bitPattern: low))
      }
      tip = ArchiveTip(
        sequence: row.integer(0),
        changeID: changeID,
        lastNode: row.integer(3),
        lastContext: row.integer(4),
        lastSession: row.integer(5),
        lastGeneration: row.integer(6),
        pinned: row.optionalInteger(7),
        written: row.integer(8),
        content: row.integer(9)
      )
    }
    guard let tip else { throw .missing("the tip row") }
    return tip
  }
}
