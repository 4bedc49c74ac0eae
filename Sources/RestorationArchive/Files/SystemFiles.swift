// SPDX-License-Identifier: Apache-2.0

internal import Glibc

package struct SystemError: Error {
  let operation: String
  let path: String
  let code: Int32

  /// - Parameter code: `nil` for the error of the last call.
  package init(_ operation: String, _ path: String, code: Int32? = nil) {
    self.code = code ?? errno
    (self.operation, self.path) = (operation, path)
  }

  package static var exists: Int32 { EEXIST }
  package static var isMissing: Int32 { ENOENT }

  var message: String { "\(operation) \(path): \(String(cString: strerror(code)))" }

  var isFull: Bool { Self.isOutOfSpace(code) }
  var isMissing: Bool { code == ENOENT }
  /// The file system has no second names.
  var isUnsupported: Bool { code == EPERM || code == EOPNOTSUPP }

  static func isOutOfSpace(_ code: Int32) -> Bool { code == ENOSPC || code == EDQUOT || code == EFBIG }

  static func remedy(_ code: Int32) -> String {
    code == EFBIG ? "raise the limit of the length of files (RLIMIT_FSIZE, LimitFSIZE= of a unit)" : "free some space"
  }
}

package struct SystemFiles: FileSystem {
  package var sqliteName: String? { nil }

  package init() {}

  // MARK: Directories

  package func prepareDirectory(_ path: String) throws(SystemError) {
    try create(path)
    let descriptor = try descriptor(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw SystemError("stat", path) }
    guard status.st_uid == geteuid() else {
      throw SystemError("use the directory of another owner", path, code: EPERM)
    }
    if status.st_mode & 0o077 != 0, fchmod(descriptor, 0o700) != 0 { throw SystemError("chmod", path) }
  }

  private func create(_ path: String) throws(SystemError) {
    if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
    guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
      throw SystemError("create", path)
    }
    try create(String(path[..<slash]))
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw SystemError("create", path) }
  }

  package func entry(_ path: String) throws(SystemError) -> FileEntry {
    var status = stat()
    guard lstat(path, &status) == 0 else {
      if errno == ENOENT { return .absent }
      throw SystemError("stat", path)
    }
    guard status.st_mode & S_IFMT == S_IFREG else { return .other }
    let changed = Int(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int(status.st_mtim.tv_nsec)
    let identity = FileIdentity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
    return .file(size: Int(status.st_size), changed: changed, identity: identity)
  }

  package func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  package func isSameDirectory(_ path: String, as other: String) throws(SystemError) -> Bool {
    var (first, second) = (stat(), stat())
    guard stat(path, &first) == 0 else { throw SystemError("stat", path) }
    guard stat(other, &second) == 0 else { throw SystemError("stat", other) }
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino
  }

  package func names(in directory: String) throws(SystemError) -> [String] {
    let descriptor = try descriptor(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    guard let stream = fdopendir(descriptor) else {
      close(descriptor)
      throw SystemError("list", directory)
    }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        guard errno == 0 else { throw SystemError("list", directory) }
        return names
      }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      names.append(name)
    }
  }

  package func syncDirectory(_ path: String) throws(SystemError) {
    let descriptor = try descriptor(path, O_RDONLY | O_DIRECTORY)
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw SystemError("sync", path) }
  }

  package func refusal(toWriteIn directory: String) -> SystemError? {
    guard faccessat(AT_FDCWD, directory, W_OK, AT_EACCESS) != 0 else { return nil }
    let code = errno
    return code == EROFS || code == EACCES ? SystemError("write", directory, code: code) : nil
  }

  package func freeBytes(of directory: String) -> Int? {
    var status = statvfs()
    return statvfs(directory, &status) == 0 ? Int(status.f_bavail) * Int(status.f_frsize) : nil
  }

  package func random() -> (UInt64, UInt64) {
    var generator = SystemRandomNumberGenerator()
    return (generator.next(), generator.next())
  }

  // MARK: Files

  package func open(_ path: String, _ access: FileAccess) throws(SystemError) -> any OpenFile {
    // If it is not a regular file, opening it still does not block.
    return SystemFile(try descriptor(path, access.flags | O_NOFOLLOW | O_NONBLOCK), path)
  }

  private func descriptor(_ path: String, _ flags: Int32) throws(SystemError) -> Int32 {
    let descriptor = Glibc.open(path, flags | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw SystemError(flags & O_CREAT != 0 ? "create" : "open", path) }
    return descriptor
  }

  package func remove(_ path: String) throws(SystemError) {
    guard unlink(path) == 0 else { throw SystemError("remove", path) }
  }

  package func rename(_ path: String, to target: String) throws(SystemError) {
    guard Glibc.rename(path, target) == 0 else { throw SystemError("rename", path) }
  }

  package func link(_ path: String, to target: String) throws(SystemError) {
    guard Glibc.link(path, target) == 0 else { throw SystemError("move", path) }
  }
}

extension FileAccess {
  fileprivate var flags: Int32 {
    switch self {
    case .reading: O_RDONLY
    case .writing: O_WRONLY
    case .creating: O_WRONLY | O_CREAT | O_EXCL
    case .creatingOrWriting: O_WRONLY | O_CREAT
    }
  }
}

private final class SystemFile: OpenFile {
  private let descriptor: Int32
  private let path: String

  init(_ descriptor: Int32, _ path: String) { (self.descriptor, self.path) = (descriptor, path) }

  deinit { close(descriptor) }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
    while true {
      let count = pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
      if count >= 0 { return count }
      if errno != EINTR { throw SystemError("read", path) }
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
    var (rest, offset) = (bytes, offset)
    while !rest.isEmpty {
      let count = pwrite(descriptor, rest.baseAddress, rest.count, off_t(offset))
      if count < 0, errno == EINTR { continue }
      // Only a full disk takes nothing of a file's bytes.
      guard count > 0 else { throw SystemError("write", path, code: count < 0 ? nil : ENOSPC) }
      offset += count
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
  }

  func truncate(to bytes: Int) throws(SystemError) {
    guard ftruncate(descriptor, off_t(bytes)) == 0 else { throw SystemError("truncate", path) }
  }

  func allocate(bytes: Int) throws(SystemError) {
    let code = posix_fallocate(descriptor, 0, off_t(bytes))
    guard code == 0 else { throw SystemError("allocate", path, code: code) }
  }

  func sync() throws(SystemError) {
    guard fsync(descriptor) == 0 else { throw SystemError("sync", path) }
  }
}
