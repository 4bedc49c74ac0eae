// SPDX-License-Identifier: Apache-2.0

internal import CLinux
internal import Dispatch
internal import Glibc

/// Waits for the end of processes by their pidfds.
enum ProcessEnd {
  /// Calls back once after its end, past or future. Throws a `TestingError` if no descriptor is left.
  static func watch(_ pid: Int32, _ callback: @escaping @Sendable () -> Void) throws {
    let process = clinux_pidfd_open(pid)
    guard process >= 0 else { throw failure(pid) }
    let source = DispatchSource.makeReadSource(fileDescriptor: process, queue: DispatchQueue(label: "process"))
    source.setEventHandler {
      source.cancel()
      callback()
    }
    source.setCancelHandler { close(process) }
    source.activate()
  }

  private static func failure(_ pid: Int32) -> TestingError {
    TestingError("pidfd_open of process \(pid): \(systemError(errno))")
  }

  /// Waits until all processes of a killed group have ended, and returns their numbers. Call it before awaiting the
  /// leader: the number stays the group's, and no process joins. Throws a `TestingError` if no descriptor is left.
  static func wait(ofKilled group: Int32) throws -> Set<Int32> {
    guard let directory = opendir("/proc") else { throw TestingError("/proc: \(systemError(errno))") }
    defer { closedir(directory) }
    var ended: Set<Int32> = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      guard let pid = Int32(name), getpgid(pid) == group else { continue }
      let process = clinux_pidfd_open(pid)
      guard process >= 0 else {
        // Any other error means that it has just ended.
        guard ![EMFILE, ENFILE, ENOMEM].contains(errno) else { throw failure(pid) }
        continue
      }
      defer { close(process) }
      // Its number may be another's by now. A process of another user may survive.
      guard getpgid(pid) == group, kill(pid, SIGKILL) == 0 else { continue }
      var end = pollfd(fd: process, events: Int16(POLLIN), revents: 0)
      while poll(&end, 1, -1) < 0 && errno == EINTR {}
      ended.insert(pid)
    }
    return ended
  }
}

/// Runs blocking work on a thread outside of Swift's pool.
func onOwnThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
  try await withCheckedThrowingContinuation { done in
    DispatchQueue(label: "blocking").async { done.resume(with: Result { try work() }) }
  }
}
