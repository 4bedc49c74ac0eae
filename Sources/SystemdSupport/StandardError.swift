// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Standard error as the target of a log. A file takes lines at once; a pager, a container's stopped log or a terminal
/// after Ctrl-S may not be read.
final class StandardError: TextOutputStream, Sendable {
  /// `nil` if lines are written at once.
  private let queue: LogQueue<String>?

  init() {
    queue = Self.isFile ? nil : LogQueue(thread: "log", write: Self.write) { text, _ in text + "\n" }
  }

  /// - Parameter lines: whole lines.
  func write(_ lines: String) {
    if let queue { queue.append(lines) } else { Self.write(lines) }
  }

  /// Waits until everything is written, within a time limit.
  func flush() { queue?.flush() }

  private static var isFile: Bool {
    var status = stat()
    return fstat(STDERR_FILENO, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
  }

  static func write(_ lines: String) {
    var rest = Array(lines.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if count < 0, errno == EAGAIN {
        // Another process that shares the terminal or pipe has made it non-blocking.
        var entry = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
        poll(&entry, 1, -1)
      } else if count == 0 || errno != EINTR {
        return
      }
    }
  }
}
