// SPDX-License-Identifier: Apache-2.0

internal import CSQLite
internal import Glibc
internal import RestorationArchive
internal import SeededRandom

/// A disk in memory, below SQLite and below the store's own files, that forgets what was not synced when the power
/// fails.
///
/// A file keeps the bytes that are durable and the changes since; so does the one directory there is. After a power cut
/// some of the changes are there: of the directory a prefix, as of a journal; of a file any, and one of them in part.
/// Used from one thread.
final class SimulatedDisk: @unchecked Sendable {
  /// What has been written to one file, by whatever name.
  final class Content {
    fileprivate(set) var bytes: [UInt8] = []
    fileprivate var durable: [UInt8] = []
    fileprivate var pending: [Change] = []
    /// Whether something is lost that can still be read.
    fileprivate var isStale = false
    fileprivate(set) var changed = 0
  }

  fileprivate enum Change {
    case write([UInt8], offset: Int)
    case truncate(Int)
  }

  /// A call that reaches the disk.
  enum Call: CaseIterable { case read, write, sync, other }

  struct Fault {
    var call: Call
    var code: Int32
    /// Calls of that kind that pass before.
    var after: Int
    /// How many fail then.
    var count: Int
  }

  static let directory = "/archives"

  let sqliteNameText: String
  var fault: Fault?
  /// The process that uses the disk is killed in the call after so many.
  var callsToKill: Int?
  /// Bytes of all files together.
  var capacity = Int.max
  private(set) var calls = 0
  private(set) var faults = 0
  /// Counts processes: what an earlier one has open does nothing and fails.
  private(set) var process = 0
  private var names: [String: Content] = [:]
  private var durableNames: [String: Content] = [:]
  private var pendingNames: [(name: String, content: Content?)] = []
  var chance: SeededGenerator
  private var ticks = 0
  /// As SQLite knows it.
  var layer: UnsafeMutablePointer<sqlite3_vfs>?
  private static nonisolated(unsafe) var count = 0

  init(seed: UInt64) {
    chance = SeededGenerator(seed: seed)
    Self.count += 1
    sqliteNameText = "simulated-\(Self.count)"
    register()
  }

  deinit { unregister() }

  // MARK: The process and the power

  func kill() {
    process += 1
    (callsToKill, fault) = (nil, nil)
    for content in names.values { content.evict() }
  }

  /// For what a new process does before it serves.
  func suspendFaults() -> (Fault?, Int?) {
    defer { (fault, callsToKill) = (nil, nil) }
    return (fault, callsToKill)
  }

  func resumeFaults(_ faults: (Fault?, Int?)) { (fault, callsToKill) = faults }

  /// Whether the process with this number still runs.
  func isAlive(_ number: Int) -> Bool { number == process }

  func cutPower() {
    kill()
    let survivors = pendingNames.isEmpty ? 0 : Int.random(in: 0...pendingNames.count, using: &chance)
    for (name, content) in pendingNames.prefix(survivors) { durableNames[name] = content }
    for name in durableNames.keys.sorted() { durableNames[name]?.losePower(&chance) }
    (names, pendingNames) = (durableNames, [])
  }

  /// Gives back the memory. What a killed broker still waited for is never released.
  func erase() {
    kill()
    for content in names.values { content.erase() }
    (names, durableNames, pendingNames) = ([:], [:], [])
  }

  // MARK: Calls

  /// Returns the error of the call; `nil` if it is to be done.
  func fail(_ call: Call, of number: Int) -> Int32? {
    guard number == process else { return EIO }
    calls += 1
    if let left = callsToKill {
      callsToKill = left - 1
      if left <= 0 {
        kill()
        return EIO
      }
    }
    guard var fault, fault.call == call else { return nil }
    if fault.after > 0 {
      fault.after -= 1
      self.fault = fault
      return nil
    }
    fault.count -= 1
    self.fault = fault.count > 0 ? fault : nil
    faults += 1
    return fault.code
  }

  func content(_ name: String) -> Content? { names[name] }

  /// Gives a name to a content, or takes it away.
  func setName(_ name: String, _ content: Content?) {
    names[name] = content
    pendingNames.append((name, content))
  }

  func syncNames() {
    for (name, content) in pendingNames { durableNames[name] = content }
    pendingNames = []
  }

  var allNames: [String] { names.keys.sorted() }

  private var usedBytes: Int { names.values.reduce(0) { $0 + $1.bytes.count } }

  func hasRoom(for bytes: Int) -> Bool { capacity == .max || usedBytes + bytes <= capacity }

  func write(_ bytes: UnsafeRawBufferPointer, to content: Content, at offset: Int) -> Int32? {
    let growth = offset + bytes.count - content.bytes.count
    guard growth <= 0 || hasRoom(for: growth) else { return ENOSPC }
    ticks += 1
    content.apply(.write(Array(bytes), offset: offset), at: ticks)
    return nil
  }

  func truncate(_ content: Content, to bytes: Int) {
    ticks += 1
    content.apply(.truncate(bytes), at: ticks)
  }
}

extension SimulatedDisk.Content {
  fileprivate func apply(_ change: SimulatedDisk.Change, at tick: Int) {
    changed = tick
    pending.append(change)
    Self.apply(change, to: &bytes)
  }

  private static func apply(_ change: SimulatedDisk.Change, to bytes: inout [UInt8]) {
    switch change {
    case .write(let new, let offset):
      if bytes.count < offset + new.count { bytes += [UInt8](repeating: 0, count: offset + new.count - bytes.count) }
      guard !new.isEmpty else { return }
      bytes.withUnsafeMutableBytes { $0[offset..<offset + new.count].copyBytes(from: new) }
    case .truncate(let count):
      if count < bytes.count {
        bytes.removeSubrange(count...)
      } else {
        bytes += [UInt8](repeating: 0, count: count - bytes.count)
      }
    }
  }

  func sync() {
    for change in pending { Self.apply(change, to: &durable) }
    pending = []
  }

  /// The system takes for clean what it could not write: no later sync writes it, and it is gone when the system needs
  /// the memory, here at the end of the process.
  func failSync() {
    pending = []
    isStale = true
  }

  fileprivate func evict() {
    guard isStale else { return }
    (bytes, isStale) = (durable, false)
    for change in pending { Self.apply(change, to: &bytes) }
  }

  fileprivate func erase() { (bytes, durable, pending) = ([], [], []) }

  /// Of what was not synced, a prefix is there, of the rest now and then something, and the first of it in part.
  fileprivate func losePower(_ chance: inout SeededGenerator) {
    let whole = pending.isEmpty ? 0 : Int.random(in: 0...pending.count, using: &chance)
    let isReordered = Int.random(in: 0..<4, using: &chance) == 0
    for (index, change) in pending.enumerated() {
      if index < whole || isReordered && index > whole && Bool.random(using: &chance) {
        Self.apply(change, to: &durable)
      } else if index == whole, case .write(let new, let offset) = change {
        let sectors = Int.random(in: 0...(new.count / 512), using: &chance)
        Self.apply(.write(Array(new.prefix(sectors * 512)), offset: offset), to: &durable)
      }
    }
    (bytes, pending, isStale) = (durable, [], false)
  }
}

// MARK: The store's own files

extension SimulatedDisk: FileSystem {
  var sqliteName: String? { sqliteNameText }

  func prepareDirectory(_ path: String) throws(SystemError) {}

  private func check(_ call: Call, _ operation: String, _ path: String) throws(SystemError) {
    if let code = fail(call, of: process) { throw SystemError(operation, path, code: code) }
  }

  func entry(_ path: String) throws(SystemError) -> FileEntry {
    try check(.other, "stat", path)
    guard let content = names[path] else { return .absent }
    let identity = FileIdentity(device: 0, inode: UInt64(UInt(bitPattern: ObjectIdentifier(content))))
    return .file(size: content.bytes.count, changed: content.changed, identity: identity)
  }

  func isSameDirectory(_ path: String, as other: String) throws(SystemError) -> Bool { path == other }

  func names(in directory: String) throws(SystemError) -> [String] {
    try check(.other, "list", directory)
    let prefix = directory + "/"
    return allNames.compactMap { $0.hasPrefix(prefix) ? String($0.dropFirst(prefix.count)) : nil }
  }

  func open(_ path: String, _ access: FileAccess) throws(SystemError) -> any OpenFile {
    try check(.other, "open", path)
    if let content = names[path] {
      if case .creating = access { throw SystemError("create", path, code: EEXIST) }
      return SimulatedFile(content, path, of: self)
    }
    switch access {
    case .reading, .writing: throw SystemError("open", path, code: ENOENT)
    case .creating, .creatingOrWriting: break
    }
    let content = Content()
    setName(path, content)
    return SimulatedFile(content, path, of: self)
  }

  func remove(_ path: String) throws(SystemError) {
    try check(.other, "remove", path)
    guard names[path] != nil else { throw SystemError("remove", path, code: ENOENT) }
    setName(path, nil)
  }

  func rename(_ path: String, to target: String) throws(SystemError) {
    try check(.other, "rename", path)
    guard let content = names[path] else { throw SystemError("rename", path, code: ENOENT) }
    setName(target, content)
    setName(path, nil)
  }

  func link(_ path: String, to target: String) throws(SystemError) {
    try check(.other, "move", path)
    guard let content = names[path] else { throw SystemError("move", path, code: ENOENT) }
    guard names[target] == nil else { throw SystemError("move", path, code: EEXIST) }
    setName(target, content)
  }

  func syncDirectory(_ path: String) throws(SystemError) {
    try check(.sync, "sync", path)
    syncNames()
  }

  func freeBytes(of directory: String) -> Int? { capacity == .max ? 1 << 40 : max(0, capacity - usedBytes) }

  func random() -> (UInt64, UInt64) { (chance.next(), chance.next()) }
}

private final class SimulatedFile: OpenFile {
  private let content: SimulatedDisk.Content
  private let path: String
  private let disk: SimulatedDisk
  private let process: Int

  init(_ content: SimulatedDisk.Content, _ path: String, of disk: SimulatedDisk) {
    (self.content, self.path, self.disk, process) = (content, path, disk, disk.process)
  }

  private func check(_ call: SimulatedDisk.Call, _ operation: String) throws(SystemError) {
    if let code = disk.fail(call, of: process) { throw SystemError(operation, path, code: code) }
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
    try check(.read, "read")
    let bytes = content.bytes.dropFirst(offset).prefix(buffer.count)
    buffer.copyBytes(from: bytes)
    return bytes.count
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
    try check(.write, "write")
    if let code = disk.write(bytes, to: content, at: offset) { throw SystemError("write", path, code: code) }
  }

  func truncate(to bytes: Int) throws(SystemError) {
    try check(.write, "truncate")
    disk.truncate(content, to: bytes)
  }

  func allocate(bytes: Int) throws(SystemError) {
    try check(.write, "allocate")
    guard disk.hasRoom(for: bytes - content.bytes.count) else { throw SystemError("allocate", path, code: ENOSPC) }
    disk.truncate(content, to: max(bytes, content.bytes.count))
  }

  func sync() throws(SystemError) {
    do throws(SystemError) {
      try check(.sync, "sync")
    } catch {
      if disk.isAlive(process) { content.failSync() }
      throw error
    }
    content.sync()
  }
}
