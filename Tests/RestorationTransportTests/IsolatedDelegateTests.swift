// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore
internal import NIOPosix
internal import RestorationTransport
internal import Testing

/// The pattern for an actor that lives on the connections' event loop and handles messages without a hop.
@Suite struct IsolatedDelegateTests {
  private actor Counter: ConnectionDelegate {
    private let eventLoop: any EventLoop
    private var count = 0
    private var closed: [CloseReason] = []
    private var waiter: CheckedContinuation<CloseReason, Never>?

    nonisolated var unownedExecutor: UnownedSerialExecutor { eventLoop.executor.asUnownedSerialExecutor() }

    init(eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    nonisolated func connectionOpened(_ connection: Connection) { assumeIsolated { $0.count = 100 } }

    nonisolated func received(_ delivery: Conversation.Delivery, from connection: Connection) {
      assumeIsolated { counter in
        guard case .request(let call, _) = delivery else { return }
        counter.count += 1
        connection.respond(to: call, with: .result(JSONText(.integer(Int64(counter.count)))))
      }
    }

    nonisolated func callsAbandoned(_ callIDs: [Int], by connection: Connection) {}

    nonisolated func connectionClosed(_ connection: Connection, reason: CloseReason) {
      assumeIsolated { counter in
        if let waiter = counter.waiter { waiter.resume(returning: reason) } else { counter.closed.append(reason) }
      }
    }

    func nextClosed() async -> CloseReason {
      if let reason = closed.popLast() { return reason }
      return await withCheckedContinuation { waiter = $0 }
    }
  }

  @Test func anActorOnTheLoopHandlesMessagesWithinTheRead() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let directory = try SocketDirectory()
    let path = try SocketPath(directory.file("b.sock"))
    let counter = Counter(eventLoop: group.any())
    let listener = try await UnixListener.start(
      ListeningSocket(binding: path, backlog: 8),
      on: group.any(),
      settings: ListenerFixture.settings(),
      delegate: counter
    )
    do {
      let peer = try RawPeer(connectingTo: path.path)
      try peer.send(String(repeating: #"{"jsonrpc":"2.0","id":1,"method":"next"}"# + "\n", count: 1))
      #expect(try peer.readLine() == #"{"jsonrpc":"2.0","id":1,"result":101}"# + "\n")
    }
    #expect(await counter.nextClosed() == .peerClosed)
    await listener.stop()
    try await group.shutdownGracefully()
  }
}
