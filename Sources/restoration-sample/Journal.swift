// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A journal of the states sent, acknowledged and restored, kept outside of the broker for comparison.
///
/// One line each: a word, an object's key and a state, separated by tabs. Lines leave the process at once, so they
/// survive its end.
final class Journal: Sendable {
  private let descriptor: Int32

  init(appendingTo path: String) throws {
    descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw FileError(path: path) }
  }

  deinit {
    close(descriptor)
  }

  func note(_ fields: String...) {
    let bytes = Array((fields.joined(separator: "\t") + "\n").utf8)
    _ = write(descriptor, bytes, bytes.count)
  }
}

struct FileError: Error, CustomStringConvertible {
  let path: String
  let reason = String(cString: strerror(errno))

  var description: String { "\(path): \(reason)" }
}

enum TextFile {
  static func lines(of path: String) throws -> [String] {
    guard let file = fopen(path, "r") else { throw FileError(path: path) }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { bytes += buffer[..<count] }
    return bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
  }
}
