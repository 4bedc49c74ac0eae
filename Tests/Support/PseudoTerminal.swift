// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A terminal for a process under test, and the keyboard and screen of it for the test.
package final class PseudoTerminal {
  /// The device that the process opens.
  package let path: String
  private let descriptor: FileDescriptor
  private var pending: [UInt8] = []

  // TIOCSPTLCK and TIOCGPTN of asm-generic/ioctls.h, which are expressions and so not imported; the C library's
  // alternatives need feature macros.
  private static let setLock: UInt = 0x4004_5431
  private static let getNumber: UInt = 0x8004_5430

  package init(rows: UInt16 = 24, columns: UInt16 = 80) throws {
    let number = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    guard number >= 0 else { throw TestFailure("open /dev/ptmx: \(SystemError.current)") }
    descriptor = FileDescriptor(owning: number)
    var lock: Int32 = 0
    var device: UInt32 = 0
    guard ioctl(number, Self.setLock, &lock) == 0, ioctl(number, Self.getNumber, &device) == 0 else {
      throw TestFailure("no terminal: \(SystemError.current)")
    }
    path = "/dev/pts/\(device)"
    var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    guard ioctl(number, UInt(TIOCSWINSZ), &size) == 0 else { throw TestFailure("no size: \(SystemError.current)") }
  }

  /// Whether keys are read one by one; keys typed before are echoed, and may be dropped.
  package var takesKeys: Bool {
    var settings = termios()
    return tcgetattr(descriptor.number, &settings) == 0 && settings.c_lflag & tcflag_t(ICANON) == 0
  }

  /// Types.
  package func type(_ text: String) throws {
    let bytes = Array(text.utf8)
    guard Glibc.write(descriptor.number, bytes, bytes.count) == bytes.count else {
      throw TestFailure("the terminal takes no input: \(SystemError.current)")
    }
  }

  /// The output up to and including the awaited text.
  package func shown(until text: String, _ deadline: Deadline = Deadline()) throws -> String {
    var screen = ""
    while !screen.contains(text) {
      guard try fill(deadline) else { throw TestFailure("the terminal shows: \(screen)") }
      screen = lines(of: pending)
    }
    pending = []
    return screen
  }

  /// Takes the output so far, without waiting. A process with much output stops if it is not read.
  package func drain() throws {
    while descriptor.waitUntilReadable(Deadline(.zero)) {
      guard try fill(Deadline()) else { break }
    }
  }

  /// The output so far, without waiting.
  package func shown() throws -> String {
    try drain()
    return lines(of: pending)
  }

  /// Everything that is shown until the process has closed the terminal.
  package func rest(_ deadline: Deadline = Deadline()) throws -> String {
    while try fill(deadline) {}
    defer { pending = [] }
    return lines(of: pending)
  }

  /// False at the end.
  private func fill(_ deadline: Deadline) throws -> Bool {
    guard descriptor.waitUntilReadable(deadline) else {
      throw TestFailure("the terminal shows nothing more than: \(lines(of: pending))")
    }
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    let count = Glibc.read(descriptor.number, &buffer, buffer.count)
    // A terminal that no process has open is an I/O error.
    guard count > 0 else { return count < 0 && errno == EINTR }
    pending += buffer[..<count]
    return true
  }

  /// A terminal begins lines with a carriage return.
  private func lines(of bytes: [UInt8]) -> String {
    String(decoding: bytes.filter { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
  }
}
