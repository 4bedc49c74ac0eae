// SPDX-License-Identifier: Apache-2.0

/// An exclusive lock on a file, held while this object lives; it prevents a second broker.
///
/// The kernel releases the lock at any end of the process. The file stays: if it were removed, two processes could each
/// lock a file of that name.
package final class LockFile: Sendable {
  package let path: String
  private let descriptor: Descriptor

  /// Takes the lock without waiting and writes this process's number into the file.
  ///
  /// In messages, `subject` is the thing that the lock protects, and `remedy` is the next step if it is taken. Throws
  /// `alreadyRunning` if another process holds it, and `foreignOwner` if the file belongs to another user.
  package init(path: String, subject: String, remedy: String = "stop it first") throws(TransportError) {
    self.path = path
    var descriptor = try Self.open(path)
    // Between our open and our lock the file may have been removed, and another process may have locked a new one.
    while try !Self.lock(descriptor.number, path, subject, remedy) { descriptor = try Self.open(path) }
    self.descriptor = descriptor
  }

  deinit {
    // Closing alone would leave the lock to a forked child that has not called exec yet.
    SystemCalls.unlock(descriptor.number)
  }

  private static func open(_ path: String) throws(TransportError) -> Descriptor {
    try TransportError.reporting("cannot open the lock file \(path)", calling: try SystemCalls.openOrCreate(path))
  }

  /// Locks the open file; false if it is no longer the file at `path`.
  private static func lock(
    _ number: Int32,
    _ path: String,
    _ subject: String,
    _ remedy: String
  ) throws(TransportError) -> Bool {
    let purpose = "cannot lock \(path)"
    let status = try TransportError.reporting(purpose, calling: try SystemCalls.status(of: number))
    guard status.kind == .regular, status.owner == SystemCalls.userID else {
      throw TransportError(
        .foreignOwner,
        "\(path) is not a regular file of this user; remove it or use another directory"
      )
    }
    guard try TransportError.reporting(purpose, { () throws(SystemCallError) in try SystemCalls.tryLock(number) })
    else {
      let pid = readPID(number)
      let holder = pid.map { "process \($0)" } ?? "another process"
      throw TransportError(.alreadyRunning(pid: pid), "a broker already serves \(subject) (\(holder)); \(remedy)")
    }
    guard let current = try? SystemCalls.status(of: path), current.isSameFile(as: status) else { return false }
    try TransportError.reporting(purpose) { () throws(SystemCallError) in
      // The umask may have cleared the owner's own bits.
      try SystemCalls.changeMode(of: number, to: 0o600)
      try SystemCalls.overwrite(number, with: Array("\(SystemCalls.processID)\n".utf8))
    }
    return true
  }

  /// The holder's number; `nil` if it has not written one yet.
  private static func readPID(_ descriptor: Int32) -> Int32? {
    guard let bytes = try? SystemCalls.read(descriptor, count: 16), bytes.last == UInt8(ascii: "\n") else { return nil }
    return Int32(String(decoding: bytes.dropLast(), as: UTF8.self))
  }
}
