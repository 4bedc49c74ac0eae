// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The calls and notifications that a session has not fetched by `nextRequest`, in order.
///
/// Invariants:
/// 1. An entry is fetched at most once, and then leaves the queue.
/// 2. At most `countMax` notifications wait, with at most `bytesMax` bytes. Beyond that the oldest are dropped, but
///    never the newest.
/// 3. A call stays until it is fetched or cancelled. The callers limit their number.
package struct PollQueue: Sendable {
  package struct Entry: Sendable {
    /// `nil` for a notification.
    package let call: CallNumber?
    package let method: String
    package let parameters: JSONText

    package init(call: CallNumber?, method: String, parameters: JSONText) {
      (self.call, self.method, self.parameters) = (call, method, parameters)
    }
  }

  package static let countMax = 1_024
  package static let bytesMax = 1 << 20

  private var entries: [Entry] = []
  /// Counts for notifications only.
  private var notifications = 0
  private var bytes = 0

  package init() {}

  package var isEmpty: Bool { entries.isEmpty }
  package var count: Int { entries.count }

  package var calls: [CallNumber] { entries.compactMap(\.call) }

  package func holds(_ call: CallNumber) -> Bool { entries.contains { $0.call == call } }

  package mutating func add(_ entry: Entry) {
    entries.append(entry)
    guard entry.call == nil else { return }
    notifications += 1
    bytes += entry.parameters.count
    while notifications > 1, notifications > Self.countMax || bytes > Self.bytesMax,
      let oldest = entries.firstIndex(where: { $0.call == nil })
    {
      remove(at: oldest)
    }
  }

  package mutating func next() -> Entry? { entries.isEmpty ? nil : remove(at: 0) }

  package mutating func remove(_ call: CallNumber) {
    if let index = entries.firstIndex(where: { $0.call == call }) { remove(at: index) }
  }

  package mutating func removeCalls() { entries.removeAll { $0.call != nil } }

  @discardableResult
  private mutating func remove(at index: Int) -> Entry {
    let entry = entries.remove(at: index)
    if entry.call == nil {
      notifications -= 1
      bytes -= entry.parameters.count
    }
    return entry
  }
}
