// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Spawning
internal import Synchronization

/// A process of a test. It leads a process group, and is killed with it when the broker is stopped.
public final class TestedProcess: Sendable {
  /// Its number, also that of its group.
  public let pid: Int32
  private let name: String
  private let input: Int32
  private let keeper: Keeper?
  /// The status of `waitpid`; `nil` until the process was awaited, when its number may become another's.
  private let status = Mutex<Int32?>(nil)
  private let ended = Mutex<Result<Set<Int32>, any Error>>(.success([]))
  /// Held from a question to its answer; false after a missing answer, because a late one would be taken for the next.
  private let isAnswering = Mutex(true)

  /// - Parameters:
  ///   - command: the program, found by `PATH` unless it has a slash, and its arguments.
  ///   - log: a file for its output; `nil` for the test's output.
  ///   - keeper: ends it when this process is gone.
  init(_ command: [String], environment: [String: String], log: String?, keeper: Keeper?) throws {
    var pair: [Int32] = [-1, -1]
    let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, kind, 0, &pair) == 0 else { throw TestingError("socketpair: \(systemError(errno))") }
    defer { close(pair[1]) }
    let variables = environment.map { "\($0.key)=\($0.value)" }
    let child: Int32
    do throws(SpawnError) {
      child = try spawn(command, variables: variables, leadsSession: true) { actions in
        posix_spawn_file_actions_adddup2(&actions, pair[1], 0)
        guard let log else { return }
        posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
      }
    } catch {
      close(pair[0])
      throw TestingError("\(error)", number: error.number)
    }
    (pid, name, input, self.keeper) = (child, command.first ?? "", pair[0], keeper)
    keeper?.add(child)
  }

  deinit {
    kill()
    close(input)
  }

  /// Writes to its standard input. Throws a `TestingError` if it no longer reads.
  public func write(_ text: String) throws {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.send(input, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 || errno == EINTR else { throw TestingError("\(name) reads no input: \(systemError(errno))") }
      rest = rest.dropFirst(max(0, count))
    }
  }

  /// Writes a line to its standard input, and returns its answer there. Blocks the thread. After an error it can be
  /// asked nothing more.
  func ask(_ line: String, within seconds: Int) throws -> String {
    try isAnswering.withLock { isAnswering in
      guard isAnswering else { throw TestingError("\(name) can be asked nothing more; call restart()") }
      isAnswering = false
      var limit = timeval(tv_sec: seconds, tv_usec: 0)
      setsockopt(input, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
      try write(line + "\n")
      var (answer, byte): ([UInt8], UInt8) = ([], 0)
      while true {
        let count = recv(input, &byte, 1, 0)
        if count < 0, errno == EINTR { continue }
        if count == 0 { throw TestingError("\(name) has ended before it answered \"\(line)\"") }
        if count < 0 { throw TestingError("\(name) has not answered \"\(line)\" within \(seconds) seconds") }
        guard byte == UInt8(ascii: "\n") else {
          answer.append(byte)
          continue
        }
        isAnswering = true
        return String(decoding: answer, as: UTF8.self)
      }
    }
  }

  /// Kills its group and waits for the end of all processes, unless no file descriptor is left.
  public func kill() {
    status.withLock { status in
      guard status == nil else { return }
      Glibc.kill(-pid, SIGKILL)
      let group = Result { try ProcessEnd.wait(ofKilled: pid) }
      ended.withLock { $0 = group }
      keeper?.remove(pid)
      status = reap()
    }
  }

  /// The numbers of the killed processes of its group. Throws a `TestingError` if their end could not be awaited.
  var killed: Set<Int32> { get throws { try ended.withLock { $0 }.get() } }

  /// Stops it (SIGSTOP), and waits until it has stopped.
  public func freeze() {
    status.withLock { status in
      guard status == nil else { return }
      Glibc.kill(pid, SIGSTOP)
      var info = siginfo_t()
      while waitid(P_PID, id_t(pid), &info, WSTOPPED | WEXITED | WNOWAIT) < 0 && errno == EINTR {}
    }
  }

  /// Continues it (SIGCONT).
  public func thaw() { status.withLock { if $0 == nil { Glibc.kill(pid, SIGCONT) } } }

  /// Whether it has ended. It stays unawaited: its number stays that of its group.
  public var hasEnded: Bool {
    status.withLock { status in
      var info = siginfo_t()
      return status != nil
        || waitid(P_PID, id_t(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_signo == SIGCHLD
    }
  }

  /// The kind of its end; `nil` if it was not killed or awaited here.
  var ending: String? {
    status.withLock { $0 }.map { $0 & 0x7f == 0 ? "with status \($0 >> 8 & 0xff)" : "by signal \($0 & 0x7f)" }
  }

  /// Waits for its own end; the rest of its group stays.
  func finish() {
    shutdown(input, Int32(SHUT_RDWR))
    status.withLock { if $0 == nil { $0 = reap() } }
  }

  private func reap() -> Int32 {
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
    return status
  }
}

/// A shell that kills process groups and removes a directory after any end of its parent, which closes its input.
final class Keeper: Sendable {
  private let shell: TestedProcess
  private let groups = Mutex<Set<Int32>>([])

  private static let script = """
    trap '' HUP INT TERM
    while read -r line; do groups=$line; done
    for group in $groups; do kill -s KILL -- "-$group"; done
    for attempt in 1 2 3 4 5 6 7 8 9; do rm -rf -- "$0" && exit; done
    """

  init(removing directory: String, environment: [String: String]) throws {
    let command = ["/bin/sh", "-c", Self.script, directory]
    shell = try TestedProcess(command, environment: environment, log: "/dev/null", keeper: nil)
  }

  func add(_ group: Int32) { tell { $0.insert(group) } }

  /// Call before the group's number may become another's.
  func remove(_ group: Int32) { tell { $0.remove(group) } }

  func finish() { shell.finish() }

  private func tell(_ change: (inout Set<Int32>) -> Void) {
    groups.withLock { groups in
      change(&groups)
      // If the shell was killed, the test continues without it.
      try? shell.write(groups.map { "\($0)" }.joined(separator: " ") + "\n")
    }
  }
}

public struct TestingError: Error, CustomStringConvertible {
  public let description: String
  /// Of the system's error, if there is one.
  let number: Int32

  init(_ description: String, number: Int32 = 0) { (self.description, self.number) = (description, number) }
}

var ownEnvironment: [String: String] {
  var variables: [String: String] = [:]
  var next = environ
  while let entry = next.pointee {
    let parts = String(cString: entry).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    if parts.count == 2 { variables[String(parts[0])] = String(parts[1]) }
    next += 1
  }
  return variables
}

/// Empty if the file cannot be read.
func contents(of path: String) -> String {
  guard let file = fopen(path, "re") else { return "" }
  defer { fclose(file) }
  var (text, buffer): ([UInt8], [UInt8]) = ([], Array(repeating: 0, count: 1 << 16))
  while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { text += buffer[..<count] }
  return String(decoding: text, as: UTF8.self)
}

func systemError(_ number: Int32) -> String { String(cString: strerror(number)) }
