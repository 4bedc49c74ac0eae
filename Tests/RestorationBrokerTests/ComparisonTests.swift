// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// How differences between generations are found, and what is told of damaged ones.
@Suite struct ComparisonTests {
  let broker = MemoryBroker()
  var tool: Peer { broker.connect(pid: 7) }

  private func run(_ number: Int64, _ body: (Peer) throws -> Void) throws {
    let peer = broker.connect(pid: 100 + number)
    try peer.initialize()
    try body(peer)
    try peer.goodbye("restart")
  }

  private func diff(_ parameters: String, by peer: Peer? = nil) throws -> JSONValue {
    try (peer ?? tool).call("diffGenerations", #"{"application":"App",\#(parameters)}"#)
  }

  @Test func r32ADamagedStateIsNamed() throws {
    try run(1) { try $0.encode(#"["A"]"#, #"{"a":1}"#) }
    try run(2) { try $0.encode(#"["A"]"#, #"{"a":2}"#) }
    for row in broker.disk.rows(of: 1) {
      broker.restart()
      broker.disk.damage("App", [row])
      #expect(try diff(#""from":1"#)["changed"] == [["path": ["A"], "keys": [], "unreadable": true]])
    }
  }

  @Test func pathsAreInOrderEachBeforeWhatIsBelowIt() throws {
    try run(1) { try $0.encode(#"["b"]"#, "{}") }
    try run(2) { peer in
      for path in [#"["b-"]"#, #"["b","a","0"]"#, #"["a","z"]"#, #"["b","B"]"#] { try peer.encode(path, "{}") }
    }
    let added: JSONValue = [["a"], ["a", "z"], ["b", "B"], ["b", "a"], ["b", "a", "0"], ["b-"]]
    #expect(try diff(#""from":1"#)["added"] == added)
  }

  @Test(arguments: [
    "x", "1.2.3", "7.1.1.0.999.0.1", "7.1.1.0.1.-1.1", "7.1.1.0.1.0.9223372036854775807",
    "7.1.1.0.1.0.-9223372036854775808",
  ])
  func aCursorThatIsWrongIsRefused(_ cursor: String) throws {
    try run(1) { try $0.encode(#"["A"]"#, "{}") }
    try run(2) { _ in }
    let failure = try tool.fail("diffGenerations", #"{"application":"App","from":1,"cursor":"\#(cursor)"}"#)
    #expect(failure.kind == "invalidParams" && failure.data["pointer"]?.string == "/cursor")
  }

  /// Two generations whose differences take several pages of the peer, and the head.
  private func fillMany() throws {
    try run(1) { peer in for index in 100..<400 { try peer.encode(#"["o\#(index)"]"#, #"{"n":1}"#) } }
    try run(2) { peer in for index in 100..<400 { try peer.encode(#"["o\#(index)"]"#, #"{"n":\#(index)}"#) } }
  }

  @Test func aCursorIsGoodForAMinute() throws {
    try fillMany()
    let peer = broker.connect(pid: 9)
    try peer.initialize("App", #""messageBytesMax":8192"#)
    let cursor = try #require(try peer.call("diffGenerations", #"{"from":1}"#)["cursor"]?.string)
    broker.advance(milliseconds: 59_000)
    #expect(try peer.call("diffGenerations", #"{"from":1,"cursor":"\#(cursor)"}"#)["changed"] != nil)
    broker.advance(milliseconds: 2_000)
    #expect(try peer.fail("diffGenerations", #"{"from":1,"cursor":"\#(cursor)"}"#).data["pointer"] == "/cursor")
    broker.restart()
    let next = broker.connect(pid: 9)
    #expect(
      try next.fail("diffGenerations", #"{"application":"App","from":1,"cursor":"\#(cursor)"}"#).data["pointer"]
        == "/cursor"
    )
  }

  @Test func onlyTextsThatMayDifferAreRead() throws {
    try run(1) { peer in for index in 0..<1_100 { try peer.encode(#"["o\#(index)"]"#, "{}") } }
    try run(2) { try $0.encode(#"["o7"]"#, #"{"n":7}"#) }
    let jobs = broker.jobCount
    let peer = tool
    #expect(try diff(#""from":1,"progressToken":1"#, by: peer)["changed"]?.array?.count == 1)
    // Two pieces of nodes on each side, a pause after so many objects on each side and on both, and the two texts.
    #expect(broker.jobCount - jobs == 9)
    let told = peer.takeNotifications("progress")
    #expect(told.last?["done"] == 1_100 && told.last?["total"] == 1_100)
  }

  @Test func statesThatReferToMuchAreComparedAFewAtATime() throws {
    let references = Array(repeating: #"{"$restorable":["T"]}"#, count: 500).joined(separator: ",")
    func encode(_ number: Int, by peer: Peer) throws {
      try peer.encode(#"["T"]"#, "{}")
      for index in 0..<40 { try peer.encode(#"["o\#(index)"]"#, #"{"n":\#(number),"to":[\#(references)]}"#) }
    }
    try run(1) { try encode(1, by: $0) }
    try run(2) { try encode(2, by: $0) }
    let (jobs, delays) = (broker.jobCount, broker.loop.shortDelayCount)
    #expect(try diff(#""from":1"#)["changed"]?.array?.count == 40)
    // Two of nodes, and at least two of texts for ten objects.
    #expect(broker.jobCount - jobs >= 10)
    // The loop looks for input after each.
    #expect(broker.loop.shortDelayCount - delays >= broker.jobCount - jobs)
  }

  @Test func aGenerationThatIsDroppedMeanwhileIsComparedAllTheSame() throws {
    try run(1) { try $0.encode(#"["A"]"#, #"{"a":1}"#) }
    try run(2) { try $0.encode(#"["A"]"#, #"{"a":2}"#) }
    let caller = tool
    broker.betweenPieces = { [broker] in
      broker.betweenPieces = nil
      _ = broker.connect(pid: 8).start("discardApplicationState", #"{"application":"App","generations":true}"#)
    }
    #expect(try diff(#""from":1"#, by: caller)["changed"] == [["path": ["A"], "keys": ["a"]]])
  }

  @Test func aCallerThatLeavesIsForgotten() throws {
    try fillMany()
    let caller = tool
    broker.betweenPieces = { [broker] in
      broker.betweenPieces = nil
      broker.disconnect(caller)
    }
    let jobs = broker.jobCount
    caller.start("diffGenerations", #"{"application":"App","from":1}"#)
    #expect(broker.jobCount - jobs == 1)
    broker.inspect()
  }
}
