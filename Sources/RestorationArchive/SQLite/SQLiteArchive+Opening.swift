// SPDX-License-Identifier: Apache-2.0

enum OpeningFailure: Error {
  /// It is not sound: it goes aside (R32).
  case damaged(String)
  /// It may be sound, and is left exactly as it is.
  case unreadable(String)
  /// Its log cannot be synced, so the content on disk is unknown.
  case unsynced(String)
  /// There is no room to open it.
  case full(String)
  /// It does not exist, and may not be created.
  case absent
  /// Another archive is not allowed: the limit, its value, and the value with one more.
  case limit(name: String, max: Int, value: Int)

  init(_ failure: SQLiteFailure) {
    let text = failure.description
    if failure.isDamage || failure.isSchema {
      self = .damaged(text)
    } else if failure.isFull {
      self = .full(text)
    } else if failure.isBusy {
      self = .unreadable("another process has it open: \(text)")
    } else {
      self = .unreadable(text)
    }
  }

  init(_ failure: SystemError) { self = failure.isFull ? .full(failure.message) : .unreadable(failure.message) }

  static func deciding<Value>(_ body: () throws(SQLiteFailure) -> Value) throws(OpeningFailure) -> Value {
    do throws(SQLiteFailure) {
      return try body()
    } catch {
      throw OpeningFailure(error)
    }
  }

  static func deciding<Value>(_ body: () throws(SystemError) -> Value) throws(OpeningFailure) -> Value {
    do throws(SystemError) {
      return try body()
    } catch {
      throw OpeningFailure(error)
    }
  }
}

extension ArchiveError {
  /// Reports damage as `unreadable`: nothing else can take the archive's place.
  init(_ failure: OpeningFailure, of application: String) {
    switch failure {
    case .damaged(let text), .unreadable(let text):
      self.init(.unreadable, "archive of \(application): \(text)")
    case .unsynced(let text): self.init(.indeterminate, "archive of \(application): \(text)")
    case .absent: self.init(.absent, "there is no archive of \(application)")
    case .limit(let name, let max, let value):
      self.init(
        .limit(name: name, max: max, value: value),
        "no further archive is allowed: \(name) is \(max), this would make it \(value)"
      )
    case .full(let text): self.init(.full, "archive of \(application): \(text); free some space")
    }
  }
}

extension SQLiteArchive {
  /// Passes a connection to `body`. If that fails, closes it; damage with a read error becomes the read error.
  static func opening<Value>(
    _ path: String,
    in system: any FileSystem,
    _ body: (SQLiteConnection) throws(OpeningFailure) -> Value
  ) throws(OpeningFailure) -> Value {
    let connection = try OpeningFailure.deciding { () throws(SQLiteFailure) in try SQLiteConnection(path, in: system) }
    do throws(OpeningFailure) {
      return try body(connection)
    } catch {
      let code = connection.fileError
      connection.close()
      guard case .damaged(let text) = error, code != 0 else { throw error }
      throw OpeningFailure(SystemError("read (\(text))", path, code: code))
    }
  }

  /// Opens the files of a parked archive again; they are damaged unless they hold the same archive, as far as `tip`.
  mutating func wake(_ path: String, expecting tip: ArchiveTip) throws(OpeningFailure) {
    let uuid = archive
    connection = try Self.opening(path, in: system) { connection throws(OpeningFailure) in
      try Self.identify(connection)
      try OpeningFailure.deciding { () throws(SQLiteFailure) in
        try connection.execute(ArchiveSchema.settings)
        guard try connection.text("SELECT uuid FROM archive") == uuid else { throw .unsound("it is another archive") }
        let found = try connection.archiveTip()
        guard (found.sequence, found.changeID) == (tip.sequence, tip.changeID) else {
          throw .unsound("it ends at sequence \(found.sequence), not \(tip.sequence)")
        }
      }
      return connection
    }
  }

  /// Checks the whole file of a connection. Writes nothing until it is a sound archive of a known version.
  init(checking connection: SQLiteConnection, mark path: String, in system: any FileSystem) throws(OpeningFailure) {
    try Self.identify(connection)
    self = try OpeningFailure.deciding { () throws(SQLiteFailure) in
      try connection.execute(ArchiveSchema.settings)
      let finding = try connection.text("PRAGMA quick_check(1)")
      guard finding == "ok" else { throw .unsound(finding ?? "no answer from quick_check") }
      guard let uuid = try connection.text("SELECT uuid FROM archive") else { throw .missing("the archive row") }
      if try !connection.hasChecksums() { try connection.execute(ArchiveSchema.additions) }
      try connection.requireSchema()
      return SQLiteArchive(
        connection,
        archive: uuid,
        mark: path,
        in: system,
        isUnclosed: try connection.isUnclosed()
      )
    }
  }

  /// Locks the file; fails unless it is an archive that this version may write.
  private static func identify(_ connection: SQLiteConnection) throws(OpeningFailure) {
    let (version, application) = try OpeningFailure.deciding { () throws(SQLiteFailure) in
      try connection.execute("PRAGMA locking_mode = EXCLUSIVE")
      return (try connection.integer("PRAGMA user_version"), try connection.integer("PRAGMA application_id"))
    }
    guard application == ArchiveSchema.applicationID, version > 0 else {
      throw .unreadable("the file is not an archive (application id \(application))")
    }
    guard version <= ArchiveSchema.version else {
      throw .unreadable("the archive has format \(version), newer than \(ArchiveSchema.version)")
    }
    guard !connection.isReadOnly else { throw .unreadable("the archive may not be written") }
    let (mode, keyID) = try OpeningFailure.deciding { () throws(SQLiteFailure) -> (String?, String?) in
      // In memory there is nothing to recover.
      let setting = connection.isInMemory ? "PRAGMA journal_mode" : "PRAGMA journal_mode = WAL"
      return (try connection.text(setting), try connection.text("SELECT keyId FROM archive"))
    }
    guard mode == "wal" || connection.isInMemory else {
      throw .unreadable("the file system does not allow a write-ahead log")
    }
    guard keyID == nil else { throw .unreadable("the archive is encrypted") }
  }

  /// Makes a complete archive of an empty file.
  static func create(at path: String, in system: any FileSystem) throws(SQLiteFailure) {
    let connection = try SQLiteConnection(path, in: system)
    connection.checkpointsOnClose = true
    try create(in: connection, of: system)
    try connection.checkpoint(.emptyingFile)
  }

  /// The same of an empty database.
  static func create(in connection: SQLiteConnection, of system: any FileSystem) throws(SQLiteFailure) {
    try connection.execute(ArchiveSchema.shape)
    try connection.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; BEGIN IMMEDIATE")
    try connection.execute(ArchiveSchema.tables)
    try connection.execute(
      """
      INSERT INTO archive VALUES (1, '\(newUUID(of: system))', NULL, \(ArchiveSchema.version));
      INSERT INTO tip VALUES (1, 0, NULL, NULL, 0, 0, 0, 0, NULL, 0, 0);
      COMMIT
      """
    )
  }

  /// Makes a file a closed archive of its own: it needs no log, and has a new UUID, because sequences known from the
  /// old one do not hold for it.
  ///
  /// - Parameters:
  ///   - damage: the report of its next opening; `nil` if it is a copy of a sound archive.
  ///   - faults: the rows to mend.
  /// - Returns: the UUID.
  @discardableResult
  static func settle(
    at path: String,
    in system: any FileSystem,
    damage: String?,
    mending faults: RowFaults = RowFaults()
  ) throws(SQLiteFailure) -> String {
    let connection = try SQLiteConnection(path, in: system)
    defer { connection.close() }
    try connection.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE")
    let uuid = try connection.settle(damage, mending: faults, of: system)
    try connection.execute("COMMIT")
    try connection.checkpoint(.emptyingFile)
    // Until the text is durable, only the log shows the damage.
    connection.checkpointsOnClose = true
    return uuid
  }

  /// A random UUID (RFC 9562, version 4).
  static func newUUID(of system: any FileSystem) -> String {
    let (high, low) = system.random()
    let version = high & ~0xf000 | 0x4000
    let variant = low & ~(3 << 62) | 2 << 62
    let digits = [version, variant].map { bits in
      let text = String(bits, radix: 16)
      return String(repeating: "0", count: 16 - text.utf8.count) + text
    }.joined()
    let groups = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32]
    return groups.map { digits.dropFirst($0.lowerBound).prefix($0.count) }.joined(separator: "-")
  }
}

extension SQLiteConnection {
  /// Mends an archive inside a transaction, and makes it one of its own that reports the damage; returns its UUID.
  func settle(
    _ damage: String?,
    mending faults: RowFaults,
    of system: any FileSystem
  ) throws(SQLiteFailure) -> String {
    try mend(faults)
    let uuid = SQLiteArchive.newUUID(of: system)
    try execute("UPDATE archive SET uuid = '\(uuid)'; DELETE FROM unclosed; DELETE FROM damage")
    if let damage { try prepare("INSERT INTO damage VALUES (1, ?1)").run(damage) }
    return uuid
  }
}
