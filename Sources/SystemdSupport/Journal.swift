// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

package final class Journal: Sendable {
  /// A field of an entry: one of systemd.journal-fields(7), or our own.
  package struct Field: Hashable, Sendable {
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) { (self.name, self.value) = (name, value) }
  }

  private let queue: LogQueue<[Field]>

  /// `nil` if no descriptor or thread is left.
  package init?() {
    let queue = LogQueue<[Field]>(thread: "journal", write: Self.send) { text, first in
      [Field("MESSAGE", text), Field("PRIORITY", "4")] + first.filter { $0.name == "SYSLOG_IDENTIFIER" }
    }
    guard let queue else { return nil }
    self.queue = queue
  }

  package func write(_ fields: [Field]) { queue.append(fields) }

  /// Waits until everything is written, within a time limit.
  package func flush() { queue.flush() }

  private static func send(_ fields: [Field]) {
    let texts = fields.map { Array("\($0.name)=\($0.value)".utf8) }
    guard send(texts[...], []) < 0 else { return }
    // Standard error arrives in the journal as well, by another way.
    let text = fields.first { $0.name == "MESSAGE" }?.value ?? ""
    let priority = fields.first { $0.name == "PRIORITY" }?.value ?? "6"
    StandardError.write("<\(priority)>\(text)\n")
  }

  /// Recursive, because every text must stay in place while the next ones are visited.
  private static func send(_ rest: ArraySlice<[UInt8]>, _ parts: [iovec]) -> Int32 {
    guard let text = rest.first else { return sd_journal_sendv(parts, Int32(parts.count)) }
    return text.withUnsafeBytes { bytes in
      let part = iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
      return send(rest.dropFirst(), parts + [part])
    }
  }
}
