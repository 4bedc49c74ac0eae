// SPDX-License-Identifier: Apache-2.0

package import RestorationWire

/// One event and whom to tell of it.
package struct Announcement: Sendable {
  /// When it may leave. Each waits for the changes that were written before it, so that events come in order.
  package enum Condition: Sendable {
    /// When they are durable; never where the transaction fails, because then it has not happened (R15).
    case stored
    /// Only where the transaction fails.
    case notStored
    /// When they are durable or never will be: it has happened all the same.
    case settled
  }

  package let application: ApplicationName
  package let event: any RestorationEvent
  package let condition: Condition
  package let recipients: [Subscriber]

  package init(
    application: ApplicationName,
    event: any RestorationEvent,
    condition: Condition,
    recipients: [Subscriber]
  ) {
    self.application = application
    self.event = event
    self.condition = condition
    self.recipients = recipients
  }
}

extension CoreContext {
  var hasSubscribers: Bool { !subscriptions.isEmpty }

  func announce<Event: RestorationEvent>(
    _ id: ApplicationID,
    _ application: ApplicationName,
    _ condition: Announcement.Condition,
    _ event: () -> Event
  ) {
    let recipients = subscriptions.subscribers(to: Event.name, of: application)
    guard !recipients.isEmpty else { return }
    emit(
      .announce(
        id,
        Announcement(application: application, event: event(), condition: condition, recipients: recipients)
      )
    )
  }
}
