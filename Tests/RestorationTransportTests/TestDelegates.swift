// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTransport
internal import Synchronization

/// Answers by a function, at once, and reports events of connections.
final class TestDelegate: ConnectionDelegate {
  enum Event: Sendable {
    case opened(Connection)
    case received(Conversation.Delivery, Connection)
    case abandoned([Int])
    case room(Connection)
    case closed(ConnectionID, CloseReason)
  }

  typealias Answer = @Sendable (Request) -> Outcome?

  private let answer: Answer
  private let sink: AsyncStream<Event>.Continuation
  let events: TestEvents
  private let receivedCount = Atomic<Int>(0)

  /// Messages received so far.
  var received: Int { receivedCount.load(ordering: .relaxed) }

  /// `answer` gives the outcome; requests it has none for are told as events.
  init(answer: @escaping Answer = { _ in nil }) {
    let (stream, sink) = AsyncStream.makeStream(of: Event.self)
    self.answer = answer
    self.sink = sink
    self.events = TestEvents(stream)
  }

  func connectionOpened(_ connection: Connection) { sink.yield(.opened(connection)) }

  func received(_ delivery: Conversation.Delivery, from connection: Connection) {
    receivedCount.wrappingAdd(1, ordering: .relaxed)
    if case .request(let call, let request) = delivery, let outcome = answer(request) {
      connection.respond(to: call, with: outcome)
    } else {
      sink.yield(.received(delivery, connection))
    }
  }

  func callsAbandoned(_ callIDs: [Int], by connection: Connection) { sink.yield(.abandoned(callIDs)) }

  func hasRoomForOffers(_ connection: Connection) { sink.yield(.room(connection)) }

  func connectionClosed(_ connection: Connection, reason: CloseReason) { sink.yield(.closed(connection.id, reason)) }
}

/// The events of a delegate, awaited one after the other.
actor TestEvents {
  private let stream: AsyncStream<TestDelegate.Event>

  init(_ stream: AsyncStream<TestDelegate.Event>) { self.stream = stream }

  func next() async -> TestDelegate.Event? {
    var iterator = stream.makeAsyncIterator()
    return await iterator.next(isolation: self)
  }

  /// Skips to the next connection that opens.
  func opened() async -> Connection? {
    while let event = await next() {
      if case .opened(let connection) = event { return connection }
    }
    return nil
  }

  /// Skips to the next connection that closes and says why.
  func closed() async -> CloseReason? {
    while let event = await next() {
      if case .closed(_, let reason) = event { return reason }
    }
    return nil
  }

  /// Skips to the next time a connection has room for offers.
  func room() async -> Connection? {
    while let event = await next() {
      if case .room(let connection) = event { return connection }
    }
    return nil
  }

  /// Skips to the next message that was not answered at once.
  func received() async -> Conversation.Delivery? {
    while let event = await next() {
      if case .received(let delivery, _) = event { return delivery }
    }
    return nil
  }

  /// Skips to the next request that was not answered at once.
  func request() async -> (Conversation.Call, Request)? {
    while let delivery = await received() {
      if case .request(let call, let request) = delivery { return (call, request) }
    }
    return nil
  }
}

/// The methods of the JSON-RPC specification's examples, and `echo`, which gives its parameters back.
enum ExampleMethods {
  static func answer(_ request: Request) -> Outcome? {
    switch request.method {
    case "echo":
      switch request.parameters {
      case .none: .result(.null)
      case .named(let object): .result(object.compactText)
      case .positional(let elements): .result(elements.first?.compactText ?? .null)
      }
    case "subtract": number(request.parameters) { $0[0] - $0[1] }
    case "sum": number(request.parameters) { $0.reduce(0, +) }
    case "get_data": .result(JSONText(["hello", 5]))
    case "wait": nil
    default: .error(.methodNotFound(request.method))
    }
  }

  private static func number(_ parameters: Parameters, _ body: ([Int64]) -> Int64) -> Outcome {
    let values: [Int64?] =
      switch parameters {
      case .none: []
      case .named(let object): [object["minuend"]?.integer(), object["subtrahend"]?.integer()]
      case .positional(let elements): elements.map { $0.integer() }
      }
    return .result(JSONText(.integer(body(values.compactMap(\.self)))))
  }
}
