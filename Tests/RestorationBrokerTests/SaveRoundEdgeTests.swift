// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Events during a save round (R12, R16, R28, R30, R33).
@Suite struct SaveRoundEdgeTests {
  let driver = CoreDriver()

  static let encode = "encodeRestorableStateWithCoder"

  /// A client that answers nothing automatically.
  private func worker(_ pid: Int64, _ more: String = "") throws -> Peer {
    let peer = driver.connect(pid: pid)
    try peer.initialize("App", #""process":"w\#(pid)","serves":["\#(Self.encode)"]"# + more)
    return peer
  }

  private func head() throws -> [String: JSONValue] {
    let reader = driver.connect(pid: 1)
    var states: [String: JSONValue] = [:]
    for object in try reader.call("readArchive", #"{"application":"App"}"#)["objects"]?.array ?? [] {
      states[object["path"]?.joined ?? ""] = object["state"] ?? .null
    }
    return states
  }

  private func stale(_ reply: JSONValue) -> [String] {
    (reply["stale"]?.array ?? []).map { "\($0["path"]?.joined ?? "null"): \($0["why"]?.string ?? "")" }
  }

  // MARK: Sessions

  @Test func r12AProcessThatDiesIsStaleAndBlocksNobody() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("A")
    try b.register("B")
    let id = a.start("saveApplicationState")
    a.answerEncode { _ in "{}" }
    driver.kill(b)
    driver.disconnect(b)
    let reply = try a.result(of: id)
    #expect(stale(reply) == ["B: ended"])
    #expect(reply["stale"]?.array?.first?["process"] == "w2")
    driver.inspect()
  }

  @Test func r12ALostConnectionIsStaleUnlessTheSessionComesBack() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("A")
    try b.register("B")
    let id = a.start("saveApplicationState")
    driver.disconnect(b)
    a.answerEncode { _ in "{}" }
    #expect(stale(try a.result(of: id)) == ["B: disconnected"])
  }

  @Test func r12ASessionThatComesBackInTimeIsAskedAgain() throws {
    let a = try worker(1)
    let b = driver.connect(pid: 2)
    let token = try #require(try b.initialize("App", #""serves":["\#(Self.encode)"]"#)["session"]?.string)
    try a.register("A")
    try b.register("B")
    let id = a.start("saveApplicationState")
    driver.disconnect(b)
    let again = driver.connect(pid: 2)
    try again.initialize("App", #""session":"\#(token)","serves":["\#(Self.encode)"]"#)
    again.answerEncode { _ in #"{"again":1}"# }
    a.answerEncode { _ in "{}" }
    #expect(stale(try a.result(of: id)) == [])
    #expect(try head()["B"] == ["again": 1])
  }

  @Test func r12ASessionThatMovesToANewConnectionIsAskedThere() throws {
    let a = try worker(1)
    let b = driver.connect(pid: 2)
    let token = try #require(try b.initialize("App", #""serves":["\#(Self.encode)"]"#)["session"]?.string)
    try a.register("A")
    try b.register("B")
    let id = a.start("saveApplicationState")
    let again = driver.connect(pid: 2)
    try again.initialize("App", #""session":"\#(token)","serves":["\#(Self.encode)"]"#)
    again.answerEncode { _ in #"{"again":1}"# }
    a.answerEncode { _ in "{}" }
    #expect(stale(try a.result(of: id)) == [])
    #expect(try head()["B"] == ["again": 1])
  }

  @Test(arguments: [("restart", ["B: ended"], ["A", "B"]), ("closed", [], ["A"])])
  func r12ASessionThatSaysGoodbyeIsNotWaitedFor(_ reason: String, _ whatIsStale: [String], _ kept: [String]) throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("A")
    try b.register("B")
    let id = a.start("saveApplicationState")
    a.answerEncode { _ in "{}" }
    try b.goodbye(reason)
    #expect(stale(try a.result(of: id)) == whatIsStale)
    #expect(try head().keys.sorted() == kept)
    #expect(b.openCalls(Self.encode).isEmpty)
    driver.inspect()
  }

  @Test func r3TheStateOfAClosedParentDoesNotComeBack() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("A")
    try b.register("B", below: #"["A"]"#)
    let id = b.start("saveApplicationState")
    a.answerEncode { _ in #"{"closed":1}"# }
    try a.goodbye("closed")
    b.answerEncode { _ in "{}" }
    #expect(stale(try b.result(of: id)) == [])
    let head = try head()
    #expect(head["A"]?.isNull == true)
    driver.inspect()
  }

  @Test func r3AClosedParentThatHasNotAnsweredIsNotStale() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("A")
    try b.register("B", below: #"["A"]"#)
    let id = b.start("saveApplicationState")
    try a.goodbye("closed")
    b.answerEncode { _ in "{}" }
    #expect(stale(try b.result(of: id)) == [])
  }

  @Test(arguments: [("logout", 2), ("restart", 2), ("", 1)])
  func r19AGoodbyeClearsTheMarkOfWhatWaitsForTheCommit(_ reason: String, _ expected: Int64) throws {
    let first = try worker(1)
    try first.register("A")
    try first.encode(#"["A"]"#, #"{"n":1}"#)
    try first.goodbye("restart")
    let (a, b) = (try worker(2), try worker(3))
    try a.register("A")
    try b.register("B")
    let id = b.start("saveApplicationState")
    a.answerEncode { _ in #"{"n":2}"# }
    if reason.isEmpty { driver.crash(a) } else { try a.goodbye(reason) }
    b.answerEncode { _ in "{}" }
    #expect(try b.result(of: id)["saved"] == true)
    let last = try worker(4)
    try last.register("A")
    #expect(try last.state(#"["A"]"#) == ["n": .integer(expected)])
    driver.inspect()
  }

  @Test func r12TheDelegateThatEndsInsteadOfAnsweringIsStale() throws {
    let a = try worker(1)
    try a.register("A")
    let delegate = driver.connect(pid: 2)
    try delegate.initialize("App", #""process":"D","delegate":true,"serves":["willEncodeRestorableState"]"#)
    let id = a.start("saveApplicationState")
    driver.crash(delegate)
    a.answerEncode { _ in "{}" }
    #expect(stale(try a.result(of: id)) == [": ended"])
  }

  @Test func r17UnchangedStatesTakeNoRoom() throws {
    var limits = Limits()
    limits.archiveBytesMax = 10_000
    let driver = CoreDriver(limits: limits)
    let a = driver.connect(pid: 1)
    try a.initialize("App", #""serves":["\#(Self.encode)"]"#)
    for name in ["A", "B"] { try a.register(name) }
    let text = #"{"x":"\#(String(repeating: "x", count: 3_500))"}"#
    for isSaved in [true, false] {
      let id = a.start("saveApplicationState")
      a.answerEncode { _ in text }
      #expect(try a.result(of: id)["stale"] == [])
      #expect(try a.result(of: id)["saved"] == .bool(isSaved))
    }
  }

  @Test func r12WhatHasComeCountsAlsoWhenItsProcessDiesBeforeTheCommit() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("A")
    try b.register("B")
    let id = a.start("saveApplicationState")
    b.answerEncode { _ in #"{"last":1}"# }
    driver.crash(b)
    a.answerEncode { _ in "{}" }
    #expect(stale(try a.result(of: id)) == [])
    #expect(try head()["B"] == ["last": 1])
    driver.inspect()
  }

  // MARK: Objects

  @Test func r12APushAfterTheAnswerIsTheLastWord() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("A")
    try b.register("B")
    let id = a.start("saveApplicationState")
    a.answerEncode { _ in #"{"answer":1}"# }
    try a.encode(#"["A"]"#, #"{"push":1}"#)
    try b.encode(#"["B"]"#, #"{"push":1}"#)
    b.answerEncode { _ in #"{"answer":1}"# }
    #expect(stale(try a.result(of: id)) == [])
    #expect(try head() == ["A": ["push": 1], "B": ["answer": 1]])
  }

  @Test func r15AnAnswerOfAnOldRevisionIsNotStored() throws {
    let peer = try worker(1)
    let handle = try peer.register("A")
    try peer.encode("\(handle)", #"{"push":1}"#, #""revision":5"#)
    let id = peer.start("saveApplicationState")
    let call = try #require(peer.openCalls(Self.encode).first)
    peer.answer(call.id, #"{"states":[{"object":\#(handle),"state":{"old":1},"revision":5}]}"#)
    #expect(stale(try peer.result(of: id)) == [])
    #expect(try head() == ["A": ["push": 1]])
    #expect(try peer.encode("\(handle)", "{}", #""revision":5"#)["superseded"] == true)
  }

  @Test func anObjectThatIsLetGoOfOrMovedDuringTheRound() throws {
    let (a, b) = (try worker(1), try worker(2))
    let gone = try a.register("Gone")
    let kept = try a.register("Kept")
    let moved = try a.register("Moved")
    try b.register("B")
    let id = b.start("saveApplicationState")
    a.answerEncode { #"{"of":"\#($0)"}"# }
    try a.call("unregisterObject", #"{"object":\#(gone)}"#)
    try a.call("unregisterObject", #"{"object":\#(kept),"keepState":true}"#)
    try a.call("setRestorationIdentifier", #"{"object":\#(moved),"restorationIdentifier":"There"}"#)
    b.answerEncode { _ in "{}" }
    #expect(stale(try b.result(of: id)) == [])
    #expect(try head() == ["B": [:], "There": ["of": "Moved"], "Kept": .null])
    driver.inspect()
  }

  @Test func r6AnObjectThatTakesTheVacantNodesPlaceKeepsItsAnswer() throws {
    let before = driver.connect(pid: 9)
    try before.encode(#"["Old"]"#, #"{"old":1}"#, #""application":"App""#)
    let (a, b) = (try worker(1), try worker(2))
    let handle = try a.register("New")
    try b.register("B")
    let id = b.start("saveApplicationState")
    a.answerEncode { #"{"of":"\#($0)"}"# }
    try a.call("setRestorationIdentifier", #"{"object":\#(handle),"restorationIdentifier":"Old"}"#)
    b.answerEncode { _ in "{}" }
    #expect(stale(try b.result(of: id)) == [])
    #expect(try head() == ["B": [:], "Old": ["of": "New"]])
    driver.inspect()
  }

  @Test func anObjectThatIsRegisteredAnewDuringTheRoundIsAnotherOne() throws {
    let (a, b) = (try worker(1), try worker(2))
    let handle = try a.register("A")
    try a.register("Below", below: #"["A"]"#)
    try b.register("B")
    let id = b.start("saveApplicationState")
    a.answerEncode { #"{"of":"\#($0)"}"# }
    try a.call("unregisterObject", #"{"object":\#(handle)}"#)
    try a.register("A")
    b.answerEncode { _ in "{}" }
    #expect(stale(try b.result(of: id)) == [])
    #expect(try head() == ["A": .null, "A/Below": ["of": "A/Below"], "B": [:]])
    driver.inspect()
  }

  @Test func r8AnObjectThatIsTakenOverDuringTheRoundIsNotTheOldOwnersToSave() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("A")
    try b.register("B")
    let id = b.start("saveApplicationState")
    a.answerEncode { _ in #"{"old":1}"# }
    try b.register("A", below: nil, #""takeOver":true"#)
    b.answerEncode { _ in "{}" }
    let reply = try b.result(of: id)
    #expect(stale(reply) == ["A: replaced"])
    #expect(reply["stale"]?.array?.first?["process"] == "w1")
    #expect(try head()["A"] == .null)
    driver.inspect()
  }

  @Test func whatIsRegisteredAfterTheWalkIsSavedAsItWasPushed() throws {
    let peer = try worker(1)
    try peer.register("A")
    let id = peer.start("saveApplicationState")
    driver.advance(milliseconds: 1)
    try peer.register("New")
    try peer.encode(#"["New"]"#, #"{"push":1}"#)
    peer.answerEncode { _ in "{}" }
    let reply = try peer.result(of: id)
    #expect(stale(reply) == [])
    #expect(reply["objects"] == 2)
    #expect(peer.calls.count == 1)
  }

  // MARK: The round as a whole

  @Test func aSecondCallJoinsTheRound() throws {
    let (a, tool) = (try worker(1), driver.connect(pid: 2))
    try a.register("A")
    let first = tool.start("saveApplicationState", #"{"application":"App"}"#)
    let second = tool.start("saveApplicationState", #"{"application":"App"}"#)
    a.answerEncode { _ in "{}" }
    #expect(try tool.result(of: first) == tool.result(of: second))
    #expect(a.calls.count == 1)
  }

  @Test func r12ACallFromASessionThatIsAskedIsReentrant() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("A")
    try b.register("B")
    let id = a.start("saveApplicationState")
    let reply = try b.call("saveApplicationState")
    #expect(reply["saved"] == false)
    #expect(reply["reason"] == "reentrant")
    b.answerEncode { _ in "{}" }
    let joined = b.start("saveApplicationState")
    a.answerEncode { _ in "{}" }
    #expect(try a.result(of: id)["saved"] == true)
    #expect(try b.result(of: joined)["saved"] == true)
  }

  @Test func aCallerThatCancelsIsAnsweredAndTheLastOneEndsTheRound() throws {
    let (a, tool) = (try worker(1), driver.connect(pid: 2))
    try a.register("A")
    let first = tool.start("saveApplicationState", #"{"application":"App"}"#)
    let second = tool.start("saveApplicationState", #"{"application":"App"}"#)
    driver.forgetWritten()
    tool.notify("$/cancelRequest", #"{"id":\#(first)}"#)
    #expect(try tool.failure(of: first).code == -32800)
    #expect(a.openCalls(Self.encode).count == 1)
    tool.notify("$/cancelRequest", #"{"id":\#(second)}"#)
    #expect(try tool.failure(of: second).kind == "requestCancelled")
    #expect(a.openCalls(Self.encode).isEmpty)
    #expect(driver.written.isEmpty)
    tool.notify("$/cancelRequest", #"{"id":\#(second)}"#)
    tool.notify("$/cancelRequest", #"{"id":"nobody"}"#)
    let again = tool.start("saveApplicationState", #"{"application":"App"}"#)
    a.answerEncode { _ in "{}" }
    #expect(try tool.result(of: again)["saved"] == true)
  }

  @Test func theRoundOfACallerThatLeavesIsCommitted() throws {
    let (a, tool) = (try worker(1), driver.connect(pid: 2))
    try a.register("A")
    tool.start("saveApplicationState", #"{"application":"App"}"#)
    driver.disconnect(tool)
    a.answerEncode { _ in #"{"a":1}"# }
    #expect(try a.call("listGenerations")["generations"]?.array?.count == 1)
  }

  @Test func aRoundThatBeganByItselfGoesOnWhenTheLastCallerCancels() throws {
    let (a, tool) = (try worker(1), driver.connect(pid: 2))
    try a.register("A")
    driver.advance(milliseconds: 15_000)
    let id = tool.start("saveApplicationState", #"{"application":"App"}"#)
    tool.notify("$/cancelRequest", #"{"id":\#(id)}"#)
    #expect(try tool.failure(of: id).code == -32800)
    a.answerEncode { _ in "{}" }
    #expect(try a.call("listGenerations")["generations"]?.array?.count == 1)
  }

  @Test func r18ChangesThatARoundDidNotSaveMakeAnotherOne() throws {
    let (a, tool) = (try worker(1), driver.connect(pid: 2))
    try a.register("A")
    let id = tool.start("saveApplicationState", #"{"application":"App"}"#)
    tool.notify("$/cancelRequest", #"{"id":\#(id)}"#)
    #expect(a.openCalls(Self.encode).isEmpty)
    driver.advance(milliseconds: 15_000)
    #expect(a.openCalls(Self.encode).count == 1)
  }

  @Test func progressIsToldWhereItIsAskedFor() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("A")
    try b.register("B")
    let id = a.start("saveApplicationState", #"{"progressToken":"p"}"#)
    driver.advance(milliseconds: 200)
    b.answerEncode { _ in "{}" }
    #expect(a.takeNotifications("progress") == [["progressToken": "p", "done": 1, "total": 2]])
    a.answerEncode { _ in "{}" }
    #expect(a.hasAnswer(id))
    #expect(a.takeNotifications("progress") == [["progressToken": "p", "done": 2, "total": 2]])
  }

  @Test func r30ADiscardInterruptsTheRound() throws {
    let a = try worker(1)
    try a.register("A")
    let id = a.start("saveApplicationState")
    try a.call("discardApplicationState")
    let reply = try a.result(of: id)
    #expect(reply["saved"] == false)
    #expect(reply["reason"] == "interrupted")
    #expect(a.openCalls(Self.encode).isEmpty)
    #expect(driver.timerCount <= 1, "only that of the changes")
    driver.inspect()
  }

  @Test func r30UserQuitInterruptsTheRound() throws {
    let a = try worker(1)
    let delegate = driver.connect(pid: 2)
    try delegate.initialize("App", #""delegate":true"#)
    try a.register("A")
    let id = a.start("saveApplicationState")
    try delegate.goodbye("userQuit")
    #expect(try a.result(of: id)["reason"] == "interrupted")
    #expect(a.openCalls(Self.encode).isEmpty)
  }

  @Test func aFailedTransactionInterruptsTheRound() throws {
    let a = try worker(1)
    try a.register("A")
    driver.holdsCommits = true
    let id = a.start("saveApplicationState")
    a.notify("encodeRestorableState", #"{"object":["B"],"state":{}}"#)
    driver.failCommit("App")
    driver.holdsCommits = false
    #expect(try a.result(of: id)["reason"] == "interrupted")
    let again = a.start("saveApplicationState")
    a.answerEncode { _ in "{}" }
    #expect(try a.result(of: again)["saved"] == true)
    driver.inspect()
  }

  @Test func r12AFailedCommitFailsTheCallAndNothingIsSaved() throws {
    let a = try worker(1)
    try a.register("A")
    driver.holdsCommits = true
    let id = a.start("saveApplicationState")
    a.answerEncode { _ in #"{"a":1}"# }
    driver.failCommit("App")
    driver.holdsCommits = false
    #expect(try a.failure(of: id).kind == "storeFailed")
    #expect(try a.call("listGenerations")["generations"] == [])
    #expect(try head() == ["A": .null])
  }

  // MARK: R16, R19, R31

  @Test func r16ThePinIsReleasedByARoundAfterTheRestoration() throws {
    let before = try worker(1)
    before.serves[Self.encode] = Peer.states { _ in #"{"good":1}"# }
    try before.register("A")
    try before.call("saveApplicationState")
    try before.goodbye("restart")
    let peer = try worker(2)
    peer.serves[Self.encode] = Peer.states { _ in #"{"blank":1}"# }
    try peer.register("A")
    func pinned() throws -> [Int64] {
      (try peer.call("listGenerations")["generations"]?.array ?? []).filter { $0["pinned"] == true }
        .compactMap { $0["generation"]?.integer }
    }
    try peer.call("saveApplicationState")
    #expect(try pinned() == [1], "nobody has restored anything yet")
    #expect(try peer.state(#"["A"]"#) == ["good": 1], "a pulled state may be early too")
    #expect(try peer.call("saveApplicationState")["saved"] == true)
    #expect(try pinned() == [], "the answer closed the last window")
    driver.inspect()
  }

  @Test func r31AnAnswerInARoundClosesTheWindow() throws {
    let before = try worker(1)
    try before.register("A")
    try before.encode(#"["A"]"#, #"{"a":1}"#)
    try before.goodbye("restart")
    let (peer, other) = (try worker(2), try worker(3))
    try peer.register("A")
    _ = try peer.decode(#"["A"]"#)
    #expect(try other.call("completeStateRestoration")["pending"] == 1)
    let id = peer.start("saveApplicationState")
    peer.answerEncode { _ in #"{"a":1}"# }
    #expect(peer.hasAnswer(id))
    #expect(try other.call("completeStateRestoration")["pending"] == 0)
  }

  // MARK: R33

  @Test func r33ABrokerThatIsToEndSavesWhatItsClientsHave() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("A")
    try b.register("B")
    driver.saveBeforeEnd()
    #expect(driver.core.isSaving)
    a.answerEncode { _ in #"{"a":1}"# }
    driver.advance(milliseconds: 4_999)
    #expect(driver.core.isSaving)
    driver.advance(milliseconds: 1)
    #expect(!driver.core.isSaving)
    #expect(try head() == ["A": ["a": 1], "B": .null])
    #expect(try a.call("listGenerations")["generations"]?.array?.count == 1)
  }

  @Test func r33ARoundUnderWayIsHurriedAndWhoHasNothingToSaveIsLeftAlone() throws {
    let a = try worker(1)
    try a.register("A")
    let id = a.start("saveApplicationState", #"{"deadlineMilliseconds":60000}"#)
    let quiet = driver.connect(pid: 5)
    try quiet.initialize("Quiet")
    driver.saveBeforeEnd()
    driver.advance(milliseconds: 5_000)
    #expect(stale(try a.result(of: id)) == ["A: late"])
    #expect(!driver.core.isSaving)
    #expect(try quiet.call("listGenerations")["generations"] == [])
    let pushes = driver.connect(pid: 6)
    try pushes.initialize("Pushes")
    try pushes.encode(#"["P"]"#, "{}")
    driver.saveBeforeEnd()
    #expect(try pushes.call("listGenerations")["generations"]?.array?.count == 1)
  }

  @Test func r33ARoundOfABrokerThatEndsGetsNoMoreTimeThanIsLeft() throws {
    let a = try worker(1)
    try a.register("A")
    driver.saveBeforeEnd()
    driver.advance(milliseconds: 4_000)
    a.answerEncode { _ in "{}" }
    #expect(!driver.core.isSaving)
    let id = a.start("saveApplicationState", #"{"deadlineMilliseconds":600000}"#)
    driver.advance(milliseconds: 1_000)
    #expect(a.hasAnswer(id))
  }
}
