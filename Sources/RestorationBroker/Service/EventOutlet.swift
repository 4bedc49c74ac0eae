// SPDX-License-Identifier: Apache-2.0

/// Counts what subscribers that do not read have lost.
///
/// Invariants:
/// 1. For each subscription, events sent and events lost make up all that there were, and a loss is told before the
///    next event: what a subscriber gets is in order, and where something is missing it says so.
/// 2. It grows with the number of subscriptions, never with that of events.
package struct EventOutlet {
  /// Events handed to connections, and events left out, in all.
  package private(set) var sent: Int64 = 0
  package private(set) var lost: Int64 = 0
  /// What has not been told yet.
  private var losses: [ClientID: [Int64: Int64]] = [:]

  package init() {}

  /// Subscriptions with a loss that was not told.
  package var untold: Int { losses.values.reduce(losses.count) { $0 + $1.count } }

  /// One event for the subscription. `offer` hands it to the connection and says whether that took it; it is not asked
  /// while a loss is to be told first.
  package mutating func send(to subscriber: Subscriber, _ offer: () -> Bool) {
    if losses[subscriber.client]?[subscriber.number] == nil, offer() {
      sent += 1
    } else {
      lost += 1
      losses[subscriber.client, default: [:]][subscriber.number, default: 0] += 1
    }
  }

  /// There is room on the connection: each loss is offered, in order of subscription, and forgotten when it was taken.
  package mutating func tellLosses(to client: ClientID, _ offer: (_ number: Int64, _ lost: Int64) -> Bool) {
    for (number, lost) in losses[client]?.sorted(by: { $0.key < $1.key }) ?? [] {
      guard offer(number, lost) else { break }
      _ = take(Subscriber(client: client, number: number))
    }
  }

  /// The loss that a subscription has not been told, which is forgotten with this; nil where there is none.
  package mutating func take(_ subscriber: Subscriber) -> Int64? {
    let lost = losses[subscriber.client]?.removeValue(forKey: subscriber.number)
    if losses[subscriber.client]?.isEmpty == true { losses[subscriber.client] = nil }
    return lost
  }

  /// The connection has ended.
  package mutating func forget(_ client: ClientID) { losses[client] = nil }
}
