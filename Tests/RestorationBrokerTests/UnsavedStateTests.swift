// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// States of objects that are neither included nor reached are not stored, and asked for when that changes (R4, R7).
@Suite struct UnsavedStateTests {
  static let told = #""serves":["stateWanted","pathChanged"]"#
  static let asked = #""serves":["encodeRestorableStateWithCoder","stateWanted"]"#
  static let controller = #""kind":"viewController""#
  let broker = MemoryBroker()

  /// A session with `Root`, an excluded object below it, and `Sheet` below that.
  private func excluding(
    _ peer: Peer,
    _ more: String = UnsavedStateTests.told
  ) throws -> (root: Int64, excluder: Int64, sheet: Int64) {
    try peer.initialize("App", more)
    let root = try peer.register("Root", below: nil, Self.controller)
    let excluder = try peer.register(nil, below: "\(root)", Self.controller)
    return (root, excluder, try peer.register("Sheet", below: "\(excluder)", Self.controller))
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

  /// The paths of what a client was told to give since the last call of this.
  private func wanted(_ peer: Peer) -> [String] {
    peer.takeNotifications("stateWanted").map { $0["path"]?.joined ?? "-" }
  }

  // MARK: Storing nothing

  @Test func r4AStateBelowAnExclusionWritesNothing() throws {
    let peer = broker.connect(pid: 1)
    let (_, _, sheet) = try excluding(peer)
    broker.forgetWritten()
    for _ in 1...2 {
      let answer = try peer.encode("\(sheet)", #"{"password":"half"}"#, #""revision":1"#)
      #expect(answer["included"] == false && answer["durability"] == nil)
    }
    #expect(try reader().encode(#"["Sheet","Page"]"#, "{}")["included"] == false)
    #expect(broker.writtenStates == 0)
    #expect(try peer.state("\(sheet)") == nil)
    #expect(try peer.paths() == ["Root", "Sheet"])
    broker.inspect()
  }

  @Test func r4AStateThatIsNotStoredIsCheckedAllTheSame() throws {
    let peer = broker.connect(pid: 1)
    let (_, _, sheet) = try excluding(peer)
    let lost = peer.encoding("\(sheet)", #"{"to":{"$restorable":["Nowhere"]}}"#)
    #expect(try peer.fail("encodeRestorableState", lost).kind == "invalidReference")
    let impossible = peer.encoding(#"["Sheet","a#b#"]"#, "{}")
    #expect(try peer.fail("encodeRestorableState", impossible).kind == "invalidIdentifier")
  }

  @Test func r15ARevisionThatIsNotStoredDoesNotCount() throws {
    let peer = broker.connect(pid: 1)
    let (_, excluder, sheet) = try excluding(peer)
    try peer.encode("\(sheet)", #"{"n":1}"#, #""revision":4"#)
    try name(peer, excluder, "Shown")
    #expect(try peer.encode("\(sheet)", #"{"n":1}"#, #""revision":4"#)["durability"] == "disk")
    #expect(try peer.encode("\(sheet)", #"{"n":1}"#, #""revision":4"#)["superseded"] == true)
    broker.restart()
    #expect(try reader().state(#"["Root","Shown","Sheet"]"#) == ["n": 1])
  }

  @Test func r4TheEndOfASessionLeavesNothingOfWhatIsExcluded() throws {
    for reason in ["restart", "logout"] {
      let peer = broker.connect(pid: 1)
      let (_, excluder, sheet) = try excluding(peer)
      try name(peer, excluder, "Shown")
      try peer.encode("\(sheet)", #"{"n":1}"#)
      try name(peer, excluder, nil)
      try peer.goodbye(reason)
      broker.inspect()
      broker.disconnect(peer)
    }
    let next = broker.connect(pid: 2)
    let (_, _, sheet) = try excluding(next)
    #expect(try next.state("\(sheet)") == nil)
  }

  @Test func r13WhatIsExcludedInTheEndIsNotOnTheClosedShelf() throws {
    let peer = broker.connect(pid: 1)
    let (_, excluder, sheet) = try excluding(peer)
    try name(peer, excluder, "Shown")
    try peer.encode("\(sheet)", #"{"n":1}"#)
    try name(peer, excluder, nil)
    try peer.call("unregisterObject", #"{"object":\#(sheet)}"#)
    #expect(try peer.call("listClosedObjects")["objects"]?.array?.isEmpty == true)
    broker.inspect()
  }

  // MARK: Saved later

  @Test func r4AnOwnerIsToldOnceOfEachStateThatItHasGivenInVain() throws {
    let peer = broker.connect(pid: 1)
    let (root, excluder, sheet) = try excluding(peer)
    let page = try peer.register("Page", below: "\(sheet)", Self.controller)
    try peer.register("Silent", below: "\(sheet)", Self.controller)
    for object in [excluder, sheet, page] { try peer.encode("\(object)", "{}") }
    #expect(wanted(peer) == [])
    try name(peer, excluder, "Shown")
    #expect(wanted(peer) == ["Root/Shown", "Root/Shown/Sheet", "Root/Shown/Sheet/Page"])
    try name(peer, excluder, nil)
    try peer.encode("\(page)", "{}")
    try peer.call("setRestorationParent", #"{"object":\#(page),"restorationParent":\#(root)}"#)
    #expect(wanted(peer) == ["Root/Page"])
    try peer.encode("\(page)", "{}")
    try peer.call("setRestorationParent", #"{"object":\#(page),"restorationParent":\#(excluder)}"#)
    try peer.call("setRestorationParent", #"{"object":\#(page),"restorationParent":\#(root)}"#)
    #expect(wanted(peer) == [], "it was stored")
    broker.inspect()
  }

  @Test func r7AnOwnerIsToldOfAnObjectWithoutPath() throws {
    let peer = broker.connect(pid: 1)
    let (root, excluder, _) = try excluding(peer)
    let one = try peer.register("One", below: "\(excluder)", Self.controller)
    let two = try peer.register("Two", below: "\(excluder)", Self.controller)
    let referring = #"{"to":{"$restorable":["One"]}}"#
    try peer.encode("\(root)", referring)
    try peer.encode("\(one)", #"{"to":{"$restorable":["Two"]}}"#)
    try name(peer, two, nil)
    try peer.encode("\(root)", "{}")
    #expect(try peer.encode("\(two)", #"{"n":1}"#)["included"] == false)
    try peer.encode("\(root)", referring)
    #expect(peer.takeNotifications("stateWanted") == [["object": .integer(two), "path": .null]])
    broker.inspect()
  }

  @Test func r4AnOwnerThatServesEncodeIsAsked() throws {
    let peer = broker.connect(pid: 1)
    let (_, excluder, sheet) = try excluding(peer, Self.asked)
    peer.serves["encodeRestorableStateWithCoder"] = Peer.states { $0.hasSuffix("Sheet") ? #"{"n":2}"# : "{}" }
    try peer.encode("\(sheet)", #"{"n":1}"#)
    try name(peer, excluder, "Shown")
    broker.advance(milliseconds: 200)
    #expect(try reader().state(#"["Root","Shown","Sheet"]"#) == ["n": 2])
    #expect(wanted(peer) == [])
    broker.inspect()
  }

  @Test func r18AnObjectThatIsNotSavedIsNotAskedForUntilItIs() throws {
    let peer = broker.connect(pid: 1)
    let (_, excluder, sheet) = try excluding(peer, Self.asked)
    try peer.call("invalidateRestorableState", #"{"object":\#(sheet)}"#)
    broker.advance(milliseconds: 200)
    #expect(peer.openCalls("encodeRestorableStateWithCoder").isEmpty)
    try name(peer, excluder, "Shown")
    broker.advance(milliseconds: 200)
    #expect(peer.openCalls("encodeRestorableStateWithCoder").count == 1)
  }

  @Test func r4AnAnswerThatComesWhenItsObjectIsExcludedAgainIsNotStored() throws {
    let peer = broker.connect(pid: 1)
    let (_, excluder, sheet) = try excluding(peer, Self.asked)
    try peer.encode("\(sheet)", "{}")
    try name(peer, excluder, "Shown")
    broker.advance(milliseconds: 200)
    let call = try #require(peer.openCalls("encodeRestorableStateWithCoder").first)
    try name(peer, excluder, nil)
    broker.forgetWritten()
    peer.answer(call.id, #"{"states":[{"object":\#(sheet),"state":{"n":1}}]}"#)
    #expect(broker.writtenStates == 0)
    broker.inspect()
  }

  @Test func r7ARollbackThatBringsAReferenceBackAsksForWhatItReaches() throws {
    let peer = broker.connect(pid: 1)
    let (root, _, sheet) = try excluding(peer)
    try peer.encode("\(root)", #"{"to":{"$restorable":["Sheet"]}}"#)
    let generation = try #require(try peer.call("saveApplicationState")["generation"]?.integer)
    try peer.encode("\(root)", "{}")
    try peer.encode("\(sheet)", #"{"n":1}"#)
    #expect(wanted(peer) == [])
    try peer.call("rollBack", #"{"generation":\#(generation),"force":true}"#)
    #expect(wanted(peer) == ["Sheet"])
    broker.inspect()
  }

  @Test func r4WhatALostSessionMissesItIsToldWhenItIsBack() throws {
    let peer = broker.connect(pid: 1)
    let token = try #require(try peer.initialize("App", Self.told)["session"]?.string)
    let excluder = try peer.register(nil, below: nil, Self.controller)
    let other = try reader()
    let sheet = try peer.register("Sheet", below: "\(excluder)", Self.controller)
    try peer.encode("\(sheet)", "{}")
    broker.disconnect(peer)
    try other.encode(#"["Else"]"#, #"{"to":{"$restorable":["Sheet"]}}"#)
    let back = broker.connect(pid: 1)
    try back.initialize("App", #""session":"\#(token)",\#(Self.told)"#)
    #expect(wanted(back) == ["Sheet"])
    broker.inspect()
  }

  // MARK: Excluded later

  @Test func r4AStateStaysInTheHeadWhenItsObjectIsExcluded() throws {
    let (peer, reader) = (broker.connect(pid: 1), try reader())
    let (_, excluder, sheet) = try excluding(peer)
    try name(peer, excluder, "Shown")
    try peer.encode("\(sheet)", #"{"n":1}"#)
    broker.forgetWritten()
    try name(peer, excluder, nil)
    try peer.encode("\(sheet)", #"{"n":2}"#)
    #expect(try reader.state(#"["Sheet"]"#) == ["n": 1])
    #expect(try peer.call("saveApplicationState")["objects"] == 0)
    #expect(try peer.call("saveApplicationState")["reason"] == "unchanged")
    try name(peer, excluder, "Shown")
    #expect(try reader.state(#"["Root","Shown","Sheet"]"#) == ["n": 1])
    #expect(broker.writtenStates == 0)
    #expect(wanted(peer) == ["Root/Shown/Sheet"])
    broker.inspect()
  }

  @Test func r16TheGenerationBeforeARollbackHoldsWhatIsExcludedToo() throws {
    let peer = broker.connect(pid: 1)
    let (_, excluder, sheet) = try excluding(peer)
    try name(peer, excluder, "Shown")
    try peer.encode("\(sheet)", #"{"n":1}"#)
    let first = try #require(try peer.call("saveApplicationState")["generation"]?.integer)
    try name(peer, excluder, nil)
    let rolledBack = try peer.call("rollBack", #"{"generation":\#(first),"force":true}"#)
    let former = try #require(rolledBack["former"]?.integer)
    let objects = try peer.call("readArchive", #"{"generation":\#(former)}"#)["objects"]?.array ?? []
    #expect(objects.compactMap { $0["path"]?.joined } == ["Root", "Sheet"])
    broker.inspect()
  }

  @Test func r19AnEarlyStateThatIsNotStoredHidesNothing() throws {
    let first = broker.connect(pid: 1)
    try first.initialize()
    try first.register("Box", below: nil, Self.controller)
    try first.encode(#"["Box"]"#, #"{"n":"old"}"#)
    try first.goodbye("restart")
    let peer = broker.connect(pid: 2)
    try peer.initialize("App", Self.told)
    let box = try peer.register("Box", below: nil, Self.controller)
    try name(peer, box, nil)
    try peer.encode("\(box)", #"{"n":"blank"}"#)
    try name(peer, box, "Box")
    #expect(wanted(peer) == ["Box"])
    try peer.encode("\(box)", #"{"n":"blank"}"#)
    #expect(try reader().state(#"["Box"]"#) == ["n": "blank"])
    #expect(try peer.state("\(box)") == ["n": "old"])
    broker.inspect()
  }

  // MARK: Rounds

  @Test func r12APushInARoundIsNewerThanTheAnswer() throws {
    let (peer, other) = (broker.connect(pid: 1), broker.connect(pid: 2))
    let (root, _, sheet) = try excluding(peer, Self.asked)
    try other.initialize("App", Self.asked)
    try other.register("Other")
    let save = peer.start("saveApplicationState")
    let first = try #require(peer.openCalls("encodeRestorableStateWithCoder").first)
    peer.answer(first.id, #"{"states":[{"object":\#(root),"state":{"to":{"$restorable":["Sheet"]}}}]}"#)
    let second = try #require(peer.openCalls("encodeRestorableStateWithCoder").first)
    try peer.encode(#"["More"]"#, #"{"to":{"$restorable":["Sheet"]}}"#)
    peer.answer(second.id, #"{"states":[{"object":\#(sheet),"state":{"n":"asked"}}]}"#)
    #expect(try peer.encode("\(sheet)", #"{"n":"pushed"}"#)["durability"] == "disk")
    other.answerEncode { _ in "{}" }
    #expect(try peer.result(of: save)["saved"] == true)
    #expect(try reader().state(#"["Sheet"]"#) == ["n": "pushed"])
    broker.inspect()
  }

  // MARK: Failed transactions, other brokers

  @Test func r15AfterAFailedMoveTheOwnerIsToldOfTheNextOne() throws {
    let peer = broker.connect(pid: 1)
    let (_, excluder, sheet) = try excluding(peer)
    try peer.encode("\(sheet)", #"{"n":1}"#)
    broker.holdsCommits = true
    let move = peer.start("setRestorationIdentifier", renaming(excluder, "Shown"))
    broker.failCommit("App")
    #expect(try peer.failure(of: move).code == -32012)
    broker.holdsCommits = false
    broker.inspect()
    #expect(wanted(peer) == [])
    try name(peer, excluder, "Shown")
    #expect(wanted(peer).contains("Root/Shown/Sheet"))
    broker.inspect()
  }

  @Test func r4AfterAKillWhoServesEncodeIsAskedAndWhoDoesNotIsTold() throws {
    for serves in [Self.asked, Self.told] {
      let broker = MemoryBroker()
      let peer = broker.connect(pid: 1)
      let token = try #require(try peer.initialize("App", serves)["session"]?.string)
      let excluder = try peer.register(nil, below: nil, Self.controller)
      let sheet = try peer.register("Sheet", below: "\(excluder)", Self.controller)
      try peer.encode("\(sheet)", #"{"n":1}"#)
      broker.restart()
      let back = broker.connect(pid: 1)
      back.serves["encodeRestorableStateWithCoder"] = Peer.states { $0.hasSuffix("Sheet") ? #"{"n":1}"# : "{}" }
      try back.initialize("App", #""session":"\#(token)",\#(serves)"#)
      try name(back, excluder, "Shown")
      broker.advance(milliseconds: 1_000)
      let told = back.takeNotifications("stateWanted").filter { $0["object"]?.integer == sheet }
      if serves == Self.told {
        #expect(told == [["object": .integer(sheet), "path": ["Shown", "Sheet"]]])
      } else {
        #expect(told.isEmpty)
        #expect(try back.state("\(sheet)") == ["n": 1])
      }
      broker.inspect()
    }
  }

  @Test func aHandOffWithStatesThatAreNoLongerKeptIsTaken() throws {
    let peer = broker.connect(pid: 1)
    let token = try #require(try peer.initialize("App", Self.told)["session"]?.string)
    let excluder = try peer.register(nil, below: nil, Self.controller)
    let sheet = try peer.register("Sheet", below: "\(excluder)", Self.controller)
    try peer.encode("\(sheet)", #"{"n":1}"#)
    broker.restart()
    let back = broker.connect(pid: 1)
    let kept = #"{"object":\#(sheet),"states":[{"text":"{\"n\":1}","origin":{},"revision":1,"written":1}]}"#
    let record = #"{"canBeCalled":true,"session":{"application":"App","token":"\#(token)","kept":[\#(kept)]}}"#
    broker.service.connectionAdopted(back.connection.connection, context: Array(record.utf8), afterKill: false)
    #expect(try back.state("\(sheet)") == nil)
    try name(back, excluder, "Shown")
    #expect(wanted(back).contains("Shown/Sheet"))
    broker.inspect()
  }
}
