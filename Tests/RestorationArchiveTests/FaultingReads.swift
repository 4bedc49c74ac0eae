// SPDX-License-Identifier: Apache-2.0

internal import CSQLite
internal import Glibc
internal import RestorationArchive
internal import Synchronization

/// The system calls by which an archive is read, SQLite's and the store's own; one of them fails on demand.
///
/// Unlike `FaultingDisk` it stands below SQLite's system layer, for the whole process, so that SQLite itself decides
/// what an errno means. Calls on files outside of one directory pass.
final class FaultingReads: FileSystem {
  struct Fault {
    var error: Int32
    /// How many calls pass first.
    var after: Int
    /// Whether all later calls fail too.
    var isLasting: Bool
  }

  private struct State {
    var faults: [String: Fault] = [:] {
      didSet { FaultingReads.planted.store(faults.count, ordering: .sequentiallyConsistent) }
    }
    var fired: Set<String> = []
    /// Paths of the files that SQLite has opened, by descriptor.
    var paths: [Int32: String] = [:]
  }

  private static let state = Mutex(State())
  /// How many faults there are. While there is none, no call waits for the lock: all suites come through here.
  private static let planted = Atomic(0)
  private let directory: String
  private let files = SystemFiles()
  private let syncs = Mutex<[String]>([])
  private let failure = Mutex<Int32?>(nil)

  /// Lets the next sync of a file fail with this errno.
  func failSync(_ error: Int32) { failure.withLock { $0 = error } }

  /// What the store itself has synced.
  var synced: [String] { syncs.withLock { $0 } }

  /// - Parameter directory: an absolute path.
  init(_ directory: String) {
    self.directory = directory
    precondition(Self.installed, "SQLite's system layer lets no call be replaced")
  }

  func fail(_ fault: Fault) { Self.state.withLock { $0.faults[directory] = fault } }

  /// Lets all calls pass; returns whether any has failed since `fail`.
  func heal() -> Bool {
    Self.state.withLock { state in
      state.faults[directory] = nil
      return state.fired.remove(directory) != nil
    }
  }

  /// The errno of a call that is not to be made.
  fileprivate static func error(of path: @autoclosure () -> String?) -> Int32? {
    guard planted.load(ordering: .sequentiallyConsistent) > 0, let path = path() else { return nil }
    return state.withLock { state in
      guard let (directory, fault) = state.faults.first(where: { path.hasPrefix($0.key) }) else { return nil }
      guard fault.after == 0 else {
        state.faults[directory]?.after -= 1
        return nil
      }
      if !fault.isLasting { state.faults[directory] = nil }
      state.fired.insert(directory)
      return fault.error
    }
  }

  // MARK: SQLite's calls

  private static func path(of descriptor: Int32) -> String? { state.withLock { $0.paths[descriptor] } }

  /// Makes a call, or fails it.
  private static func call<Value: FixedWidthInteger>(
    _ path: @autoclosure () -> String?,
    _ body: () -> Value
  ) -> Value {
    guard let error = error(of: path()) else { return body() }
    errno = error
    return -1
  }

  private typealias Open = @convention(c) (UnsafePointer<CChar>?, Int32, mode_t) -> Int32
  private typealias Status = @convention(c) (UnsafePointer<CChar>?, UnsafeMutablePointer<stat>?) -> Int32
  private typealias StatusOfFile = @convention(c) (Int32, UnsafeMutablePointer<stat>?) -> Int32
  private typealias Read = @convention(c) (Int32, UnsafeMutableRawPointer?, Int, off_t) -> Int

  /// Puts the stand-ins in the places of the system's calls, once.
  private static let installed: Bool = {
    let open: Open = { name, flags, mode in
      guard let name else { return -1 }
      let path = String(cString: name)
      let descriptor = FaultingReads.call(path) { Glibc.open(name, flags, mode) }
      if descriptor >= 0 { FaultingReads.state.withLock { $0.paths[descriptor] = path } }
      return descriptor
    }
    let status: Status = { name, status in
      guard let name, let status else { return -1 }
      return FaultingReads.call(String(cString: name)) { stat(name, status) }
    }
    let statusOfLink: Status = { name, status in
      guard let name, let status else { return -1 }
      return FaultingReads.call(String(cString: name)) { lstat(name, status) }
    }
    let statusOfFile: StatusOfFile = { descriptor, status in
      guard let status else { return -1 }
      return FaultingReads.call(FaultingReads.path(of: descriptor)) { fstat(descriptor, status) }
    }
    let read: Read = { descriptor, bytes, count, offset in
      FaultingReads.call(FaultingReads.path(of: descriptor)) { pread(descriptor, bytes, count, offset) }
    }
    guard let layer = sqlite3_vfs_find("unix"), let set = layer.pointee.xSetSystemCall else { return false }
    let calls = [
      ("open", unsafeBitCast(open, to: sqlite3_syscall_ptr.self)),
      ("stat", unsafeBitCast(status, to: sqlite3_syscall_ptr.self)),
      ("lstat", unsafeBitCast(statusOfLink, to: sqlite3_syscall_ptr.self)),
      ("fstat", unsafeBitCast(statusOfFile, to: sqlite3_syscall_ptr.self)),
      ("pread", unsafeBitCast(read, to: sqlite3_syscall_ptr.self)),
      ("pread64", unsafeBitCast(read, to: sqlite3_syscall_ptr.self)),
    ]
    return calls.allSatisfy { set(layer, $0.0, $0.1) == SQLITE_OK }
  }()

  // MARK: The store's calls

  private static func check(_ operation: String, _ path: String) throws(SystemError) {
    if let code = error(of: path) { throw SystemError(operation, path, code: code) }
  }

  var sqliteName: String? { nil }

  func entry(_ path: String) throws(SystemError) -> FileEntry {
    try Self.check("stat", path)
    return try files.entry(path)
  }

  func isSameDirectory(_ path: String, as other: String) throws(SystemError) -> Bool {
    try Self.check("stat", path)
    return try files.isSameDirectory(path, as: other)
  }

  func names(in directory: String) throws(SystemError) -> [String] {
    try Self.check("list", directory)
    return try files.names(in: directory)
  }

  func open(_ path: String, _ access: FileAccess) throws(SystemError) -> any OpenFile {
    try Self.check("open", path)
    return File(try files.open(path, access), path, of: self)
  }

  func syncDirectory(_ path: String) throws(SystemError) {
    try Self.check("open", path)
    try files.syncDirectory(path)
    syncs.withLock { $0.append(path) }
  }

  func prepareDirectory(_ path: String) throws(SystemError) { try files.prepareDirectory(path) }
  func remove(_ path: String) throws(SystemError) { try files.remove(path) }
  func rename(_ path: String, to target: String) throws(SystemError) { try files.rename(path, to: target) }
  func link(_ path: String, to target: String) throws(SystemError) { try files.link(path, to: target) }
  func freeBytes(of directory: String) -> Int? { files.freeBytes(of: directory) }
  func random() -> (UInt64, UInt64) { files.random() }

  private final class File: OpenFile {
    private let file: any OpenFile
    private let path: String
    private let owner: FaultingReads

    init(_ file: any OpenFile, _ path: String, of owner: FaultingReads) {
      (self.file, self.path, self.owner) = (file, path, owner)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
      try FaultingReads.check("read", path)
      return try file.read(into: buffer, at: offset)
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
      try file.write(bytes, at: offset)
    }

    func truncate(to bytes: Int) throws(SystemError) { try file.truncate(to: bytes) }
    func allocate(bytes: Int) throws(SystemError) { try file.allocate(bytes: bytes) }
    func sync() throws(SystemError) {
      let code = owner.failure.withLock { failure in
        defer { failure = nil }
        return failure
      }
      if let code { throw SystemError("sync", path, code: code) }
      try file.sync()
      owner.syncs.withLock { $0.append(path) }
    }
  }
}
