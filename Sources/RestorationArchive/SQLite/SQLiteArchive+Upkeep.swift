// SPDX-License-Identifier: Apache-2.0

extension SQLiteArchive {
  private static let pageBytes = 4096
  private static let frameBytes = pageBytes + 24
  private static let logHeaderBytes = 32

  /// Bytes in the write-ahead log that are not known to be in the main file.
  var logBytes: Int { connection.frames * Self.frameBytes }

  /// The length that the log's file should have before the next commit; `nil` if it is long enough.
  ///
  /// Lengthening it takes about as long as a commit. So a burst lengthens it step by step in advance, until a
  /// checkpoint. An archive that is seldom used, or has a single large commit, gets no zeros. No archive gets more
  /// zeros than it logged.
  func missingLogBytes(_ upkeep: ArchiveUpkeep) -> Int? {
    let used = logBytes
    let step = upkeep.logBytesMax / 8
    // Commits that wait go before the checkpoint.
    let most = upkeep.logBytesMax + 2 * step
    guard used > max(step, connection.reservedLogBytes), used < most else { return nil }
    return min(used + step, most) / Self.frameBytes * Self.frameBytes + Self.logHeaderBytes
  }

  func reserveLog(bytes: Int) { connection.reserveLog(bytes: bytes) }

  /// The length of the main file with the content of the log.
  func mainBytes() throws(ArchiveError) -> Int {
    try reading("size") { () throws(SQLiteFailure) in
      try Int(connection.integer("PRAGMA page_count")) * Self.pageBytes
    }
  }

  /// Whether transactions log as little as possible: deleted bytes are not zeroed in pages that are otherwise unused,
  /// and all pages stay in memory until the remaining ones are known.
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

  /// Copies everything committed to an empty file, as an archive of its own.
  func copy(to path: String) throws(SQLiteFailure) {
    try connection.prepare("VACUUM INTO ?1").run(path)
    try Self.settle(at: path, in: system, damage: nil)
  }

  /// Keeps such a copy beside the archive; an earlier copy stays until the new one is complete.
  func copy(to target: String, by draft: String, in directory: ArchiveDirectory) throws(OpeningFailure) {
    try OpeningFailure.deciding { () throws(SystemError) in _ = try directory.createEmpty(draft) }
    try OpeningFailure.deciding { () throws(SQLiteFailure) in try copy(to: directory.pathname(draft)) }
    try OpeningFailure.deciding { () throws(SystemError) in
      try directory.syncFile(draft)
      try directory.replace(target, with: draft)
      try directory.sync()
    }
  }

  /// Reads the summary of an archive that is not open, and leaves its files unchanged.
  static func summary(
    of application: String,
    in directory: ArchiveDirectory,
    log: FileEntry
  ) -> ArchiveSummary {
    do throws(SQLiteFailure) {
      let connection = try reader(of: ArchiveFiles(application).main, in: directory, hasLog: log.bytes > 0)
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

  private static func reader(
    of name: String,
    in directory: ArchiveDirectory,
    hasLog: Bool
  ) throws(SQLiteFailure) -> SQLiteConnection {
    if hasLog, directory.readOnly != nil, let image = try? ArchiveImage(of: name, in: directory) {
      return try SQLiteConnection(inMemory: image.bytes, in: directory.system)
    }
    let uri = "file:\(escaped(directory.pathname(name)))"
    // Without a log, the main file is complete and not being written: reading needs no lock and no new files. With a
    // log, the archive was not closed, and another process may still have it open.
    return try SQLiteConnection(hasLog ? uri : uri + "?immutable=1", in: directory.system, isReadOnly: !hasLog)
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
