// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc

/// The two places where text goes.
enum Output {
  enum Place {
    /// Standard output: what was asked for.
    case data
    /// Standard error: everything else.
    case messages
  }

  /// Whether a person is likely to read the data.
  static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

  /// Writes data. Ends the tool where it cannot be written: a pipe that nobody reads, a full disk.
  static func print(_ text: String) throws {
    let error = write(text, to: .data)
    if error == 0 { return }
    // Who closes the pipe early, as `head` does, has got what it wanted.
    if error != EPIPE { complain("the output cannot be written: \(String(cString: strerror(error)))") }
    throw ExitStatus.outputFailed
  }

  /// Says what went wrong.
  static func complain(_ message: String) {
    write("restorationctl: \(message)\n", to: .messages)
  }

  /// Writes all of the text; gives the number of the error where that fails, else 0.
  @discardableResult
  static func write(_ text: String, to place: Place) -> Int32 {
    let descriptor = place == .data ? STDOUT_FILENO : STDERR_FILENO
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        return errno
      }
    }
    return 0
  }

  /// Everything on standard input.
  static func readInput() throws -> String {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = read(STDIN_FILENO, &buffer, buffer.count)
      if count > 0 {
        bytes += buffer[..<count]
      } else if count == 0 {
        break
      } else if errno != EINTR {
        throw ValidationError("standard input cannot be read: \(String(cString: strerror(errno)))")
      }
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw ValidationError("standard input is not UTF-8")
    }
    return text
  }
}
