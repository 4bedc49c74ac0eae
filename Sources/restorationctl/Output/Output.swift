// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import RestorationClient
internal import Synchronization

enum Output {
  enum Place {
    /// Standard output: the requested data.
    case data
    /// Standard error: everything else.
    case messages
  }

  struct Settings: Sendable {
    /// `nil` for output to people.
    var layout: JSONLayout?
    var isFull = false
    var allowsPager = true
  }

  private struct State {
    var settings = Settings()
    var isAtLineBegin = true
  }

  private static let state = Mutex(State())

  static var settings: Settings {
    get { state.withLock { $0.settings } }
    set { state.withLock { $0.settings = newValue } }
  }

  /// Whether the data printed so far ends with a complete line or is empty, and no print is running.
  static var isAtLineBegin: Bool { state.withLock { $0.isAtLineBegin } }

  /// Columns of a table's line; `nil` for any number.
  static var width: Int? { settings.isFull ? nil : Terminal.columns }

  /// Writes data. Ends the tool if that fails, because a pipe has no reader or the disk is full.
  static func print(_ text: String) throws {
    let error = write(text, to: .data)
    if error == 0 { return }
    // A reader that closes the pipe early, like `head`, has read enough.
    if error != EPIPE { complain("the output cannot be written: \(String(cString: strerror(error)))") }
    throw ExitStatus.outputFailed
  }

  /// Writes data that may be long; on a terminal through a pager.
  static func show(_ text: String) throws {
    if settings.allowsPager, let pager = Pager.usual, TimeLimit.suspended({ pager.show(text) }) { return }
    try print(text)
  }

  static func complain(_ message: String) { write("restorationctl: \(message)\n", to: .messages) }

  /// Writes all of the text. Returns 0 or the number of the error.
  @discardableResult
  static func write(_ text: String, to place: Place) -> Int32 {
    guard place == .data else { return write(text, descriptor: STDERR_FILENO) }
    guard let last = text.utf8.last else { return 0 }
    // A slow reader may block the write for any time.
    state.withLock { $0.isAtLineBegin = false }
    let error = write(text, descriptor: STDOUT_FILENO)
    state.withLock { $0.isAtLineBegin = error == 0 && last == UInt8(ascii: "\n") }
    return error
  }

  static func write(_ text: String, descriptor: Int32) -> Int32 {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno == EAGAIN {
        // Another process that shares the terminal or pipe has made it non-blocking.
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        poll(&entry, 1, -1)
      } else if errno != EINTR {
        return errno
      }
    }
    return 0
  }

  static func readInput() throws -> String {
    do throws(OutputFile.Fault) {
      return try OutputFile.read(STDIN_FILENO, "standard input")
    } catch {
      throw Failure(ExitStatus.usage, kind: "usage", error.message)
    }
  }
}
