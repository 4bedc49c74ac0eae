// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A directory with a short path for one test, removed with its contents at the end.
final class SocketDirectory: Sendable {
  let path: String

  init() throws {
    var template = Array("/tmp/rt-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw RawPeer.Failure(call: "mkdtemp", number: errno) }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    removeTree(path)
  }

  func file(_ name: String) -> String { path + "/" + name }
}

/// The names in a directory but for the two that are always there.
func names(in path: String) -> [String] {
  guard let directory = opendir(path) else { return [] }
  defer { closedir(directory) }
  var found: [String] = []
  while let entry = readdir(directory) {
    let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    if name != ".", name != ".." { found.append(name) }
  }
  return found
}

private func removeTree(_ path: String) {
  chmod(path, 0o700)
  if remove(path) == 0 { return }
  for name in names(in: path) { removeTree(path + "/" + name) }
  remove(path)
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
  for name in names(in: "/proc/self/fd") {
    var target = [UInt8](repeating: 0, count: 256)
    let length = readlink("/proc/self/fd/\(name)", &target, target.count)
    // The listing's own descriptor is closed by now.
    guard let number = Int32(name), length > 0 else { continue }
    found[number] = String(decoding: target.prefix(length), as: UTF8.self)
  }
  return found
}
