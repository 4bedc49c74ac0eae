// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Making a generation the head again (R16).
@Suite struct RollbackTests {
  let broker = MemoryBroker()
  var tool: Peer { broker.connect(pid: 7) }

  /// One run: pushes states, given as path and state, and leaves.
  private func run(_ number: Int64, _ states: (String, String)..., also: (Peer) throws -> Void = { _ in }) throws {
    let peer = broker.connect(pid: 100 + number)
    try peer.initialize()
    for (path, state) in states { try peer.encode(path, state) }
    try also(peer)
    try peer.goodbye("restart")
    broker.inspect()
  }

  /// Runs that leave generations 1 to 3 and a head that is that of 3; each run changes `A`, the second makes `B`.
  private func fill() throws {
    try run(1, (#"["A"]"#, #"{"n":1}"#))
    try run(2, (#"["A"]"#, #"{"n":2}"#), (#"["B"]"#, #"{"b":2}"#))
    try run(3, (#"["A"]"#, #"{"n":3}"#))
    try run(4)
  }

  private func rollBack(_ generation: Int, _ more: String = "") throws -> JSONValue {
    try tool.call("rollBack", #"{"application":"App","generation":\#(generation)\#(more)}"#)
  }

  private func archived(_ generation: Int? = nil) throws -> [String: JSONValue] {
    let number = generation.map { #","generation":\#($0)"# } ?? ""
    let result = try tool.call("readArchive", #"{"application":"App"\#(number)}"#)
    var states: [String: JSONValue] = [:]
    for object in result["objects"]?.array ?? [] { states[object["path"]?.joined ?? ""] = object["state"] ?? .null }
    return states
  }

  private func generations() throws -> [String] {
    let result = try tool.call("listGenerations", #"{"application":"App"}"#)
    return (result["generations"]?.array ?? []).map { "\($0["generation"]?.integer ?? 0) \($0["kind"]?.string ?? "")" }
  }

  // MARK: Effects

  @Test func onlyWhatDiffersIsReadAndWritten() throws {
    try run(1, (#"["A"]"#, #"{"n":1}"#), (#"["B"]"#, #"{"b":1}"#), (#"["C"]"#, #"{"c":1}"#))
    try run(2, (#"["A"]"#, #"{"n":2}"#))
    try run(3)
    broker.forgetWritten()
    _ = try rollBack(1)
    let states = broker.written.filter { if case .state = $0 { true } else { false } }
    let nodes = broker.written.filter { if case .node = $0 { true } else { false } }
    #expect(states.count == 1 && nodes.isEmpty)
    #expect(try archived() == ["A": ["n": 1], "B": ["b": 1], "C": ["c": 1]])
    broker.inspect()
  }

  @Test func r13WhatComesBackIsAnOrphan() throws {
    try fill()
    try tool.call("discardApplicationState", #"{"application":"App"}"#)
    #expect(try archived() == [:])
    let result = try rollBack(3)
    #expect(result["former"]?.isNull == true && result["generation"] == 4)
    #expect(try tool.objects(#""application":"App""#).allSatisfy { $0["orphaned"] == true })
    broker.inspect()
    broker.restart()
    #expect(try archived() == ["A": ["n": 3], "B": ["b": 2]])
    broker.inspect()
    broker.advance(days: 91)
    for number in 10...29 as ClosedRange<Int64> {
      try run(number) { peer in
        try peer.register("A")
        _ = try peer.state(#"["A"]"#)
        try peer.encode(#"["A"]"#, "{}")
      }
    }
    #expect(try archived().keys.sorted() == ["A"])
  }

  @Test func r6PathsReferencesAndSuccessorsAreThoseOfTheGeneration() throws {
    try run(1) { peer in
      try peer.register("A", below: nil, #""kind":"viewController""#)
      try peer.register("B", below: #"["A"]"#)
      try peer.encode(#"["A","B"]"#, #"{"b":1}"#)
      try peer.encode(#"["A"]"#, #"{"r":{"$restorable":["A","B"]}}"#)
    }
    try run(2) { peer in
      try peer.register("A", below: nil, #""kind":"viewController""#)
      try peer.register("B", below: #"["A"]"#)
      try peer.call("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"Z"}"#)
      try peer.call("unregisterObject", #"{"object":["Z","B"]}"#)
    }
    #expect(try archived()["Z"]?["r"]?["$restorable"]?.isNull == true)
    _ = try rollBack(1)
    #expect(try archived()["A"]?["r"]?["$restorable"] == ["A", "B"])
    #expect(try archived()["A/B"] == ["b": 1])
    broker.inspect()
    broker.restart()
    #expect(try archived().keys.sorted() == ["A", "A/B"])
    broker.inspect()
  }

  @Test func r32AStateThatIsDamagedInTheGenerationIsNamed() throws {
    try fill()
    broker.disk.damage("App", broker.disk.rows(of: 1).prefix(1))
    let result = try rollBack(1)
    #expect(result["unreadable"] == [["A"]])
    #expect(try archived() == ["A": .null])
    #expect(try archived(3) == ["A": ["n": 3], "B": ["b": 2]])
    broker.inspect()
  }

  // MARK: Live sessions

  @Test func aSessionWhoseProcessHasJustEndedIsNotInTheWay() throws {
    try fill()
    let peer = broker.connect(pid: 50)
    try peer.initialize()
    broker.killUnnoticed(peer)
    #expect(try rollBack(1)["generation"] == 4)
    broker.inspect()
  }

  @Test func r15RevisionsGoOnAfterARestart() throws {
    try fill()
    let peer = broker.connect(pid: 50)
    let token = try #require(try peer.initialize()["session"]?.string)
    try peer.register("A")
    _ = try peer.state(#"["A"]"#)
    try peer.encode(#"["A"]"#, #"{"n":50}"#, #""revision":5"#)
    _ = try rollBack(1, #","force":true"#)
    broker.restart()
    let again = broker.connect(pid: 50)
    try again.initialize("App", #""session":"\#(token)""#)
    #expect(try again.encode(#"["A"]"#, #"{"n":50}"#, #""revision":5"#) == ["superseded": true])
    #expect(try archived()["A"] == ["n": 1])
    broker.inspect()
  }

  @Test func anObjectThatCameLaterStaysWithoutState() throws {
    try fill()
    let peer = broker.connect(pid: 50)
    try peer.initialize()
    let main = try peer.register("New")
    let child = try peer.register("Child", below: "\(main)")
    try peer.encode("\(child)", #"{"c":1}"#)
    _ = try rollBack(1, #","force":true"#)
    #expect(try peer.paths() == ["A", "New", "New/Child"])
    #expect(try peer.state("\(child)") == nil)
    try peer.encode("\(child)", #"{"c":2}"#)
    #expect(try archived()["New/Child"] == ["c": 2])
    broker.inspect()
    broker.restart()
    #expect(try archived() == ["A": ["n": 1], "New": .null, "New/Child": ["c": 2]])
    broker.inspect()
  }

  @Test func r3AnObjectAtThePathOfAnotherNodeBecomesThatNode() throws {
    try run(1, (#"["A"]"#, #"{"n":1}"#), (#"["A","B"]"#, #"{"b":1}"#))
    let peer = broker.connect(pid: 50)
    try peer.initialize()
    let first = try peer.register("A")
    try peer.register("B", below: #"["A"]"#)
    try peer.call("unregisterObject", #"{"object":["A","B"]}"#)
    try peer.call("unregisterObject", #"{"object":\#(first)}"#)
    let again = try peer.register("A")
    let child = try peer.register("C", below: "\(again)")
    try peer.encode("\(child)", "{}")
    _ = try rollBack(1, #","force":true"#)
    #expect(try peer.paths() == ["A", "A/B", "A/C"])
    #expect(try peer.state("\(again)") == ["n": 1])
    #expect(try peer.objects().first { $0["path"] == ["A"] }?["object"]?.integer == again)
    #expect(try peer.state(#"["A","B"]"#) == ["b": 1])
    broker.inspect()
    broker.restart()
    #expect(try archived() == ["A": ["n": 1], "A/B": ["b": 1], "A/C": .null])
    broker.inspect()
  }

  @Test func r8WhereTwoComeToOnePathTheGenerationsOwnObjectStays() throws {
    try run(1, (#"["A"]"#, #"{"n":1}"#))
    let (mover, other) = (broker.connect(pid: 50), broker.connect(pid: 51))
    try mover.initialize("App", #""process":"mover""#)
    let handle = try mover.register("A")
    try mover.call("setRestorationIdentifier", #"{"object":\#(handle),"restorationIdentifier":"Z"}"#)
    try other.initialize("App", #""serves":["registrationReplaced"]"#)
    let loser = try other.register("A")
    _ = try rollBack(1, #","force":true"#)
    #expect(try mover.state("\(handle)") == ["n": 1])
    let told = other.takeNotifications("registrationReplaced")
    #expect(told.first?["object"]?.integer == loser && told.first?["by"]?["process"] == "mover")
    #expect(try other.fail("encodeRestorableState", #"{"object":\#(loser),"state":{}}"#).kind == "replaced")
    broker.inspect()
    broker.restart()
    #expect(try archived() == ["A": ["n": 1]])
    broker.inspect()
  }

  // MARK: Faults

  @Test func aGenerationThatIsDroppedMeanwhileIsBroughtBackAllTheSame() throws {
    try fill()
    let caller = tool
    broker.betweenPieces = { [broker] in
      broker.betweenPieces = nil
      _ = broker.connect(pid: 8).start("discardApplicationState", #"{"application":"App","generations":true}"#)
    }
    let result = try caller.call("rollBack", #"{"application":"App","generation":2}"#)
    #expect(result["generation"] == 4 && result["former"]?.isNull == true)
    #expect(try archived() == ["A": ["n": 2], "B": ["b": 2]])
    #expect(try generations() == ["4 rolledBack"])
    broker.inspect()
  }

  @Test func aSessionThatBeginsMeanwhileIsInTheWay() throws {
    try fill()
    let caller = tool
    let peer = broker.connect(pid: 50)
    broker.betweenPieces = { [broker] in
      broker.betweenPieces = nil
      _ = peer.start("initialize", #"{"application":"App"}"#)
    }
    #expect(try caller.fail("rollBack", #"{"application":"App","generation":1}"#).kind == "needsForce")
    #expect(try archived()["A"] == ["n": 3])
    broker.inspect()
  }

  @Test func whatIsWrittenWhileTheGenerationIsReadGivesWay() throws {
    try run(1, (#"["A"]"#, #"{"n":1}"#), (#"["B"]"#, #"{"b":1}"#))
    try run(2, (#"["B"]"#, #"{"b":2}"#))
    try run(3)
    let caller = tool
    let writer = broker.connect(pid: 8)
    broker.betweenPieces = { [broker] in
      guard broker.jobCount >= 2 else { return }
      broker.betweenPieces = nil
      // The text of A was not to be read.
      _ = writer.start("encodeRestorableState", #"{"application":"App","object":["A"],"state":{"n":9}}"#)
    }
    let result = try caller.call("rollBack", #"{"application":"App","generation":1}"#)
    #expect(try archived() == ["A": ["n": 1], "B": ["b": 1]])
    #expect(try archived(Int(result["former"]?.integer ?? 0))["A"] == ["n": 9])
    broker.inspect()
  }

  @Test func aCallerThatLeavesChangesNothing() throws {
    try fill()
    let caller = tool
    broker.betweenPieces = { [broker] in
      broker.betweenPieces = nil
      broker.disconnect(caller)
    }
    caller.start("rollBack", #"{"application":"App","generation":1}"#)
    #expect(try archived()["A"] == ["n": 3])
    #expect(try generations().last == "3 startup")
    broker.inspect()
  }

  @Test func aTransactionThatFailsLeavesTheHeadAsItWas() throws {
    try fill()
    let before = try archived()
    let caller = tool
    broker.betweenPieces = { [broker] in
      broker.betweenPieces = nil
      broker.holdsCommits = true
    }
    let id = caller.start("rollBack", #"{"application":"App","generation":1}"#)
    broker.failCommit("App")
    #expect(try caller.failure(of: id).kind == "storeFailed")
    broker.holdsCommits = false
    #expect(try archived() == before)
    #expect(try generations().last == "3 startup")
    broker.inspect()
  }

  @Test func theArchiveLimitCountsTheHeadThatARollbackMakes() throws {
    var limits = Limits()
    limits.archiveBytesMax = 64 << 10
    let broker = MemoryBroker(limits: limits)
    func run(_ letter: String) throws {
      let peer = broker.connect(pid: 100)
      try peer.initialize()
      let text = String(repeating: letter, count: 40_000)
      try peer.encode(#"["A"]"#, letter == "1" ? #"{"x":"\#(text)"}"# : "{}")
      if letter == "2" { try peer.encode(#"["B"]"#, #"{"x":"\#(text)"}"#) }
      try peer.goodbye("restart")
    }
    try run("1")
    try run("2")
    let tool = broker.connect(pid: 7)
    let failure = try tool.fail("rollBack", #"{"application":"App","generation":1,"objects":[["A"]]}"#)
    #expect(failure.kind == "limitExceeded" && failure.data["limit"] == "archiveBytesMax")
    try tool.call("rollBack", #"{"application":"App","generation":1}"#)
    broker.inspect()
  }

  @Test func manyObjectsComeInPiecesAndProgressIsTold() throws {
    let peer = broker.connect(pid: 100)
    try peer.initialize()
    for index in 0..<1_500 { try peer.encode(#"["o\#(index)"]"#, #"{"n":\#(index)}"#) }
    try peer.goodbye("restart")
    try run(2) { try $0.encode(#"["x"]"#, "{}") }
    try tool.call("discardApplicationState", #"{"application":"App"}"#)
    let caller = tool
    let jobs = broker.jobCount
    try caller.call("rollBack", #"{"application":"App","generation":1,"progressToken":"p"}"#)
    #expect(broker.jobCount - jobs == 4)
    let told = caller.takeNotifications("progress")
    #expect(told.last?["done"] == 1_500 && told.last?["total"] == 1_500)
    #expect(try archived().isEmpty == false)
    #expect(broker.application("App")?.tree.count == 1_500)
    broker.inspect()
  }
}
