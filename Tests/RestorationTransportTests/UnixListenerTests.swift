// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import NIOCore
internal import NIOPosix
internal import RestorationTransport
internal import TestSupport
internal import Testing

/// The accepted peers, and the cost of a connection.
@Suite struct UnixListenerTests {
  private static let ping = #"{"jsonrpc":"2.0","id":1,"method":"get_data"}"# + "\n"
  private static let pong = #"{"jsonrpc":"2.0","id":1,"result":["hello",5]}"# + "\n"

  private static func exchange(_ peer: RawPeer) throws {
    try peer.send(ping)
    #expect(try peer.readLine() == pong)
  }

  @Test(.listener) func thePeerIsKnownByItsProcessAndUser() async throws {
    let peer = try fixture.connect()
    let connection = try #require(await fixture.delegate.events.opened())
    #expect(connection.peer.pid == getpid() && connection.peer.uid == geteuid() && connection.peer.gid == getegid())
    let process = try #require(connection.peer.process)
    #expect(!process.hasExited)
    #expect(process.identity == ProcessIdentity.current(of: getpid()))
    withExtendedLifetime(peer) {}
  }

  @Test(.listener(users: .one(geteuid() + 1))) func aConnectionOfAnotherUserIsClosedAndCounted() async throws {
    let peer = try fixture.connect()
    #expect(try peer.readToEnd() == "")
    let statistics = try await fixture.statistics
    #expect(statistics.refusedUsers == 1 && statistics.accepted == 0 && statistics.connections == 0)
  }

  @Test(.enabled(if: geteuid() == 0, "only root can become another user"))
  func userIDsUseAll32Bits() async {
    await #expect(processExitsWith: .success) {
      for (user, users) in [(1 << 31, .any), (.max - 1, .one(.max - 1))] as [(UInt32, AllowedUsers)] {
        try await ListenerFixture.run(users: users) { fixture in
          chmod(fixture.path.directory, 0o755)
          chmod(fixture.path.path, 0o666)
          seteuid(user)
          let peer = try fixture.connect()
          seteuid(0)
          #expect(await fixture.delegate.events.opened()?.peer.uid == user)
          try Self.exchange(peer)
        }
      }
    }
  }

  @Test(.listener(limits: { $0.connectionsMax = 2 })) func oneConnectionOverTheLimitIsToldSoAndAnotherMayComeLater()
    async throws
  {
    var peers = [try fixture.connect(), try fixture.connect()]
    for peer in peers { try Self.exchange(peer) }
    let refused = try fixture.connect()
    // Many clients write before they read.
    try refused.send(Self.ping)
    let line = try #require(try refused.readLine())
    #expect(line.contains("-32008") && line.contains("connectionsMax") && line.contains(#""id":null"#))
    #expect(try refused.readToEnd() == "")
    let statistics = try await fixture.statistics
    #expect(statistics.connections == 2 && statistics.accepted == 2 && statistics.refusedOverLimit == 1)
    peers.removeLast()
    #expect(await fixture.delegate.events.closed() == .peerClosed)
    // The place is given back when the channel is gone, a moment after its last event.
    while try await fixture.statistics.connections > 1 {}
    try Self.exchange(try fixture.connect())
    withExtendedLifetime(peers) {}
  }

  @Test func whatAPeerIsConfinedToIsKnownFromTheStart() async throws {
    try await ListenerFixture.run(confining: { .success("of \($0.pid)") }) { fixture in
      let peer = try fixture.connect()
      #expect(await fixture.delegate.events.opened()?.confinement == "of \(getpid())")
      try Self.exchange(peer)
    }
  }

  @Test func whoCannotBeConfinedIsToldWhyAndNotReadNorCounted() async throws {
    let error = ErrorObject(code: -32014, message: "nobody knows")
    try await ListenerFixture.run(
      limits: { $0.connectionsMax = 1 },
      confining: { _ in .failure(error) },
      { fixture in
        for _ in 1...2 {
          let refused = try fixture.connect()
          try refused.send(Self.ping)
          let line = try #require(try refused.readLine())
          #expect(line.contains("-32014") && line.contains("nobody knows") && line.contains(#""id":null"#))
          #expect(try refused.readToEnd() == "")
        }
        let statistics = try await fixture.statistics
        #expect(statistics.refusedUnconfined == 2 && statistics.accepted == 0 && statistics.refusedOverLimit == 0)
      }
    )
  }

  @Test func descriptorsOfConnectionsCloseOnExecAndNoneIsLeftBehind() async {
    await #expect(processExitsWith: .success) {
      let inherited = openDescriptors()
      try await ListenerFixture.run { fixture in
        func cycle(_ count: Int) async throws {
          for _ in 1...count {
            try Self.exchange(try fixture.connect())
            _ = await fixture.delegate.events.closed()
          }
          while try await fixture.statistics.connections > 0 {}
        }
        try await cycle(5)
        let before = openDescriptors()
        try await cycle(200)
        #expect(openDescriptors().count == before.count)

        let peer = try fixture.connect()
        try Self.exchange(peer)
        let added = openDescriptors().filter { before[$0.key] != $0.value && $0.key != peer.descriptor }
        #expect(added.count == 2, "a socket and a pidfd: \(added)")
        for number in added.keys { #expect(fcntl(number, F_GETFD) & FD_CLOEXEC != 0, "\(added[number] ?? "")") }
        for (number, name) in before
        where inherited[number] != name && (name.hasPrefix("socket:") || name.contains(".lock")) {
          #expect(fcntl(number, F_GETFD) & FD_CLOEXEC != 0, "\(name)")
        }
      }
    }
  }

  @Test func withoutDescriptorsAcceptingPausesAndGoesOnLater() async {
    await #expect(processExitsWith: .success) {
      try await ListenerFixture.run(limits: { $0.acceptPauseMilliseconds = 20 }) { fixture in
        let served = try fixture.connect()
        try Self.exchange(served)
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let generous = limit.rlim_cur
        // The next client takes the last descriptor and leaves none for the other end.
        let last = dup(0)
        close(last)
        limit.rlim_cur = rlim_t(last) + 1
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let waiting = try fixture.connect()
        let began = ContinuousClock.now
        while try await fixture.statistics.pauses < 4 { try Self.exchange(served) }
        // Three pauses lie between the four, the first of which began before we looked at the clock.
        #expect(ContinuousClock.now - began >= .milliseconds(40))
        limit.rlim_cur = generous
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        try Self.exchange(waiting)
      }
    }
  }

  @Test(.listener) func afterStoppingNobodyCanConnectAndConnectionsStay() async throws {
    let peer = try fixture.connect()
    try Self.exchange(peer)
    await fixture.listener.stop()
    #expect(status(of: fixture.path.path) == nil)
    #expect(throws: TestFailure.self) { try fixture.connect() }
    try Self.exchange(peer)
    // The listener holds the lock as long as it exists.
    #expect(throws: TransportError.self) { _ = try ListeningSocket(binding: fixture.path, backlog: 8) }
  }

  @Test func anInheritedSocketIsServedAndItsNameLeftAlone() async throws {
    let directory = try SocketDirectory()
    let path = directory.file("i.sock")
    let inherited = try listeningSocket(at: path)
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let listener = try await UnixListener.start(
      ListeningSocket(inheriting: inherited),
      on: group.any(),
      settings: ListenerFixture.settings(),
      delegate: TestDelegate(answer: ExampleMethods.answer)
    )
    #expect(fcntl(inherited, F_GETFD) & FD_CLOEXEC != 0)
    try Self.exchange(try RawPeer(connectingTo: path))
    await listener.stop()
    #expect(status(of: path)?.isSocket == true)
    try await group.shutdownGracefully()
  }

  @Test(.listener(limits: { ($0.connectionsMax, $0.connectionsPerProcessMax) = (2_000, 1_000) }))
  func aThousandConnectionsAreServedAtOnce() async throws {
    let peers = try (1...1_000).map { _ in try fixture.connect() }
    for peer in peers { try peer.send(Self.ping) }
    for peer in peers { #expect(try peer.readLine() == Self.pong) }
    #expect(try await fixture.statistics.connections == 1_000)
    withExtendedLifetime(peers) {}
  }
}

/// A listening socket made without this project's code.
private func listeningSocket(at path: String) throws -> Int32 {
  let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
  let result = withUnsafePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      bind(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
    }
  }
  guard result == 0, listen(number, 8) == 0 else { throw TestFailure("bind: \(SystemError.current)") }
  return number
}
