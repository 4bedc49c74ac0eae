// SPDX-License-Identifier: Apache-2.0

internal import Glibc

enum Output {
  /// Writes a file that only this user reads.
  static func write(_ text: String, toFile path: String) throws {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw Failure.system(path) }
    defer { close(file) }
    // One that was there keeps its mode otherwise.
    fchmod(file, 0o600)
    try write(text, to: file, path)
  }

  static func text(ofFile path: String) throws -> String {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw Failure.system(path) }
    defer { close(file) }
    var bytes: [UInt8] = []
    var count = 0
    repeat {
      let piece = [UInt8](unsafeUninitializedCapacity: 1 << 16) {
        count = read(file, $0.baseAddress, $0.count); $1 = max(0, count)
      }
      bytes += piece
    } while count > 0
    return String(decoding: bytes, as: UTF8.self)
  }

  /// How many columns the terminal has that shows standard output; `nil` without one.
  static var columns: Int? {
    var size = winsize()
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  static func print(_ text: String) throws { try write(text, to: STDOUT_FILENO, "standard output") }

  /// Tells somebody who waits what is done now; an empty text when it is over.
  static func tell(_ text: String) {
    if isatty(STDERR_FILENO) != 0 { try? write("\u{1B}[2K\r\(text)\r", to: STDERR_FILENO, "") }
  }

  private static func write(_ text: String, to file: Int32, _ name: String) throws {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw Failure.system(name) }
      rest = rest.dropFirst(count)
    }
  }
}
