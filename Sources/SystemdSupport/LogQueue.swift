// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// Log entries on their way to the reader, written by a separate thread, so that a reader that stops reading blocks
/// nothing else.
final class LogQueue<Entry: Sendable>: Sendable {
  private enum Item: Sendable {
    case entry(Entry)
    /// Closes an open descriptor: a waiting thread then knows that all earlier entries are written.
    case mark(Int32)
    /// Follows the last entry before some dropped ones; has the first of those.
    case loss(Entry)
  }

  /// The number of dropped entries not reported yet.
  private final class LossCount: Sendable {
    let value = Atomic<Int>(0)
  }

  /// The most entries that wait: a reader that does not read must not make the queue grow.
  private static var waitingMax: Int { 4_096 }

  private let outbox: Outbox<Item>
  private let lost: LossCount

  /// `nil` if no descriptor or thread is left.
  ///
  /// - Parameter loss: makes an entry that reports how many were dropped.
  init?(
    thread: StaticString,
    write: @escaping @Sendable (Entry) -> Void,
    loss: @escaping @Sendable (_ text: String, _ first: Entry) -> Entry
  ) {
    let lost = LossCount()
    let outbox = Outbox<Item>(thread: thread) { item in
      switch item {
      case .mark(let descriptor): close(descriptor)
      case .entry(let entry): write(entry)
      case .loss(let first):
        let count = lost.value.exchange(0, ordering: .relaxed)
        let entries = count == 1 ? "entry of the log was" : "entries of the log were"
        write(loss("\(count) \(entries) lost: they were not read in time", first))
      }
    }
    guard let outbox else { return nil }
    (self.outbox, self.lost) = (outbox, lost)
  }

  deinit {
    outbox.close()
  }

  /// If the queue is full, drops entries and reports their number once there is room.
  func append(_ entry: Entry) {
    guard !outbox.append(.entry(entry), limit: Self.waitingMax) else { return }
    let isFirst = lost.value.wrappingAdd(1, ordering: .relaxed).oldValue == 0
    if isFirst { outbox.append(.loss(entry)) }
  }

  /// Waits until everything is written, within a time limit. Blocks the calling thread; only for a process that ends.
  func flush(milliseconds: Int32 = 1_000) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return }
    outbox.append(.mark(ends[1]))
    var entry = pollfd(fd: ends[0], events: 0, revents: 0)
    poll(&entry, 1, milliseconds)
    close(ends[0])
  }
}
