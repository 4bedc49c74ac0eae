// SPDX-License-Identifier: Apache-2.0

/// The directory that holds all archives of a store; only its owner can read it.
///
/// No file that an SQLite connection may have open is opened here: closing any descriptor of it would drop the
/// connection's locks.
struct ArchiveDirectory: Sendable {
  let path: String
  let system: any FileSystem

  /// Uses an existing directory unchanged.
  init(existing path: String, of system: any FileSystem) { (self.path, self.system) = (path, system) }

  /// Creates a missing directory, or checks owner, type and mode of the existing one.
  init(_ path: String, of system: any FileSystem) throws(SystemError) {
    (self.path, self.system) = (path, system)
    try system.prepareDirectory(path)
  }

  func entry(_ name: String) throws(SystemError) -> FileEntry { try system.entry(pathname(name)) }

  func isSame(as other: ArchiveDirectory) throws(SystemError) -> Bool {
    try system.isSameDirectory(path, as: other.path)
  }

  func stamp(of files: ArchiveFiles) throws(SystemError) -> FileStamp {
    FileStamp(main: try entry(files.main), log: try entry(files.log))
  }

  /// `nil` if there is no archive of the application, or that is unknown.
  func stamp(of application: String) -> FileStamp? {
    guard let stamp = try? stamp(of: ArchiveFiles(application)), stamp.main != .absent else { return nil }
    return stamp
  }

  func pathname(_ name: String) -> String { path == "/" ? "/\(name)" : "\(path)/\(name)" }

  func names() throws(SystemError) -> [String] { try system.names(in: path) }

  /// No connection may have the file open.
  func read(_ name: String, _ body: (UnsafeRawBufferPointer) throws(SystemError) -> Void) throws(SystemError) {
    let source = try system.open(pathname(name), .reading)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)
    defer { buffer.deallocate() }
    var offset = 0
    while true {
      let count = try source.read(into: buffer, at: offset)
      if count == 0 { return }
      offset += count
      try body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  func isSame(_ name: String, as other: String) throws(SystemError) -> Bool {
    guard case .file(let size, _, _) = try entry(name), case .file(size, _, _) = try entry(other) else { return false }
    let second = try system.open(pathname(other), .reading)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)
    defer { buffer.deallocate() }
    var isSame = true
    var offset = 0
    try read(name) { bytes throws(SystemError) in
      let others = UnsafeMutableRawBufferPointer(rebasing: buffer[..<bytes.count])
      if try second.read(into: others, at: offset) != bytes.count || !others.elementsEqual(bytes) { isSame = false }
      offset += bytes.count
    }
    return isSame
  }

  // MARK: Changing

  /// Makes an empty file that only its owner can read; replaces an existing one.
  @discardableResult
  func createEmpty(_ name: String) throws(SystemError) -> any OpenFile {
    try remove(name)
    return try system.open(pathname(name), .creating)
  }

  /// Does nothing if the file is missing.
  func remove(_ name: String) throws(SystemError) {
    do throws(SystemError) {
      try system.remove(pathname(name))
    } catch {
      // A read-only file system does not tell that there is nothing to remove.
      if !error.isMissing, (try? entry(name)) != .absent { throw error }
    }
  }

  /// Removes an archive that is not open. After a kill or a power cut at any step it is there as it was, or gone; then
  /// the next opening removes what is left of it.
  func remove(_ files: ArchiveFiles, damaged: Bool) throws(SystemError) {
    var isAlone = try self.damaged(files).isEmpty
    for name in files.beside where try entry(name) != .absent { isAlone = false }
    // Without a main file, the others would be taken for what a recovery has left; without its log, the main file for
    // one that has lost it.
    if !isAlone {
      try noteRemoval(of: files)
      try sync()
    }
    try remove(files.main)
    try sync()
    if !isAlone { try removeRest(files, damaged: damaged) }
  }

  /// Removes what is left of an archive that was removed, and the note of that unless damaged files need it.
  func removeRest(_ files: ArchiveFiles, damaged: Bool) throws(SystemError) {
    for name in try files.beside + (damaged ? self.damaged(files) : []) { try remove(name) }
    try sync()
    if try self.damaged(files).isEmpty { try remove(files.removed) }
  }

  private func noteRemoval(of files: ArchiveFiles) throws(SystemError) {
    do throws(SystemError) {
      try createEmpty(files.removed)
    } catch {
      guard error.isFull, releaseBallast() > 0 else { throw error }
      try createEmpty(files.removed)
    }
  }

  private func damaged(_ files: ArchiveFiles) throws(SystemError) -> [String] {
    try names().filter { $0.hasPrefix(files.damagedPrefix) }
  }

  func replace(_ target: String, with name: String) throws(SystemError) {
    try system.rename(pathname(name), to: pathname(target))
  }

  /// Fails if there is a file of the new name.
  func move(_ name: String, to target: String) throws(SystemError) {
    do throws(SystemError) {
      try system.link(pathname(name), to: pathname(target))
    } catch {
      guard error.isUnsupported else { throw error }
      // Without hard links, the check and the renaming are two steps.
      guard try entry(target) == .absent else {
        throw SystemError("move", pathname(name), code: SystemError.exists)
      }
      return try replace(target, with: name)
    }
    try remove(name)
  }

  /// Copies a file's bytes to a new, synced file that only its owner can read.
  func copy(_ name: String, to target: String) throws(SystemError) {
    let sink = try createEmpty(target)
    var offset = 0
    try read(name) { bytes throws(SystemError) in
      try sink.write(bytes, at: offset)
      offset += bytes.count
    }
    try sink.sync()
  }

  /// Replaces a small file; after a kill at any step it has its former text or the new one.
  func keep(_ text: String, as name: String) throws(SystemError) {
    let draft = "+\(name)"
    let sink = try createEmpty(draft)
    try sink.write(text, at: 0)
    try sink.sync()
    try replace(name, with: draft)
    try sync()
  }

  func syncFile(_ name: String) throws(SystemError) { try system.open(pathname(name), .reading).sync() }

  func sync() throws(SystemError) { try system.syncDirectory(path) }

  // MARK: Ballast

  /// Space kept so that a full disk still takes deletions.
  private static let ballast = "+ballast"

  /// Returns how many bytes were given up.
  func releaseBallast() -> Int {
    let bytes = (try? entry(Self.ballast).bytes) ?? 0
    return (try? system.remove(pathname(Self.ballast))) == nil ? 0 : bytes
  }

  /// Lengthens the ballast to a quarter of the free space, or to the bytes just released.
  ///
  /// - Returns: whether there is as much as was released.
  @discardableResult
  func makeBallast(bytes: Int, released: Int = 0) -> Bool {
    guard let found = try? entry(Self.ballast), found != .other, let free = freeBytes else { return true }
    var size = min(bytes, max((found.bytes + free) / 4, min(released, free)))
    // Only when it is allocated does a quota show.
    while size > found.bytes, !allocateBallast(bytes: size, from: found.bytes) { size /= 2 }
    return max(size, found.bytes) >= released
  }

  /// Returns whether there was room.
  private func allocateBallast(bytes: Int, from former: Int) -> Bool {
    guard let file = try? system.open(pathname(Self.ballast), .creatingOrWriting) else { return false }
    if (try? file.allocate(bytes: bytes)) != nil { return true }
    try? file.truncate(to: former)
    return false
  }

  var readOnly: String? { system.refusal(toWriteIn: path)?.message }

  var freeBytes: Int? { system.freeBytes(of: path) }
}

/// Changes whenever the files of an archive do.
struct FileStamp: Equatable {
  var main: FileEntry
  var log: FileEntry

  var bytes: Int { main.bytes + log.bytes }
}
