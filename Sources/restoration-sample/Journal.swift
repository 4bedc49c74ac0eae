// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A source file.
struct SourceText {
  /// The file's folder, as an identifier: those hold no slash.
  let folder: String
  let name: String
  let lines: [String]

  init(_ path: String) throws {
    let components = path.split(separator: "/").map(String.init)
    folder = components.dropLast().joined(separator: " ")
    name = components.last ?? path
    lines = try TextFile.lines(of: path)
  }
}

/// What was sent and what was acknowledged, kept outside of the broker so that both can be compared after a crash.
///
/// One line each: `sent`, the object's path and the state, or `done` and the path, with tabs between them. Lines leave
/// the process at once: what is written survives its end.
final class Journal {
  private let descriptor: Int32

  init(appendingTo path: String) throws {
    descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw FileError(path: path) }
  }

  deinit {
    close(descriptor)
  }

  func willSend(_ state: String, of path: String) {
    append("sent\t\(path)\t\(state)\n")
  }

  func acknowledged(_ path: String) {
    append("done\t\(path)\n")
  }

  private func append(_ line: String) {
    let bytes = Array(line.utf8)
    _ = write(descriptor, bytes, bytes.count)
  }

  /// For each path the state that was acknowledged last, and those that were sent after it.
  static func read(_ path: String) throws -> [String: [String]] {
    var states: [String: [String]] = [:]
    for line in try TextFile.lines(of: path) {
      let parts = line.split(separator: "\t", maxSplits: 2).map(String.init)
      if parts.count == 3, parts[0] == "sent" {
        states[parts[1], default: []].append(parts[2])
      } else if parts.count == 2, parts[0] == "done" {
        states[parts[1]] = states[parts[1]].map { Array($0.suffix(1)) }
      }
    }
    return states
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

enum Output {
  /// A line on standard output, at once.
  static func say(_ line: String) {
    print(line)
    fflush(nil)
  }

  static func complain(_ message: String) {
    let bytes = Array("restoration-sample: \(message)\n".utf8)
    _ = write(STDERR_FILENO, bytes, bytes.count)
  }
}
