// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc
internal import Synchronization

/// Writes to the system's journal, on its own thread: a slow journal blocks nothing else.
package final class Journal: Sendable {
  /// A field of an entry: `MESSAGE`, `PRIORITY` another field of systemd.journal-fields(7), or our own.
  package struct Field: Hashable, Sendable {
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) { (self.name, self.value) = (name, value) }
  }

  private enum Entry: Sendable {
    case fields([Field])
    /// Closes an open descriptor, so that a thread that waits for it knows that all earlier entries are written.
    case mark(Int32)
    /// Stands behind the last entry before some that were dropped, with what tells whose they were.
    case loss([Field])
  }

  /// The number of dropped entries not reported yet.
  private final class LossCount: Sendable {
    let value = Atomic<Int>(0)
  }

  /// Entries that may wait. A journal that does not read must not make us grow.
  private static let waitingMax = 4_096

  private let outbox: Outbox<Entry>
  private let lost: LossCount

  /// `nil` if no descriptor or thread is left.
  package init?() {
    let lost = LossCount()
    guard let outbox = Outbox<Entry>(thread: "journal", deliver: { Self.deliver($0, lost) }) else { return nil }
    (self.outbox, self.lost) = (outbox, lost)
  }

  deinit {
    outbox.close()
  }

  /// Queues an entry; when the queue is full, entries are dropped and their number is logged as an entry.
  package func write(_ fields: [Field]) {
    guard !outbox.append(.fields(fields), limit: Self.waitingMax) else { return }
    let isFirst = lost.value.wrappingAdd(1, ordering: .relaxed).oldValue == 0
    if isFirst { outbox.append(.loss(fields.filter { $0.name == "SYSLOG_IDENTIFIER" })) }
  }

  /// Waits until everything is written, but not for ever. Blocks the calling thread; only for a process that ends.
  package func flush(milliseconds: Int32 = 1_000) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return }
    outbox.append(.mark(ends[1]))
    var entry = pollfd(fd: ends[0], events: 0, revents: 0)
    poll(&entry, 1, milliseconds)
    close(ends[0])
  }

  private static func deliver(_ entry: Entry, _ lost: LossCount) {
    switch entry {
    case .mark(let descriptor): close(descriptor)
    case .fields(let fields): write(fields)
    case .loss(let fields):
      let count = lost.value.exchange(0, ordering: .relaxed)
      let text = "\(count) \(count == 1 ? "entry was" : "entries were") lost: the journal did not take them in time"
      write([Field("MESSAGE", text), Field("PRIORITY", "4")] + fields)
    }
  }

  private static func write(_ fields: [Field]) {
    let texts = fields.map { Array("\($0.name)=\($0.value)".utf8) }
    guard send(texts[...], []) < 0 else { return }
    // Standard error arrives in the journal as well, by another way.
    let text = fields.first { $0.name == "MESSAGE" }?.value ?? ""
    let priority = fields.first { $0.name == "PRIORITY" }?.value ?? "6"
    let line = Array("<\(priority)>\(text)\n".utf8)
    _ = Glibc.write(STDERR_FILENO, line, line.count)
  }

  /// Every text must stay in place while the next ones are visited.
  private static func send(_ rest: ArraySlice<[UInt8]>, _ parts: [iovec]) -> Int32 {
    guard let text = rest.first else { return sd_journal_sendv(parts, Int32(parts.count)) }
    return text.withUnsafeBytes { bytes in
      let part = iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
      return send(rest.dropFirst(), parts + [part])
    }
  }
}
