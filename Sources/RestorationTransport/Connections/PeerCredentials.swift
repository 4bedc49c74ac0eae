// SPDX-License-Identifier: Apache-2.0

/// The process at the other end of a connection, fixed by the kernel when the connection was made.
package struct PeerCredentials: Sendable {
  /// 0 for a process outside our namespace.
  package let pid: Int32
  /// The effective user.
  package let uid: UInt32
  package let gid: UInt32
  /// `nil` if the process had ended before its handle could be opened.
  package let process: ProcessHandle?

  package init(pid: Int32, uid: UInt32, gid: UInt32, process: ProcessHandle?) {
    (self.pid, self.uid, self.gid, self.process) = (pid, uid, gid, process)
  }

  /// The process that the connection counts for. One that had ended is identified by its number.
  var countedProcess: ProcessIdentity {
    process?.identity ?? ProcessIdentity(pid: pid, startTicks: 0, bootID: "")
  }

  static func read(from socket: Int32) throws(SystemCallError) -> PeerCredentials {
    let (pid, uid, gid) = try SystemCalls.peer(of: socket)
    let process: ProcessHandle?
    do throws(SystemCallError) {
      process = ProcessHandle(pid: pid, descriptor: try SystemCalls.peerProcess(of: socket))
    } catch {
      // Without descriptors or memory, the connection must fail: the end of its process would not be noticed.
      if error.isExhaustion { throw error }
      // Unless the kernel is old, the process has ended and has been waited for.
      process = error.number == SystemCallError.noProtocolOption ? openRechecked(pid: pid, socket: socket) : nil
    }
    return PeerCredentials(pid: pid, uid: uid, gid: gid, process: process)
  }

  /// For kernels before 6.5: opens the process by its number, then checks that it can still be the one that connected.
  ///
  /// If the peer's end is open after the pidfd was opened, the number had not been reused, unless another process has
  /// inherited that end. A process that started in between has another start time.
  package static func openRechecked(pid: Int32, socket: Int32) -> ProcessHandle? {
    let before = ProcessIdentity.current(of: pid)
    guard let before, let handle = ProcessHandle.open(pid: pid) else { return nil }
    guard handle.identity == before, !SystemCalls.isHungUp(socket) else { return nil }
    return handle
  }
}
