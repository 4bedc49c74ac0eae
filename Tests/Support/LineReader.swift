// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Takes lines from a descriptor, each with a deadline.
package final class LineReader {
  private let descriptor: FileDescriptor
  private let lineEnd: UInt8
  private var buffer: [UInt8] = []
  private var searched = 0
  private(set) package var hasEnded = false

  /// - Parameter lineEnd: what a line ends with: a line feed, or another byte.
  package init(_ descriptor: FileDescriptor, lineEnd: UInt8 = UInt8(ascii: "\n")) {
    (self.descriptor, self.lineEnd) = (descriptor, lineEnd)
  }

  /// The next line without its end; `nil` at the end of input. A last line without its end fails.
  package func next(_ deadline: Deadline = Deadline()) throws -> String? {
    while true {
      if let end = firstEnd {
        let line = String(decoding: buffer[..<end], as: UTF8.self)
        buffer.removeSubrange(...end)
        searched = 0
        return line
      }
      searched = buffer.count
      if hasEnded {
        guard buffer.isEmpty else { throw TestFailure("the last line is unfinished: \(pending)") }
        return nil
      }
      try fill(deadline)
    }
  }

  /// Where the next line ends. Where tests are not optimised, a loop over a hundred megabytes would take seconds.
  private var firstEnd: Int? {
    buffer.withUnsafeBytes { bytes in
      guard let start = bytes.baseAddress else { return nil }
      return memchr(start + searched, Int32(lineEnd), bytes.count - searched).map { UnsafeRawPointer($0) - start }
    }
  }

  /// Everything up to the end of input.
  package func rest(_ deadline: Deadline = Deadline()) throws -> String {
    while !hasEnded { try fill(deadline) }
    defer { buffer = [] }
    return pending
  }

  package var hasPending: Bool { !buffer.isEmpty }

  /// Received bytes that were not read yet.
  package var pending: String { String(decoding: buffer, as: UTF8.self) }

  private func fill(_ deadline: Deadline) throws {
    let bytes = try descriptor.read(deadline)
    if bytes.isEmpty { hasEnded = true }
    buffer += bytes
  }
}
