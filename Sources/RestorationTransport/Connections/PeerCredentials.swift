// SPDX-License-Identifier: Apache-2.0

/// Who is at the other end of a connection, fixed by the kernel when the connection was made.
package struct PeerCredentials: Sendable {
  /// The process number; 0 for a process outside our namespace.
  package let pid: Int32
  /// The effective user; all 32 bits are in use.
  package let uid: UInt32
  package let gid: UInt32
  /// A hold on the process; nil if it had ended before it could be taken.
  package let process: ProcessHandle?

  /// Reads the credentials of a connected socket.
  static func read(from socket: Int32) throws(SystemCallError) -> PeerCredentials {
    let (pid, uid, gid) = try SystemCalls.peer(of: socket)
    let process: ProcessHandle?
    do throws(SystemCallError) {
      process = ProcessHandle(pid: pid, descriptor: try SystemCalls.peerProcess(of: socket))
    } catch {
      // A lack of descriptors or memory fails the connection: its process's end could never be noticed.
      if error.isExhaustion { throw error }
      // Apart from an old kernel, the process has ended and has been waited for already.
      process = error.number == SystemCallError.noProtocolOption ? openRechecked(pid: pid, socket: socket) : nil
    }
    return PeerCredentials(pid: pid, uid: uid, gid: gid, process: process)
  }

  /// The way of kernels before 6.5: by number, then a look whether it can still be the process that connected.
  ///
  /// The peer's end being open after the pidfd was taken means that the number had not become free before, unless
  /// another process has inherited that end; a process that started in between is told apart by its start time.
  package static func openRechecked(pid: Int32, socket: Int32) -> ProcessHandle? {
    let before = ProcessIdentity.current(of: pid)
    guard let before, let handle = ProcessHandle.open(pid: pid) else { return nil }
    guard handle.identity == before, !SystemCalls.isHungUp(socket) else { return nil }
    return handle
  }
}
