// SPDX-License-Identifier: Apache-2.0

internal import CLinux
internal import Glibc
internal import Spawning

/// A command that prints its user's keys: 64 hexadecimal digits a line, the sealing key first.
///
/// It gets this process's environment and error output, and no input.
package struct KeyCommand: Sendable {
  private let words: [String]
  private let limit: Duration
  private static let outputBytesMax = 4_096

  /// - Parameters:
  ///   - words: the program, found by `PATH` unless it has a slash, and its arguments.
  ///   - limit: its time; then it is killed together with the processes it has started.
  package init(_ words: [String], limit: Duration = .seconds(10)) { (self.words, self.limit) = (words, limit) }

  package func read() throws(ReplicaKeyError) -> [ReplicaKey] {
    let sodium = try Sodium()
    var output: [UInt8] = []
    // Never reallocated, so that no copy is left in memory.
    output.reserveCapacity(Self.outputBytesMax + 1)
    defer { sodium.wipe(&output) }
    let status = try run(&output, sodium)
    guard status == 0 else {
      let end = status & 0x7f == 0 ? "status \(status >> 8)" : "signal \(status & 0x7f)"
      throw failure("ended with \(end); see what it has written to the log")
    }
    if output.last == UInt8(ascii: "\n") { output.removeLast() }
    var keys: [ReplicaKey] = []
    for (index, line) in output.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
      guard let key = try ReplicaKey(digits: line) else {
        throw failure("does not print a key in line \(index + 1); it has to be 64 hexadecimal digits, and nothing else")
      }
      keys.append(key)
    }
    return keys
  }

  /// Returns its wait status.
  private func run(_ output: inout [UInt8], _ sodium: Sodium) throws(ReplicaKeyError) -> Int32 {
    let deadline = ContinuousClock.now + limit
    let (child, descriptor) = try start()
    defer { close(descriptor) }
    let process = clinux_pidfd_open(child)
    defer { if process >= 0 { close(process) } }
    let fault: String?
    if !Self.takeOutput(descriptor, &output, until: deadline, sodium) {
      fault = "has not ended after \(limit)"
    } else if output.count > Self.outputBytesMax {
      fault = "prints more than \(Self.outputBytesMax) bytes"
    } else {
      fault = Self.isReady(process, until: deadline) ? nil : "has not ended after \(limit)"
    }
    // Kills its process group. A process that has ended retains its status.
    kill(-child, SIGKILL)
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    if let fault { throw failure("\(fault) and was killed; correct it, or name another command") }
    return status
  }

  /// Returns its number and its output.
  private func start() throws(ReplicaKeyError) -> (child: Int32, output: Int32) {
    var pair: [Int32] = [-1, -1]
    let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, kind, 0, &pair) == 0 else {
      throw failure("cannot be started: \(String(cString: strerror(errno))); try again")
    }
    defer { close(pair[1]) }
    do throws(SpawnError) {
      let child = try spawn(words, variables: nil, leadsSession: true) { actions in
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, pair[1], STDOUT_FILENO)
      }
      return (child, pair[0])
    } catch {
      close(pair[0])
      throw failure("cannot be started: \(String(cString: strerror(error.number))); name another command")
    }
  }

  /// Reads its output to the end or to the limit; false after the deadline.
  private static func takeOutput(
    _ descriptor: Int32,
    _ output: inout [UInt8],
    until deadline: ContinuousClock.Instant,
    _ sodium: Sodium
  ) -> Bool {
    var buffer = [UInt8](repeating: 0, count: outputBytesMax + 1)
    defer { sodium.wipe(&buffer) }
    while output.count <= outputBytesMax {
      guard isReady(descriptor, until: deadline) else { return false }
      let count = Glibc.read(descriptor, &buffer, buffer.count - output.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      output += buffer[..<count]
    }
    return true
  }

  /// Waits until the descriptor is readable, or for a pidfd until the process has ended; false after the deadline.
  private static func isReady(_ descriptor: Int32, until deadline: ContinuousClock.Instant) -> Bool {
    while true {
      let left = ContinuousClock.now.duration(to: deadline) / .milliseconds(1)
      var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let count = poll(&entry, 1, Int32(max(0, left.rounded(.up))))
      if count >= 0 || errno != EINTR { return count > 0 }
    }
  }

  /// Names only the program, because its arguments may be secret.
  private func failure(_ what: String) -> ReplicaKeyError {
    ReplicaKeyError("the command for keys, \(words.first ?? "''"), \(what)")
  }
}
