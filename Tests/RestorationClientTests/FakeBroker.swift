// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore
internal import NIOPosix
internal import RestorationTransport
internal import RestorationWire
internal import Synchronization
internal import TestSupport

/// A broker that answers by a function: a real socket with a test behind it.
final class FakeBroker: ConnectionDelegate {
  typealias Answer = @Sendable (JSONRPC.Request) -> Outcome?

  enum Event: Sendable {
    /// A request that the function had no answer for, to be answered later or never.
    case request(Conversation.Call, JSONRPC.Request, Connection)
    case notification(JSONRPC.Notification)
    case response(callID: Int, Response.Outcome)
    case opened(Connection)
    case closed(CloseReason)
  }

  let path: String
  let events: Events
  private let answer: Mutex<Answer>
  private let sink: AsyncStream<Event>.Continuation

  private init(path: String, answer: @escaping Answer) {
    let (stream, sink) = AsyncStream.makeStream(of: Event.self)
    self.path = path
    self.answer = Mutex(answer)
    self.events = Events(stream)
    self.sink = sink
  }

  /// From now on.
  func answers(_ answer: @escaping Answer) { self.answer.withLock { $0 = answer } }

  /// Runs `body` with a broker on a socket of its own.
  static func run(
    answer: @escaping Answer = { _ in nil },
    limits change: (inout TransportLimits) -> Void = { _ in },
    _ body: (FakeBroker) async throws -> Void
  ) async throws {
    var limits = TransportLimits()
    change(&limits)
    let directory = try ScratchDirectory()
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    do {
      let broker = FakeBroker(path: directory.file("b.sock"), answer: answer)
      let listener = try await UnixListener.start(
        ListeningSocket(binding: try SocketPath(broker.path), backlog: 64),
        on: group.any(),
        settings: ConnectionSettings(limits: limits, vocabulary: EncodedState.vocabulary),
        delegate: broker
      )
      // Times are measured from here on: no other test's work is waited for.
      try await withTaskExecutorPreference(BlockingExecutor()) { try await body(broker) }
      await listener.stop()
    } catch {
      try await group.shutdownGracefully()
      directory.remove()
      throw error
    }
    try await group.shutdownGracefully()
    directory.remove()
  }

  func connectionOpened(_ connection: Connection) { sink.yield(.opened(connection)) }

  func received(_ delivery: Conversation.Delivery, from connection: Connection) {
    switch delivery {
    case .request(let call, let request):
      if let outcome = answer.withLock({ $0 })(request) {
        connection.respond(to: call, with: outcome)
      } else {
        sink.yield(.request(call, request, connection))
      }
    case .notification(let notification): sink.yield(.notification(notification))
    case .response(let callID, let outcome): sink.yield(.response(callID: callID, outcome))
    case .brokenAnswer, .closeAfterOutput: break
    }
  }

  func callsAbandoned(_ callIDs: [Int], by connection: Connection) {}

  func connectionClosed(_ connection: Connection, reason: CloseReason) { sink.yield(.closed(reason)) }

  /// Events at the broker, awaited one after the other.
  actor Events {
    private let stream: AsyncStream<Event>

    init(_ stream: AsyncStream<Event>) { self.stream = stream }

    private func next() async throws -> Event {
      var iterator = stream.makeAsyncIterator()
      guard let event = await iterator.next(isolation: self) else { throw TestFailure("the broker is gone") }
      return event
    }

    /// Skips to the next connection.
    func opened() async throws -> Connection {
      while true {
        if case .opened(let connection) = try await next() { return connection }
      }
    }

    /// Skips to the next request that was not answered.
    func request() async throws -> Pending {
      while true {
        if case .request(let call, let request, let connection) = try await next() {
          return Pending(call: call, request: request, connection: connection)
        }
      }
    }

    /// Skips to the next notification.
    func notification() async throws -> JSONRPC.Notification {
      while true {
        if case .notification(let notification) = try await next() { return notification }
      }
    }

    /// Skips to the next answer to a call of the broker.
    func response() async throws -> Response.Outcome {
      while true {
        if case .response(_, let outcome) = try await next() { return outcome }
      }
    }

    /// Skips to the end of a connection.
    func closed() async throws -> CloseReason {
      while true {
        if case .closed(let reason) = try await next() { return reason }
      }
    }
  }

  /// A request that waits for its answer.
  struct Pending: Sendable {
    let call: Conversation.Call
    let request: JSONRPC.Request
    let connection: Connection

    func answer(_ text: String) async throws {
      try await connection.onLoop { $0.respond(to: call, with: .result(JSONText(validated: Array(text.utf8)))) }
    }
  }
}

extension Connection {
  /// Runs `body` on the connection's event loop.
  func onLoop(_ body: @escaping @Sendable (Connection) -> Void) async throws {
    try await eventLoop.submit { body(self) }.get()
  }
}

extension Outcome {
  /// A result given as JSON text.
  static func text(_ text: String) -> Outcome {
    .result(JSONText(validated: Array(text.utf8)))
  }
}

extension JSONRPC.Request {
  /// The parameters as compact text; empty if there are none.
  var parametersText: String { parameters.text }
}

extension Parameters {
  var text: String {
    switch self {
    case .none: ""
    case .named(let object): object.compactText.string
    case .positional(let values): "[" + values.map(\.compactText.string).joined(separator: ",") + "]"
    }
  }
}
