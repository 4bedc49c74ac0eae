// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import TestSupport

/// A directory with a short path for one test, removed with its contents at the end.
final class SocketDirectory: Sendable {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  deinit { scratch.remove() }

  var path: String { scratch.path }

  func file(_ name: String) -> String { scratch.file(name) }
}

/// The file at a path itself, and its permission bits; `nil` if there is none.
func status(of path: String) -> (mode: UInt32, isSocket: Bool, inode: UInt)? {
  var status = stat()
  guard lstat(path, &status) == 0 else { return nil }
  return (status.st_mode & 0o7777, status.st_mode & S_IFMT == S_IFSOCK, UInt(status.st_ino))
}

/// The open descriptors of this process and what they are.
func openDescriptors() -> [Int32: String] {
  var found: [Int32: String] = [:]
  for name in Files.list("/proc/self/fd") {
    var target = [UInt8](repeating: 0, count: 256)
    let length = readlink("/proc/self/fd/\(name)", &target, target.count)
    // The listing's own descriptor is closed by now.
    guard let number = Int32(name), length > 0 else { continue }
    found[number] = String(decoding: target.prefix(length), as: UTF8.self)
  }
  return found
}
