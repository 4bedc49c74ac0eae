// SPDX-License-Identifier: Apache-2.0

/// The rows of one archive in its SQLite file.
///
/// Invariants:
/// 1. One connection, exclusive: nobody else can read or write the file while it is open.
/// 2. `commit` returns only after the write-ahead log has been synced (`synchronous = FULL`).
/// 3. No checkpoint runs inside a commit.
/// 4. After a failed sync nothing is tried again: the error is `indeterminate`, and closing leaves the log as it is.
/// 5. While the log may hold what the main file does not, the main file says so (`unclosed`): the log is removed only
///    after that mark. Between the first commit and the next checkpoint the acknowledged mark stands in.
struct SQLiteArchive: ArchiveRows {
  let connection: SQLiteConnection
  let archive: String
  /// Where its acknowledged mark is kept.
  let markPath: String
  private var mark: AcknowledgedMark?
  /// The archive is marked as unclosed, in a transaction that is durable.
  private(set) var isUnclosed: Bool
  /// So is its main file, unless moving it there failed: then the next checkpoint does it.
  private(set) var isMainUnclosed = false

  init(_ connection: SQLiteConnection, archive: String, markPath: String, isUnclosed: Bool) {
    self.connection = connection
    self.archive = archive
    self.markPath = markPath
    self.isUnclosed = isUnclosed
  }

  /// Gives the file back.
  ///
  /// - Parameter keepingLog: whether to leave the log as it is: what earlier commits did is uncertain.
  func close(keepingLog: Bool) {
    // A log that cannot be marked as superfluous stays.
    let isRemovable = !keepingLog && (!isUnclosed || (try? connection.execute("DELETE FROM unclosed")) != nil)
    connection.checkpointsOnClose = isRemovable
    connection.close()
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
  }

  /// Notes what is durable; called before anybody is told.
  mutating func acknowledge(_ sequence: SequenceNumber) {
    if let mark { return mark.write(sequence) }
    mark = AcknowledgedMark(markPath, archive: archive, sequence: sequence)
  }

  func rollBack() {
    guard connection.isInTransaction else { return }
    // Some failures have rolled back already; then there is nothing left to fail.
    try? connection.statement(.rollBack).run()
  }

  func writing(_ what: String, _ body: () throws(SQLiteFailure) -> Void) throws(ArchiveError) {
    do throws(SQLiteFailure) {
      try body()
    } catch {
      throw ArchiveError(what, notWritten: error)
    }
  }

  func reading<Value>(
    _ what: String,
    _ body: () throws(SQLiteFailure) -> Value
  ) throws(ArchiveError) -> Value {
    do throws(SQLiteFailure) {
      return try body()
    } catch {
      throw ArchiveError(.unreadable, "\(what): \(error)")
    }
  }

  /// Moves the log into the main file; a failed sync makes the outcome of earlier commits uncertain.
  mutating func checkpoint(_ kind: SQLiteConnection.Checkpoint) throws(ArchiveError) {
    isMainUnclosed = isUnclosed
    do throws(SQLiteFailure) {
      try connection.checkpoint(kind)
    } catch {
      // What could not be read is in the log as before.
      throw error.isRead
        ? ArchiveError(.definite, "checkpoint: \(error)") : ArchiveError("checkpoint", notWritten: error)
    }
  }

  // MARK: Writing

  func write(
    _ change: ArchiveChange,
    at sequence: SequenceNumber,
    _ effect: ChangeEffect
  ) throws(ArchiveError) {
    try writing("write") { () throws(SQLiteFailure) in
      switch change {
      case .state(let record): try insert(record, at: sequence)
      case .node(let record):
        if effect.writesRow { try insert(record, at: sequence) }
        if effect.removesState { try insertRemoval(of: record.node, at: sequence) }
      case .removeState(let node):
        if effect.writesRow { try insertRemoval(of: node, at: sequence) }
      case .removeAll:
        if effect.writesRow { try run(.insertEmptied, with: sequence) }
      case .settle:
        for row in effect.settled { try run(.deleteEarly, with: row) }
      case .withhold(_, let since):
        for row in effect.rows { try insert(row, since) }
      case .release:
        for row in effect.rows { try run(.deleteWithheld, with: row.sequence) }
      case .context(let context, let text): try insert(context, text)
      case .seal(let record): try insert(record, at: sequence)
      case .pin: break
      case .dropGeneration(let generation): try run(.deleteGeneration, with: generation)
      case .session(let record): try write(record)
      case .forgetSessions(let sessions):
        for session in sessions { try run(.deleteSession, with: session) }
      case .claim(let record): try write(record)
      case .run(let record): try write(record)
      }
    }
  }

  private func run(_ name: ArchiveStatement, with value: Int64) throws(SQLiteFailure) {
    let statement = try connection.statement(name)
    statement.bind(1, value)
    try statement.run()
  }

  private func insert(_ record: StateRecord, at sequence: SequenceNumber) throws(SQLiteFailure) {
    let statement = try connection.statement(.insertState)
    statement.bind(1, sequence)
    statement.bind(2, record.node)
    statement.bind(3, record.context)
    statement.bind(4, record.session)
    statement.bind(5, record.revision)
    statement.bind(6, record.written)
    statement.bind(7, Int64(record.bytes))
    statement.bind(8, Int64(record.checksum(at: sequence)))
    statement.bind(9, record.references)
    statement.bind(11, record.elements)
    let result = record.text.withUnsafeBytes { bytes in
      statement.bind(10, uncopied: bytes)
      return Result { () throws(SQLiteFailure) in try statement.run() }
    }
    try result.get()
    if record.isEarly { try run(.insertEarly, with: sequence) }
  }

  private func insertRemoval(of node: NodeID, at sequence: SequenceNumber) throws(SQLiteFailure) {
    let statement = try connection.statement(.insertState)
    statement.bind(1, sequence)
    statement.bind(2, node)
    for column in 3...6 as ClosedRange<Int32> { statement.bind(column, 0 as Int64) }
    statement.bind(7, 0 as Int64)
    for column in 8...11 as ClosedRange<Int32> { statement.bind(column, nil as Int64?) }
    try statement.run()
  }

  private func insert(_ record: NodeRecord, at sequence: SequenceNumber) throws(SQLiteFailure) {
    let statement = try connection.statement(.insertNode)
    statement.bind(1, sequence)
    statement.bind(2, record.node)
    statement.bind(3, record.parent)
    statement.bind(4, record.kind.rawValue)
    statement.bind(5, record.keepsForever)
    statement.bind(6, record.isConfidential)
    statement.bind(7, record.isRemoved)
    statement.bind(8, record.successor)
    statement.bind(9, Int64(record.textBytes))
    statement.bind(10, record.component)
    statement.bind(11, record.classes)
    statement.bind(12, record.restorationClass)
    statement.bind(13, record.storyboard)
    try statement.run()
  }

  private func insert(_ row: StateRow, _ since: Int64) throws(SQLiteFailure) {
    let statement = try connection.statement(.insertWithheld)
    statement.bind(1, row.sequence)
    statement.bind(2, row.node)
    statement.bind(3, since)
    try statement.run()
  }

  private func insert(_ context: ContextID, _ text: String) throws(SQLiteFailure) {
    let statement = try connection.statement(.insertContext)
    statement.bind(1, context)
    statement.bind(2, text)
    try statement.run()
  }

  private func insert(_ record: GenerationRecord, at sequence: SequenceNumber) throws(SQLiteFailure) {
    let statement = try connection.statement(.insertGeneration)
    statement.bind(1, sequence)
    statement.bind(2, record.generation)
    statement.bind(3, record.committed)
    statement.bind(4, Int64(record.objects))
    statement.bind(5, Int64(record.bytes))
    statement.bind(6, record.kind)
    statement.bind(7, record.omitted.map(String.init).joined(separator: " "))
    try statement.run()
  }

  private func write(_ record: SessionRecord) throws(SQLiteFailure) {
    let statement = try connection.statement(.writeSession)
    statement.bind(1, record.session)
    statement.bind(2, record.ended)
    statement.bind(3, record.restorationsAtEnd)
    statement.bind(4, record.token)
    statement.bind(5, record.ending)
    statement.bind(6, record.facts)
    try statement.run()
  }

  private func write(_ record: ClaimRecord) throws(SQLiteFailure) {
    let statement = try connection.statement(.writeClaim)
    statement.bind(1, record.node)
    statement.bind(2, record.session)
    statement.bind(3, record.handle)
    statement.bind(4, record.released)
    statement.bind(5, record.restorationsAtRelease)
    try statement.run()
  }

  private func write(_ record: RunRecord) throws(SQLiteFailure) {
    let statement = try connection.statement(.writeRun)
    statement.bind(1, record.run)
    statement.bind(2, record.restorations)
    statement.bind(3, record.facts)
    try statement.run()
    // Whoever writes the run has read what the opening told.
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
      for row in purge.early { try run(.deleteEarly, with: row) }
      for row in purge.descriptions { try run(.deleteNode, with: row) }
      for row in purge.cuts { try run(.deleteEmptied, with: row) }
      for node in purge.unshown { try run(.deleteClaim, with: node) }
    }
  }

  func delete(_ contexts: [ContextID]) throws(ArchiveError) {
    try writing("delete") { () throws(SQLiteFailure) in
      for context in contexts { try run(.deleteContext, with: context) }
    }
  }

  // MARK: Reading

  func state(at sequence: SequenceNumber) throws(ArchiveError) -> StateReading {
    try reading("read") { () throws(SQLiteFailure) in
      let statement = try connection.statement(.readState)
      statement.bind(1, sequence)
      defer { statement.reset() }
      guard try statement.step(), let text = statement.bytes(6) else { return .unreadable(sequence: sequence) }
      let record = StateRecord(
        node: statement.integer(0),
        context: statement.integer(1),
        session: statement.integer(2),
        revision: statement.integer(3),
        written: statement.integer(4),
        text: text[...],
        references: statement.string(7),
        elements: statement.string(8)
      )
      guard Int64(record.checksum(at: sequence)) == statement.integer(5), Int64(record.bytes) == statement.integer(9)
      else {
        return .unreadable(sequence: sequence)
      }
      return .state(record, sequence: sequence)
    }
  }

  func node(at sequence: SequenceNumber) throws(ArchiveError) -> NodeRecord {
    let record = try reading("read") { () throws(SQLiteFailure) -> NodeRecord? in
      let statement = try connection.statement(.readNode)
      statement.bind(1, sequence)
      defer { statement.reset() }
      guard try statement.step() else { return nil }
      return NodeRecord(
        node: statement.integer(0),
        parent: statement.optionalInteger(1),
        component: statement.string(7),
        kind: NodeKind(rawValue: statement.integer(2)) ?? .object,
        classes: statement.string(8),
        restorationClass: statement.string(9),
        storyboard: statement.string(10),
        keepsForever: statement.bool(3),
        isConfidential: statement.bool(4),
        isRemoved: statement.bool(5),
        successor: statement.optionalInteger(6)
      )
    }
    guard let record else { throw ArchiveError(.unreadable, "read: node row \(sequence) is missing") }
    return record
  }

  func contexts() throws(ArchiveError) -> [ContextID: String] {
    var contexts: [ContextID: String] = [:]
    try forEachRow("SELECT context, text FROM context") { contexts[$0.integer(0)] = $0.string(1) ?? "" }
    return contexts
  }

  func sessions() throws(ArchiveError) -> [SessionRecord] {
    var sessions: [SessionRecord] = []
    let sql = "SELECT session, ended, restorationsAtEnd, token, ending, facts FROM session ORDER BY session"
    try forEachRow(sql) { row in
      sessions.append(
        SessionRecord(
          session: row.integer(0),
          token: row.string(3) ?? "",
          facts: row.string(5) ?? "",
          ending: row.string(4),
          ended: row.clamped(1),
          restorationsAtEnd: row.clamped(2)
        )
      )
    }
    return sessions
  }

  func claims() throws(ArchiveError) -> [ClaimRecord] {
    var claims: [ClaimRecord] = []
    let sql = "SELECT node, session, handle, released, restorationsAtRelease FROM claim ORDER BY node"
    try forEachRow(sql) { row in
      claims.append(
        ClaimRecord(
          node: row.integer(0),
          session: row.integer(1),
          handle: row.clamped(2),
          released: row.clamped(3),
          restorationsAtRelease: row.clamped(4)
        )
      )
    }
    return claims
  }

  func run() throws(ArchiveError) -> RunRecord? {
    var run: RunRecord?
    try forEachRow("SELECT run, restorations, facts FROM run") { row in
      run = RunRecord(run: row.clamped(0), restorations: row.clamped(1), facts: row.string(2) ?? "")
    }
    return run
  }

  func damage() throws(ArchiveError) -> String? {
    var damage: String?
    try forEachRow("SELECT text FROM damage") { damage = $0.string(0) }
    return damage
  }

  func withheld() throws(ArchiveError) -> [WithheldRow] {
    var withheld: [WithheldRow] = []
    let sql = "SELECT sequence, withheld.node, since, bytes FROM withheld JOIN state USING (sequence) ORDER BY sequence"
    try forEachRow(sql) { row in
      let state = StateRow(node: row.integer(1), sequence: row.integer(0))
      withheld.append(WithheldRow(row: state, since: row.clamped(2), bytes: Int(row.clamped(3))))
    }
    return withheld
  }

  private func forEachRow(_ sql: String, _ body: (SQLiteStatement) -> Void) throws(ArchiveError) {
    try reading("read") { () throws(SQLiteFailure) in try connection.forEachRow(sql, body) }
  }

  func index() throws(ArchiveError) -> ArchiveIndex {
    try reading("read") { () throws(SQLiteFailure) in try connection.archiveIndex() }
  }
}

extension ArchiveError {
  fileprivate init(_ what: String, notWritten failure: SQLiteFailure) {
    let text = "\(what): \(failure)"
    if failure.isFull {
      self.init(.full, "\(text); free some space")
    } else if failure.isInputOutput {
      // The kernel may have dropped what could not be written and report success next time: whoever syncs again
      // acknowledges data that is not there.
      self.init(.indeterminate, "\(text); the store has to be opened anew")
    } else {
      self.init(.definite, text)
    }
  }
}
