// SPDX-License-Identifier: Apache-2.0

extension SQLiteArchive {
  private static let pageBytes = 4096
  private static let frameBytes = pageBytes + 24
  private static let logHeaderBytes = 32

  /// Bytes in the write-ahead log that are not known to be in the main file.
  var logBytes: Int { connection.frames * Self.frameBytes }

  /// How long the log's file should be before the next commit; `nil` if it is long enough.
  ///
  /// To lengthen it takes a commit about as long as everything else. So in a burst that is done in advance, step by
  /// step, until a checkpoint comes before the file is full. An archive that is seldom used gets no zeros, a single
  /// large commit neither, and nobody gets more of them than was logged.
  func missingLogBytes(_ upkeep: ArchiveUpkeep) -> Int? {
    let used = logBytes
    let step = upkeep.logBytesMax / 8
    // Commits that wait go before the checkpoint.
    let most = upkeep.logBytesMax + 2 * step
    guard used > max(step, connection.reservedLogBytes), used < most else { return nil }
    return min(used + step, most) / Self.frameBytes * Self.frameBytes + Self.logHeaderBytes
  }

  func reserveLog(bytes: Int) { connection.reserveLog(bytes: bytes) }

  /// How long the main file has to be for what is in it and in the log.
  func mainBytes() throws(ArchiveError) -> Int {
    try reading("size") { () throws(SQLiteFailure) in
      try Int(connection.integer("PRAGMA page_count")) * Self.pageBytes
    }
  }

  /// Whether transactions log as little as possible: what is deleted is not overwritten with zeros where that writes
  /// pages that are otherwise unused, and all pages stay in memory until it is known which are left.
  func setSparing(_ isSparing: Bool) throws(ArchiveError) {
    try writing("set") { () throws(SQLiteFailure) in
      let (erasing, spilling) = isSparing ? ("FAST", "OFF") : ("ON", "ON")
      try connection.execute("PRAGMA secure_delete = \(erasing); PRAGMA cache_spill = \(spilling)")
    }
  }

  /// Shortens the main file if more than `bytes` of it are unused; returns whether it did.
  func releasePages(beyond bytes: Int, atMost most: Int) throws(ArchiveError) -> Bool {
    var hasReleased = false
    try writing("shorten") { () throws(SQLiteFailure) in
      let unused = Int(try connection.integer("PRAGMA freelist_count")) - bytes / Self.pageBytes
      guard unused > 0 else { return }
      try connection.execute("PRAGMA incremental_vacuum(\(min(unused, max(1, most / Self.pageBytes))))")
      hasReleased = true
    }
    return hasReleased
  }

  func forgetCached() throws(ArchiveError) {
    try reading("forget") { () throws(SQLiteFailure) in try connection.execute("PRAGMA shrink_memory") }
  }

  func structureFaults() throws(ArchiveError) -> [String] {
    var faults: [String] = []
    do throws(SQLiteFailure) {
      try connection.forEachRow("PRAGMA quick_check(16)") { row in
        if let text = row.string(0), text != "ok" { faults.append("the file is damaged: \(text)") }
      }
      try connection.forEachRow(CheckedRow.context.selection) { row in
        guard !row.isSound(.context) else { return }
        faults.append("context \(row.integer(0)) is damaged: its states lack class and reserved keys")
      }
    } catch {
      faults.append("the file cannot be checked: \(error)")
    }
    return faults
  }

  /// Writes a copy of everything committed to an empty file; it is an archive of its own.
  func copy(to path: String) throws(SQLiteFailure) {
    try connection.prepare("VACUUM INTO ?1").run(path)
    try Self.settle(at: path, in: system, damage: nil)
  }

  /// Keeps such a copy beside the archive; an earlier one stays until it is complete.
  func copy(to target: String, by draft: String, in directory: ArchiveDirectory) throws(OpeningFailure) {
    try OpeningFailure.deciding { () throws(SystemError) in _ = try directory.createEmpty(draft) }
    try OpeningFailure.deciding { () throws(SQLiteFailure) in try copy(to: directory.pathname(draft)) }
    try OpeningFailure.deciding { () throws(SystemError) in
      try directory.syncFile(draft)
      try directory.replace(target, with: draft)
      try directory.sync()
    }
  }

  /// Reads what is known of an archive that is not open, and leaves its files as they are.
  static func summary(
    of application: String,
    in directory: ArchiveDirectory,
    log: FileEntry
  ) -> ArchiveSummary {
    let path = directory.pathname(ArchiveFiles(application).main)
    let hasLog = log.bytes > 0
    do throws(SQLiteFailure) {
      let uri = "file:\(escaped(path))"
      // If there is no log, the main file is complete and not being written: reading it needs no lock and no new files.
      // If there is one, the archive was not closed, and another process may still have it open.
      let connection = try SQLiteConnection(
        hasLog ? uri : uri + "?immutable=1",
        in: directory.system,
        isReadOnly: !hasLog
      )
      try connection.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -200")
      let version = try connection.integer("PRAGMA user_version")
      guard try connection.integer("PRAGMA application_id") == ArchiveSchema.applicationID, version > 0 else {
        return .unreadable(application, "the file is not an archive")
      }
      guard version <= ArchiveSchema.version else {
        return .unreadable(application, "the archive has format \(version), newer than \(ArchiveSchema.version)")
      }
      if log == .absent, try connection.isUnclosed() {
        return .unreadable(application, "its log is missing; \(ArchiveSummary.isSettledByOpening)")
      }
      return try connection.archiveSummary(of: application)
    } catch {
      return .unreadable(application, error.description)
    }
  }

  /// The path as SQLite reads it in a URI.
  private static func escaped(_ path: String) -> String {
    path.utf8.reduce(into: "") { uri, byte in
      if byte.isASCIIAlphanumeric || "/.-_".utf8.contains(byte) {
        uri.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        uri += byte < 16 ? "%0" : "%"
        uri += String(byte, radix: 16)
      }
    }
  }
}

extension SQLiteConnection {
  /// Whether the log may hold changes that the main file lacks. The first archives of format 1 lack this table.
  func isUnclosed() throws(SQLiteFailure) -> Bool {
    guard try integer("SELECT count(*) FROM sqlite_schema WHERE name = 'unclosed'") > 0 else { return false }
    return try integer("SELECT count(*) FROM unclosed") > 0
  }

  fileprivate func archiveSummary(of application: String) throws(SQLiteFailure) -> ArchiveSummary {
    // The newest row of each node counts; with max(), SQLite takes the other columns from the same row.
    let objects = try integer(
      """
      SELECT count(*) FROM (
        SELECT max(sequence), isRemoved AS isGone FROM node
        WHERE sequence > (SELECT ifnull(max(sequence), 0) FROM emptied) GROUP BY node
      ) WHERE NOT isGone
      """
    )
    return ArchiveSummary(
      application: application,
      state: .available,
      objects: Int(objects),
      generation: try integer("SELECT max(generation) FROM generation"),
      modified: try integer("SELECT written FROM tip"),
      run: try runRecord()
    )
  }
}

extension ArchiveSummary {
  static let isSettledByOpening = "the next call that opens the archive reports the loss"

  static func unreadable(_ application: String, _ reason: String) -> ArchiveSummary {
    ArchiveSummary(application: application, state: .unreadable(reason))
  }
}
