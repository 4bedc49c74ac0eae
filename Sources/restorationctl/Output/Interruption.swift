// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc

/// Ends a command that runs until it is interrupted. Each line is complete before the next event is read, so nothing is
/// left to finish.
enum Interruption {
  /// SIGINT and SIGTERM end the tool with status 0. If the reader of its output ends, the tool ends without a message.
  static func endsTheTool() {
    for number in [SIGINT, SIGTERM] { signal(number) { _ in _exit(0) } }
    // Otherwise only the next event would reveal that `head` has ended.
    DetachedThread.start {
      var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
      while poll(&output, 1, -1) < 0, errno == EINTR {}
      if output.revents != 0 { _exit(ExitStatus.outputFailed.rawValue) }
    }
  }
}
