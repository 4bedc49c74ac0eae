// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A question to the user at the desktop, by a notification with two buttons.
struct DesktopQuestion {
  enum Answer: Sendable {
    case yes, no
    /// There is no desktop, or it cannot show such notifications.
    case impossible
  }

  /// A user who has not answered by then counts as absent.
  private static let milliseconds: Int32 = 300_000

  private let arguments: [String]

  static func restore(_ application: String) -> DesktopQuestion {
    DesktopQuestion(arguments: [
      "notify-send", "--wait", "--app-name=restorationd", "--expire-time=\(milliseconds)",
      "--action=yes=Restore", "--action=no=Not now",
      "Restore \(application)?", "It was open when the session ended.",
    ])
  }

  /// Asks on its own thread, because other work must not wait for a person.
  func answer() async -> Answer {
    await withCheckedContinuation { continuation in
      let isStarted = DetachedThread.start { continuation.resume(returning: ask()) }
      if !isStarted { continuation.resume(returning: .impossible) }
    }
  }

  private func ask() -> Answer {
    var pipe: [Int32] = [-1, -1]
    guard Glibc.pipe(&pipe) == 0 else { return .impossible }
    for end in pipe { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    let process = spawn(output: pipe[1])
    close(pipe[1])
    defer { close(pipe[0]) }
    guard let process else { return .impossible }
    let (answer, isLate) = read(pipe[0])
    if isLate { kill(process, SIGTERM) }
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0, errno == EINTR {}
    // It prints nothing if the notification was closed.
    return answer == "yes" ? .yes : status == 0 || isLate ? .no : .impossible
  }

  private func spawn(output: Int32) -> pid_t? {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    // Its messages are dropped: the answer tells what to do.
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    var words = arguments.map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var process: pid_t = 0
    return posix_spawnp(&process, arguments[0], &actions, nil, &words, environ) == 0 ? process : nil
  }

  /// The first line, within the time limit.
  private func read(_ descriptor: Int32) -> (text: String, isLate: Bool) {
    var text: [UInt8] = []
    while text.count < 64 {
      var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let ready = poll(&entry, 1, Self.milliseconds)
      if ready < 0, errno == EINTR { continue }
      guard ready > 0 else { return ("", true) }
      var byte: UInt8 = 0
      guard Glibc.read(descriptor, &byte, 1) == 1, byte != UInt8(ascii: "\n") else { break }
      text.append(byte)
    }
    return (String(decoding: text, as: UTF8.self), false)
  }
}
