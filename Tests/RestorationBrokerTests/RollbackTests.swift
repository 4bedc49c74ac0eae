// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Making a generation the head again (R16).
@Suite struct RollbackTests {
  let driver = CoreDriver()
  var tool: Peer { driver.connect(pid: 7) }

  /// One run: pushes states, given as path and state, and leaves.
  private func run(_ number: Int64, _ states: (String, String)..., also: (Peer) throws -> Void = { _ in }) throws {
    let peer = driver.connect(pid: 100 + number)
    try peer.initialize()
    for (path, state) in states { try peer.encode(path, state) }
    try also(peer)
    try peer.goodbye("restart")
    driver.inspect()
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

  private func refusal(_ parameters: String) throws -> Peer.Failure {
    try tool.fail("rollBack", #"{"application":"App",\#(parameters)}"#)
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

  @Test func r16AGenerationBecomesTheHeadAndTheNextGeneration() throws {
    try fill()
    let result = try rollBack(1)
    #expect(result == ["generation": 4, "former": 3, "unreadable": []])
    #expect(try archived() == ["A": ["n": 1]])
    #expect(try archived(4) == archived(1))
    #expect(try archived(3) == ["A": ["n": 3], "B": ["b": 2]])
    #expect(try generations() == ["1 startup", "2 startup", "3 startup", "4 rolledBack"])
    driver.inspect()
    driver.restart()
    #expect(try archived() == ["A": ["n": 1]])
    driver.inspect()
  }

  @Test func r16AHeadThatChangedIsSealedFirstSoThatARollbackCanBeUndone() throws {
    try fill()
    try tool.encode(#"["C"]"#, #"{"c":1}"#, #""application":"App""#)
    let before = try archived()
    let result = try rollBack(2)
    #expect(result["former"] == 4 && result["generation"] == 5)
    #expect(try generations() == ["1 startup", "3 startup", "4 rollBack", "5 rolledBack"])
    #expect(try archived() == ["A": ["n": 2], "B": ["b": 2]])
    let undone = try rollBack(4)
    #expect(undone["former"] == 5 && undone["generation"] == 6)
    #expect(try archived() == before)
    driver.inspect()
  }

  @Test func r16WhatIsPinnedStaysPinned() throws {
    try fill()
    for generation in [1, 3, 4] { _ = try rollBack(generation) }
    let list = try tool.call("listGenerations", #"{"application":"App"}"#)["generations"]?.array
    #expect(list?.filter { $0["pinned"] == true }.map { $0["generation"]?.integer } == [1])
    #expect(try archived(1) == ["A": ["n": 1]])
  }

  @Test func r17ARollbackToWhatIsThereMakesNoGeneration() throws {
    try fill()
    let sequence = driver.archives["App"]?.sequence
    let result = try rollBack(3)
    #expect(result["generation"] == 3 && result["former"] == 3)
    #expect(try generations().last == "3 startup")
    driver.forgetWritten()
    _ = try rollBack(3)
    #expect(driver.written.allSatisfy { if case .run = $0 { true } else { false } })
    #expect(sequence != nil)
    driver.inspect()
  }

  @Test func onlyWhatDiffersIsReadAndWritten() throws {
    try run(1, (#"["A"]"#, #"{"n":1}"#), (#"["B"]"#, #"{"b":1}"#), (#"["C"]"#, #"{"c":1}"#))
    try run(2, (#"["A"]"#, #"{"n":2}"#))
    try run(3)
    driver.forgetWritten()
    _ = try rollBack(1)
    let states = driver.written.filter { if case .state = $0 { true } else { false } }
    let nodes = driver.written.filter { if case .node = $0 { true } else { false } }
    #expect(states.count == 1 && nodes.isEmpty)
    #expect(try archived() == ["A": ["n": 1], "B": ["b": 1], "C": ["c": 1]])
    driver.inspect()
  }

  @Test func r16ARollbackReachesThePinnedGenerationAfterAnyNumberOfBlankStarts() throws {
    try run(1, (#"["Main"]"#, #"{"good":1}"#), (#"["Main","Editor"]"#, #"{"line":7}"#))
    for number in 2...9 {
      try run(Int64(number)) { peer in
        try peer.register("Main")
        try peer.encode(#"["Main"]"#, #"{"blank":\#(number)}"#)
      }
    }
    #expect(try generations().first == "1 startup")
    _ = try rollBack(1)
    #expect(try archived() == ["Main": ["good": 1], "Main/Editor": ["line": 7]])
    let peer = driver.connect(pid: 200)
    #expect(try peer.initialize()["restoration"]?["reason"] == "launch")
    try peer.register("Main")
    #expect(try peer.state(#"["Main"]"#) == ["good": 1])
    driver.inspect()
  }

  @Test func r13WhatComesBackIsAnOrphan() throws {
    try fill()
    try tool.call("discardApplicationState", #"{"application":"App"}"#)
    #expect(try archived() == [:])
    let result = try rollBack(3)
    #expect(result["former"]?.isNull == true && result["generation"] == 4)
    #expect(try tool.objects(#""application":"App""#).allSatisfy { $0["orphaned"] == true })
    driver.inspect()
    driver.restart()
    #expect(try archived() == ["A": ["n": 3], "B": ["b": 2]])
    driver.inspect()
    driver.advance(days: 91)
    try run(10) { peer in
      try peer.register("A")
      _ = try peer.state(#"["A"]"#)
      try peer.encode(#"["A"]"#, "{}")
    }
    #expect(try archived().keys.sorted() == ["A"])
  }

  @Test func r30AfterAUserQuitARollbackBringsEverythingBack() throws {
    try fill()
    let peer = driver.connect(pid: 50)
    try peer.initialize()
    try peer.goodbye("userQuit")
    #expect(try archived() == [:])
    _ = try rollBack(2)
    let next = driver.connect(pid: 51)
    let restoration = try next.initialize()["restoration"]
    #expect(restoration?["state"] == "available" && restoration?["reason"] == "launch")
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
    driver.inspect()
    driver.restart()
    #expect(try archived().keys.sorted() == ["A", "A/B"])
    driver.inspect()
  }

  @Test func r4WhatTheGenerationLeavesOutDoesNotComeBack() throws {
    try run(1, (#"["Root"]"#, "{}")) { peer in
      let excluded = try peer.register(nil, below: nil, #""kind":"viewController""#)
      try peer.register("Inside", below: "\(excluded)", #""kind":"viewController""#)
      try peer.encode(#"["Inside"]"#, #"{"x":1}"#)
    }
    try run(2, (#"["Root"]"#, #"{"y":1}"#))
    #expect(try archived().keys.sorted() == ["Inside", "Root"])
    let result = try rollBack(1)
    #expect(try archived() == ["Root": [:]])
    // The former head is kept completely.
    #expect(try archived(Int(result["former"]?.integer ?? 0)).keys.sorted() == ["Inside", "Root"])
    driver.inspect()
  }

  @Test func r32AStateThatIsDamagedInTheGenerationIsNamed() throws {
    try fill()
    let row = driver.archives["App"]?.contents(at: 1_000).states[1]?.first?.sequence ?? 0
    driver.tamper("App") { $0.damaged = [row] }
    let result = try rollBack(1)
    #expect(result["unreadable"] == [["A"]])
    #expect(try archived() == ["A": .null])
    #expect(try archived(3) == ["A": ["n": 3], "B": ["b": 2]])
    driver.inspect()
  }

  // MARK: Live sessions

  @Test func liveSessionsNeedForce() throws {
    try fill()
    let peer = driver.connect(pid: 50)
    try peer.initialize("App", #""process":"editor""#)
    let failure = try refusal(#""generation":1"#)
    #expect(failure.kind == "needsForce")
    #expect(failure.message.contains(#""editor" (pid 50)"#))
    #expect(try peer.fail("rollBack", #"{"generation":1}"#).kind == "needsForce")
    // One whose process has just ended is not in the way.
    driver.killUnnoticed(peer)
    #expect(try rollBack(1)["generation"] == 4)
    driver.inspect()
  }

  @Test func r19LiveObjectsKeepTheirHandlesAndCountAsNotDecoded() throws {
    try fill()
    let peer = driver.connect(pid: 50)
    try peer.initialize("App", #""serves":["headReplaced"]"#)
    let handle = try peer.register("A")
    _ = try peer.state(#"["A"]"#)
    try peer.encode("\(handle)", #"{"n":50}"#, #""revision":5"#)
    let result = try rollBack(1, #","force":true"#)
    let generation = result["generation"]?.integer ?? 0
    #expect(peer.takeNotifications("headReplaced") == [["generation": .integer(generation)]])
    driver.inspect()
    // A push of an owner that has not decoded hides nothing from it; its revisions continue.
    #expect(try peer.encode("\(handle)", #"{"n":51}"#, #""revision":5"#) == ["superseded": true])
    try peer.encode("\(handle)", #"{"n":52}"#, #""revision":6"#)
    #expect(try archived()["A"] == ["n": 52])
    #expect(try peer.state("\(handle)") == ["n": 1])
    try peer.encode("\(handle)", #"{"n":53}"#, #""revision":7"#)
    #expect(try peer.state("\(handle)") == ["n": 53])
    driver.inspect()
  }

  @Test func r15RevisionsGoOnAfterARestart() throws {
    try fill()
    let peer = driver.connect(pid: 50)
    let token = try #require(try peer.initialize()["session"]?.string)
    try peer.register("A")
    _ = try peer.state(#"["A"]"#)
    try peer.encode(#"["A"]"#, #"{"n":50}"#, #""revision":5"#)
    _ = try rollBack(1, #","force":true"#)
    driver.restart()
    let again = driver.connect(pid: 50)
    try again.initialize("App", #""session":"\#(token)""#)
    #expect(try again.encode(#"["A"]"#, #"{"n":50}"#, #""revision":5"#) == ["superseded": true])
    #expect(try archived()["A"] == ["n": 1])
    driver.inspect()
  }

  @Test func anObjectThatCameLaterStaysWithoutState() throws {
    try fill()
    let peer = driver.connect(pid: 50)
    try peer.initialize()
    let main = try peer.register("New")
    let child = try peer.register("Child", below: "\(main)")
    try peer.encode("\(child)", #"{"c":1}"#)
    _ = try rollBack(1, #","force":true"#)
    #expect(try peer.paths() == ["A", "New", "New/Child"])
    #expect(try peer.state("\(child)") == nil)
    try peer.encode("\(child)", #"{"c":2}"#)
    #expect(try archived()["New/Child"] == ["c": 2])
    driver.inspect()
    driver.restart()
    #expect(try archived() == ["A": ["n": 1], "New": .null, "New/Child": ["c": 2]])
    driver.inspect()
  }

  @Test func r3AnObjectAtThePathOfAnotherNodeBecomesThatNode() throws {
    try run(1, (#"["A"]"#, #"{"n":1}"#), (#"["A","B"]"#, #"{"b":1}"#))
    let peer = driver.connect(pid: 50)
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
    driver.inspect()
    driver.restart()
    #expect(try archived() == ["A": ["n": 1], "A/B": ["b": 1], "A/C": .null])
    driver.inspect()
  }

  @Test func r6AnObjectThatMovedGoesBackAndItsOwnerIsTold() throws {
    try run(1, (#"["A"]"#, #"{"n":1}"#))
    let peer = driver.connect(pid: 50)
    try peer.initialize("App", #""serves":["pathChanged","headReplaced"]"#)
    let handle = try peer.register("A")
    try peer.call("setRestorationIdentifier", #"{"object":\#(handle),"restorationIdentifier":"Z"}"#)
    _ = try rollBack(1, #","force":true"#)
    #expect(peer.notifications.map(\.method) == ["pathChanged", "headReplaced"])
    #expect(peer.takeNotifications("pathChanged") == [["object": .integer(handle), "path": ["A"]]])
    #expect(try peer.state("\(handle)") == ["n": 1])
    driver.inspect()
  }

  @Test func r8WhereTwoComeToOnePathTheGenerationsOwnObjectStays() throws {
    try run(1, (#"["A"]"#, #"{"n":1}"#))
    let (mover, other) = (driver.connect(pid: 50), driver.connect(pid: 51))
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
    driver.inspect()
    driver.restart()
    #expect(try archived() == ["A": ["n": 1]])
    driver.inspect()
  }

  @Test func r4AnExcludedLiveObjectKeepsItsPlace() throws {
    try run(1, (#"["A"]"#, #"{"n":1}"#))
    let peer = driver.connect(pid: 50)
    try peer.initialize()
    let excluded = try peer.register(nil, below: #"["A"]"#, #""kind":"viewController""#)
    try peer.register("Inside", below: "\(excluded)", #""kind":"viewController""#)
    try peer.encode(#"["Inside"]"#, "{}")
    _ = try rollBack(1, #","force":true"#)
    #expect(try peer.objects().count == 3)
    #expect(try peer.paths() == ["A", "Inside"])
    driver.inspect()
  }

  @Test func r34ARestorationBringsTheOldStateToLiveObjects() throws {
    try run(1, (#"["A"]"#, #"{"n":1}"#))
    let peer = driver.connect(pid: 50)
    try peer.initialize("App", #""serves":["decodeRestorableStateWithCoder","headReplaced"]"#)
    let handle = try peer.register("A")
    peer.serves["decodeRestorableStateWithCoder"] = { _ in "{}" }
    #expect(try peer.call("restoreApplicationState")["restored"] == [["A"]])
    try peer.encode("\(handle)", #"{"n":50}"#)
    #expect(try peer.call("restoreApplicationState")["restored"] == [])
    try peer.call("rollBack", #"{"generation":1,"force":true}"#)
    #expect(try peer.call("restoreApplicationState")["restored"] == [["A"]])
    let states = peer.calls.filter { $0.method == "decodeRestorableStateWithCoder" }.compactMap { call in
      call.parameters["objects"]?.array?.first?["state"]
    }
    #expect(states == [["n": 1], ["n": 1]])
    // Its states from now on are its own again.
    try peer.encode("\(handle)", #"{"n":51}"#)
    #expect(try peer.state("\(handle)") == ["n": 51])
    driver.inspect()
  }

  @Test func r21ARollbackEndsARestoration() throws {
    try run(1, (#"["A"]"#, #"{"n":1}"#))
    try run(2, (#"["A"]"#, #"{"n":2}"#))
    let peer = driver.connect(pid: 50)
    try peer.initialize("App", #""serves":["decodeRestorableStateWithCoder"]"#)
    try peer.register("A")
    let id = peer.start("restoreApplicationState")
    #expect(peer.openCalls("decodeRestorableStateWithCoder").count == 1)
    _ = try rollBack(1, #","force":true"#)
    #expect(try peer.result(of: id)["skipped"] == [["path": ["A"], "reason": "discarded"]])
    peer.serves["decodeRestorableStateWithCoder"] = { _ in "{}" }
    #expect(try peer.call("restoreApplicationState")["restored"] == [["A"]])
    driver.inspect()
  }

  // MARK: Faults

  @Test(arguments: [
    ("invalidParams", #""x":1"#, "/generation"), ("invalidParams", #""generation":0"#, "/generation"),
    ("invalidParams", #""generation":null"#, "/generation"), ("invalidParams", #""generation":"1""#, "/generation"),
    ("invalidParams", #""generation":99"#, "/generation"), ("invalidParams", #""generation":1,"force":1"#, "/force"),
  ])
  func aCallThatIsWrongChangesNothing(_ kind: String, _ parameters: String, _ pointer: String) throws {
    try fill()
    let sequence = driver.archives["App"]?.sequence
    let failure = try refusal(parameters)
    #expect(failure.kind == kind && failure.data["pointer"]?.string == pointer)
    #expect(driver.archives["App"]?.sequence == sequence)
    #expect(try tool.fail("rollBack", #"{"application":"None","generation":1}"#).kind == "unknownApplication")
  }

  @Test func aGenerationThatIsDroppedMeanwhileIsBroughtBackAllTheSame() throws {
    try fill()
    let caller = tool
    driver.betweenPieces = { [driver] in
      driver.betweenPieces = nil
      _ = driver.connect(pid: 8).start("discardApplicationState", #"{"application":"App","generations":true}"#)
    }
    let result = try caller.call("rollBack", #"{"application":"App","generation":2}"#)
    #expect(result["generation"] == 4 && result["former"]?.isNull == true)
    #expect(try archived() == ["A": ["n": 2], "B": ["b": 2]])
    #expect(try generations() == ["4 rolledBack"])
    driver.inspect()
  }

  @Test func aSessionThatBeginsMeanwhileIsInTheWay() throws {
    try fill()
    let caller = tool
    let peer = driver.connect(pid: 50)
    driver.betweenPieces = { [driver] in
      driver.betweenPieces = nil
      _ = peer.start("initialize", #"{"application":"App"}"#)
    }
    #expect(try caller.fail("rollBack", #"{"application":"App","generation":1}"#).kind == "needsForce")
    #expect(try archived()["A"] == ["n": 3])
    driver.inspect()
  }

  @Test func whatIsWrittenWhileTheGenerationIsReadGivesWay() throws {
    try run(1, (#"["A"]"#, #"{"n":1}"#), (#"["B"]"#, #"{"b":1}"#))
    try run(2, (#"["B"]"#, #"{"b":2}"#))
    try run(3)
    let caller = tool
    let writer = driver.connect(pid: 8)
    driver.betweenPieces = { [driver] in
      guard driver.jobCount >= 2 else { return }
      driver.betweenPieces = nil
      // The text of A was not to be read.
      _ = writer.start("encodeRestorableState", #"{"application":"App","object":["A"],"state":{"n":9}}"#)
    }
    let result = try caller.call("rollBack", #"{"application":"App","generation":1}"#)
    #expect(try archived() == ["A": ["n": 1], "B": ["b": 1]])
    #expect(try archived(Int(result["former"]?.integer ?? 0))["A"] == ["n": 9])
    driver.inspect()
  }

  @Test func aCallerThatLeavesChangesNothing() throws {
    try fill()
    let caller = tool
    driver.betweenPieces = { [driver] in
      driver.betweenPieces = nil
      driver.disconnect(caller)
    }
    caller.start("rollBack", #"{"application":"App","generation":1}"#)
    #expect(try archived()["A"] == ["n": 3])
    #expect(try generations().last == "3 startup")
    driver.inspect()
  }

  @Test func aTransactionThatFailsLeavesTheHeadAsItWas() throws {
    try fill()
    let before = try archived()
    let caller = tool
    driver.betweenPieces = { [driver] in
      driver.betweenPieces = nil
      driver.holdsCommits = true
    }
    let id = caller.start("rollBack", #"{"application":"App","generation":1}"#)
    driver.failCommit("App")
    #expect(try caller.failure(of: id).kind == "storeFailed")
    driver.holdsCommits = false
    #expect(try archived() == before)
    #expect(try generations().last == "3 startup")
    driver.inspect()
  }

  @Test func theArchiveLimitCountsWhatIsWrittenAgain() throws {
    var limits = Limits()
    limits.archiveBytesMax = 64 << 10
    let driver = CoreDriver(limits: limits)
    func run(_ letter: String) throws {
      let peer = driver.connect(pid: 100)
      try peer.initialize()
      let text = String(repeating: letter, count: 25_000)
      try peer.encode(#"["A"]"#, #"{"x":"\#(text)"}"#)
      try peer.goodbye("restart")
    }
    try run("1")
    try run("2")
    let tool = driver.connect(pid: 7)
    let failure = try tool.fail("rollBack", #"{"application":"App","generation":1}"#)
    #expect(failure.kind == "limitExceeded" && failure.data["limit"] == "archiveBytesMax")
    driver.inspect()
  }

  @Test func manyObjectsComeInPiecesAndProgressIsTold() throws {
    driver.measuresArchives = false
    let peer = driver.connect(pid: 100)
    try peer.initialize()
    for index in 0..<1_500 { try peer.encode(#"["o\#(index)"]"#, #"{"n":\#(index)}"#) }
    try peer.goodbye("restart")
    try run(2) { try $0.encode(#"["x"]"#, "{}") }
    try tool.call("discardApplicationState", #"{"application":"App"}"#)
    let caller = tool
    let jobs = driver.jobCount
    try caller.call("rollBack", #"{"application":"App","generation":1,"progressToken":"p"}"#)
    #expect(driver.jobCount - jobs == 4)
    let told = caller.takeNotifications("progress")
    #expect(told.last?["done"] == 1_500 && told.last?["total"] == 1_500)
    #expect(try archived().isEmpty == false)
    #expect(driver.application("App")?.tree.count == 1_500)
    driver.inspect()
  }

  @Test func aNotificationRollsBackAsWell() throws {
    try fill()
    tool.notify("rollBack", #"{"application":"App","generation":1}"#)
    #expect(try archived() == ["A": ["n": 1]])
    driver.inspect()
  }
}
