// SPDX-License-Identifier: Apache-2.0

/// Why a socket, its directory or its lock could not be had.
package struct TransportError: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Code: Hashable, Sendable {
    /// No path was given and none can be derived: XDG_RUNTIME_DIR is missing.
    case noRuntimeDirectory
    /// The path is empty, contains a NUL, or has more bytes than a Unix socket's address.
    case invalidPath
    /// The directory is a symbolic link or not a directory.
    case notADirectory
    /// The directory, lock or socket belongs to another user.
    case foreignOwner
    /// Others than its owner may write to the directory.
    case writableByOthers
    /// Another broker holds the lock; its process where the lock file names one.
    case alreadyRunning(pid: Int32?)
    /// The path exists and is not a socket, or the inherited descriptor is not a listening Unix socket.
    case notASocket
    /// Nothing exists at the path: no broker was started.
    case noSocket
    /// The path is a socket nobody listens on: the broker has died or is just restarting.
    case refused
    /// The file system does not let this user connect.
    case notPermitted
    /// The broker's queue of connections stayed full.
    case busy
    /// A system call failed with this `errno`.
    case systemCall(number: Int32)
    /// A file of ours does not hold what we write into it.
    case damaged
    /// The connection was closed while it was being set up.
    case closed
  }

  package let code: Code
  /// For logs and for people: what happened and what to do next.
  package let message: String

  package var description: String { message }

  package init(_ code: Code, _ message: String) { (self.code, self.message) = (code, message) }

  /// A failed call that no other code describes better.
  init(_ error: SystemCallError, doing what: String) {
    self.init(.systemCall(number: error.number), "\(what): \(error.call): \(error.reason)")
  }

  /// Makes a system call; if it fails, that is reported by what it was made for.
  static func reporting<Value: ~Copyable>(
    _ what: @autoclosure () -> String,
    calling call: @autoclosure () throws(SystemCallError) -> Value
  ) throws(TransportError) -> Value {
    try reporting(what(), call)
  }

  /// The same for several calls.
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
