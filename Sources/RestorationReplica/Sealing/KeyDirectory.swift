// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RestorationArchive
internal import RestorationTransport

/// A directory with its user's keys. Each key is a file named by the key's ID; the file `current` contains the ID of
/// the sealing key. Other files are ignored.
///
/// Only its user may have access to the directory and the files; links are not followed.
package struct KeyDirectory: Sendable {
  package let path: String
  private static let current = "current"

  package init(_ path: String) { self.path = path }

  /// The default directory; `nil` if no variable tells where it is.
  ///
  /// - Parameter variable: returns the value of a variable of the environment.
  package static func usual(_ variable: (String) -> String?) -> String? { Host.keyDirectory(variable) }

  // MARK: Reading

  package var exists: Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  /// Returns all keys, the sealing key first.
  package func read() throws(ReplicaKeyError) -> [ReplicaKey] {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else {
      guard errno != ENOENT else {
        throw ReplicaKeyError("there is no key: \(path) does not exist; copy it from another host, or make a first key")
      }
      throw failure(path, "cannot be opened", "put a directory there, not a link")
    }
    defer { close(descriptor) }
    try check(descriptor, path, S_IFDIR, "700")
    let current = try currentID(descriptor)
    var keys: [ReplicaKey] = []
    for id in try names().compactMap({ ReplicaKeyID($0) }) { keys.append(try key(id, descriptor)) }
    guard let first = keys.firstIndex(where: { $0.id == current }) else {
      throw ReplicaKeyError(
        "\(file(Self.current)) names the key \(current), which is not there; copy \(file(current.description)) from "
          + "another host, or name another key"
      )
    }
    keys.swapAt(0, first)
    return keys
  }

  private func currentID(_ directory: Int32) throws(ReplicaKeyError) -> ReplicaKeyID {
    var text = try contents(Self.current, directory, "write the name of a key into it, or make a first key")
    if text.last == UInt8(ascii: "\n") { text.removeLast() }
    guard let id = ReplicaKeyID(String(decoding: text, as: UTF8.self)) else {
      throw ReplicaKeyError("\(file(Self.current)) is not the name of a key; write 16 hexadecimal digits into it")
    }
    return id
  }

  private func key(_ id: ReplicaKeyID, _ directory: Int32) throws(ReplicaKeyError) -> ReplicaKey {
    let remedy = "copy it again from another host, or remove it if it is not needed any longer"
    var text = try contents(id.description, directory, remedy)
    let sodium = try Sodium()
    defer { sodium.wipe(&text) }
    guard let key = try ReplicaKey(digits: text.last == UInt8(ascii: "\n") ? text.dropLast() : text[...]) else {
      throw ReplicaKeyError("\(file(id.description)) is not a key: 64 hexadecimal digits; \(remedy)")
    }
    guard key.id == id else { throw ReplicaKeyError("\(file(id.description)) has the key \(key.id); \(remedy)") }
    return key
  }

  private func contents(
    _ name: String,
    _ directory: Int32,
    _ remedy: String
  ) throws(ReplicaKeyError) -> [UInt8] {
    // Does not wait for a writer if it is a pipe.
    let descriptor = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw failure(file(name), "cannot be opened", errno == ELOOP ? "put the file itself there, not a link" : remedy)
    }
    defer { close(descriptor) }
    try check(descriptor, file(name), S_IFREG, "600")
    // One byte more than a key and its line end.
    var bytes = [UInt8](repeating: 0, count: 2 * Sodium.keyBytes + 2)
    let count = Glibc.read(descriptor, &bytes, bytes.count)
    guard count >= 0 else { throw failure(file(name), "cannot be read", remedy) }
    bytes.removeLast(bytes.count - count)
    return bytes
  }

  private func check(
    _ descriptor: Int32,
    _ path: String,
    _ kind: mode_t,
    _ mode: String
  ) throws(ReplicaKeyError) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure(path, "cannot be read", "check its file system") }
    guard status.st_mode & S_IFMT == kind else {
      throw ReplicaKeyError("\(path) is not a regular file; put the file itself there")
    }
    guard status.st_uid == geteuid() else {
      throw ReplicaKeyError("\(path) belongs to user \(status.st_uid), not to user \(geteuid()); copy it as your own")
    }
    guard status.st_mode & 0o077 == 0 else {
      throw ReplicaKeyError("others have a right to \(path); run: chmod \(mode) '\(path)'")
    }
  }

  private func names() throws(ReplicaKeyError) -> [String] {
    guard let stream = opendir(path) else { throw failure(path, "cannot be listed", "check its file system") }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      names.append(
        withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      )
    }
    return names
  }

  private func file(_ name: String) -> String { "\(path)/\(name)" }

  /// Reads `errno`.
  private func failure(_ path: String, _ what: String, _ remedy: String) -> ReplicaKeyError {
    ReplicaKeyError("\(path) \(what): \(String(cString: strerror(errno))); \(remedy)")
  }

  // MARK: Writing

  /// Makes a new sealing key, and the directory if it does not exist. Former keys stay.
  ///
  /// Sealed data can never be opened without its key. The user must keep the key and copy it to other hosts.
  package func makeKey() throws(ReplicaKeyError) -> ReplicaKeyID {
    do throws(TransportError) {
      _ = try PrivateDirectory(preparing: path, use: .dedicated)
    } catch {
      throw ReplicaKeyError(error.message)
    }
    let key = try ReplicaKey()
    // The key's file first: after any interruption `current` names an existing key.
    try key.withDigits { digits throws(ReplicaKeyError) in try store(digits, as: key.id.description) }
    try store(Array("\(key.id)\n".utf8), as: Self.current)
    return key.id
  }

  /// Writes a file atomically, and returns when it is durable.
  private func store(_ bytes: [UInt8], as name: String) throws(ReplicaKeyError) {
    let remedy = "make room or fix the file system, and try again"
    let draft = file("\(name).new")
    unlink(draft)
    let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure(draft, "cannot be made", remedy) }
    // The umask may have cleared the owner's own bits.
    let isWritten =
      fchmod(descriptor, 0o600) == 0 && write(descriptor, bytes, bytes.count) == bytes.count && fsync(descriptor) == 0
    close(descriptor)
    guard isWritten, rename(draft, file(name)) == 0 else { throw failure(draft, "cannot be written", remedy) }
    let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    defer { close(directory) }
    guard directory >= 0, fsync(directory) == 0 else { throw failure(path, "cannot be synced", remedy) }
  }
}
