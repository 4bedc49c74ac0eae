// SPDX-License-Identifier: Apache-2.0

/// An exclusive lock on a file, held as long as this object lives; it decides between two brokers.
///
/// The kernel gives the lock back when the process ends, however it ends. The file itself stays: removing it would let
/// two processes each lock a file of that name.
package final class LockFile: Sendable {
  package let path: String
  private let descriptor: Descriptor

  /// Takes the lock without waiting and writes this process's number into the file.
  ///
  /// `subject` is what the lock stands for and `remedy` what to do when it is taken, both in messages. Throws
  /// `alreadyRunning` while another process holds it, `foreignOwner` when the file is somebody else's.
  package init(path: String, subject: String, remedy: String = "stop it first") throws(TransportError) {
    self.path = path
    var descriptor = try Self.open(path)
    // Somebody may have removed the file between our open and our lock, and a third process locked a new one.
    while try !Self.lock(descriptor.number, path, subject, remedy) { descriptor = try Self.open(path) }
    self.descriptor = descriptor
  }

  deinit {
    // Closing alone would leave the lock with a child process that was forked and has not called exec yet.
    SystemCalls.unlock(descriptor.number)
  }

  private static func open(_ path: String) throws(TransportError) -> Descriptor {
    try TransportError.reporting("cannot open the lock file \(path)", calling: try SystemCalls.openOrCreate(path))
  }

  /// Locks the open file; false when it is no longer the file at `path`.
  private static func lock(
    _ number: Int32,
    _ path: String,
    _ subject: String,
    _ remedy: String
  ) throws(TransportError) -> Bool {
    let purpose = "cannot lock \(path)"
    let status = try TransportError.reporting(purpose, calling: try SystemCalls.status(of: number))
    guard status.kind == .regular, status.owner == SystemCalls.userID else {
      throw TransportError(.foreignOwner, "\(path) is not a file of yours; remove it or use another directory")
    }
    guard try TransportError.reporting(purpose, { () throws(SystemCallError) in try SystemCalls.tryLock(number) })
    else {
      let pid = readPID(number)
      let holder = pid.map { "process \($0)" } ?? "another process"
      throw TransportError(.alreadyRunning(pid: pid), "a broker already serves \(subject) (\(holder)); \(remedy)")
    }
    guard let current = try? SystemCalls.status(of: path), current.isSameFile(as: status) else { return false }
    try TransportError.reporting(purpose) { () throws(SystemCallError) in
      // The umask may have taken the owner's own bits.
      try SystemCalls.changeMode(of: number, to: 0o600)
      try SystemCalls.overwrite(number, with: Array("\(SystemCalls.processID)\n".utf8))
    }
    return true
  }

  /// The holder's number; nil when it has not written one (yet).
  private static func readPID(_ descriptor: Int32) -> Int32? {
    guard let bytes = try? SystemCalls.read(descriptor, count: 16), bytes.last == UInt8(ascii: "\n") else { return nil }
    return Int32(String(decoding: bytes.dropLast(), as: UTF8.self))
  }
}
