// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A file that is written completely or not at all, and that only its owner can read.
struct OutputFile {
  /// A failed operation on a file.
  struct Fault: Error {
    let message: String
  }

  let path: String

  /// Replaces a file that may exist; a symbolic link to it stays. A device, a pipe or anything else that is not a
  /// regular file is written to directly.
  func write(_ text: String) throws(Fault) {
    let bytes = Array(text.utf8)
    var status = stat()
    if stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
      let descriptor = open(path, O_WRONLY | O_CLOEXEC)
      guard descriptor >= 0 else { throw failure() }
      defer { close(descriptor) }
      return try fill(descriptor, bytes)
    }
    try replace(target, bytes)
  }

  /// The file the path leads to.
  private var target: String {
    guard let resolved = realpath(path, nil) else { return path }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  private func replace(_ target: String, _ bytes: [UInt8]) throws(Fault) {
    // In the same directory, so that giving it its name is one step.
    let draft = "\(target).\(getpid()).part"
    let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure() }
    do throws(Fault) {
      try fill(descriptor, bytes)
      guard fsync(descriptor) == 0 else { throw failure() }
      guard rename(draft, target) == 0 else { throw failure() }
      close(descriptor)
    } catch {
      close(descriptor)
      unlink(draft)
      throw error
    }
  }

  private func fill(_ descriptor: Int32, _ bytes: [UInt8]) throws(Fault) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        throw failure()
      }
    }
  }

  private func failure() -> Fault { Fault(message: "\(path) cannot be written: \(String(cString: strerror(errno)))") }

  /// A path as seen from the root directory.
  static func absolute(_ path: String) throws(Fault) -> String {
    if path.hasPrefix("/") { return path }
    guard let directory = getcwd(nil, 0) else {
      throw Fault(message: "the current directory is unknown: \(String(cString: strerror(errno)))")
    }
    defer { free(directory) }
    return "\(String(cString: directory))/\(path)"
  }

  /// All of a file's text.
  static func read(_ path: String) throws(Fault) -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw unreadable(path) }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count > 0 {
        bytes += buffer[..<count]
      } else if count == 0 {
        break
      } else if errno != EINTR {
        throw unreadable(path)
      }
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw Fault(message: "\(path) is not UTF-8")
    }
    return text
  }

  private static func unreadable(_ path: String) -> Fault {
    Fault(message: "\(path) cannot be read: \(String(cString: strerror(errno)))")
  }
}
