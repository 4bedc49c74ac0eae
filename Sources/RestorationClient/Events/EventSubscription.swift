// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
public import RestorationWire

/// The events of a `BrokerConnection.subscribe`, in their order.
///
/// Each event is delivered once, to one reader. Up to 1,024 unread events are retained; `eventsLost` counts the lost
/// ones. The sequence ends after `cancel()`, after `close()` on the connection, when its task is cancelled, and with
/// the last reference to this object. It throws a `BrokerConnectionError` when the broker has ended.
///
/// ```swift
/// for try await event in try await broker.subscribe(to: [.stateEncoded], application: "org.example.Notes") {
///   if case .stateEncoded(let facts) = event.facts { print(facts.path ?? [], facts.bytes) }
/// }
/// ```
public final class EventSubscription: AsyncSequence, Sendable {
  public typealias Element = BrokerEvent

  // The connection ends with its last reference.
  private let connection: BrokerConnection
  private let link: BrokerLink
  private let number: Int64

  init(connection: BrokerConnection, link: BrokerLink, number: Int64) {
    (self.connection, self.link, self.number) = (connection, link, number)
  }

  deinit {
    link.endSubscription(number)
  }

  /// Drops unread events and ends the sequence.
  public func cancel() { link.endSubscription(number) }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(subscription: self) }

  public struct AsyncIterator: AsyncIteratorProtocol {
    let subscription: EventSubscription

    public mutating func next() async throws -> BrokerEvent? {
      try await subscription.link.nextEvent(of: subscription.number)
    }
  }
}

extension BrokerConnection {
  /// Subscribes to events of the broker.
  ///
  /// - Parameters:
  ///   - names: `nil` for all events, including those of later brokers.
  ///   - application: it need not exist. `nil` means the session's application, or without a session, all applications.
  public func subscribe(to names: Set<EventName>? = nil, application: String? = nil) async throws -> EventSubscription {
    try await subscribe(toNamed: names?.map(\.rawValue).sorted(), application: application)
  }

  /// Takes names of any kind; the broker refuses unknown ones.
  ///
  /// - Parameter capacity: unread events to retain.
  package func subscribe(
    toNamed names: [String]?,
    application: String?,
    capacity: Int = 1_024
  ) async throws -> EventSubscription {
    var writer = JSONWriter()
    writer.object { writer in
      writer.member("events", ifPresent: names)
      writer.member("application", ifPresent: application)
    }
    let number = try await subscribe(JSONText(validated: writer.bytes), capacity: capacity)
    return EventSubscription(connection: self, link: link, number: number)
  }
}
