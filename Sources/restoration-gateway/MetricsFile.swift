// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Logging
internal import NIOCore
internal import NIOPosix

/// A metrics file for node_exporter, replaced atomically every 15 seconds.
final class MetricsFile: Sendable {
  private static let period = TimeAmount.seconds(15)

  private let path: String
  private let logger: Logger
  /// A separate thread, because the file's disk may hang.
  private let thread = NIOThreadPool(numberOfThreads: 1)

  init(_ path: String, _ logger: Logger) {
    (self.path, self.logger) = (path, logger)
    thread.start()
  }

  /// Writes the file now and then regularly. A failure is logged once.
  func keep(on eventLoop: any EventLoop, _ text: @escaping @Sendable () async -> String) {
    let last = NIOLoopBoundBox.makeEmptyBox(valueType: String.self, eventLoop: eventLoop)
    eventLoop.scheduleRepeatedAsyncTask(initialDelay: .zero, delay: Self.period) { [thread, path, logger] _ in
      eventLoop.makeFutureWithTask { () -> String? in
        let text = await text()
        return try await thread.runIfActive { Self.write(text, to: path) }
      }.map { failure in
        if let failure, failure != last.value { logger.warning("no metrics are written to \(path): \(failure)") }
        last.value = failure
      }
    }
  }

  /// Returns the failure; `nil` on success.
  private static func write(_ text: String, to path: String) -> String? {
    let part = "\(path).new"
    let descriptor = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { return String(cString: strerror(errno)) }
    defer { close(descriptor) }
    // Independent of the umask. The file names no user.
    guard fchmod(descriptor, 0o644) == 0 else { return String(cString: strerror(errno)) }
    let count = Glibc.write(descriptor, text, text.utf8.count)
    guard count < 0 || count == text.utf8.count else { return "the disk is full" }
    guard count >= 0, rename(part, path) == 0 else { return String(cString: strerror(errno)) }
    return nil
  }
}
