// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import NIOCore
internal import NIOPosix
internal import RestorationTransport
internal import TestSupport
internal import Testing

/// Our own client's end.
@Suite struct UnixConnectorTests {
  private static let group = MultiThreadedEventLoopGroup.singleton

  private static func failure(
    _ path: String,
    _ settings: ConnectionSettings = ListenerFixture.settings()
  ) async -> TransportError? {
    do throws(TransportError) {
      _ = try await UnixConnector.connect(to: SocketPath(path), on: group, settings: settings, delegate: TestDelegate())
      return nil
    } catch {
      return error
    }
  }

  @Test(.listener) func bothEndsCallEachOther() async throws {
    let delegate = TestDelegate(answer: ExampleMethods.answer)
    let connection = try await UnixConnector.connect(
      to: fixture.path,
      on: Self.group,
      settings: ListenerFixture.settings(),
      delegate: delegate
    )
    let accepted = try #require(await fixture.delegate.events.opened())
    #expect(connection.peer.pid == getpid() && connection.id != accepted.id)
    let request = JSONText([42, 23])
    let there = try await connection.eventLoop.submit { connection.call(method: "subtract", parameters: request) }
      .get()
    let back = try await fixture.onLoop { accepted.call(method: "sum", parameters: request) }
    guard case .response(there, .result(let difference))? = await delegate.events.received() else {
      Issue.record("no answer from the listener")
      return
    }
    #expect(difference.integer() == 19)
    guard case .response(back, .result(let sum))? = await fixture.delegate.events.received() else {
      Issue.record("no answer from the connector")
      return
    }
    #expect(sum.integer() == 65)
    try await connection.eventLoop.submit { connection.close(afterOutput: true) }.get()
    #expect(await delegate.events.closed() == .closed)
    #expect(await fixture.delegate.events.closed() == .peerClosed)
  }

  @Test func withoutASocketTheAdviceIsToStartTheBroker() async throws {
    let directory = try SocketDirectory()
    let error = await Self.failure(directory.file("b.sock"))
    #expect(error?.code == .noSocket)
    #expect(error?.message.contains("start restorationd") == true)
  }

  @Test func aSocketNobodyListensOnIsRefused() async throws {
    let directory = try SocketDirectory()
    let path = try SocketPath(directory.file("b.sock"))
    _ = try ListeningSocket(binding: path, backlog: 8)
    // A process that is being started elsewhere may hold on to the socket for a moment.
    var error = await Self.failure(path.path)
    while error == nil { error = await Self.failure(path.path) }
    #expect(error?.code == .refused)
  }

  @Test func whatIsNoSocketIsCalledWhatItIs() async throws {
    let directory = try SocketDirectory()
    let file = directory.file("b.sock")
    try Files.write([], to: file)
    for (path, kind) in [(file, "a file"), (directory.path, "a directory")] {
      let error = await Self.failure(path)
      #expect(error?.code == .notASocket)
      #expect(error?.message == "\(path) is \(kind), not a socket; give the path of the broker's socket")
    }
  }

  @Test(.enabled(if: geteuid() == 0, "only root can become another user"))
  func anotherUserIsNotPermitted() async {
    await #expect(processExitsWith: .success) {
      let directory = try SocketDirectory()
      let path = try SocketPath(directory.file("b.sock"))
      let socket = try ListeningSocket(binding: path, backlog: 8)
      seteuid(65_533)
      #expect(await Self.failure(path.path)?.code == .notPermitted)
      seteuid(0)
      _ = consume socket
    }
  }

  @Test func aFullQueueIsBusy() async throws {
    let directory = try SocketDirectory()
    let path = try SocketPath(directory.file("b.sock"))
    let socket = try ListeningSocket(binding: path, backlog: 0)
    let waiting = try RawPeer(connectingTo: path.path)
    #expect(await Self.failure(path.path, ListenerFixture.settings { $0.connectSeconds = 0 })?.code == .busy)
    withExtendedLifetime(waiting) {}
    _ = consume socket
  }

  @Test func aBrokerThatEndsIsNoticed() async throws {
    let delegate = TestDelegate()
    let path: SocketPath
    do {
      let directory = try SocketDirectory()
      path = try SocketPath(directory.file("b.sock"))
      let socket = try ListeningSocket(binding: path, backlog: 8)
      _ = try await UnixConnector.connect(
        to: path,
        on: Self.group,
        settings: ListenerFixture.settings(),
        delegate: delegate
      )
      _ = consume socket
    }
    #expect(await delegate.events.closed() == .peerClosed)
  }
}
