// SPDX-License-Identifier: Apache-2.0

internal import RestorationTransport
internal import RestorationWire

/// The way of events to their subscribers.
extension BrokerService {
  /// Tells those who have not unsubscribed meanwhile.
  func tell(_ announcement: Announcement) {
    for recipient in announcement.recipients where core.isSubscribed(recipient) {
      guard let connection = connections[recipient.client] else { continue }
      var isTooLong = false
      outlet.send(to: recipient) {
        let notification = EventNotification(
          subscription: recipient.number,
          application: announcement.application,
          event: announcement.event
        )
        let parameters = notification.parameters
        isTooLong = !core.reads(parameters, recipient.client)
        return !isTooLong && connection.offer(method: EventNotification.method, parameters: parameters)
      }
      // It is counted as lost, and there is room to say so.
      if isTooLong { tellLosses(on: connection) }
    }
  }

  /// The client has read so much that it can be told what it has lost.
  func tellLosses(on connection: Connection) {
    outlet.tellLosses(to: connection.id.value) { number, lost in
      let parameters = Self.loss(of: lost, to: number).parameters
      return core.reads(parameters, connection.id.value)
        && connection.offer(method: EventNotification.method, parameters: parameters)
    }
  }

  /// The last loss is told before the answer to `unsubscribe`, whatever else waits: it is small, and there is one.
  func endSubscription(_ subscriber: Subscriber) {
    guard let lost = outlet.take(subscriber) else { return }
    connections[subscriber.client]?.notify(
      method: EventNotification.method,
      parameters: Self.loss(of: lost, to: subscriber.number).parameters
    )
  }

  /// After the broker was killed; 0 because nobody knows how many there were.
  func tellLoss(_ subscriber: Subscriber) {
    connections[subscriber.client]?.notify(
      method: EventNotification.method,
      parameters: Self.loss(of: 0, to: subscriber.number).parameters
    )
  }

  /// Nothing is known of losses in the next process, so all of them are told now, whatever else waits.
  func tellAllLosses() {
    for (client, connection) in connections {
      outlet.tellLosses(to: client) { number, lost in
        connection.notify(method: EventNotification.method, parameters: Self.loss(of: lost, to: number).parameters)
        return true
      }
    }
  }

  private static func loss(of lost: Int64, to number: Int64) -> EventNotification {
    EventNotification(subscription: number, application: nil, event: EventsLost(lost: lost))
  }
}
