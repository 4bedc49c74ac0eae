// SPDX-License-Identifier: Apache-2.0

/// Events of one subscription that nobody has taken yet: the first `capacity` of them, then how many were lost.
package struct EventQueue {
  private let subscription: Int64
  private let capacity: Int
  private var events: [BrokerEvent] = []
  private var head = 0
  /// Lost since the newest in the queue, here or, as it told itself, at the broker.
  private var lost: Int64 = 0

  /// - Parameter capacity: events kept.
  package init(subscription: Int64, capacity: Int) {
    self.subscription = subscription
    self.capacity = capacity
  }

  /// Adds one, or counts it as lost.
  package mutating func append(_ event: BrokerEvent) {
    // Once one was lost, later ones are too until the loss is told, or they would come before it.
    if lost > 0 || events.count - head >= capacity {
      lost += event.lost ?? 1
    } else {
      events.append(event)
    }
  }

  /// The next to be told; nil where there is none.
  package mutating func next() -> BrokerEvent? {
    guard head < events.count else {
      guard lost > 0 else { return nil }
      defer { lost = 0 }
      return BrokerEvent.lost(lost, of: subscription)
    }
    let event = events[head]
    head += 1
    // Moved at most once each: what goes is at least as much as what stays.
    if head * 2 >= events.count {
      events.removeFirst(head)
      head = 0
    }
    return event
  }
}
