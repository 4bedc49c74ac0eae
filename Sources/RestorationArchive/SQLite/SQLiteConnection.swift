// SPDX-License-Identifier: Apache-2.0

internal import CSQLite

struct SQLiteFailure: Error, Hashable, CustomStringConvertible {
  /// The extended result code.
  var code: Int32
  /// The `errno` of the system call that failed; 0 if no call failed.
  var systemError: Int32
  var message: String

  var description: String { "\(message) (SQLite \(code), errno \(systemError))" }

  private var primary: Int32 { code & 0xff }

  /// The file is damaged, cut off (SQLITE_IOERR_SHORT_READ), or never was a database.
  var isDamage: Bool { primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || code == SQLITE_IOERR | 2 << 8 }

  /// The disk or the quota is full, and nothing was written. A failed sync does not count: its data may be on disk.
  var isFull: Bool {
    primary == SQLITE_FULL || primary == SQLITE_IOERR && !isSync && SystemError.isOutOfSpace(systemError)
  }

  /// SQLITE_IOERR_FSYNC or SQLITE_IOERR_DIR_FSYNC, cast macros that are not imported.
  private var isSync: Bool { code == SQLITE_IOERR | 4 << 8 || code == SQLITE_IOERR | 5 << 8 }

  /// A system call failed for another reason than space.
  var isInputOutput: Bool { primary == SQLITE_IOERR && !isFull }

  /// A read failed. SQLITE_IOERR_READ or SQLITE_IOERR_CORRUPTFS, cast macros that are not imported.
  var isRead: Bool { code == SQLITE_IOERR | 1 << 8 || code == SQLITE_IOERR | 33 << 8 }

  var isBusy: Bool { primary == SQLITE_BUSY || primary == SQLITE_LOCKED }

  var isSchema: Bool { primary == SQLITE_ERROR }

  static func missing(_ what: String) -> SQLiteFailure { unsound("\(what) is missing") }

  /// The file can be read, but its content is invalid.
  static func unsound(_ finding: String) -> SQLiteFailure {
    SQLiteFailure(code: SQLITE_CORRUPT, systemError: 0, message: finding)
  }
}

/// One SQLite connection with its prepared statements; used from one thread at a time.
final class SQLiteConnection {
  private let handle: OpaquePointer
  private var statements: [SQLiteStatement?] = Array(repeating: nil, count: ArchiveStatement.allCases.count)
  /// Frames in the write-ahead log since it was last restarted.
  private let logFrames: UnsafeMutablePointer<Int32>
  /// Bytes that the log's file was made long in advance; 0 since it was last emptied.
  private(set) var reservedLogBytes = 0
  private(set) var isClosed = false
  /// Whether its content is lost when it is closed.
  let isInMemory: Bool

  /// Opens an existing database file. Closing does not touch the file until `checkpointsOnClose` is set: it may not be
  /// an archive.
  init(_ path: String, in system: any FileSystem, isReadOnly: Bool = false) throws(SQLiteFailure) {
    _ = Self.pages
    var opened: OpaquePointer?
    let access = isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE
    let flags = access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI
    let code = sqlite3_open_v2(path, &opened, flags, system.sqliteName)
    guard let opened else {
      throw SQLiteFailure(code: code, systemError: 0, message: "out of memory")
    }
    guard code == SQLITE_OK else {
      let failure = Self.failure(of: opened, code: code)
      sqlite3_close_v2(opened)
      throw failure
    }
    handle = opened
    isInMemory = path == Self.memory
    logFrames = .allocate(capacity: 1)
    logFrames.initialize(to: 0)
    sqlite3_extended_result_codes(handle, 1)
    // A foreign schema must not run code of its own while its file is examined.
    for (option, value) in [
      (SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1),
      (SQLITE_DBCONFIG_DEFENSIVE, 1),
      (SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
      (SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
      (SQLITE_DBCONFIG_ENABLE_VIEW, 0),
      (SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0),
    ] as [(Int32, Int32)] {
      restoration_sqlite3_db_config(handle, option, value)
    }
    // A long statement, such as a copy or a check, must not look like a hang.
    sqlite3_progress_handler(
      handle,
      Self.progressSteps,
      { _ in
        ArchiveThreads.noteStep()
        return 0
      },
      nil
    )
    // A hook switches automatic checkpoints off: no commit waits for one.
    sqlite3_wal_hook(
      handle,
      { frames, _, _, count in
        frames?.assumingMemoryBound(to: Int32.self).pointee = count
        return SQLITE_OK
      },
      logFrames
    )
  }

  deinit {
    close()
    logFrames.deallocate()
  }

  // MARK: In memory

  private static let memory = ":memory:"

  /// Opens a copy of a file's pages in memory; an empty database if there are none.
  convenience init(inMemory pages: [UInt8], in system: any FileSystem) throws(SQLiteFailure) {
    try self.init(Self.memory, in: system)
    guard !pages.isEmpty else { return }
    guard let copy = sqlite3_malloc64(UInt64(pages.count)) else {
      throw SQLiteFailure(code: SQLITE_NOMEM, systemError: 0, message: "out of memory")
    }
    let buffer = UnsafeMutableRawBufferPointer(start: copy, count: pages.count)
    buffer.copyBytes(from: pages)
    try show(buffer, SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE)
  }

  /// Reads these pages from now on. The caller owns them, and keeps them in place until the next ones or the end.
  func show(_ pages: UnsafeMutableRawBufferPointer) throws(SQLiteFailure) {
    try show(pages, SQLITE_DESERIALIZE_READONLY)
  }

  private func show(_ pages: UnsafeMutableRawBufferPointer, _ flags: Int32) throws(SQLiteFailure) {
    let (start, count) = (pages.baseAddress?.assumingMemoryBound(to: UInt8.self), Int64(pages.count))
    let code = sqlite3_deserialize(handle, "main", start, count, count, UInt32(flags))
    guard code == SQLITE_OK else { throw failure(code) }
  }

  /// The first page of a database in memory; empty if there is none.
  var firstPage: [UInt8] {
    var count: sqlite3_int64 = 0
    guard let pages = sqlite3_serialize(handle, "main", &count, 0) else { return [] }
    defer { sqlite3_free(pages) }
    return Array(UnsafeMutableBufferPointer(start: pages, count: min(Int(count), ArchiveImage.pageBytes)))
  }

  /// Releases the file; every later statement fails.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    for index in statements.indices { statements[index] = nil }
    sqlite3_close_v2(handle)
  }

  /// Instructions of SQLite's machine per noted step: far less than a second, and counting costs nothing.
  private static let progressSteps: Int32 = 20_000

  /// Set once for the process. Many archives may be open and idle.
  private static let pages = restoration_sqlite3_config_pages()

  /// Whether closing moves the write-ahead log into the main file and removes it.
  var checkpointsOnClose = false {
    didSet { restoration_sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, checkpointsOnClose ? 0 : 1) }
  }

  /// Frames in the write-ahead log after the last commit.
  var frames: Int { Int(logFrames.pointee) }

  var isReadOnly: Bool { sqlite3_db_readonly(handle, "main") != 0 }

  var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  func execute(_ sql: String) throws(SQLiteFailure) {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw failure(code) }
  }

  /// The first column of the first row; `nil` if there is no row or the value is NULL.
  func text(_ sql: String) throws(SQLiteFailure) -> String? {
    let statement = try prepare(sql)
    return try statement.step() ? statement.string(0) : nil
  }

  /// The first column of the first row; 0 if there is no row.
  func integer(_ sql: String) throws(SQLiteFailure) -> Int64 {
    let statement = try prepare(sql)
    return try statement.step() ? statement.integer(0) : 0
  }

  /// Compiles SQL text for one use.
  func prepare(_ sql: String) throws(SQLiteFailure) -> SQLiteStatement { try compile(sql, flags: 0) }

  /// A statement of the archive's own, compiled at first use and kept.
  func statement(_ name: ArchiveStatement) throws(SQLiteFailure) -> SQLiteStatement {
    if let statement = statements[name.rawValue] { return statement }
    let statement = try compile(name.sql, flags: UInt32(SQLITE_PREPARE_PERSISTENT))
    statements[name.rawValue] = statement
    return statement
  }

  private func compile(_ sql: String, flags: UInt32) throws(SQLiteFailure) -> SQLiteStatement {
    guard !isClosed else { throw SQLiteFailure(code: SQLITE_MISUSE, systemError: 0, message: "closed") }
    var pointer: OpaquePointer?
    let code = sqlite3_prepare_v3(handle, sql, -1, flags, &pointer, nil)
    guard code == SQLITE_OK, let pointer else { throw failure(code) }
    return SQLiteStatement(pointer, of: handle)
  }

  enum Checkpoint {
    /// The file keeps its size, and the next commit writes from its beginning.
    case keepingFile
    case emptyingFile
  }

  func checkpoint(_ kind: Checkpoint) throws(SQLiteFailure) {
    let mode = kind == .keepingFile ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE
    let code = sqlite3_wal_checkpoint_v2(handle, "main", mode, nil, nil)
    guard code == SQLITE_OK else { throw failure(code) }
    logFrames.pointee = 0
    guard kind == .emptyingFile else { return }
    reservedLogBytes = 0
    // Many archives may be open and idle.
    sqlite3_db_release_memory(handle)
  }

  /// Appends zeros until the log's file has this length, so that commits overwrite them. Ignores failures: the next
  /// commit shows whether there is room.
  func reserveLog(bytes: Int) {
    reservedLogBytes = bytes
    var end: sqlite3_int64 = 0
    guard let (log, methods) = Self.file(SQLITE_FCNTL_JOURNAL_POINTER, of: handle),
      methods.xFileSize(log, &end) == SQLITE_OK
    else { return }
    withUnsafeTemporaryAllocation(byteCount: Self.zeroBytes, alignment: 8) { zeros in
      zeros.initializeMemory(as: UInt8.self, repeating: 0)
      while end < bytes {
        let count = min(zeros.count, bytes - Int(end))
        guard methods.xWrite(log, zeros.baseAddress, Int32(count), end) == SQLITE_OK else { return }
        end += sqlite3_int64(count)
      }
    }
  }

  /// Zeros per write. Longer writes may make the kernel cache larger pieces, and account for a whole piece with each
  /// commit.
  private static let zeroBytes = 4096

  private func failure(_ code: Int32) -> SQLiteFailure { Self.failure(of: handle, code: code) }

  static func failure(of handle: OpaquePointer?, code: Int32) -> SQLiteFailure {
    // The connection's own errno may be of another call than the failed one.
    let fileError = code & 0xff == SQLITE_IOERR ? systemError(of: handle) : 0
    return SQLiteFailure(
      code: code,
      systemError: fileError != 0 ? fileError : sqlite3_system_errno(handle),
      message: sqlite3_errmsg(handle).map { String(cString: $0) } ?? "unknown"
    )
  }

  /// Whether the main file or the log is no longer at its name, so that nothing written to them can be read again.
  func hasMoved(in system: any FileSystem) -> Bool {
    guard !isInMemory else { return false }
    var hasMoved: Int32 = 0
    sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &hasMoved)
    guard hasMoved == 0, let log = sqlite3_db_filename(handle, "main").flatMap({ sqlite3_filename_wal($0) }) else {
      return hasMoved != 0
    }
    return (try? system.entry(String(cString: log))) == .absent
  }

  /// The `errno` of the failed file call, before SQLite's translation; 0 if no call failed.
  var fileError: Int32 { Self.systemError(of: handle) }

  /// The last error of the files: SQLite hides it if a commit fails, and takes some read errors for damage. If both
  /// files have an error, one that is not about space counts.
  private static func systemError(of handle: OpaquePointer?) -> Int32 {
    var errors: [Int32] = []
    for pointer in [SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER] {
      guard let (file, methods) = file(pointer, of: handle) else { continue }
      var error: Int32 = 0
      if methods.xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &error) == SQLITE_OK, error != 0 { errors.append(error) }
    }
    return errors.first { !SystemError.isOutOfSpace($0) } ?? errors.first ?? 0
  }

  /// SQLite's handle of the main file or the log, with its functions; `nil` if it is not open.
  private static func file(
    _ pointer: Int32,
    of handle: OpaquePointer?
  ) -> (UnsafeMutablePointer<sqlite3_file>, sqlite3_io_methods)? {
    var file: UnsafeMutablePointer<sqlite3_file>?
    guard sqlite3_file_control(handle, "main", pointer, &file) == SQLITE_OK, let file,
      let methods = file.pointee.pMethods
    else { return nil }
    return (file, methods.pointee)
  }
}

/// A compiled statement. Bind, step and read, in this order; then bind again.
final class SQLiteStatement {
  private let pointer: OpaquePointer
  private let connection: OpaquePointer
  /// The first binding that failed, reported by `step`.
  private var bindingCode = SQLITE_OK

  init(_ pointer: OpaquePointer, of connection: OpaquePointer) {
    (self.pointer, self.connection) = (pointer, connection)
  }

  deinit { sqlite3_finalize(pointer) }

  // MARK: Binding

  /// Binds all parameters in order; `nil` is NULL. Texts are copied.
  func bind(_ values: [(any SQLiteValue)?]) {
    for (index, value) in zip((1 as Int32)..., values) {
      if let value { value.bind(to: self, at: index) } else { bindNull(index) }
    }
  }

  /// Binds one parameter, without a list for each encode.
  func bind(_ index: Int32, _ value: (some SQLiteValue)?) {
    if let value { value.bind(to: self, at: index) } else { bindNull(index) }
  }

  private func bindNull(_ index: Int32) { note(sqlite3_bind_null(pointer, index)) }

  fileprivate func bind(_ index: Int32, integer value: Int64) { note(sqlite3_bind_int64(pointer, index, value)) }

  fileprivate func bind(_ index: Int32, text value: String) {
    var value = value
    value.withUTF8 { bind(index, UnsafeRawBufferPointer($0), destructor: Self.copying) }
  }

  /// Does not copy the text: it has to stay in place until `step` has returned.
  func bind(_ index: Int32, uncopied bytes: UnsafeRawBufferPointer) { bind(index, bytes, destructor: nil) }

  private func bind(_ index: Int32, _ bytes: UnsafeRawBufferPointer, destructor: sqlite3_destructor_type?) {
    // A null pointer would bind NULL instead of the empty text.
    let empty: StaticString = ""
    let base = bytes.baseAddress ?? UnsafeRawPointer(empty.utf8Start)
    let characters = base.assumingMemoryBound(to: CChar.self)
    note(sqlite3_bind_text64(pointer, index, characters, UInt64(bytes.count), destructor, UInt8(SQLITE_UTF8)))
  }

  /// SQLITE_TRANSIENT, a cast macro that is not imported.
  private static var copying: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

  private func note(_ code: Int32) { if bindingCode == SQLITE_OK { bindingCode = code } }

  // MARK: Running

  /// Takes the next row; after the last returns false, and the statement is ready for new bindings.
  func step() throws(SQLiteFailure) -> Bool {
    guard bindingCode == SQLITE_OK else {
      let code = bindingCode
      reset()
      throw SQLiteFailure(code: code, systemError: 0, message: String(cString: sqlite3_errstr(code)))
    }
    let code = sqlite3_step(pointer)
    if code == SQLITE_ROW { return true }
    // Resetting would lose the connection's message and system error of this step.
    let failure = code == SQLITE_DONE ? nil : SQLiteConnection.failure(of: connection, code: code)
    reset()
    if let failure { throw failure }
    return false
  }

  func run(_ values: [(any SQLiteValue)?] = []) throws(SQLiteFailure) {
    bind(values)
    while try step() {}
  }

  func run(_ value: some SQLiteValue) throws(SQLiteFailure) {
    bind(1, value)
    while try step() {}
  }

  func reset() {
    sqlite3_reset(pointer)
    bindingCode = SQLITE_OK
  }

  // MARK: Reading

  func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(pointer, column) }

  /// An integer that archives count up, so that adding to it cannot overflow; fails as damage if it is out of range.
  func number(_ column: Int32, through max: Int64 = numberMax) throws(SQLiteFailure) -> Int64 {
    let value = integer(column)
    guard (0...max).contains(value) else {
      let name = sqlite3_column_name(pointer, column).map { String(cString: $0) } ?? "a number"
      throw .unsound("\(name) is \(value)")
    }
    return value
  }

  /// The nearest integer that an archive can hold, for columns in which only an overflow would do harm.
  func clamped(_ column: Int32) -> Int64 { min(max(0, integer(column)), Self.numberMax) }

  private static let numberMax: Int64 = 1 << 53

  func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }

  /// `nil` for null and for -1, which checksums take for the same.
  func id(_ column: Int32) -> Int64? { optionalInteger(column).flatMap { $0 == -1 ? nil : $0 } }

  func bool(_ column: Int32) -> Bool { integer(column) != 0 }

  func isNull(_ column: Int32) -> Bool { sqlite3_column_type(pointer, column) == SQLITE_NULL }

  var values: [(any SQLiteValue)?] {
    (0..<sqlite3_column_count(pointer)).map { column in
      switch sqlite3_column_type(pointer, column) {
      case SQLITE_NULL: nil
      case SQLITE_INTEGER: integer(column)
      default: string(column)
      }
    }
  }

  func string(_ column: Int32) -> String? { text(column).map { String(decoding: $0, as: UTF8.self) } }

  func bytes(_ column: Int32) -> [UInt8]? { text(column).map { Array($0) } }

  /// In place until the next step.
  func text(_ column: Int32) -> UnsafeRawBufferPointer? {
    guard let start = sqlite3_column_text(pointer, column) else { return nil }
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(pointer, column)))
  }
}

protocol SQLiteValue {
  func bind(to statement: SQLiteStatement, at index: Int32)
}

extension Int64: SQLiteValue {
  func bind(to statement: SQLiteStatement, at index: Int32) { statement.bind(index, integer: self) }
}

extension Int: SQLiteValue {
  func bind(to statement: SQLiteStatement, at index: Int32) { statement.bind(index, integer: Int64(self)) }
}

extension Bool: SQLiteValue {
  func bind(to statement: SQLiteStatement, at index: Int32) { statement.bind(index, integer: self ? 1 : 0) }
}

extension String: SQLiteValue {
  func bind(to statement: SQLiteStatement, at index: Int32) { statement.bind(index, text: self) }
}
