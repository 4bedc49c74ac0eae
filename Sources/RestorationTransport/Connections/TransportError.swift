// SPDX-License-Identifier: Apache-2.0

/// Why a socket, its directory, its lock or another file of ours cannot be used.
package struct TransportError: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Code: Hashable, Sendable {
    /// No path was given, and XDG_RUNTIME_DIR is not set.
    case noRuntimeDirectory
    /// The path is empty, contains a NUL, or is too long for a Unix socket's address.
    case invalidPath
    /// The directory is a symbolic link or not a directory.
    case notADirectory
    /// The directory, lock or socket belongs to another user.
    case foreignOwner
    /// Other users may write to the directory.
    case writableByOthers
    /// Another broker holds the lock; `pid` is `nil` if the lock file does not name it.
    case alreadyRunning(pid: Int32?)
    /// The path exists and is not a socket, or the inherited descriptor is not a listening Unix socket.
    case notASocket
    /// Nothing exists at the path: no broker was started.
    case noSocket
    /// No process listens on the socket: the broker has ended or is restarting.
    case refused
    /// The file system does not let this user connect.
    case notPermitted
    /// The broker's queue of connections is full.
    case busy
    /// A system call failed; `number` is its `errno`.
    case systemCall(number: Int32)
    /// A file of ours has invalid contents.
    case damaged
    /// The connection was closed during its setup.
    case closed
  }

  package let code: Code
  /// The event and the next step, for people.
  package let message: String

  package var description: String { message }

  package init(_ code: Code, _ message: String) { (self.code, self.message) = (code, message) }

  /// A failed system call without a case of its own.
  init(_ error: SystemCallError, doing what: String) {
    self.init(.systemCall(number: error.number), "\(what): \(error.call): \(error.reason)")
  }

  /// Makes a system call, and describes a failure by the call's purpose.
  static func reporting<Value: ~Copyable>(
    _ what: @autoclosure () -> String,
    calling call: @autoclosure () throws(SystemCallError) -> Value
  ) throws(TransportError) -> Value {
    try reporting(what(), call)
  }

  static func reporting<Value: ~Copyable>(
    _ what: @autoclosure () -> String,
    _ calls: () throws(SystemCallError) -> Value
  ) throws(TransportError) -> Value {
    do throws(SystemCallError) {
      return try calls()
    } catch {
      throw TransportError(error, doing: what())
    }
  }
}
