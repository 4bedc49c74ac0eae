// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// A child process that lives until it is killed, or its input closes with this process.
final class WaitingChild: Sendable {
  let pid: Int32
  private let input: Mutex<Int32>

  init(_ program: String = "/bin/cat", _ words: [String] = ["cat"]) throws {
    var ends: [Int32] = [-1, -1]
    // Closed on exec from the first moment on: a process that another test starts would keep the input open.
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw RawPeer.Failure(call: "socketpair", number: errno) }
    input = Mutex(ends[1])
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[0], 0)
    // A name with the characters that make reading /proc/PID/stat hard is left to the parser's own test.
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var pid: Int32 = 0
    let result = posix_spawn(&pid, program, &actions, nil, &arguments, nil)
    close(ends[0])
    guard result == 0 else { throw RawPeer.Failure(call: "posix_spawn", number: result) }
    self.pid = pid
  }

  deinit {
    end()
    reap()
    closeInput()
  }

  /// Ends its standard input, which has it end.
  func closeInput() {
    input.withLock { input in
      if input >= 0 { close(input) }
      input = -1
    }
  }

  /// Kills it; it stays a zombie until `reap`.
  func end() { kill(pid, SIGKILL) }

  /// Waits for its end and frees its number. More than once is harmless.
  func reap() {
    var status: Int32 = 0
    waitpid(pid, &status, 0)
  }
}
