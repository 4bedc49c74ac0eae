// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOEmbedded
internal import Testing
internal import restorationctl

/// A peer of a live page, in memory; its time passes when the test says so.
private final class LivePeer {
  let channel = EmbeddedChannel()
  private let server: LiveServer

  init(_ server: LiveServer) throws {
    self.server = server
    try channel.pipeline.syncOperations.addHandler(HalfClosing())
    try server.serve(channel)
    channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 8_000), promise: nil)
    channel.localAddress = try SocketAddress(ipAddress: "127.0.0.1", port: 8_000)
  }

  /// The path of the page.
  var path: Substring { server.address(of: channel).text.dropFirst("http://127.0.0.1:8000".count) }

  func send(_ text: String) throws { try channel.writeInbound(ByteBuffer(string: text)) }

  func get(_ path: some StringProtocol) throws { try send("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n") }

  /// Begins to wait for what is not the reading of that time.
  func wait(since made: String) throws { try get("\(path)changes/\(made)") }

  func pass(_ time: TimeAmount) { channel.embeddedEventLoop.advanceTime(by: time) }

  /// All that has been answered.
  func received() throws -> String {
    var text = ""
    while let bytes = try channel.readOutbound(as: ByteBuffer.self) { text += String(buffer: bytes) }
    return text
  }
}

/// A channel in memory would close as a whole.
private final class HalfClosing: ChannelOutboundHandler {
  typealias OutboundIn = Never

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    if mode == .output { promise?.succeed() } else { context.close(mode: mode, promise: promise) }
  }
}

/// `restorationctl inspect --live`: how long a connection may take, and how many there are.
@Suite struct LiveServerTests {
  private let server = LiveServer(Self.reading("1"))
  private let instant = TimeAmount.milliseconds(1)

  private static func reading(_ made: String) -> LiveReading {
    LiveReading(made: made, data: ByteBuffer(string: "data \(made)")) { ByteBuffer(string: "page \(made)") }
  }

  @Test(arguments: ["", "GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n"])
  func aConnectionWithoutAWholeRequestIsClosedAfterTenSeconds(_ begin: String) throws {
    let peer = try LivePeer(server)
    try peer.send(begin)
    peer.pass(.seconds(9))
    // What comes piece by piece gets no more time.
    if !begin.isEmpty { try peer.send("X: y\r\n") }
    peer.pass(.seconds(1) - instant)
    #expect(peer.channel.isActive)
    peer.pass(instant)
    #expect(!peer.channel.isActive)
  }

  @Test func whoWaitsForAChangeIsToldAfterTwentyFiveSecondsThatThereIsNone() throws {
    let peer = try LivePeer(server)
    peer.pass(.seconds(9))
    try peer.wait(since: "1")
    peer.pass(.seconds(25) - instant)
    #expect(try peer.received() == "")
    peer.pass(instant)
    #expect(try peer.received().hasPrefix("HTTP/1.1 204 No Content\r\n"))
    server.publish(Self.reading("2"))
    #expect(try peer.received() == "")
  }

  @Test func whoWaitsForAChangeIsToldOfIt() throws {
    let peer = try LivePeer(server)
    try peer.wait(since: "1")
    peer.pass(.seconds(24))
    server.publish(Self.reading("2"))
    #expect(try peer.received().hasSuffix("\r\n\r\ndata 2"))
    let late = try LivePeer(server)
    try late.wait(since: "1")
    #expect(try late.received().hasSuffix("\r\n\r\ndata 2"))
  }

  @Test func whoDoesNotTakeTheResponseIsClosedAfterAMinute() throws {
    let peer = try LivePeer(server)
    peer.pass(.seconds(9))
    try peer.get(peer.path)
    #expect(try peer.received().hasSuffix("\r\n\r\npage 1"))
    peer.pass(.seconds(60) - instant)
    #expect(peer.channel.isActive)
    // Whatever follows a request gets no answer, and no more time.
    try peer.get(peer.path)
    peer.pass(instant)
    #expect(!peer.channel.isActive)
    #expect(try peer.received() == "")
  }

  @Test func ofSixtyFourConnectionsTheOldestWithoutAnAcceptedRequestGivesWay() throws {
    let waiting = try LivePeer(server)
    try waiting.wait(since: "1")
    let others = try (0..<63).map { _ in try LivePeer(server) }
    #expect(others.allSatisfy { $0.channel.isActive })
    let next = try LivePeer(server)
    #expect(others.map { $0.channel.isActive } == [false] + Array(repeating: true, count: 62))
    // One that has gone makes room.
    others[1].channel.close(promise: nil)
    let last = try LivePeer(server)
    #expect(others[2].channel.isActive)
    server.publish(Self.reading("2"))
    #expect(try waiting.received().hasSuffix("data 2"))
    #expect(next.channel.isActive && last.channel.isActive)
  }

  /// It listens where it can, and is asked for by that address alone.
  @Test func anotherHostIsUsedIfTheFirstIsNotOfThisMachine() async throws {
    let address = try await server.listen(at: "192.0.2.1", else: "127.0.0.1").text
    #expect(address.hasPrefix("http://127.0.0.1:"))
    let other = try await server.listen(at: "127.99.98.97", else: "127.0.0.1").text
    #expect(other.hasPrefix("http://127.99.98.97:"))
    await #expect(throws: (any Error).self) { try await server.listen(at: "192.0.2.1", else: "192.0.2.1") }
  }

  /// All of them may wait: none of them is closed for another one.
  @Test func connectionsWithAcceptedRequestsNeverGiveWay() throws {
    let waiting = try (0..<64).map { _ in try LivePeer(server) }
    for peer in waiting { try peer.wait(since: "1") }
    let next = try LivePeer(server)
    #expect(waiting.allSatisfy { $0.channel.isActive })
    #expect(!next.channel.isActive)
  }
}
