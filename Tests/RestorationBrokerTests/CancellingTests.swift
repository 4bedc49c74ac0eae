// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import Testing

/// `$/cancelRequest` for every call that may take long, and the progress of those calls.
@Suite struct CancellingTests {
  private let broker = MemoryBroker()

  private func cancel(_ id: Int, _ peer: Peer) { peer.notify("$/cancelRequest", #"{"id":\#(id)}"#) }

  /// R31: a decode that waits for a suspect to be proven has been handed nothing.
  @Test func aDecodeThatWaitsForASuspectCanBeGivenUp() throws {
    let first = broker.connect(pid: 1)
    try first.initialize()
    for name in ["A", "B"] { try first.encode("\(try first.register(name))", "{}") }
    try first.goodbye("restart")
    let second = broker.connect(pid: 2)
    try second.initialize()
    for name in ["A", "B"] { try second.register(name) }
    second.start("decodeRestorableState", #"{"object":["A"]}"#)
    second.start("decodeRestorableState", #"{"object":["B"]}"#)
    broker.crash(second)
    let third = broker.connect(pid: 3)
    try third.initialize()
    for name in ["A", "B"] { try third.register(name) }
    _ = try third.decode(#"["A"]"#)
    let waits = third.start("decodeRestorableState", #"{"object":["B"]}"#)
    #expect(!third.hasAnswer(waits))
    cancel(waits, third)
    #expect(try third.failure(of: waits).kind == "requestCancelled")
    // It is asked for again and given in its turn.
    let again = third.start("decodeRestorableState", #"{"object":["B"]}"#)
    #expect(!third.hasAnswer(again))
    broker.advance(milliseconds: 250)
    #expect(try third.result(of: again)["status"] == "available")
  }

  /// An application with two generations, and a state that differs from both.
  private func makeGenerations() throws -> Peer {
    let peer = broker.connect()
    for number in 1...2 {
      for name in ["A", "B", "C"] { try peer.encode(#"["\#(name)"]"#, #"{"n":\#(number)}"#, #""application":"App""#) }
      try peer.call("saveApplicationState", #"{"application":"App"}"#)
    }
    try peer.encode(#"["A"]"#, #"{"n":3}"#, #""application":"App""#)
    return peer
  }

  static let pieces = [
    ("verifyArchive", ""), ("rollBack", #","generation":1"#), ("diffGenerations", #","from":1"#),
    ("exportArchive", #","generation":1"#),
  ]

  /// R16: work that reads the archive piece by piece ends with the current piece, and has changed nothing.
  @Test(arguments: pieces) func workInPiecesEndsWithThePieceUnderWay(_ method: String, _ more: String) throws {
    let peer = try makeGenerations()
    broker.forgetWritten()
    let before = broker.jobCount
    var id = 0
    broker.betweenPieces = { [broker] in
      broker.betweenPieces = nil
      id = (1...100).last { peer.unanswered.contains($0) } ?? 0
      peer.notify("$/cancelRequest", #"{"id":\#(id)}"#)
    }
    let call = peer.start(method, #"{"application":"App"\#(more)}"#)
    #expect(id == call)
    #expect(try peer.failure(of: call).code == -32800)
    #expect(broker.jobCount == before + 1)
    #expect(broker.written.isEmpty)
    #expect(try peer.decode(#"["A"]"#, #""application":"App""#)["state"] == ["n": 3])
    // Nothing is left behind: the same call works.
    #expect(try peer.call(method, #"{"application":"App"\#(more)}"#).isNull == false)
    #expect(broker.application("App")?.isRestoring == false)
  }

  @Test(arguments: pieces) func workInPiecesEndsWithWhicheverPieceIsUnderWay(_ method: String, _ more: String) throws {
    let peer = try makeGenerations()
    for last in 1...100 {
      let before = broker.jobCount
      var count = 0
      broker.betweenPieces = {
        count += 1
        guard count == last else { return }
        for id in peer.unanswered { peer.notify("$/cancelRequest", #"{"id":\#(id)}"#) }
      }
      let call = peer.start(method, #"{"application":"App"\#(more)}"#)
      broker.betweenPieces = nil
      #expect(broker.application("App")?.isIdle == true)
      guard count == last else {
        _ = try peer.result(of: call)
        return #expect(last > 2)
      }
      #expect(try peer.failure(of: call).code == -32800)
      #expect(broker.jobCount == before + last)
    }
  }

  @Test func aCopyIsMadeInOnePieceAndCannotBeCancelled() throws {
    let peer = try makeGenerations()
    broker.betweenPieces = { [broker] in
      broker.betweenPieces = nil
      for id in peer.unanswered { peer.notify("$/cancelRequest", #"{"id":\#(id)}"#) }
    }
    #expect(try peer.call("backupArchive", #"{"application":"App"}"#)["bytes"] == 4_096)
  }

  /// A call that waits for its archive has not begun: cancelled, it never begins, but later calls do.
  @Test func aCallThatHasNotBegunIsNeverDone() throws {
    broker.holdsOpenings = true
    let peer = broker.connect()
    let first = peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""application":"App""#))
    let second = peer.start("encodeRestorableState", peer.encoding(#"["B"]"#, "{}", #""application":"App""#))
    let third = peer.start("encodeRestorableState", peer.encoding(#"["C"]"#, "{}", #""application":"App""#))
    cancel(first, peer)
    cancel(second, peer)
    #expect(peer.unanswered == [first, second, third])
    broker.openHeld()
    #expect(try peer.failure(of: first).code == -32800)
    #expect(try peer.failure(of: second).code == -32800)
    #expect(try peer.result(of: third)["durability"] == "disk")
    #expect(try peer.paths(#""application":"App""#) == ["C"])
  }

  // MARK: Progress

  @Test func whoHasNoSessionAndCannotBeToldIsNot() throws {
    _ = try makeGenerations()
    let peer = broker.connect(canBeCalled: false)
    #expect(try peer.call("verifyArchive", #"{"application":"App","progressToken":1}"#)["sound"] == true)
  }
}
