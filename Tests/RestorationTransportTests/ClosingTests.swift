// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore
internal import RestorationTransport
internal import Testing

/// How connections end.
@Suite struct ClosingTests {
  private let wait = #"{"jsonrpc":"2.0","id":1,"method":"wait"}"#

  @Test(.listener) func pendingRepliesAreSentAfterTheClientsHalfClose() async throws {
    let peer = try fixture.connect()
    try peer.send(wait + #"{"jsonrpc":"2.0","id":2,"method":"wait"}"#)
    peer.endOutput()
    let connection = try #require(await fixture.delegate.events.opened())
    let (first, _) = try #require(await fixture.delegate.events.request())
    let (second, _) = try #require(await fixture.delegate.events.request())
    try await fixture.onLoop { connection.respond(to: second, with: .result(.emptyArray)) }
    #expect(try peer.readLine() == #"{"jsonrpc":"2.0","id":2,"result":[]}"# + "\n")
    try await fixture.onLoop { connection.respond(to: first, with: .result(.emptyObject)) }
    #expect(try peer.readToEnd() == #"{"jsonrpc":"2.0","id":1,"result":{}}"# + "\n")
    #expect(await fixture.delegate.events.closed() == .peerClosed)
  }

  @Test(.listener) func aParkedRequestIsAnsweredAfterTheClientsHalfClose() async throws {
    let peer = try fixture.connect()
    try peer.send(wait)
    peer.endOutput()
    let connection = try #require(await fixture.delegate.events.opened())
    let (call, _) = try #require(await fixture.delegate.events.request())
    try await fixture.onLoop { try connection.park(call) }
    try await fixture.onLoop { connection.respond(to: call, with: .result(.null)) }
    #expect(try peer.readToEnd() == #"{"jsonrpc":"2.0","id":1,"result":null}"# + "\n")
  }

  @Test(.listener) func aFrameCutShortByTheHalfCloseIsAParseError() async throws {
    let peer = try fixture.connect()
    try peer.send(#"{"jsonrpc":"2.0","id":1,"#)
    peer.endOutput()
    #expect(try peer.readToEnd().contains("-32700"))
  }

  @Test(.listener) func requestsOfAClientThatIsGoneAlreadyAreDelivered() async throws {
    do {
      let peer = try fixture.connect()
      try peer.send(String(repeating: #"{"jsonrpc":"2.0","method":"update"}"#, count: 500))
    }
    #expect(await fixture.delegate.events.closed() == .peerClosed)
    #expect(fixture.delegate.received == 500)
  }

  @Test(.listener) func callsOfOursAreAbandonedByAHalfClose() async throws {
    let peer = try fixture.connect()
    let connection = try #require(await fixture.delegate.events.opened())
    let callID = try await fixture.onLoop { connection.call(method: "ask", parameters: nil) }
    #expect(try peer.readLine() == #"{"jsonrpc":"2.0","id":\#(try #require(callID)),"method":"ask"}"# + "\n")
    try peer.send(wait)
    peer.endOutput()
    let (call, _) = try #require(await fixture.delegate.events.request())
    guard case .abandoned(let abandoned)? = await fixture.delegate.events.next() else {
      Issue.record("the calls were not reported")
      return
    }
    #expect(abandoned == [try #require(callID)])
    #expect(try await fixture.onLoop { connection.call(method: "ask", parameters: nil) } == nil)
    try await fixture.onLoop { connection.respond(to: call, with: .result(.emptyObject)) }
    #expect(try peer.readToEnd() == #"{"jsonrpc":"2.0","id":1,"result":{}}"# + "\n")
  }

  @Test(.listener) func nothingHappensOnAClosedConnection() async throws {
    var peer: RawPeer? = try fixture.connect()
    try peer?.send(wait)
    let connection = try #require(await fixture.delegate.events.opened())
    let (call, _) = try #require(await fixture.delegate.events.request())
    peer = nil
    #expect(await fixture.delegate.events.closed() == .peerClosed)
    try await fixture.onLoop {
      connection.respond(to: call, with: .result(.emptyObject))
      connection.notify(method: "event", parameters: nil)
      connection.setInputPaused(true)
      connection.close(afterOutput: true)
      #expect(connection.call(method: "ask", parameters: nil) == nil)
      #expect(!connection.isOpen)
      #expect(connection.usage.replyBytes == 0)
    }
    // The loop has ended the tick in which something might have been done.
    _ = try await fixture.onLoop {}
    #expect(try await fixture.statistics.connections == 0)
  }

  @Test(.listener) func closingAfterOutputDeliversTheOutput() async throws {
    let peer = try fixture.connect()
    let connection = try #require(await fixture.delegate.events.opened())
    let text = JSONText(.string(String(repeating: "x", count: 3 << 20)))
    try await fixture.onLoop {
      connection.notify(method: "event", parameters: text)
      connection.close(afterOutput: true)
      connection.notify(method: "late", parameters: nil)
    }
    let output = try peer.readToEnd()
    #expect(output.utf8.count == (3 << 20) + #"{"jsonrpc":"2.0","method":"event","params":""}"#.utf8.count + 1)
    #expect(await fixture.delegate.events.closed() == .closed)
  }

  @Test(.listener) func closingAtOnceDoesNotWaitForThePeer() async throws {
    let peer = try fixture.connect()
    let connection = try #require(await fixture.delegate.events.opened())
    let text = JSONText(.string(String(repeating: "x", count: 3 << 20)))
    try await fixture.onLoop { connection.notify(method: "event", parameters: text) }
    try await fixture.onLoop {
      connection.close(afterOutput: true)
      connection.close(afterOutput: false)
    }
    #expect(await fixture.delegate.events.closed() == .closed)
    #expect(try peer.readToEnd().utf8.count < 3 << 20)
  }

  @Test(.listener) func aPeerThatStaysIsLeftWhenItHasHadItsTime() async throws {
    let peer = try fixture.connect()
    let connection = try #require(await fixture.delegate.events.opened())
    try await fixture.onLoop { connection.close(afterOutput: true) }
    #expect(await fixture.delegate.events.closed() == .closed)
    #expect(try peer.readToEnd() == "")
  }

  @Test(.listener) func closingFromBothSidesAtOnceHarmsNobody() async throws {
    for round in 1...200 {
      var peer: RawPeer? = try fixture.connect()
      let connection = try #require(await fixture.delegate.events.opened())
      try peer?.send(wait + #"{"jsonrpc":"2.0","id":2,"method":"get_data"}"#)
      fixture.listener.eventLoop.execute {
        connection.notify(method: "event", parameters: nil)
        if round % 3 > 0 { connection.close(afterOutput: round % 3 == 1) }
      }
      if round % 2 == 0 { peer?.endOutput() }
      peer = nil
      #expect(await fixture.delegate.events.closed() != nil)
    }
    while try await fixture.statistics.connections > 0 {}
    #expect(try await fixture.statistics.accepted == 200)
  }
}
