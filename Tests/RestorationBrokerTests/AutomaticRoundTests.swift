// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Automatic rounds, and objects that are pulled because they were invalidated (R18).
@Suite struct AutomaticRoundTests {
  let driver = CoreDriver()

  static let encode = "encodeRestorableStateWithCoder"

  private func worker(_ pid: Int64, _ driver: CoreDriver? = nil) throws -> Peer {
    let peer = (driver ?? self.driver).connect(pid: pid)
    peer.serves[Self.encode] = Peer.states { #"{"of":"\#($0)"}"# }
    try peer.initialize("App", #""serves":["\#(Self.encode)"]"#)
    return peer
  }

  private func generations(_ peer: Peer) throws -> Int {
    try peer.call("listGenerations")["generations"]?.array?.count ?? 0
  }

  @Test func r18ARoundFollowsAChangeAfterFifteenSecondsOfQuiet() throws {
    let peer = try worker(1)
    #expect(driver.timerCount == 0, "nothing has changed")
    try peer.register("A")
    driver.advance(milliseconds: 14_999)
    try peer.register("B")
    driver.advance(milliseconds: 14_999)
    #expect(peer.calls.isEmpty)
    driver.advance(milliseconds: 1)
    #expect(peer.calls.count == 1)
    #expect(try generations(peer) == 1)
    #expect(driver.timerCount == 0, "the round itself changes nothing")
    driver.advance(milliseconds: 3_600_000)
    #expect(peer.calls.count == 1)
  }

  @Test func r18ARoundFollowsAfterFiveMinutesAlsoWithoutQuiet() throws {
    let peer = try worker(1)
    try peer.register("A")
    for second in 1...29 {
      driver.advance(milliseconds: 10_000)
      try peer.encode(#"["A"]"#, #"{"n":\#(second)}"#)
    }
    driver.advance(milliseconds: 9_999)
    #expect(peer.calls.isEmpty)
    driver.advance(milliseconds: 1)
    #expect(peer.calls.count == 1)
    #expect(try generations(peer) == 1)
  }

  @Test func r18WhatChangedBeforeTheBrokerWasRestartedIsSavedToo() throws {
    let peer = driver.connect(pid: 1)
    let serves = #""serves":["\#(Self.encode)"]"#
    let token = try #require(try peer.initialize("App", serves)["session"]?.string)
    try peer.register("A")
    driver.restart()
    let back = driver.connect(pid: 1)
    back.serves[Self.encode] = Peer.states { #"{"of":"\#($0)"}"# }
    try back.initialize("App", serves + #","session":"\#(token)""#)
    driver.advance(milliseconds: 15_000)
    #expect(back.calls.count == 1)
    #expect(try generations(back) == 1)
    driver.advance(milliseconds: 3_600_000)
    #expect(back.calls.count == 1)
  }

  @Test func r18WhereNobodyServesEncodeNoRoundBeginsByItself() throws {
    let peer = driver.connect(pid: 1)
    try peer.initialize()
    try peer.encode(#"["A"]"#, "{}")
    #expect(driver.timerCount == 0)
    let served = try worker(2)
    try served.register("B")
    #expect(driver.timerCount == 1)
    try served.goodbye("restart")
    #expect(driver.timerCount == 0)
  }

  @Test func r18TimesCanBeChosenAndZeroMeansNever() throws {
    var limits = Limits()
    limits.roundQuietMilliseconds = 0
    limits.roundIntervalMilliseconds = 1_000
    let interval = CoreDriver(limits: limits)
    let peer = try worker(1, interval)
    try peer.register("A")
    interval.advance(milliseconds: 1_000)
    #expect(peer.calls.count == 1)
    limits.roundIntervalMilliseconds = 0
    let never = CoreDriver(limits: limits)
    let other = try worker(1, never)
    try other.register("A")
    #expect(never.timerCount == 0)
  }

  @Test func r18ARoundThatIsDueWhileOneIsUnderWayDoesNotBegin() throws {
    let peer = try worker(1)
    peer.serves = [:]
    try peer.register("A")
    driver.advance(milliseconds: 14_000)
    let id = peer.start("saveApplicationState")
    driver.advance(milliseconds: 2_000)
    #expect(peer.calls.count == 1)
    peer.answerEncode { _ in "{}" }
    #expect(peer.hasAnswer(id))
    #expect(driver.timerCount == 0)
  }

  // MARK: Invalidation

  @Test func r18AnInvalidatedObjectIsPulledIntoTheHead() throws {
    let peer = try worker(1)
    let handle = try peer.register("A")
    try peer.register("B")
    #expect(try peer.call("invalidateRestorableState", #"{"object":\#(handle)}"#) == [:])
    try peer.call("invalidateRestorableState", #"{"object":["B"]}"#)
    try peer.call("invalidateRestorableState", #"{"object":["B"]}"#)
    #expect(peer.calls.isEmpty, "they are gathered")
    driver.advance(milliseconds: 100)
    let call = try #require(peer.calls.first)
    #expect(call.parameters["round"] == 0)
    #expect(call.parameters["objects"]?.array?.map { $0["path"]?.joined } == ["A", "B"])
    #expect(peer.calls.count == 1)
    #expect(try peer.state(#"["A"]"#) == ["of": "A"])
    #expect(try generations(peer) == 0)
    driver.inspect()
  }

  @Test func r18SubscribersAreToldOfAStateThatWasPulledOnceItIsStored() throws {
    let peer = try worker(1)
    try peer.register("A")
    let monitor = driver.connect(pid: 900)
    try monitor.call("subscribe", #"{"events":["stateEncoded"]}"#)
    for _ in 1...2 {
      try peer.call("invalidateRestorableState", #"{"object":["A"]}"#)
      driver.advance(milliseconds: 100)
    }
    let events = monitor.takeNotifications("event")
    #expect(events.map { $0["path"] } == [["A"]], "what was not written again is not told again")
    #expect(events.first?["pid"] == 1)
  }

  @Test func r18OnlyTheOwnerThatServesEncodeMayInvalidate() throws {
    let (owner, other) = (try worker(1), try worker(2))
    try owner.register("A")
    #expect(try other.fail("invalidateRestorableState", #"{"object":["A"]}"#).kind == "notOwner")
    #expect(try owner.fail("invalidateRestorableState", #"{"object":["X"]}"#).kind == "unknownObject")
    let pushes = driver.connect(pid: 3)
    try pushes.initialize()
    try pushes.register("P")
    let failure = try pushes.fail("invalidateRestorableState", #"{"object":["P"]}"#)
    #expect(failure.code == -32602)
    #expect(failure.message.contains("encodeRestorableStateWithCoder"))
  }

  @Test func r18WhatCannotBePulledIsToldToSubscribers() throws {
    let peer = try worker(1)
    peer.serves = [:]
    let handles = try ["A", "B", "C", "D"].map { try peer.register($0) }
    let monitor = driver.connect(pid: 9)
    try monitor.call("subscribe", #"{"events":["encodeFailed"]}"#)
    func invalidate() throws {
      for handle in handles { try peer.call("invalidateRestorableState", #"{"object":\#(handle)}"#) }
      driver.advance(milliseconds: 100)
    }
    func kinds() -> [String] {
      monitor.takeNotifications("event").map { "\($0["path"]?.joined ?? ""): \($0["error"]?["kind"]?.string ?? "")" }
    }
    try invalidate()
    var call = try #require(peer.openCalls(Self.encode).first)
    peer.answer(
      call.id,
      #"{"states":[{"object":\#(handles[0]),"state":{"UIStateRestoration":1}},{"object":\#(handles[1]),"error":{}},"#
        + #"{"object":\#(handles[2])}]}"#
    )
    #expect(kinds() == ["A: reservedKey", "B: failed", "C: malformed", "D: missing"])
    try invalidate()
    call = try #require(peer.openCalls(Self.encode).first)
    peer.answer(call.id, errorCode: -1, "no")
    #expect(kinds() == ["A: failed", "B: failed", "C: failed", "D: failed"])
    try invalidate()
    driver.advance(milliseconds: 5_000)
    #expect(peer.openCalls(Self.encode).isEmpty)
    #expect(kinds() == ["A: timedOut", "B: timedOut", "C: timedOut", "D: timedOut"])
  }

  @Test func r18APullGoesOnWhenTheSessionIsBack() throws {
    let peer = driver.connect(pid: 1)
    let token = try #require(try peer.initialize("App", #""serves":["\#(Self.encode)"]"#)["session"]?.string)
    try peer.register("A")
    try peer.call("invalidateRestorableState", #"{"object":["A"]}"#)
    driver.advance(milliseconds: 100)
    driver.disconnect(peer)
    let again = driver.connect(pid: 1)
    again.serves[Self.encode] = Peer.states { _ in #"{"again":1}"# }
    try again.initialize("App", #""session":"\#(token)","serves":["\#(Self.encode)"]"#)
    #expect(try again.state(#"["A"]"#) == ["again": 1])
    driver.advance(milliseconds: 10_000)
    driver.inspect()
  }

  @Test func r18ASecondInvalidationWhileTheFirstIsAskedForIsNotLost() throws {
    let peer = try worker(1)
    peer.serves = [:]
    let handle = try peer.register("A")
    try peer.call("invalidateRestorableState", #"{"object":\#(handle)}"#)
    driver.advance(milliseconds: 100)
    try peer.call("invalidateRestorableState", #"{"object":\#(handle)}"#)
    driver.advance(milliseconds: 100)
    #expect(peer.calls.count == 1, "one at a time")
    peer.answerEncode { _ in #"{"n":1}"# }
    #expect(peer.calls.count == 2)
    peer.answerEncode { _ in #"{"n":2}"# }
    #expect(try peer.state(#"["A"]"#) == ["n": 2])
    #expect(peer.calls.count == 2)
  }
}
