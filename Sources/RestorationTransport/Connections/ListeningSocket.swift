// SPDX-License-Identifier: Apache-2.0

/// A listening Unix socket. Connections wait in its queue until a `UnixListener` accepts them.
package struct ListeningSocket: ~Copyable, Sendable {
  /// The socket's name in the file system; `nil` for an inherited socket, whose name belongs to its creator.
  package let name: SocketName?
  private let descriptor: Descriptor

  /// Prepares the directory, takes the lock, replaces a stale socket, binds and listens.
  ///
  /// - Parameters:
  ///   - backlog: how many connections may wait to be accepted.
  ///   - mode: of the socket's name; by default only this user may connect.
  package init(binding path: SocketPath, backlog: Int, mode: UInt32 = 0o600) throws(TransportError) {
    _ = try PrivateDirectory(preparing: path.directory, use: path.directoryUse)
    let remedy = "stop it first or give another --socket PATH"
    let lock = try LockFile(path: path.lockPath, subject: "socket \(path.path)", remedy: remedy)
    try SocketName.removeStale(path.path)
    let purpose = "cannot listen on \(path.path)"
    let descriptor = try TransportError.reporting(purpose, calling: try SystemCalls.unixSocket())
    let number = descriptor.number
    let file = try TransportError.reporting(purpose) { () throws(SystemCallError) in
      // The name gets the socket's mode, less the umask: it is never more open than that.
      try SystemCalls.changeMode(of: number, to: mode)
      try SystemCalls.bind(number, to: path.path)
      let file = try SystemCalls.status(of: path.path)
      if file.mode != mode { try SystemCalls.changeMode(of: path.path, to: mode) }
      SystemCalls.refuseDescriptors(number)
      try SystemCalls.listen(number, backlog: Int32(clamping: backlog))
      return file
    }
    self.name = SocketName(path: path, lock: lock, file: file)
    self.descriptor = descriptor
  }

  /// Takes over a listening descriptor from socket activation.
  ///
  /// Throws `notASocket` if it is anything else; the descriptor then stays the caller's.
  package init(inheriting number: Int32) throws(TransportError) {
    let isListening = try TransportError.reporting("cannot use inherited descriptor \(number)") {
      () throws(SystemCallError) in
      let isListening = try SystemCalls.isUnixStream(number, listening: true)
      if isListening {
        try SystemCalls.setCloseOnExec(number)
        SystemCalls.refuseDescriptors(number)
      }
      return isListening
    }
    guard isListening else {
      throw TransportError(.notASocket, "descriptor \(number) is not a listening Unix socket; check the socket unit")
    }
    self.name = nil
    self.descriptor = Descriptor(number)
  }

  package var number: Int32 { descriptor.number }

  /// Releases the descriptor to the caller, who must close it.
  consuming func releaseDescriptor() -> Int32 { descriptor.release() }
}

/// The name of a socket that this process has bound, with the lock that it holds as long as this object lives.
///
/// Invariants: the name is changed only while the lock is held. Before the bind, only a socket of this user is
/// unlinked; after it, only the socket bound then.
package final class SocketName: Sendable {
  package let path: SocketPath
  private let lock: LockFile
  private let file: FileStatus

  fileprivate init(path: SocketPath, lock: LockFile, file: FileStatus) {
    (self.path, self.lock, self.file) = (path, lock, file)
  }

  /// Removes the name if it is still our socket's, so that new clients see that no broker runs.
  package func unlink() {
    guard let current = try? SystemCalls.status(of: path.path), current.isSameFile(as: file) else { return }
    // The name may be gone already.
    try? SystemCalls.unlink(path.path)
  }

  fileprivate static func removeStale(_ path: String) throws(TransportError) {
    let purpose = "cannot replace \(path)"
    let status = try TransportError.reporting(purpose) { () throws(SystemCallError) -> FileStatus? in
      do throws(SystemCallError) {
        return try SystemCalls.status(of: path)
      } catch {
        if error.number == SystemCallError.notFound { return nil }
        throw error
      }
    }
    guard let status else { return }
    guard status.kind == .socket, status.owner == SystemCalls.userID else {
      throw TransportError(.notASocket, "\(path) exists and is not your socket; remove it or choose another path")
    }
    try TransportError.reporting(purpose, calling: try SystemCalls.unlink(path))
  }
}
