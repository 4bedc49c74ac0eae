// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// A queue for a receiver that may be slow, and the thread that delivers its entries in order.
///
/// The thread sleeps while the queue is empty, and ends after the last entry when the outbox is closed.
final class Outbox<Entry: Sendable>: Sendable {
  private struct State {
    var entries: [Entry] = []
    var hasEnded = false
  }

  private let wakeUp: WakeUp
  private let state = Mutex(State())
  private let deliver: @Sendable (Entry) -> Void

  /// `nil` if no descriptor or thread is left.
  init?(thread name: StaticString, deliver: @escaping @Sendable (Entry) -> Void) {
    guard let wakeUp = WakeUp() else { return nil }
    (self.wakeUp, self.deliver) = (wakeUp, deliver)
    guard BackgroundThread.start(name, { self.run() }) else { return nil }
  }

  /// Adds an entry.
  ///
  /// - Parameters:
  ///   - replaced: selects waiting entries that the new one makes obsolete.
  ///   - limit: the entry is refused if this many counted entries wait.
  ///   - isCounted: selects the counted entries; `nil` counts all.
  /// - Returns: whether the entry was queued.
  @discardableResult
  func append(
    _ entry: Entry,
    replacing replaced: ((Entry) -> Bool)? = nil,
    limit: Int = .max,
    counting isCounted: ((Entry) -> Bool)? = nil
  ) -> Bool {
    let isTaken = state.withLock { state in
      if let replaced { state.entries.removeAll(where: replaced) }
      let count = isCounted.map { state.entries.count(where: $0) } ?? state.entries.count
      guard count < limit else { return false }
      state.entries.append(entry)
      return true
    }
    if isTaken { wakeUp.signal() }
    return isTaken
  }

  /// Removes and returns waiting entries.
  func takeBack(_ isMeant: (Entry) -> Bool) -> [Entry] {
    state.withLock { state in
      let taken = state.entries.filter(isMeant)
      if !taken.isEmpty { state.entries.removeAll(where: isMeant) }
      return taken
    }
  }

  func close() {
    state.withLock { $0.hasEnded = true }
    wakeUp.signal()
  }

  private func run() {
    while true {
      let (entry, hasEnded) = state.withLock { state in
        (state.entries.isEmpty ? nil : state.entries.removeFirst(), state.hasEnded)
      }
      if let entry {
        deliver(entry)
      } else if hasEnded {
        return
      } else {
        wakeUp.wait()
      }
    }
  }
}
