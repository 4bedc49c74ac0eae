// SPDX-License-Identifier: Apache-2.0

internal import CSQLite

/// The rows of a table that have a checksum over integers and texts (`Protocol/archive-format.md`).
struct CheckedRow {
  let table: String
  /// The selected columns before the checksum: first those it covers, then the others.
  let columns: String
  fileprivate let integers: Range<Int32>
  fileprivate let texts: Range<Int32>
  /// The column that repeats how many bytes the texts have.
  fileprivate let bytes: Int32?
  let checksum: Int32

  static let state = CheckedRow(
    table: "state",
    columns: "sequence, node, context, session, revision, written, text, links, elements, bytes",
    integers: 0..<6,
    texts: 6..<9,
    bytes: 9,
    checksum: 10
  )
  static let node = CheckedRow(
    table: "node",
    columns: """
      sequence, node, parent, kind, keepsForever, isConfidential, isRemoved, successor, component, classes,
      restorationClass, storyboard, bytes
      """,
    integers: 0..<8,
    texts: 8..<12,
    bytes: 12,
    checksum: 13
  )
  static let context = CheckedRow(
    table: "context",
    columns: "context, text",
    integers: 0..<1,
    texts: 1..<2,
    bytes: nil,
    checksum: 2
  )

  /// In ascending order of the first column.
  var selection: String { "SELECT \(columns), checksum FROM \(table) ORDER BY 1" }
  /// The same for format 1, which has no checksums.
  var formerSelection: String { "SELECT \(columns), NULL FROM \(table) ORDER BY 1" }
}

extension SQLiteStatement {
  func isSound(_ row: CheckedRow) -> Bool {
    let found = contents(row)
    let hasBytes = row.bytes.map { integer($0) == Int64(found.bytes) } ?? true
    return hasBytes && !isNull(row.checksum) && integer(row.checksum) == Int64(found.checksum)
  }

  /// Whether a row that `CheckedRow.state` selects says that its node has no state.
  var isRemoval: Bool {
    let hasZeros = ([2, 3, 4, 5, 9] as [Int32]).allSatisfy { !isNull($0) && integer($0) == 0 }
    return hasZeros && integer(1) > 0 && isNull(6) && isNull(10)
  }

  /// The checksum that a selected row ought to have, and how many bytes its texts have.
  fileprivate func contents(_ row: CheckedRow) -> (checksum: UInt32, bytes: Int) {
    var checksum = Checksum()
    var bytes = 0
    withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer?.self, capacity: row.texts.count) { texts in
      for (place, column) in row.texts.enumerated() { texts[place] = text(column) }
      withUnsafeTemporaryAllocation(of: Int64.self, capacity: row.integers.count + row.texts.count) { header in
        for column in row.integers {
          // Null reads as 0; most integers are neither.
          let value = integer(column)
          header[Int(column)] = (value == 0 && isNull(column) ? -1 : value).littleEndian
        }
        for (place, column) in row.texts.enumerated() {
          header[Int(column)] = Int64(texts[place]?.count ?? -1).littleEndian
        }
        checksum.update(UnsafeRawBufferPointer(header))
      }
      for case let text? in texts {
        checksum.update(text)
        bytes += text.count
      }
    }
    return (checksum.value, bytes)
  }

  var nodeRecord: NodeRecord {
    NodeRecord(
      node: integer(1),
      parent: id(2),
      component: string(8),
      kind: NodeKind(rawValue: integer(3)) ?? .object,
      classes: string(9),
      restorationClass: string(10),
      storyboard: string(11),
      keepsForever: bool(4),
      isConfidential: bool(5),
      isRemoved: bool(6),
      successor: id(7)
    )
  }
}

extension SQLiteConnection {
  /// Whether rows of nodes and contexts have checksums: they have since format 2.
  func hasChecksums() throws(SQLiteFailure) -> Bool { try integer("PRAGMA user_version") > 1 }

  /// Fails if a table or a column that the archive's statements use is missing.
  func requireSchema() throws(SQLiteFailure) {
    let isFormer = try !hasChecksums()
    for name in ArchiveStatement.allCases where !isFormer || !name.usesChecksums { _ = try prepare(name.sql) }
  }

  /// Migrates an archive from format 1 to 2, inside a transaction; its content stays the same.
  func addChecksums() throws(SQLiteFailure) {
    try execute(ArchiveSchema.checksums)
    let nodes = try rows(CheckedRow.node.formerSelection) { ($0.integer(0), $0.contents(.node)) }
    let changeNode = try prepare("UPDATE node SET checksum = ?2, bytes = ?3 WHERE sequence = ?1")
    for (sequence, found) in nodes { try changeNode.run([sequence, Int64(found.checksum), found.bytes]) }
    let contexts = try rows(CheckedRow.context.formerSelection) { ($0.integer(0), $0.contents(.context)) }
    let changeContext = try prepare("UPDATE context SET checksum = ?2 WHERE context = ?1")
    for (context, found) in contexts { try changeContext.run([context, Int64(found.checksum)]) }
    try execute("UPDATE archive SET format = 2; PRAGMA user_version = 2")
  }

  /// Replaces damaged and missing rows, inside a transaction.
  func mend(_ faults: RowFaults) throws(SQLiteFailure) {
    guard !faults.isEmpty else { return }
    if try !hasChecksums() { try addChecksums() }
    for row in faults.nodes { try statement(.deleteNode).run(row.sequence) }
    for (sequence, record) in faults.substitutes { try insert(record, at: sequence) }
    let last = try integer("SELECT lastContext FROM tip")
    for context in faults.contexts {
      try statement(.deleteContext).run(context)
      if last.hasGivenOut(context) { try insert(context, "{}") }
    }
  }

  // MARK: Single rows

  func insert(_ record: NodeRecord, at sequence: SequenceNumber) throws(SQLiteFailure) {
    try statement(.insertNode).run([
      sequence, record.node, record.parent, record.kind.rawValue, record.keepsForever, record.isConfidential,
      record.isRemoved, record.successor, record.textBytes, record.component, record.classes,
      record.restorationClass, record.storyboard, Int64(record.checksum(at: sequence)),
    ])
  }

  func insert(_ context: ContextID, _ text: String) throws(SQLiteFailure) {
    let checksum = Checksum(integers: [context], texts: [text])
    try statement(.insertContext).run([context, text, Int64(checksum.value)])
  }

  func node(at sequence: SequenceNumber) throws(SQLiteFailure) -> NodeRecord {
    let statement = try statement(.readNode)
    statement.bind(1, sequence)
    defer { statement.reset() }
    guard try statement.step() else { throw .missing("node row \(sequence)") }
    guard statement.isSound(.node) else { throw .unsound("the checksum of node row \(sequence) is wrong") }
    return statement.nodeRecord
  }

  func state(at sequence: SequenceNumber) throws(SQLiteFailure) -> StateReading {
    let statement = try statement(.readState)
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
