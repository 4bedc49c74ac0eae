// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A private directory with a short path (a Unix socket's address has 107 bytes), removed with all it holds.
package final class ScratchDirectory: Sendable {
  package let path: String

  /// In memory if there is room, because on a disk every transaction of every test would wait for it. The long form
  /// takes the disk.
  private static let parent: String = {
    let noExecution: UInt = 8  // ST_NOEXEC
    var status = statvfs()
    guard !Environment.isLong, statvfs("/dev/shm", &status) == 0, access("/dev/shm", W_OK) == 0 else { return "/tmp" }
    let hasRoom = status.f_bavail * status.f_frsize >= 2 << 30
    return hasRoom && status.f_flag & noExecution == 0 ? "/dev/shm" : "/tmp"
  }()

  package init() throws {
    var template = Array("\(Self.parent)/rd-XXXXXX".utf8CString)
    guard let name = mkdtemp(&template) else { throw TestFailure("mkdtemp: \(SystemError.current)") }
    path = String(cString: name)
  }

  /// One that is there already.
  package init(at path: String) { self.path = path }

  /// The path of something in the directory.
  package func file(_ name: String) -> String { "\(path)/\(name)" }

  /// Creates a directory in it, mode 0700.
  package func makeDirectory(_ name: String) throws -> String {
    guard mkdir(file(name), 0o700) == 0 else { throw TestFailure("mkdir \(name): \(SystemError.current)") }
    return file(name)
  }

  /// Writes a file in it.
  @discardableResult
  package func write(_ text: String, to name: String) throws -> String {
    try Files.write(Array(text.utf8), to: file(name))
    return file(name)
  }

  package func remove() { Files.removeTree(path) }
}

/// Runs a test that blocks in a thread of its own, with a directory that is removed afterwards.
package func withScratch<Result: Sendable>(
  alone: Bool = false,
  _ body: @Sendable (ScratchDirectory) async throws -> Result
) async throws -> Result {
  try await passingTurnstile(alone: alone) {
    let directory = try ScratchDirectory()
    defer { directory.remove() }
    return try await body(directory)
  }
}

/// Small files, as tests need them.
package enum Files {
  package static func exists(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  package static func read(_ path: String) throws -> [UInt8] {
    let number = open(path, O_RDONLY | O_CLOEXEC)
    guard number >= 0 else { throw TestFailure("open \(path): \(SystemError.current)") }
    defer { close(number) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = Glibc.read(number, &buffer, buffer.count)
      guard count >= 0 else { throw TestFailure("read \(path): \(SystemError.current)") }
      if count == 0 { return bytes }
      bytes += buffer[..<count]
    }
  }

  package static func text(_ path: String) throws -> String { String(decoding: try read(path), as: UTF8.self) }

  package static func write(_ bytes: [UInt8], to path: String) throws {
    let number = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard number >= 0 else { throw TestFailure("open \(path): \(SystemError.current)") }
    defer { close(number) }
    guard Glibc.write(number, bytes, bytes.count) == bytes.count else {
      throw TestFailure("write \(path): \(SystemError.current)")
    }
  }

  /// The target of a symbolic link.
  package static func target(_ path: String) -> String {
    var bytes = [CChar](repeating: 0, count: 4_096)
    let count = readlink(path, &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  package static func size(_ path: String) -> Int {
    var status = stat()
    return lstat(path, &status) == 0 ? Int(status.st_size) : 0
  }

  /// Permission bits of a file.
  package static func mode(_ path: String) -> UInt32 {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
  }

  package static func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  package static func rename(_ old: String, to new: String) throws {
    guard Glibc.rename(old, new) == 0 else { throw TestFailure("rename \(old): \(SystemError.current)") }
  }

  package static func makeDirectory(_ path: String) throws {
    guard mkdir(path, 0o700) == 0 else { throw TestFailure("mkdir \(path): \(SystemError.current)") }
  }

  package static func remove(_ path: String) { unlink(path) }

  /// Names in a directory, sorted; empty if it does not exist.
  package static func list(_ path: String) -> [String] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  /// Every file below a directory, by its path relative to it; hidden directories are left out.
  package static func tree(_ path: String) -> [String] {
    list(path).flatMap { name -> [String] in
      guard isDirectory("\(path)/\(name)") else { return [name] }
      return name.hasPrefix(".") && name != ".ci" ? [] : tree("\(path)/\(name)").map { "\(name)/\($0)" }
    }
  }

  /// Empties a directory.
  package static func removeContents(of path: String) { for name in list(path) { removeTree("\(path)/\(name)") } }

  package static func removeTree(_ path: String) {
    if isDirectory(path) {
      chmod(path, 0o700)
      for name in list(path) { removeTree("\(path)/\(name)") }
      rmdir(path)
    } else {
      unlink(path)
    }
  }
}
