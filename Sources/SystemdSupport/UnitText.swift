// SPDX-License-Identifier: Apache-2.0

internal import Glibc

package enum UnitText {
  /// No unit's file is longer than this.
  private static let bytesMax = 1 << 18

  /// The text of a file; `nil` if it has been removed. An unreadable file, or the rest of a file that is too long,
  /// could revoke what the others permit: both are errors.
  package static func read(_ path: String) throws(UserManagerError) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      if errno == ENOENT { return nil }
      throw failure(path, errno)
    }
    defer { close(descriptor) }
    var text: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 14)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw failure(path, errno) }
      guard count > 0 else { return String(decoding: text, as: UTF8.self) }
      text += buffer[..<count]
      guard text.count < bytesMax else {
        throw UserManagerError(.refused, "the unit's file \(path) has \(bytesMax) bytes or more")
      }
    }
  }

  private static func failure(_ path: String, _ code: Int32) -> UserManagerError {
    UserManagerError(.refused, "the unit's file \(path) cannot be read: \(String(cString: strerror(code)))")
  }
}
