// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

/// Notifications of which one counts the lost ones.
package protocol CountsMissed: Sendable {
  static func missed(count: Int) -> Self
}

extension BrokerNotification: CountsMissed {}

/// Unread notifications: the first `capacity`, then the number of lost ones.
package struct NotificationQueue<Notification: Sendable>: Sendable {
  private let capacity: Int
  private let missedNotification: @Sendable (_ count: Int64) -> Notification?
  private var notifications: Deque<Notification> = []
  /// Lost since the newest in the queue.
  private var missed: Int64 = 0

  /// - Parameters:
  ///   - capacity: notifications retained.
  ///   - missed: makes the notification with the number of lost ones.
  package init(capacity: Int, missed: @escaping @Sendable (_ count: Int64) -> Notification?) {
    self.capacity = capacity
    missedNotification = missed
  }

  /// Adds a notification, or counts `count` as lost, if it itself reports that many.
  package mutating func append(_ notification: Notification, standingFor count: Int64 = 1) {
    // After a loss, later notifications are lost too until the loss is reported; otherwise they would precede it.
    if missed > 0 || notifications.count >= capacity {
      missed += count
    } else {
      notifications.append(notification)
    }
  }

  package mutating func next() -> Notification? {
    if let notification = notifications.popFirst() { return notification }
    guard missed > 0 else { return nil }
    defer { missed = 0 }
    return missedNotification(missed)
  }
}

extension NotificationQueue where Notification: CountsMissed {
  package init(capacity: Int) { self.init(capacity: capacity) { .missed(count: Int(clamping: $0)) } }
}
