// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc

/// How a command ends that goes on until somebody has seen enough. Each line is written whole before the next event is
/// taken, so there is nothing left to do at the end.
enum Interruption {
  /// SIGINT and SIGTERM end the tool with status 0; when nobody reads its output any more it ends without a word.
  static func endsTheTool() {
    for number in [SIGINT, SIGTERM] { signal(number) { _ in _exit(0) } }
    watchOutput()
  }

  /// Without this it would wait for one more event to find out that `head` has gone.
  private static func watchOutput() {
    var thread = pthread_t()
    let code = pthread_create(
      &thread,
      nil,
      { _ in
        var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
        while poll(&output, 1, -1) < 0, errno == EINTR {}
        if output.revents != 0 { _exit(ExitStatus.outputFailed.rawValue) }
        return nil
      },
      nil
    )
    if code == 0 { pthread_detach(thread) }
  }
}
