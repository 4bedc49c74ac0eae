// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

/// A set of notifications of which one says how many others were lost.
package protocol CountsMissed: Sendable {
  static func missed(count: Int) -> Self
}

extension BrokerNotification: CountsMissed {}

/// Unread notifications: the first `capacity` of them, then how many were lost.
package struct NotificationQueue<Notification: Sendable>: Sendable {
  private let capacity: Int
  private let missedNotification: @Sendable (_ count: Int64) -> Notification?
  private var notifications: Deque<Notification> = []
  /// Lost since the newest in the queue.
  private var missed: Int64 = 0

  /// - Parameters:
  ///   - capacity: notifications kept.
  ///   - missed: makes the notification that says how many were lost.
  package init(capacity: Int, missed: @escaping @Sendable (_ count: Int64) -> Notification?) {
    self.capacity = capacity
    missedNotification = missed
  }

  /// Adds a notification, or counts it as lost; as `count` if it itself reports that many lost ones.
  package mutating func append(_ notification: Notification, standingFor count: Int64 = 1) {
    // After a loss, later notifications are lost too until the loss is reported; otherwise they would precede it.
    if missed > 0 || notifications.count >= capacity {
      missed += count
    } else {
      notifications.append(notification)
    }
  }

  /// The next notification; `nil` if there is none.
  package mutating func next() -> Notification? {
    if let notification = notifications.popFirst() { return notification }
    guard missed > 0 else { return nil }
    defer { missed = 0 }
    return missedNotification(missed)
  }
}

extension NotificationQueue where Notification: CountsMissed {
  /// - Parameter capacity: notifications kept.
  package init(capacity: Int) { self.init(capacity: capacity) { .missed(count: Int(clamping: $0)) } }
}
