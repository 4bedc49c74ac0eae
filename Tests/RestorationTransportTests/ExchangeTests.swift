// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTransport
internal import TestSupport
internal import Testing

/// Input and output of a real socket.
@Suite struct ExchangeTests {
  @Test(.listener, arguments: SpecificationExchange.all)
  func theSpecificationsExamplesAreAnsweredAsItSays(_ exchange: SpecificationExchange) async throws {
    let peer = try fixture.connect()
    try peer.send(exchange.request)
    peer.endOutput()
    let answer = try peer.readToEnd()
    guard let response = exchange.response else {
      #expect(answer == "")
      return
    }
    #expect(answer.hasSuffix("\n"))
    #expect(!answer.dropLast().contains("\n"))
    #expect(try SpecificationExchange.canonical(answer) == SpecificationExchange.canonical(response))
  }

  @Test(.listener) func aMessageMayArriveInAnyTwoPieces() async throws {
    let request = #"{"jsonrpc":"2.0","id":7,"method":"echo","params":{"text":"gr\u00fc\u00df ✓ \"{[\""}}"# + "\n"
    let bytes = Array(request.utf8)
    let peer = try fixture.connect()
    for cut in 1..<bytes.count {
      try peer.send(Array(bytes[..<cut]))
      // The loop turns in between, so that the pieces are read one by one.
      _ = try await fixture.onLoop {}
      try peer.send(Array(bytes[cut...]))
      #expect(try peer.readLine() == #"{"jsonrpc":"2.0","id":7,"result":{"text":"gr\u00fc\u00df ✓ \"{[\""}}"# + "\n")
    }
  }

  @Test(.listener) func aMessageMayArriveByteByByte() async throws {
    let peer = try fixture.connect()
    for byte in Array(#"{"jsonrpc":"2.0","id":"a","method":"echo","params":[[1, 2]]}"#.utf8) {
      try peer.send([byte])
      _ = try await fixture.onLoop {}
    }
    #expect(try peer.readLine() == #"{"jsonrpc":"2.0","id":"a","result":[1,2]}"# + "\n")
  }

  @Test(.listener) func aThousandMessagesInOneWriteAreAnsweredInOrder() async throws {
    let peer = try fixture.connect()
    let requests = (1...1_000).map { #"{"jsonrpc":"2.0","id":\#($0),"method":"echo","params":[\#($0)]}"# }
    try peer.send(requests.joined())
    peer.endOutput()
    let answers = try peer.readToEnd()
    #expect(answers == (1...1_000).map { #"{"jsonrpc":"2.0","id":\#($0),"result":\#($0)}"# + "\n" }.joined())
  }

  @Test(.listener) func nothingIsSentUnasked() async throws {
    let peer = try fixture.connect()
    _ = await fixture.delegate.events.opened()
    peer.endOutput()
    #expect(try peer.readToEnd() == "")
    #expect(await fixture.delegate.events.closed() == .peerClosed)
  }

  @Test(.listener) func somethingElseThanJSONIsToldSoAndClosed() async throws {
    let peer = try fixture.connect()
    try peer.send("hello\n")
    let line = try #require(try peer.readLine())
    #expect(line.contains("-32700") && line.contains(#""id":null"#))
    #expect(try peer.readToEnd() == "")
  }

  @Test(.listener) func theLastWordsReachAPeerThatKeepsWriting() async throws {
    let peer = try fixture.connect()
    try peer.send("hello\n")
    for _ in 1...100 { try peer.send(String(repeating: "x", count: 10_000)) }
    #expect(try #require(try peer.readLine()).contains("-32700"))
  }

  @Test(.listener(limits: { $0.partialFrameMilliseconds = 300 })) func aFrameThatStaysIncompleteIsToldSoAndClosed()
    async throws
  {
    let peer = try fixture.connect()
    try peer.send(#"{"jsonrpc":"2.0","#)
    let line = try #require(try peer.readLine())
    #expect(line.contains("-32008") && line.contains("partialFrameMilliseconds") && line.contains(#""id":null"#))
    #expect(try peer.readToEnd() == "")
    #expect(await fixture.delegate.events.closed() == .partialFrame)
  }

  @Test(.listener(limits: { $0.partialFrameMilliseconds = 100 }))
  func aLineThatDoesNotEndAfterASyntaxErrorIsToldSoAndClosed() async throws {
    let peer = try fixture.connect()
    try peer.send("{] and so on")
    #expect(try #require(try peer.readLine()).contains("-32700"))
    let line = try #require(try peer.readLine())
    #expect(line.contains("-32008") && line.contains("partialFrameMilliseconds") && line.contains("End the line"))
    #expect(try peer.readToEnd() == "")
    #expect(await fixture.delegate.events.closed() == .partialFrame)
  }

  @Test(.listener(limits: { $0.partialFrameMilliseconds = 200 }))
  func aClientThatIsAlwaysWithinAFrameButGetsOnIsNotCut() async throws {
    let peer = try fixture.connect()
    let (head, tail) = (#"{"jsonrpc":"2.0","id":1,"#, #""method":"get_data"}"#)
    try peer.send(head)
    let began = ContinuousClock.now
    while ContinuousClock.now - began < .milliseconds(600) {
      try peer.send(tail + head)
      #expect(try peer.readLine() == #"{"jsonrpc":"2.0","id":1,"result":["hello",5]}"# + "\n")
    }
  }

  @Test(.listener(limits: { $0.partialFrameMilliseconds = 300 })) func anIdleConnectionOutlivesThePartialFrameLimit()
    async throws
  {
    let idle = try fixture.connect()
    try idle.send(#"{"jsonrpc":"2.0","id":1,"method":"get_data"}"# + "\n")
    _ = try idle.readLine()
    let slow = try fixture.connect()
    try slow.send("{")
    // The slow one's end shows that the time has passed.
    _ = try slow.readToEnd()
    try idle.send(#"{"jsonrpc":"2.0","id":2,"method":"get_data"}"#)
    #expect(try idle.readLine() == #"{"jsonrpc":"2.0","id":2,"result":["hello",5]}"# + "\n")
  }
}
