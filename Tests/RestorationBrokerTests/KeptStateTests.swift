// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// States of objects that are neither included nor reached stay off the disk (R4, R15).
@Suite struct KeptStateTests {
  let broker = MemoryBroker()

  /// A session with `Root`, an excluded object below it, and `Sheet` below that.
  private func excluding(_ peer: Peer, _ more: String = "") throws -> (root: Int64, excluder: Int64, sheet: Int64) {
    try peer.initialize("App", more)
    let root = try peer.register("Root", below: nil, #""kind":"viewController""#)
    let excluder = try peer.register(nil, below: "\(root)", #""kind":"viewController""#)
    return (root, excluder, try peer.register("Sheet", below: "\(excluder)", #""kind":"viewController""#))
  }

  private func name(_ peer: Peer, _ object: Int64, _ identifier: String?) throws {
    try peer.call("setRestorationIdentifier", renaming(object, identifier))
  }

  private func renaming(_ object: Int64, _ identifier: String?) -> String {
    #"{"object":\#(object),"restorationIdentifier":\#(identifier.map { #""\#($0)""# } ?? "null")}"#
  }

  private func reader() throws -> Peer {
    let peer = broker.connect(pid: 900)
    try peer.initialize()
    return peer
  }

  /// How many states the archive's head has.
  private var stored: Int { (broker.disk.archive("App")?.nodes ?? []).count { $0.state != nil } }

  // MARK: Writing nothing

  @Test func r4AStateBelowAnExclusionWritesNothing() throws {
    let peer = broker.connect(pid: 1)
    let (_, _, sheet) = try excluding(peer)
    broker.forgetWritten()
    let answer = try peer.encode("\(sheet)", #"{"password":"half"}"#)
    #expect(answer["included"] == false && answer["durability"] == nil)
    #expect(broker.writtenStates == 0)
    #expect(try peer.state("\(sheet)") == ["password": "half"])
    broker.inspect()
  }

  @Test func r15WhatIsKeptIsOnDiskAsSoonAsTheMoveIsAcknowledged() throws {
    let peer = broker.connect(pid: 1)
    let (_, excluder, sheet) = try excluding(peer)
    try peer.encode("\(sheet)", #"{"n":1}"#, #""revision":4"#)
    try name(peer, excluder, "Shown")
    broker.inspect()
    broker.restart()
    #expect(try reader().state(#"["Root","Shown","Sheet"]"#) == ["n": 1])
  }

  @Test func r15AKilledBrokerHasBothTheMoveAndTheStateOrNeither() throws {
    let peer = broker.connect(pid: 1)
    let (_, excluder, sheet) = try excluding(peer)
    try peer.encode("\(sheet)", #"{"n":1}"#)
    broker.forgetWritten()
    broker.holdsCommits = true
    peer.start("setRestorationIdentifier", renaming(excluder, "Shown"))
    broker.restart()
    broker.holdsCommits = false
    let back = broker.connect(pid: 1)
    try back.initialize()
    #expect(!(try back.paths().contains("Root/Shown")))
    #expect(broker.writtenStates == 0)
  }

  @Test func r4TheEndOfASessionLeavesNothingOfWhatWasKept() throws {
    for reason in ["restart", "logout"] {
      let peer = broker.connect(pid: 1)
      let (_, _, sheet) = try excluding(peer)
      try peer.encode("\(sheet)", #"{"n":1}"#)
      try peer.goodbye(reason)
      broker.inspect()
      broker.disconnect(peer)
    }
    let next = broker.connect(pid: 2)
    let (_, _, sheet) = try excluding(next)
    #expect(try next.state("\(sheet)") == nil)
  }

  @Test func r4WhatIsKeptIsNotForTheNextSession() throws {
    let (first, second) = (broker.connect(pid: 1), broker.connect(pid: 2))
    for peer in [first, second] { try peer.initialize() }
    let view = #""kind":"view""#
    let object = try first.register("D", below: nil, view)
    try first.encode("\(object)", #"{"n":1}"#)
    try second.register("D", below: nil, #"\#(view),"takeOver":true"#)
    #expect(try second.state(#"["D"]"#) == nil)
    try second.encode(#"["D"]"#, #"{"n":2}"#)
    try second.call("unregisterObject", #"{"object":["D"],"keepState":true}"#)
    broker.inspect()
    let id = first.start("registerObjectForStateRestoration", first.registration("D", below: nil, view))
    #expect(try first.result(of: id)["restoration"]?["state"] == "none")
    #expect(try first.state(#"["D"]"#) == nil)
    broker.inspect()
  }

  @Test func r4ChildrenThatCloseOthersSettleWhatOnlyThoseReferredTo() throws {
    let fixture = RestoringFixture()
    let page = #""position":1,\#(RestorationConcernTests.page)"#
    try fixture.save([("Bar", nil, "", "{}"), ("Tab", #"["Bar"]"#, page, "{}")])
    let worker = try fixture.join("W", pid: 1)
    let excluder = try worker.register(nil, below: nil, #""kind":"viewController""#)
    let sheet = try worker.register("Sheet", below: "\(excluder)", #""kind":"viewController""#)
    try worker.register("Bar")
    try worker.encode(#"["Bar","Tab#1"]"#, #"{"sheet":{"$restorable":["Sheet"]}}"#)
    try worker.encode("\(sheet)", #"{"n":1}"#)
    try worker.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    try worker.call("restoreApplicationState")
    let new = try worker.register("Tab", below: #"["Bar"]"#, #""position":5"#)
    let first = try worker.register("Tab", below: #"["Bar"]"#, #""position":6"#)
    try worker.call("setChildren", #"{"object":["Bar"],"children":[\#(first),\#(new)]}"#)
    #expect(try worker.paths().contains("Bar/Tab#2") == false)
    fixture.broker.inspect()
  }

  // MARK: Excluding later

  @Test func r4TheCopyOfWhatIsExcludedGoesWithTheNextGeneration() throws {
    let (peer, reader) = (broker.connect(pid: 1), try reader())
    let (_, excluder, sheet) = try excluding(peer)
    try name(peer, excluder, "Shown")
    try peer.encode("\(sheet)", #"{"n":1}"#)
    try name(peer, excluder, nil)
    #expect(stored == 1)
    #expect(try reader.state(#"["Sheet"]"#) == nil)
    #expect(try peer.state("\(sheet)") == ["n": 1])
    try peer.call("saveApplicationState")
    #expect(stored == 0)
    #expect(try peer.state("\(sheet)") == ["n": 1])
    broker.forgetWritten()
    #expect(try peer.call("saveApplicationState")["reason"] == "unchanged")
    try name(peer, excluder, "Shown")
    #expect(broker.writtenStates == 1)
    #expect(try reader.state(#"["Root","Shown","Sheet"]"#) == ["n": 1])
    broker.inspect()
  }

  @Test func r4WhatIsExcludedForAMomentIsNotWrittenAgain() throws {
    let peer = broker.connect(pid: 1)
    let (_, excluder, sheet) = try excluding(peer)
    try name(peer, excluder, "Shown")
    try peer.encode("\(sheet)", #"{"n":1}"#)
    broker.forgetWritten()
    try name(peer, excluder, nil)
    try name(peer, excluder, "Shown")
    #expect(broker.writtenStates == 0)
    broker.inspect()
  }

  // MARK: Failed transactions

  @Test func r15AFailedMoveLeavesWhatWasKept() throws {
    let peer = broker.connect(pid: 1)
    let (_, excluder, sheet) = try excluding(peer)
    try peer.encode("\(sheet)", #"{"n":1}"#, #""revision":3"#)
    broker.holdsCommits = true
    let move = peer.start("setRestorationIdentifier", renaming(excluder, "Shown"))
    broker.failCommit("App")
    #expect(try peer.failure(of: move).code == -32012)
    broker.holdsCommits = false
    broker.forgetWritten()
    broker.inspect()
    #expect(broker.written.isEmpty, "a full disk is left alone")
    #expect(try peer.state("\(sheet)") == ["n": 1])
    #expect(try peer.encode("\(sheet)", #"{"n":1}"#, #""revision":3"#)["superseded"] == true)
    try name(peer, excluder, "Shown")
    #expect(try reader().state(#"["Root","Shown","Sheet"]"#) == ["n": 1])
    broker.inspect()
  }

  @Test func r15AFailedGenerationLeavesTheCopyInTheHead() throws {
    let peer = broker.connect(pid: 1)
    let (_, excluder, sheet) = try excluding(peer)
    try name(peer, excluder, "Shown")
    try peer.encode("\(sheet)", #"{"n":1}"#)
    try name(peer, excluder, nil)
    try peer.encode("\(sheet)", #"{"n":2}"#)
    broker.holdsCommits = true
    let save = peer.start("saveApplicationState")
    broker.failCommit("App")
    #expect(try peer.failure(of: save).code == -32012)
    broker.holdsCommits = false
    broker.inspect()
    #expect(try peer.state("\(sheet)") == ["n": 2])
    try peer.call("saveApplicationState")
    #expect(stored == 0)
    #expect(try peer.state("\(sheet)") == ["n": 2])
    broker.inspect()
  }

  // MARK: Early states

  @Test func r19AnEarlyStateHidesNoOlderOneWhereverEitherIs() throws {
    let first = broker.connect(pid: 1)
    try first.initialize()
    let root = try first.register("Root", below: nil, #""kind":"viewController""#)
    try first.register("Box", below: "\(root)", #""kind":"viewController""#)
    try first.encode(#"["Root","Box"]"#, #"{"n":"old"}"#)
    try first.goodbye("restart")
    let peer = broker.connect(pid: 2)
    try peer.initialize()
    try peer.register("Root", below: nil, #""kind":"viewController""#)
    let box = try peer.register("Box", below: #"["Root"]"#, #""kind":"viewController""#)
    let page = try peer.register("Page", below: "\(box)", #""kind":"viewController""#)
    try name(peer, box, nil)
    try peer.encode("\(box)", #"{"n":"blank"}"#)
    try peer.call("saveApplicationState")
    #expect(stored == 0)
    try name(peer, box, "Box")
    broker.inspect()
    #expect(try reader().state(#"["Root","Box"]"#) == ["n": "blank"])
    #expect(try peer.state("\(box)") == ["n": "old"])
    #expect(try peer.state("\(page)") == nil)
  }

  // MARK: Limits

  @Test func r4WhatIsKeptCountsAsIfItWereStored() throws {
    var limits = Limits()
    limits.archiveBytesMax = 300
    let broker = MemoryBroker(limits: limits)
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    let excluder = try peer.register(nil, below: nil, #""kind":"viewController""#)
    let sheet = try peer.register("Sheet", below: "\(excluder)", #""kind":"viewController""#)
    let text = #"{"n":"\#(String(repeating: "x", count: 150))"}"#
    try peer.encode("\(sheet)", text)
    try peer.encode("\(sheet)", text)
    #expect(
      try peer.fail("encodeRestorableState", peer.encoding(#"["Else"]"#, text)).data["limit"] == "archiveBytesMax"
    )
    try name(peer, excluder, "Shown")
    broker.inspect()
    try name(peer, excluder, nil)
    try peer.encode("\(sheet)", text)
    try peer.call("unregisterObject", #"{"object":\#(sheet)}"#)
    try peer.encode(#"["Else"]"#, text)
  }

  // MARK: Owners

  @Test func r8WhoTakesAnObjectOverGetsNothingThatIsKeptOfIt() throws {
    let (peer, other) = (broker.connect(pid: 1), broker.connect(pid: 2))
    let (_, excluder, sheet) = try excluding(peer)
    try peer.encode("\(sheet)", #"{"n":1}"#)
    try other.initialize()
    try other.register("Sheet", below: "\(excluder)", #""kind":"viewController","takeOver":true"#)
    #expect(try peer.state(#"["Sheet"]"#) == nil)
    #expect(try other.state(#"["Sheet"]"#) == nil)
    broker.inspect()
  }

  @Test func r12AnAnswerThatIsOlderThanAPushIsDropped() throws {
    let (peer, other) = (broker.connect(pid: 1), broker.connect(pid: 2))
    let (root, _, sheet) = try excluding(peer, #""serves":["encodeRestorableStateWithCoder"]"#)
    try other.initialize("App", #""serves":["encodeRestorableStateWithCoder"]"#)
    try other.register("Other")
    let save = peer.start("saveApplicationState")
    let first = try #require(peer.openCalls("encodeRestorableStateWithCoder").first)
    peer.answer(first.id, #"{"states":[{"object":\#(root),"state":{"to":{"$restorable":["Sheet"]}}}]}"#)
    let second = try #require(peer.openCalls("encodeRestorableStateWithCoder").first)
    peer.answer(second.id, #"{"states":[{"object":\#(sheet),"state":{"n":"asked"}}]}"#)
    #expect(try peer.encode("\(sheet)", #"{"n":"pushed"}"#)["included"] == false)
    other.answerEncode { _ in "{}" }
    #expect(try peer.result(of: save)["saved"] == true)
    #expect(try reader().state(#"["Sheet"]"#) == ["n": "pushed"])
    broker.inspect()
  }

  @Test func r12AnAnswerIsNewerThanWhatWasKeptBeforeAndIsStoredMeanwhile() throws {
    let (peer, other) = (broker.connect(pid: 1), broker.connect(pid: 2))
    let (root, _, sheet) = try excluding(peer, #""serves":["encodeRestorableStateWithCoder"]"#)
    try peer.encode("\(sheet)", #"{"n":"before"}"#)
    try other.initialize("App", #""serves":["encodeRestorableStateWithCoder"]"#)
    try other.register("Other")
    let save = peer.start("saveApplicationState")
    let first = try #require(peer.openCalls("encodeRestorableStateWithCoder").first)
    peer.answer(first.id, #"{"states":[{"object":\#(root),"state":{"to":{"$restorable":["Sheet"]}}}]}"#)
    let second = try #require(peer.openCalls("encodeRestorableStateWithCoder").first)
    peer.answer(second.id, #"{"states":[{"object":\#(sheet),"state":{"n":"asked"}}]}"#)
    try peer.encode(#"["More"]"#, #"{"to":{"$restorable":["Sheet"]}}"#)
    #expect(try peer.state("\(sheet)") == ["n": "before"])
    other.answerEncode { _ in "{}" }
    #expect(try peer.result(of: save)["saved"] == true)
    #expect(try reader().state(#"["Sheet"]"#) == ["n": "asked"])
    broker.inspect()
  }

  // MARK: Other brokers

  @Test func r4AfterAKillWhoServesEncodeIsAskedWhenTheObjectIsReachedAgain() throws {
    let peer = broker.connect(pid: 1)
    let serves = #""serves":["encodeRestorableStateWithCoder","stateWanted"]"#
    let token = try #require(try peer.initialize("App", serves)["session"]?.string)
    let excluder = try peer.register(nil, below: nil, #""kind":"viewController""#)
    let sheet = try peer.register("Sheet", below: "\(excluder)", #""kind":"viewController""#)
    try peer.encode("\(sheet)", #"{"n":1}"#)
    broker.restart()
    let back = broker.connect(pid: 1)
    back.serves["encodeRestorableStateWithCoder"] = Peer.states { $0.hasSuffix("Sheet") ? #"{"n":1}"# : "{}" }
    try back.initialize("App", #""session":"\#(token)",\#(serves)"#)
    #expect(try back.state("\(sheet)") == nil)
    try name(back, excluder, "Shown")
    broker.advance(milliseconds: 1_000)
    #expect(try reader().state(#"["Shown","Sheet"]"#) == ["n": 1])
    #expect(back.takeNotifications("stateWanted").isEmpty)
  }

  @Test func r4AfterAKillWhoIsNotAskedIsTold() throws {
    let peer = broker.connect(pid: 1)
    let token = try #require(try peer.initialize("App", #""serves":["stateWanted"]"#)["session"]?.string)
    let excluder = try peer.register(nil, below: nil, #""kind":"viewController""#)
    let (sheet, known) = (
      try peer.register("Sheet", below: "\(excluder)", #""kind":"viewController""#),
      try peer.register("Known", below: "\(excluder)", #""kind":"viewController""#)
    )
    try peer.encode("\(sheet)", #"{"n":1}"#)
    broker.restart()
    let back = broker.connect(pid: 1)
    try back.initialize("App", #""session":"\#(token)","serves":["stateWanted"]"#)
    try back.encode("\(known)", #"{"n":2}"#)
    #expect(back.takeNotifications("stateWanted").isEmpty)
    try name(back, excluder, "Shown")
    let told = back.takeNotifications("stateWanted").filter { $0["object"]?.integer != excluder }
    #expect(told == [["object": .integer(sheet), "path": ["Shown", "Sheet"]]])
    broker.inspect()
  }
}
