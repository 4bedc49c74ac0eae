// SPDX-License-Identifier: Apache-2.0

/// The rows of one archive in its SQLite file.
///
/// Invariants:
/// 1. The only connection is exclusive: while it is open, no other process can read or write the file.
/// 2. `commit` returns only after the write-ahead log has been synced (`synchronous = FULL`).
/// 3. No checkpoint runs inside a commit.
/// 4. After a failed sync nothing is retried: the error is `indeterminate`, and closing leaves the log as it is.
/// 5. While the log may hold changes that the main file lacks, the main file says so (`unclosed`). That row is removed
///    before the log is. From the first commit to the next checkpoint the acknowledged mark stands in for it.
struct SQLiteArchive: ArchiveRows {
  var connection: SQLiteConnection
  let archive: String
  let system: any FileSystem
  private let markPath: String
  private var mark: AcknowledgedMark?
  /// The archive holds the `unclosed` row, durably.
  private(set) var isUnclosed: Bool
  /// The main file holds it too, unless the checkpoint failed: then the next one moves the row there.
  private(set) var isMainUnclosed = false
  /// The files were removed or replaced: those at their names are not this connection's.
  private var isLost = false
  /// The stamp of the files when they were parked; `nil` if it is unknown.
  var left: FileStamp?

  init(
    _ connection: SQLiteConnection,
    archive: String,
    mark path: String,
    in system: any FileSystem,
    isUnclosed: Bool
  ) {
    (self.connection, self.archive, markPath, self.system) = (connection, archive, path, system)
    self.isUnclosed = isUnclosed
  }

  /// - Parameter keepingLog: whether to leave the log as it is, because the outcome of earlier commits is unknown.
  func close(keepingLog: Bool) {
    // If the row cannot be removed, the log stays.
    let isRemovable =
      !keepingLog && !isLost && (!isUnclosed || (try? connection.execute("DELETE FROM unclosed")) != nil)
    connection.checkpointsOnClose = isRemovable
    connection.close()
  }

  /// Whether it was opened in a read-only directory: nothing that is written reaches a file.
  var isInMemory: Bool { connection.isInMemory }

  var hasFiles: Bool { !isParked && !isInMemory }

  var isParked: Bool { connection.isClosed }

  /// Closes the files and leaves them, with log and mark, as a kill would.
  mutating func park() {
    connection.close()
    mark = nil
  }

  // MARK: Transactions

  mutating func begin() throws(ArchiveError) {
    try writing("begin") { () throws(SQLiteFailure) in
      try connection.statement(.begin).run()
      if !isUnclosed { try connection.statement(.noteUnclosed).run() }
    }
  }

  mutating func commit() throws(ArchiveError) {
    try writing("commit") { () throws(SQLiteFailure) in try connection.statement(.commit).run() }
    isUnclosed = true
    isLost = connection.hasMoved(in: system)
    guard !isLost else {
      let why = "the files of the archive were removed or replaced while the broker used them"
      throw ArchiveError(.definite, "commit: \(why); put them back only while no broker runs")
    }
  }

  /// Notes the durable sequence; called before the broker is told.
  mutating func acknowledge(_ sequence: SequenceNumber) {
    guard !isInMemory else { return }
    if let mark { return mark.write(sequence) }
    mark = AcknowledgedMark(markPath, of: system, archive: archive, sequence: sequence)
  }

  func rollBack() {
    guard connection.isInTransaction else { return }
    // After some failures SQLite has rolled back already.
    try? connection.statement(.rollBack).run()
  }

  func writing(_ what: String, _ body: () throws(SQLiteFailure) -> Void) throws(ArchiveError) {
    do throws(SQLiteFailure) {
      try body()
    } catch {
      throw ArchiveError(what, notWritten: error)
    }
  }

  func reading<Value>(_ what: String, _ body: () throws(SQLiteFailure) -> Value) throws(ArchiveError) -> Value {
    do throws(SQLiteFailure) {
      return try body()
    } catch {
      throw ArchiveError(.unreadable, "\(what): \(error)")
    }
  }

  /// Moves the log into the main file; after a failed sync the outcome of earlier commits is unknown.
  mutating func checkpoint(_ kind: SQLiteConnection.Checkpoint) throws(ArchiveError) {
    isMainUnclosed = isUnclosed
    do throws(SQLiteFailure) {
      try connection.checkpoint(kind)
    } catch {
      // A failed read leaves the log as it was.
      throw error.isRead
        ? ArchiveError(.definite, "checkpoint: \(error)") : ArchiveError("checkpoint", notWritten: error)
    }
  }

  // MARK: Writing

  func write(_ change: ArchiveChange, at sequence: SequenceNumber, _ effect: ChangeEffect) throws(ArchiveError) {
    try writing("write") { () throws(SQLiteFailure) in
      switch change {
      case .state(let record): try insert(record, at: sequence)
      case .node(let record):
        if effect.writesRow { try connection.insert(record, at: sequence) }
        if effect.removesState { try insertRemoval(of: record.node, at: sequence) }
      case .removeState(let node):
        if effect.writesRow { try insertRemoval(of: node, at: sequence) }
      case .removeAll:
        if effect.writesRow { try connection.statement(.insertEmptied).run(sequence) }
      case .settle:
        for row in effect.settled { try connection.statement(.deleteEarly).run(row) }
      case .withhold(_, let since):
        for row in effect.rows { try connection.statement(.insertWithheld).run([row.sequence, row.node, since]) }
      case .release:
        for row in effect.rows { try connection.statement(.deleteWithheld).run(row.sequence) }
      case .context(let context, let text): try connection.insert(context, text)
      case .forgetContexts:
        for context in effect.contexts { try connection.statement(.deleteContext).run(context) }
      case .seal(let record): try insert(record, at: sequence)
      case .superseded, .pin: break
      case .dropGeneration(let generation): try connection.statement(.deleteGeneration).run(generation)
      case .session(let record): try write(record)
      case .forgetSessions(let sessions):
        for session in sessions { try connection.statement(.deleteSession).run(session) }
      case .claim(let record): try write(record)
      case .run(let record): try write(record)
      }
    }
  }

  private func insert(_ record: StateRecord, at sequence: SequenceNumber) throws(SQLiteFailure) {
    let statement = try connection.statement(.insertState)
    statement.bind(1, sequence)
    statement.bind(2, record.node)
    statement.bind(3, record.context)
    statement.bind(4, record.session)
    statement.bind(5, record.revision)
    statement.bind(6, record.written)
    statement.bind(7, record.bytes)
    statement.bind(8, Int64(record.checksum(at: sequence)))
    statement.bind(9, record.references)
    statement.bind(11, record.elements)
    let result = record.text.withUnsafeBytes { bytes in
      statement.bind(10, uncopied: bytes)
      return Result { () throws(SQLiteFailure) in try statement.run() }
    }
    try result.get()
    if record.isEarly { try connection.statement(.insertEarly).run(sequence) }
  }

  private func insertRemoval(of node: NodeID, at sequence: SequenceNumber) throws(SQLiteFailure) {
    try connection.statement(.insertState).run([sequence, node, 0, 0, 0, 0, 0, nil, nil, nil, nil])
  }

  private func insert(_ record: GenerationRecord, at sequence: SequenceNumber) throws(SQLiteFailure) {
    let omitted = record.omitted.map(String.init).joined(separator: " ")
    try connection.statement(.insertGeneration).run([
      sequence, record.generation, record.committed, record.objects, record.bytes, record.kind, omitted,
    ])
  }

  private func write(_ record: SessionRecord) throws(SQLiteFailure) {
    try connection.statement(.writeSession).run([
      record.session, record.ended, record.restorationsAtEnd, record.token, record.ending, record.facts,
    ])
  }

  private func write(_ record: ClaimRecord) throws(SQLiteFailure) {
    try connection.statement(.writeClaim).run([
      record.node, record.session, record.handle, record.released, record.restorationsAtRelease,
    ])
  }

  private func write(_ record: RunRecord) throws(SQLiteFailure) {
    try connection.statement(.writeRun).run([record.run, record.restorations, record.facts])
    // The writer of the run has read the report of the opening.
    try connection.statement(.deleteDamage).run()
  }

  func write(_ tip: ArchiveTip) throws(ArchiveError) {
    try writing("write") { () throws(SQLiteFailure) in
      let statement = try connection.statement(.writeTip)
      statement.bind(1, tip.sequence)
      statement.bind(2, tip.changeID.map { Int64(bitPattern: $0.high) })
      statement.bind(3, tip.changeID.map { Int64(bitPattern: $0.low) })
      statement.bind(4, tip.lastNode)
      statement.bind(5, tip.lastContext)
      statement.bind(6, tip.lastSession)
      statement.bind(7, tip.lastGeneration)
      statement.bind(8, tip.pinned)
      statement.bind(9, tip.written)
      statement.bind(10, tip.content)
      try statement.run()
    }
  }

  func delete(_ purge: ArchivePurge) throws(ArchiveError) {
    try writing("delete") { () throws(SQLiteFailure) in
      for run in purge.states.runs {
        let statement = try connection.statement(.deleteStates)
        statement.bind(1, run.lowerBound)
        statement.bind(2, run.upperBound)
        try statement.run()
      }
      for row in purge.early { try connection.statement(.deleteEarly).run(row) }
      for row in purge.descriptions { try connection.statement(.deleteNode).run(row) }
      for row in purge.cuts { try connection.statement(.deleteEmptied).run(row) }
      for node in purge.unshown { try connection.statement(.deleteClaim).run(node) }
    }
  }

  func delete(_ contexts: [ContextID]) throws(ArchiveError) {
    try writing("delete") { () throws(SQLiteFailure) in
      for context in contexts { try connection.statement(.deleteContext).run(context) }
    }
  }

  // MARK: Reading

  func state(at sequence: SequenceNumber) throws(ArchiveError) -> StateReading {
    try reading("read") { () throws(SQLiteFailure) in try connection.state(at: sequence) }
  }

  func node(at sequence: SequenceNumber) throws(ArchiveError) -> NodeRecord {
    try reading("read") { () throws(SQLiteFailure) in try connection.node(at: sequence) }
  }

  /// In one transaction: with one for each row, SQLite would look at the file's length each time.
  func readMany<Value>(_ body: () throws(ArchiveError) -> Value) throws(ArchiveError) -> Value {
    guard !connection.isInTransaction else { return try body() }
    try reading("read") { () throws(SQLiteFailure) in try connection.execute("BEGIN") }
    defer { try? connection.execute("ROLLBACK") }
    return try body()
  }

  func contexts() throws(ArchiveError) -> [ContextID: String] {
    let rows = try rows("SELECT context, text FROM context") { ($0.integer(0), $0.string(1) ?? "") }
    return Dictionary(rows) { $1 }
  }

  func sessions() throws(ArchiveError) -> [SessionRecord] {
    try reading("read") { () throws(SQLiteFailure) in try connection.sessions() }
  }

  func claims() throws(ArchiveError) -> [ClaimRecord] {
    try rows("SELECT node, session, handle, released, restorationsAtRelease FROM claim ORDER BY node") { row in
      ClaimRecord(
        node: row.integer(0),
        session: row.integer(1),
        handle: row.clamped(2),
        released: row.clamped(3),
        restorationsAtRelease: row.clamped(4)
      )
    }
  }

  func run() throws(ArchiveError) -> RunRecord? {
    try reading("read") { () throws(SQLiteFailure) in try connection.runRecord() }
  }

  func damage() throws(ArchiveError) -> String? { try rows("SELECT text FROM damage") { $0.string(0) }.last ?? nil }

  func withheld() throws(ArchiveError) -> [WithheldRow] {
    let sql = "SELECT sequence, withheld.node, since, bytes FROM withheld JOIN state USING (sequence) ORDER BY sequence"
    return try rows(sql) { row in
      let state = StateRow(node: row.integer(1), sequence: row.integer(0))
      return WithheldRow(row: state, since: row.clamped(2), bytes: Int(row.clamped(3)))
    }
  }

  private func rows<Row>(_ sql: String, _ make: (SQLiteStatement) -> Row) throws(ArchiveError) -> [Row] {
    try reading("read") { () throws(SQLiteFailure) in try connection.rows(sql, make) }
  }

  func index() throws(ArchiveError) -> ArchiveIndex {
    try reading("read") { () throws(SQLiteFailure) in
      let (index, faults) = try connection.archiveIndex()
      // Only an opening mends them.
      if let finding = faults.finding { throw .unsound(finding) }
      return index
    }
  }
}

extension ArchiveError {
  fileprivate init(_ what: String, notWritten failure: SQLiteFailure) {
    let text = "\(what): \(failure)"
    if failure.isFull {
      self.init(.full, "\(text); \(SystemError.remedy(failure.systemError))")
    } else if failure.isInputOutput {
      // The kernel may have dropped what could not be written and report success next time: a second sync would
      // acknowledge lost data.
      self.init(.indeterminate, "\(text); the store must be opened again")
    } else {
      self.init(.definite, text)
    }
  }
}
