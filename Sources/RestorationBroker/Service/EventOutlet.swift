// SPDX-License-Identifier: Apache-2.0

/// Counts the events lost by subscribers that do not read.
///
/// Invariants:
/// 1. For each subscription, every event is either sent or counted as lost, and a loss is reported before the next
///    event. So a subscriber gets events in order and learns where some are missing.
/// 2. Its size grows with the number of subscriptions, never with that of events.
package struct EventOutlet {
  /// Totals of events handed to connections and of events left out.
  package private(set) var sent: Int64 = 0
  package private(set) var lost: Int64 = 0
  private var losses: [ClientID: [Int64: Int64]] = [:]

  package init() {}

  /// Number of subscriptions with an unreported loss.
  package var untold: Int { losses.values.reduce(losses.count) { $0 + $1.count } }

  /// Sends one event. `offer` hands it to the connection and returns whether that accepted it; it is not called while a
  /// loss must be reported first.
  package mutating func send(to subscriber: Subscriber, _ offer: () -> Bool) {
    if losses[subscriber.client]?[subscriber.number] == nil, offer() {
      sent += 1
    } else {
      lost += 1
      losses[subscriber.client, default: [:]][subscriber.number, default: 0] += 1
    }
  }

  /// Call when the connection has room: offers each loss in order of subscription, and forgets accepted ones.
  package mutating func tellLosses(to client: ClientID, _ offer: (_ number: Int64, _ lost: Int64) -> Bool) {
    for (number, lost) in losses[client]?.sorted(by: { $0.key < $1.key }) ?? [] {
      guard offer(number, lost) else { break }
      _ = take(Subscriber(client: client, number: number))
    }
  }

  /// Removes and returns the unreported loss of a subscription; `nil` if there is none.
  package mutating func take(_ subscriber: Subscriber) -> Int64? {
    let lost = losses[subscriber.client]?.removeValue(forKey: subscriber.number)
    if losses[subscriber.client]?.isEmpty == true { losses[subscriber.client] = nil }
    return lost
  }

  package mutating func forget(_ client: ClientID) { losses[client] = nil }
}
