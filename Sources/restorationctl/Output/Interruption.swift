// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc

/// Ends a command that runs until it is interrupted. Each line is written completely before the next event is read, so
/// there is nothing to finish at the end.
enum Interruption {
  /// SIGINT and SIGTERM end the tool with status 0; when the reader of its output has gone, it ends silently.
  static func endsTheTool() {
    for number in [SIGINT, SIGTERM] { signal(number) { _ in _exit(0) } }
    // Otherwise only the next event would show that `head` has gone.
    DetachedThread.start {
      var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
      while poll(&output, 1, -1) < 0, errno == EINTR {}
      if output.revents != 0 { _exit(ExitStatus.outputFailed.rawValue) }
    }
  }
}
