// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Automatic rounds, and pulls that bring nothing (R18).
@Suite struct AutomaticRoundTests {
  let broker = MemoryBroker()

  static let encode = "encodeRestorableStateWithCoder"

  private func worker(_ pid: Int64, _ broker: MemoryBroker? = nil) throws -> Peer {
    let peer = (broker ?? self.broker).connect(pid: pid)
    peer.serves[Self.encode] = Peer.states { #"{"of":"\#($0)"}"# }
    try peer.initialize("App", #""serves":["\#(Self.encode)"]"#)
    return peer
  }

  private func generations(_ peer: Peer) throws -> Int {
    try peer.call("listGenerations")["generations"]?.array?.count ?? 0
  }

  @Test func r18ARoundFollowsAChangeAfterFifteenSecondsOfQuiet() throws {
    let peer = try worker(1)
    #expect(broker.timerCount == 0, "nothing has changed")
    try peer.register("A")
    broker.advance(milliseconds: 14_999)
    try peer.register("B")
    broker.advance(milliseconds: 14_999)
    #expect(peer.calls.isEmpty)
    broker.advance(milliseconds: 1)
    #expect(peer.calls.count == 1)
    #expect(try generations(peer) == 1)
    #expect(broker.timerCount == 0, "the round itself changes nothing")
    broker.advance(milliseconds: 3_600_000)
    #expect(peer.calls.count == 1)
  }

  @Test func r18ARoundFollowsAfterFiveMinutesAlsoWithoutQuiet() throws {
    let peer = try worker(1)
    try peer.register("A")
    for second in 1...29 {
      broker.advance(milliseconds: 10_000)
      try peer.encode(#"["A"]"#, #"{"n":\#(second)}"#)
    }
    broker.advance(milliseconds: 9_999)
    #expect(peer.calls.isEmpty)
    broker.advance(milliseconds: 1)
    #expect(peer.calls.count == 1)
    #expect(try generations(peer) == 1)
  }

  @Test func r18WhatChangedBeforeTheBrokerWasRestartedIsSavedToo() throws {
    let peer = broker.connect(pid: 1)
    let serves = #""serves":["\#(Self.encode)"]"#
    let token = try #require(try peer.initialize("App", serves)["session"]?.string)
    try peer.register("A")
    broker.restart()
    let back = broker.connect(pid: 1)
    back.serves[Self.encode] = Peer.states { #"{"of":"\#($0)"}"# }
    try back.initialize("App", serves + #","session":"\#(token)""#)
    broker.advance(milliseconds: 15_000)
    #expect(back.calls.count == 1)
    #expect(try generations(back) == 1)
    broker.advance(milliseconds: 3_600_000)
    #expect(back.calls.count == 1)
  }

  @Test func r18WhereNobodyServesEncodeNoRoundBeginsByItself() throws {
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    try peer.encode(#"["A"]"#, "{}")
    #expect(broker.timerCount == 0)
    let served = try worker(2)
    try served.register("B")
    #expect(broker.timerCount == 1)
    try served.goodbye("restart")
    #expect(broker.timerCount == 0)
  }

  @Test func r18TimesCanBeChosenAndZeroMeansNever() throws {
    var limits = Limits()
    limits.roundQuietMilliseconds = 0
    limits.roundIntervalMilliseconds = 1_000
    let interval = MemoryBroker(limits: limits)
    let peer = try worker(1, interval)
    try peer.register("A")
    interval.advance(milliseconds: 1_000)
    #expect(peer.calls.count == 1)
    limits.roundIntervalMilliseconds = 0
    let never = MemoryBroker(limits: limits)
    let other = try worker(1, never)
    try other.register("A")
    #expect(never.timerCount == 0)
  }

  @Test func r18ARoundThatIsDueWhileOneIsUnderWayDoesNotBegin() throws {
    let peer = try worker(1)
    peer.serves = [:]
    try peer.register("A")
    broker.advance(milliseconds: 14_000)
    let id = peer.start("saveApplicationState")
    broker.advance(milliseconds: 2_000)
    #expect(peer.calls.count == 1)
    peer.answerEncode { _ in "{}" }
    #expect(peer.hasAnswer(id))
    #expect(broker.timerCount == 0)
  }

  @Test(arguments: [
    ("timedOut", "late", nil), ("malformed", "malformed", #"{"states":[{"object":$,"state":1}]}"#),
    ("malformed", "malformed", #"{"states":[{"object":$}]}"#), ("malformed", "malformed", "{}"),
    ("malformed", "malformed", #"{"states":[{"object":$,"state":{}},{"object":$,"state":{}}]}"#),
    ("missing", "missing", #"{"states":[]}"#),
  ])
  func r18APullWithALateOrWrongAnswerIsToldAndExplained(_ kind: String, _ why: String, _ answer: String?) throws {
    let peer = try worker(1)
    peer.serves = [:]
    let object = try peer.register("A")
    try peer.encode("\(object)", #"{"n":1}"#)
    let monitor = broker.connect(pid: 9)
    try monitor.call("subscribe", #"{"events":["encodeFailed"]}"#)
    try peer.call("invalidateRestorableState", #"{"object":["A"]}"#)
    broker.advance(milliseconds: 100)
    let call = try #require(peer.openCalls(Self.encode).first)
    if let answer {
      peer.answer(call.id, answer.replacing("$", with: "\(object)"))
    } else {
      broker.advance(milliseconds: 5_000)
    }
    #expect(peer.openCalls(Self.encode).isEmpty)
    #expect(monitor.takeNotifications("event").map { $0["error"]?["kind"]?.string } == [kind])
    let explanation = try peer.call("explainRestoration", #"{"object":["A"]}"#)
    #expect(explanation["verdict"] == "stale")
    #expect(explanation["saved"]?.array?.last?["why"]?.string == why)
    broker.inspect()
  }

  /// However often an object is pulled, the last pull is reported.
  @Test func r18WhatWasToldOfEarlierPullsLeavesRoomForTheLast() throws {
    let peer = try worker(1)
    peer.serves = [:]
    try peer.register("A")
    for number in 1...40 {
      try peer.call("invalidateRestorableState", #"{"object":["A"]}"#)
      broker.advance(milliseconds: 100)
      peer.answer(try #require(peer.openCalls(Self.encode).last).id, errorCode: 1, "\(number)")
    }
    let stale = try peer.call("explainRestoration", #"{"object":["A"]}"#)["saved"]?.array?.filter {
      $0["step"] == "stale"
    }
    #expect(stale?.map { $0["message"] } == ["40"])
  }

  @Test func r12WhatAnObjectsOwnerSaysIsCut() throws {
    let peer = try worker(1)
    let object = try peer.register("A")
    let long = String(repeating: "é", count: 1_000)
    peer.serves[Self.encode] = { _ in #"{"states":[{"object":\#(object),"error":{"message":"\#(long)"}}]}"# }
    let stale = try peer.call("saveApplicationState")["stale"]?.array
    #expect(stale?.first?["message"]?.string == String(repeating: "é", count: 126) + "…")
  }
}
