// SPDX-License-Identifier: Apache-2.0

// The files of the store are opened, synced and renamed here, but for the mark (AcknowledgedMark); everything inside an
// archive goes through SQLite.
internal import Glibc

struct SystemError: Error {
  let operation: String
  let path: String
  let code: Int32

  /// - Parameter code: `nil` for the error of the last call.
  init(_ operation: String, _ path: String, code: Int32? = nil) {
    self.code = code ?? errno
    (self.operation, self.path) = (operation, path)
  }

  static var exists: Int32 { EEXIST }

  var message: String { "\(operation) \(path): \(String(cString: strerror(code)))" }

  var isFull: Bool { Self.isOutOfSpace(code) }

  static func isOutOfSpace(_ code: Int32) -> Bool { code == ENOSPC || code == EDQUOT }
}

/// The directory that holds all archives of a store; only its owner can read it.
///
/// No file that an SQLite connection may have open is opened here: closing any descriptor of it would drop the
/// connection's locks.
struct ArchiveDirectory: Sendable {
  let path: String

  /// Uses an existing directory unchanged.
  init(existing path: String) { self.path = path }

  /// Creates the directory and missing ones above it, or checks owner, type and mode of the existing one.
  init(_ path: String) throws(SystemError) {
    self.path = path
    try Self.create(path)
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { throw SystemError("open", path) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw SystemError("stat", path) }
    guard status.st_uid == geteuid() else {
      errno = EPERM
      throw SystemError("use the directory of another owner", path)
    }
    if status.st_mode & 0o077 != 0, fchmod(descriptor, 0o700) != 0 { throw SystemError("chmod", path) }
  }

  private static func create(_ path: String) throws(SystemError) {
    if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
    guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
      throw SystemError("create", path)
    }
    try create(String(path[..<slash]))
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw SystemError("create", path) }
  }

  enum Entry: Equatable {
    case absent
    /// Size in bytes, and the time of the last change in nanoseconds since 1970.
    case file(size: Int, changed: Int)
    /// A symbolic link, a directory, …: no store makes one.
    case other
  }

  func entry(_ name: String) throws(SystemError) -> Entry {
    var status = stat()
    guard lstat(pathname(name), &status) == 0 else {
      if errno == ENOENT { return .absent }
      throw SystemError("stat", pathname(name))
    }
    guard status.st_mode & S_IFMT == S_IFREG else { return .other }
    let changed = Int(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int(status.st_mtim.tv_nsec)
    return .file(size: Int(status.st_size), changed: changed)
  }

  /// Whether it is the same directory, by whatever path.
  func isSame(as other: ArchiveDirectory) throws(SystemError) -> Bool {
    var (own, others) = (stat(), stat())
    guard stat(path, &own) == 0 else { throw SystemError("stat", path) }
    guard stat(other.path, &others) == 0 else { throw SystemError("stat", other.path) }
    return own.st_dev == others.st_dev && own.st_ino == others.st_ino
  }

  func pathname(_ name: String) -> String { path == "/" ? "/\(name)" : "\(path)/\(name)" }

  func names() throws(SystemError) -> [String] {
    guard let stream = opendir(path) else { throw SystemError("list", path) }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        guard errno == 0 else { throw SystemError("list", path) }
        return names
      }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      names.append(name)
    }
  }

  /// Reads a file from its beginning to its end; no connection may have it open.
  func read(_ name: String, _ body: (UnsafeRawBufferPointer) throws(SystemError) -> Void) throws(SystemError) {
    // If it is not a regular file, opening it still does not block.
    let source = open(pathname(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard source >= 0 else { throw SystemError("open", pathname(name)) }
    defer { close(source) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)
    defer { buffer.deallocate() }
    var offset: off_t = 0
    while true {
      let count = pread(source, buffer.baseAddress, buffer.count, offset)
      if count == 0 { return }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw SystemError("read", pathname(name)) }
      offset += off_t(count)
      try body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  /// Whether there is a second file with the same bytes as the first.
  func isSame(_ name: String, as other: String) throws(SystemError) -> Bool {
    guard case .file(let size, _) = try entry(name), case .file(size, _) = try entry(other) else { return false }
    let descriptor = open(pathname(other), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { throw SystemError("open", pathname(other)) }
    defer { close(descriptor) }
    var isSame = true
    var offset: off_t = 0
    try read(name) { bytes in
      withUnsafeTemporaryAllocation(byteCount: bytes.count, alignment: 8) { others in
        isSame =
          isSame && pread(descriptor, others.baseAddress, bytes.count, offset) == bytes.count
          && others.elementsEqual(bytes)
      }
      offset += off_t(bytes.count)
    }
    return isSame
  }

  // MARK: Changing

  /// Makes an empty file that only its owner can read, replacing an existing one.
  func createEmpty(_ name: String) throws(SystemError) {
    try remove(name)
    let descriptor = open(pathname(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw SystemError("create", pathname(name)) }
    close(descriptor)
  }

  /// Removes a file if it is there.
  func remove(_ name: String) throws(SystemError) {
    guard unlink(pathname(name)) == 0 || errno == ENOENT else { throw SystemError("remove", pathname(name)) }
  }

  /// Removes an archive that is not open. After a kill at any step it is there as it was, or gone, or can be removed.
  func remove(_ files: ArchiveFiles, damaged: Bool) throws(SystemError) {
    let aside = try names().filter { $0.hasPrefix(files.damagedPrefix) }
    // Without a main file, a backup or a damaged file would be taken for what a recovery has left.
    if damaged {
      for name in aside { try remove(name) }
      try remove(files.removed)
    } else if !aside.isEmpty {
      try createEmpty(files.removed)
    }
    for name in [files.newBackup, files.fresh, files.backup, files.mark, files.log, files.main] { try remove(name) }
    try sync()
  }

  func replace(_ target: String, with name: String) throws(SystemError) {
    guard rename(pathname(name), pathname(target)) == 0 else { throw SystemError("rename", pathname(name)) }
  }

  /// Renames a file; fails if there is one of the new name.
  func move(_ name: String, to target: String) throws(SystemError) {
    if link(pathname(name), pathname(target)) == 0 {
      try remove(name)
      return
    }
    guard errno == EPERM || errno == EOPNOTSUPP else { throw SystemError("move", pathname(name)) }
    // Without hard links, the check and the renaming are two steps.
    guard try entry(target) == .absent else {
      errno = EEXIST
      throw SystemError("move", pathname(name))
    }
    try replace(target, with: name)
  }

  /// Copies a file's bytes to a new, synced file that only its owner can read.
  func copy(_ name: String, to target: String) throws(SystemError) {
    try createEmpty(target)
    let sink = open(pathname(target), O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
    guard sink >= 0 else { throw SystemError("open", pathname(target)) }
    defer { close(sink) }
    try read(name) { bytes throws(SystemError) in
      var rest = bytes
      while !rest.isEmpty {
        let step = write(sink, rest.baseAddress, rest.count)
        if step < 0, errno == EINTR { continue }
        guard step > 0 else { throw SystemError("write", pathname(target)) }
        rest = UnsafeRawBufferPointer(rebasing: rest[step...])
      }
    }
    guard fsync(sink) == 0 else { throw SystemError("sync", pathname(target)) }
  }

  /// Replaces a small file; after a kill at any step it has its former text or the new one.
  func keep(_ text: String, as name: String) throws(SystemError) {
    let draft = "+\(name)"
    try createEmpty(draft)
    let sink = open(pathname(draft), O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
    guard sink >= 0 else { throw SystemError("open", pathname(draft)) }
    defer { close(sink) }
    let count = write(sink, text, text.utf8.count)
    // Only a full disk takes part of so little.
    guard count == text.utf8.count else { throw SystemError("write", pathname(draft), code: count < 0 ? nil : ENOSPC) }
    guard fsync(sink) == 0 else { throw SystemError("sync", pathname(draft)) }
    try replace(name, with: draft)
    try sync()
  }

  func syncFile(_ name: String) throws(SystemError) { try sync(pathname(name), O_RDONLY | O_NOFOLLOW) }

  /// Makes renamings and removals durable.
  func sync() throws(SystemError) { try sync(path, O_RDONLY | O_DIRECTORY) }

  private func sync(_ path: String, _ flags: Int32) throws(SystemError) {
    let descriptor = open(path, flags | O_CLOEXEC)
    guard descriptor >= 0 else { throw SystemError("open", path) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw SystemError("sync", path) }
  }

  // MARK: Ballast

  /// Space kept so that a full disk still takes deletions.
  private static let ballast = "+ballast"

  var hasBallast: Bool { (try? entry(Self.ballast)).map { $0 != .absent } ?? false }

  /// Returns whether there was ballast to give up.
  func releaseBallast() -> Bool { unlink(pathname(Self.ballast)) == 0 }

  /// Makes the ballast if it is missing and twice its space is free: it must not be what fills the disk.
  func makeBallast(bytes: Int) {
    guard bytes > 0, (try? entry(Self.ballast)) == .absent else { return }
    var status = statvfs()
    guard statvfs(path, &status) == 0, Int(status.f_bavail) * Int(status.f_frsize) >= 2 * bytes else { return }
    let descriptor = open(pathname(Self.ballast), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    // Only here does a quota show; half a ballast is useless.
    if posix_fallocate(descriptor, 0, off_t(bytes)) != 0 { _ = releaseBallast() }
  }
}
