// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
public import RestorationWire

/// What `BrokerConnection.subscribe` gives: events in the order in which they happened, as long as it is kept.
///
/// Each event is given once, whoever asks for it: take them in one place. Up to 1,024 that were not taken wait; after
/// that `eventsLost` says how many there were. The sequence ends after `cancel()`, after `close()` on the connection
/// and when its task is cancelled; it throws a `BrokerConnectionError` when the broker has ended. It also ends with the
/// last reference to this object.
///
/// ```swift
/// for try await event in try await broker.subscribe(to: [.stateEncoded], application: "org.example.Notes") {
///   if case .stateEncoded(let facts) = event.facts { print(facts.path ?? [], facts.bytes) }
/// }
/// ```
public final class EventSubscription: AsyncSequence, Sendable {
  /// Something that happened.
  public typealias Element = BrokerEvent

  // Kept, because the connection ends with the last reference to it.
  private let connection: BrokerConnection
  private let link: BrokerLink
  private let number: Int64

  init(connection: BrokerConnection, link: BrokerLink, number: Int64) {
    self.connection = connection
    self.link = link
    self.number = number
  }

  deinit {
    link.endSubscription(number)
  }

  /// Ends the subscription. What was not taken yet is dropped, and the sequence ends.
  public func cancel() { link.endSubscription(number) }

  /// Begins to take events.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(subscription: self) }

  /// Takes the events one after the other.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let subscription: EventSubscription

    /// The next event; nil at the end.
    public mutating func next() async throws -> BrokerEvent? {
      try await subscription.link.nextEvent(of: subscription.number)
    }
  }
}

extension BrokerConnection {
  /// Subscribes to what happens at the broker.
  ///
  /// - Parameters:
  ///   - names: nil for all events, also those that later brokers know.
  ///   - application: the one it is about, which need not be there yet. Nil is, on a connection with a session, that
  ///     session's application, and on one without, all of them.
  public func subscribe(to names: Set<EventName>? = nil, application: String? = nil) async throws -> EventSubscription {
    try await subscribe(toNamed: names?.map(\.rawValue).sorted(), application: application)
  }

  /// The same with names of any kind; the broker refuses those it does not know.
  package func subscribe(toNamed names: [String]?, application: String?) async throws -> EventSubscription {
    var writer = JSONWriter()
    writer.object { writer in
      writer.member("events", ifPresent: names)
      writer.member("application", ifPresent: application)
    }
    let number = try await subscribe(JSONText(validated: writer.bytes))
    return EventSubscription(connection: self, link: link, number: number)
  }
}
