// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
public import RestorationWire

/// A subscription made by `BrokerConnection.subscribe`: events in the order in which they happened, while the object
/// exists.
///
/// Each event is delivered once, so read them in one place. Up to 1,024 unread events wait; beyond that `eventsLost`
/// says how many were lost. The sequence ends after `cancel()`, after `close()` on the connection and when its task is
/// cancelled; it throws a `BrokerConnectionError` when the broker has ended. It also ends with the last reference to
/// this object.
///
/// ```swift
/// for try await event in try await broker.subscribe(to: [.stateEncoded], application: "org.example.Notes") {
///   if case .stateEncoded(let facts) = event.facts { print(facts.path ?? [], facts.bytes) }
/// }
/// ```
public final class EventSubscription: AsyncSequence, Sendable {
  public typealias Element = BrokerEvent

  // Kept, because the connection ends with the last reference to it.
  private let connection: BrokerConnection
  private let link: BrokerLink
  private let number: Int64

  init(connection: BrokerConnection, link: BrokerLink, number: Int64) {
    (self.connection, self.link, self.number) = (connection, link, number)
  }

  deinit {
    link.endSubscription(number)
  }

  /// Ends the subscription. Unread events are dropped, and the sequence ends.
  public func cancel() { link.endSubscription(number) }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(subscription: self) }

  /// Reads the events one after the other.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let subscription: EventSubscription

    /// The next event; `nil` at the end.
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
  ///   - application: the application, which need not exist yet. On a connection with a session, `nil` means the
  ///     session's application; without a session, all applications.
  public func subscribe(to names: Set<EventName>? = nil, application: String? = nil) async throws -> EventSubscription {
    try await subscribe(toNamed: names?.map(\.rawValue).sorted(), application: application)
  }

  /// The same with names of any kind; the broker refuses those it does not know.
  ///
  /// - Parameter capacity: unread events that wait.
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
