// SPDX-License-Identifier: Apache-2.0

internal import CSQLite
internal import Dispatch
internal import Glibc
internal import Synchronization
internal import TestSupport

/// The system's files as SQLite sees them, failing on demand below one directory.
///
/// Stands between SQLite and the operating system for the whole process; calls on files of other directories pass.
struct FaultingDisk: Sendable {
  /// Calls that can fail. Zeros that lengthen a log are written like all else, but can also fail by themselves.
  enum Operation: Hashable, Sendable { case read, write, zeros, sync, truncate }

  struct Fault: Sendable {
    /// The result code SQLite gets; with SQLITE_OK it reads wrong bytes.
    var code: Int32
    /// The `errno` it finds.
    var systemError: Int32 = 5
    var operations: Set<Operation>
    /// How many calls pass first.
    var after = 0
    /// Whether all later calls fail too.
    var isLasting = true
    /// Calls do not fail, but wait here.
    var gate: Gate?

    fileprivate func concerns(_ operation: Operation) -> Bool {
      operations.contains(operation) || operation == .zeros && operations.contains(.write)
    }
  }

  /// Where calls of a slow disk wait until it is opened.
  final class Gate: Sendable {
    private let arrivals = DispatchSemaphore(value: 0)
    private let opening = DispatchSemaphore(value: 0)

    func pass() {
      arrivals.signal()
      opening.wait()
      opening.signal()
    }

    /// Returns when a call waits here.
    func waitForCall() throws {
      guard arrivals.wait(timeout: .now() + .seconds(20)) == .success else { throw TestFailure("no call has come") }
    }

    func open() { opening.signal() }
  }

  private let directory: String

  init(_ directory: String) {
    self.directory = directory
    _ = Self.installed
  }

  /// Makes calls fail from now on.
  func fail(_ fault: Fault) { Self.state.withLock { $0.faults[directory] = fault } }

  /// Makes calls wait from now on.
  func hold(_ operations: Set<Operation>) -> Gate {
    let gate = Gate()
    fail(Fault(code: SQLITE_OK, operations: operations, gate: gate))
    return gate
  }

  /// Lets all calls pass; returns whether any has failed since `fail`.
  @discardableResult
  func heal() -> Bool {
    Self.state.withLock { state in
      state.faults[directory] = nil
      return state.fired.remove(directory) != nil
    }
  }

  // MARK: The layer

  private struct State {
    var faults: [String: Fault] = [:] {
      didSet { FaultingDisk.planted.store(faults.count, ordering: .sequentiallyConsistent) }
    }
    var fired: Set<String> = []
    /// Paths of open files by address.
    var paths: [UInt: String] = [:]
    /// The errors of failed calls, by address.
    var systemErrors: [UInt: Int32] = [:]
  }

  private static let state = Mutex(State())
  /// How many faults there are. While there is none, no call waits for the lock: all suites come through here.
  private static let planted = Atomic(0)
  private typealias File = UnsafeMutablePointer<sqlite3_file>

  /// The result code a call gets instead of being made; `nil` if it passes.
  private static func fault(_ operation: Operation, _ file: File?) -> Int32? {
    guard planted.load(ordering: .sequentiallyConsistent) > 0, let (code, gate) = firing(operation, file) else {
      return nil
    }
    guard let gate else { return code }
    gate.pass()
    return nil
  }

  private static func firing(_ operation: Operation, _ file: File?) -> (code: Int32, gate: Gate?)? {
    state.withLock { state in
      guard let path = state.paths[UInt(bitPattern: file)] else { return nil }
      for (directory, fault) in state.faults where path.hasPrefix(directory) && fault.concerns(operation) {
        if fault.after > 0 {
          state.faults[directory]?.after -= 1
          return nil
        }
        if !fault.isLasting { state.faults[directory] = nil }
        state.fired.insert(directory)
        state.systemErrors[UInt(bitPattern: file)] = fault.systemError
        return (fault.code, fault.gate)
      }
      return nil
    }
  }

  /// The system's functions for a file, which stand behind the stand-in's.
  private static func system(_ file: File?) -> sqlite3_io_methods? { file?.pointee.pMethods?[1] }

  /// Puts the stand-in's functions into a file that has just been opened.
  private static func wrap(_ file: File, path: String) {
    guard let original = file.pointee.pMethods else { return }
    let table = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 2)
    table.initialize(repeating: original.pointee, count: 2)
    table.pointee.xRead = { file, bytes, count, offset in
      guard let code = FaultingDisk.fault(.read, file) else {
        return FaultingDisk.system(file)?.xRead?(file, bytes, count, offset) ?? SQLITE_IOERR
      }
      if code == SQLITE_OK, let bytes { memset(bytes, 0xa5, Int(count)) }
      return code
    }
    table.pointee.xWrite = { file, bytes, count, offset in
      let operation = count == 4096 && FaultingDisk.isZero(bytes, 4096) ? Operation.zeros : .write
      return FaultingDisk.fault(operation, file)
        ?? FaultingDisk.system(file)?.xWrite?(file, bytes, count, offset) ?? SQLITE_IOERR
    }
    table.pointee.xSync = { file, flags in
      FaultingDisk.fault(.sync, file) ?? FaultingDisk.system(file)?.xSync?(file, flags) ?? SQLITE_IOERR
    }
    table.pointee.xTruncate = { file, size in
      FaultingDisk.fault(.truncate, file) ?? FaultingDisk.system(file)?.xTruncate?(file, size) ?? SQLITE_IOERR
    }
    table.pointee.xFileControl = { file, operation, argument in
      if operation == SQLITE_FCNTL_LAST_ERRNO, let argument {
        let error = FaultingDisk.state.withLock { $0.systemErrors[UInt(bitPattern: file)] }
        argument.assumingMemoryBound(to: Int32.self).pointee = error ?? 0
        return SQLITE_OK
      }
      return FaultingDisk.system(file)?.xFileControl?(file, operation, argument) ?? SQLITE_NOTFOUND
    }
    state.withLock { state in
      state.paths[UInt(bitPattern: file)] = path
      // Another file may have been there before.
      state.systemErrors[UInt(bitPattern: file)] = nil
    }
    file.pointee.pMethods = UnsafePointer(table)
  }

  private static func isZero(_ bytes: UnsafeRawPointer?, _ count: Int) -> Bool {
    guard let bytes else { return false }
    return bytes.load(as: UInt8.self) == 0 && memcmp(bytes, bytes + 1, count - 1) == 0
  }

  /// Registers the layer once, as the one every connection uses.
  private static let installed: Bool = {
    guard let system = sqlite3_vfs_find(nil) else { return false }
    let layer = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    layer.initialize(to: system.pointee)
    layer.pointee.pNext = nil
    layer.pointee.zName = UnsafePointer(makeName())
    layer.pointee.xOpen = { _, name, file, flags, outFlags in
      guard let system = sqlite3_vfs_find("unix"), let file else { return SQLITE_ERROR }
      let code = system.pointee.xOpen(system, name, file, flags, outFlags)
      if code == SQLITE_OK, let name { FaultingDisk.wrap(file, path: String(cString: name)) }
      return code
    }
    return sqlite3_vfs_register(layer, 1) == SQLITE_OK
  }()

  /// A C string that is never freed.
  private static func makeName() -> UnsafeMutablePointer<CChar> {
    let name: StaticString = "faulting"
    let copy = UnsafeMutablePointer<CChar>.allocate(capacity: name.utf8CodeUnitCount + 1)
    for index in 0...name.utf8CodeUnitCount { copy[index] = CChar(name.utf8Start[index]) }
    return copy
  }
}
