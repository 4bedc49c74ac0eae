// SPDX-License-Identifier: Apache-2.0

/// The readable rows of a damaged archive file; they are added to an older copy (R32).
///
/// Only a table that can be read to its end is complete. Of any other table, each leaf page is read by itself, because
/// the pages that lead to it may be damaged. Checksums identify its rows, and the copy's rows stay. Rows of both have
/// numbers of one history, so readers see the newer row of each object.
struct Salvage {
  private typealias Row = [(any SQLiteValue)?]

  private let image: ArchiveImage
  private let system: any FileSystem

  init(_ image: ArchiveImage, of system: any FileSystem) { (self.image, self.system) = (image, system) }

  /// Adds the rows to an archive, in one transaction.
  ///
  /// Fails as damage if both have different rows of one number: the archive is no older copy then.
  ///
  /// - Returns: whether there were any rows.
  func add(to target: SQLiteConnection) throws(SQLiteFailure) -> Bool {
    let source = try SQLiteConnection(inMemory: image.bytes, in: system)
    try target.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE")
    if try !target.hasChecksums() { try target.addChecksums() }
    let nodes = try add(.node, of: source, to: target)
    // Nodes removed since the copy was made stay removed.
    if nodes.isWhole { try target.execute("DELETE FROM state WHERE node NOT IN (SELECT node FROM node)") }
    let states = try add(.state, of: source, to: target)
    let contexts = try add(.context, of: source, to: target)
    guard nodes.count + states.count + contexts.count > 0 else {
      try target.execute("ROLLBACK")
      return false
    }
    for table in ["tip", "emptied", "early", "withheld", "generation", "session", "claim", "run"] {
      guard let rows = try? source.rows("SELECT * FROM \(table)", { $0.values }) else { continue }
      try target.execute("DELETE FROM \(table)")
      try put(rows, table, into: target)
    }
    for (last, column, tables) in Self.numbers {
      for table in tables {
        try target.execute("UPDATE tip SET \(last) = max(\(last), ifnull((SELECT max(\(column)) FROM \(table)), 0))")
      }
    }
    try target.execute("UPDATE tip SET content = sequence; COMMIT")
    return true
  }

  /// The numbers that `tip` must have given out, if its own row is the copy's.
  private static let numbers: [(last: String, column: String, tables: [String])] = [
    ("sequence", "sequence", ["state", "node", "emptied", "early", "withheld", "generation"]),
    ("lastNode", "node", ["state", "node", "claim"]),
    ("lastContext", "context", ["context"]),
    ("lastSession", "session", ["session", "claim"]),
    ("lastGeneration", "generation", ["generation"]),
  ]

  private func add(
    _ table: CheckedRow,
    of source: SQLiteConnection,
    to target: SQLiteConnection
  ) throws(SQLiteFailure) -> (count: Int, isWhole: Bool) {
    var (rows, isWhole) = soundRows(of: table, in: source)
    if !isWhole { rows = try rowsOfLeaves(of: table) }
    let former = try target.prepare("SELECT \(table.columns), checksum FROM \(table.table) WHERE rowid = ?1")
    for row in rows {
      former.bind([row[0]])
      defer { former.reset() }
      guard try former.step(), former.isSound(table) else { continue }
      guard former.integer(table.checksum) == row[Int(table.checksum)] as? Int64 else {
        throw .unsound("\(table.table) has another history")
      }
    }
    if isWhole { try target.execute("DELETE FROM \(table.table)") }
    try put(rows, "\(table.table) (\(table.columns), checksum)", into: target)
    return (rows.count, isWhole)
  }

  private func put(_ rows: [Row], _ columns: String, into target: SQLiteConnection) throws(SQLiteFailure) {
    guard let count = rows.first?.count else { return }
    let marks = (1...count).map { "?\($0)" }.joined(separator: ", ")
    let statement = try target.prepare("REPLACE INTO \(columns) VALUES (\(marks))")
    for row in rows { try statement.run(row) }
  }

  private func soundRows(of table: CheckedRow, in source: SQLiteConnection) -> (rows: [Row], isWhole: Bool) {
    let selection = "SELECT \(table.columns), checksum FROM \(table.table) WHERE rowid = ?1"
    guard let numbers = try? source.rows("SELECT rowid FROM \(table.table)", { $0.integer(0) }),
      let statement = try? source.prepare(selection)
    else { return ([], false) }
    var rows: [Row] = []
    for number in numbers {
      statement.bind(1, number)
      // One by one: the text of a row may be on damaged pages.
      if (try? statement.step()) == true, statement.isSound(table) || table.table == "state" && statement.isRemoval {
        rows.append(statement.values)
      }
      statement.reset()
    }
    return (rows, rows.count == numbers.count)
  }

  /// The sound rows of all leaf pages. Each page in turn replaces the table's first page, below the first page of an
  /// empty archive. No other page is lost by that, because the tables of all archives begin there.
  private func rowsOfLeaves(of table: CheckedRow) throws(SQLiteFailure) -> [Row] {
    let (blank, scan) = (try SQLiteConnection(inMemory: [], in: system), try SQLiteConnection(inMemory: [], in: system))
    try SQLiteArchive.create(in: blank, of: system)
    let root = Int(try blank.integer("SELECT rootpage FROM sqlite_schema WHERE name = '\(table.table)'"))
    let size = ArchiveImage.pageBytes
    var pages = ArchiveImage.withoutLog(blank.firstPage)
    pages += image.bytes.dropFirst(size)
    pages.append(contentsOf: repeatElement(0, count: max(0, root * size - pages.count)))
    return pages.withUnsafeMutableBytes { pages in
      defer { scan.close() }
      var rows: [Row] = []
      for number in stride(from: 2, through: image.pageCount, by: 1) where image.isLeaf(number) {
        let place = UnsafeMutableRawBufferPointer(rebasing: pages[(root - 1) * size..<root * size])
        place.copyBytes(from: image.page(number))
        guard (try? scan.show(pages)) != nil else { continue }
        rows += soundRows(of: table, in: scan).rows
      }
      return rows
    }
  }
}

extension ArchiveImage {
  /// Whether a page looks as one that holds rows of a table.
  fileprivate func isLeaf(_ number: Int) -> Bool { page(number).first == 13 }
}
