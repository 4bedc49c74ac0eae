// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Sessions whose archive is closed to make room for another one, and stays theirs.
@Suite struct RestingSessionTests {
  private func broker(archives: Int = 1) -> MemoryBroker {
    var limits = Limits()
    limits.openArchivesMax = archives
    return MemoryBroker(limits: limits)
  }

  /// Whether no further archive can be opened; if one can, an open one has been closed for it.
  private func isHeld(_ broker: MemoryBroker) -> Bool {
    let other = broker.connect(pid: 900)
    defer { broker.disconnect(other) }
    let id = other.start("encodeRestorableState", other.encoding(#"["Z"]"#, "{}", #""application":"Other""#))
    guard other.resultIfAny(of: id) == nil else { return false }
    return (try? other.failure(of: id))?.data["limit"] == "openArchivesMax"
  }

  @Test func anArchiveWhoseSessionsHaveLostTheirConnectionsIsClosedAndTheyComeBackToIt() throws {
    let broker = broker(archives: 1)
    let (first, second) = (broker.connect(pid: 1), broker.connect(pid: 2))
    let token = try #require(try first.initialize("a")["session"]?.string)
    let object = try first.register("X")
    try first.encode("\(object)", #"{"n":1}"#)
    broker.disconnect(first)
    try second.encode(#"["Y"]"#, "{}", #""application":"b""#)
    #expect(broker.closed == ["a"])
    let back = broker.connect(pid: 1)
    #expect(try back.initialize("a", #""session":"\#(token)""#)["session"]?.string == token)
    try back.encode("\(object)", #"{"n":2}"#)
    broker.disconnect(back)
    try second.encode(#"["Y"]"#, "{}", #""application":"b""#)
    broker.kill(back)
    let next = broker.connect(pid: 3)
    #expect(try next.initialize("a")["restoration"]?["reason"]?.string == "recover")
    broker.inspect("a")
  }

  /// A session made by `initialize` over HTTP, whose connection is gone; returns the members its calls must have.
  private func leaveSession(
    _ application: String,
    _ broker: MemoryBroker,
    pid: Int64,
    _ more: String = ""
  ) throws -> String {
    let peer = broker.connect(pid: pid, canBeCalled: false)
    let token = try #require(try peer.initialize(application, more)["session"]?.string)
    broker.disconnect(peer)
    return #""application":"\#(application)","session":"\#(token)""#
  }

  @Test func anArchiveOfDetachedSessionsWithoutConnectionIsClosedAndTheyGoOn() throws {
    let broker = broker(archives: 2)
    let scope = try leaveSession("a", broker, pid: 1)
    let peer = broker.connect(pid: 1, canBeCalled: false)
    let object = try peer.register("X", below: nil, scope)
    try peer.encode("\(object)", #"{"n":1}"#, scope)
    broker.disconnect(peer)
    broker.advance(milliseconds: 1)
    _ = try leaveSession("b", broker, pid: 2)
    let other = broker.connect(pid: 3)
    try other.encode(#"["Y"]"#, #"{"in":"c"}"#, #""application":"c""#)
    #expect(try other.decode(#"["Y"]"#, #""application":"c""#)["state"] == ["in": "c"])
    #expect(broker.closed == ["a"])
    let back = broker.connect(pid: 1, canBeCalled: false)
    #expect(try back.decode("\(object)", scope)["state"] == ["n": 1])
    try back.encode("\(object)", #"{"n":2}"#, scope)
    #expect(try back.register("X", below: nil, scope) == object)
    broker.inspect("a")
  }

  @Test func aDetachedSessionThatIsConnectedHoldsItsArchiveOpen() throws {
    let broker = broker(archives: 1)
    let peer = broker.connect(pid: 1, canBeCalled: false)
    try peer.initialize("a")
    #expect(isHeld(broker))
    // The token may be left out on this connection.
    try peer.register("X", below: nil, #""application":"a""#)
    broker.disconnect(peer)
    try broker.connect(pid: 3).initialize("b")
    #expect(broker.closed == ["a"])
  }

  @Test func whatADetachedSessionHasYetToFetchHoldsItsArchiveOpen() throws {
    let broker = broker(archives: 1)
    let scope = try leaveSession("a", broker, pid: 1, #""serves":["encodeRestorableStateWithCoder"]"#)
    let peer = broker.connect(pid: 1, canBeCalled: false)
    let object = try peer.register("X", below: nil, scope)
    try peer.call("invalidateRestorableState", #"{"object":\#(object),\#(scope)}"#)
    broker.disconnect(peer)
    #expect(isHeld(broker))
    broker.advance(milliseconds: 1_000)
    #expect(isHeld(broker))
    let back = broker.connect(pid: 1, canBeCalled: false)
    let call = try #require(try back.call("nextRequest", "{\(scope)}")["id"]?.integer)
    broker.disconnect(back)
    #expect(isHeld(broker))
    let last = broker.connect(pid: 1, canBeCalled: false)
    let states = #"{"states":[{"object":\#(object),"state":{"n":1}}]}"#
    try last.call("answerRequest", #"{"id":\#(call),"result":\#(states),\#(scope)}"#)
    broker.disconnect(last)
    #expect(!isHeld(broker))
    #expect(try broker.connect(pid: 1, canBeCalled: false).decode("\(object)", scope)["state"] == ["n": 1])
  }

  @Test func aDetachedSessionEndsInTimeAlsoWhereItsArchiveIsClosed() throws {
    let broker = broker(archives: 1)
    let scope = try leaveSession("a", broker, pid: 1)
    let peer = broker.connect(pid: 1, canBeCalled: false)
    try peer.register("X", below: nil, scope)
    broker.disconnect(peer)
    broker.advance(milliseconds: 300_000)
    _ = try leaveSession("b", broker, pid: 2)
    #expect(broker.closed == ["a"])
    broker.advance(milliseconds: 299_999)
    let contender = broker.connect(pid: 3)
    let registration = #"{"restorationIdentifier":"X","application":"a"}"#
    #expect(try contender.fail("registerObjectForStateRestoration", registration).kind == "duplicatePath")
    broker.advance(milliseconds: 1)
    try contender.register("X", below: nil, #""application":"a""#)
    #expect(try broker.connect(pid: 1).fail("describeApplication", "{\(scope)}").code == -32602)
    broker.inspect("a")
  }

  /// A broker that exited before would forget what only its memory knows of them.
  @Test func aBrokerIsNotIdleWhileDetachedSessionsRest() throws {
    let broker = broker()
    _ = try leaveSession("a", broker, pid: 1)
    #expect(!isHeld(broker))
    #expect(broker.core.awaitsRestingSessions(at: broker.now))
    broker.advance(milliseconds: 599_999)
    #expect(broker.core.awaitsRestingSessions(at: broker.now))
    broker.advance(milliseconds: 1)
    #expect(!broker.core.awaitsRestingSessions(at: broker.now))
  }

  @Test func anInstanceWhoseDetachedSessionRestsIsNotVacant() throws {
    let broker = broker(archives: 1)
    _ = try leaveSession("App@1", broker, pid: 1)
    let peer = broker.connect(pid: 2)
    #expect(try peer.initialize("App", #""instance":"auto""#)["application"] == "App@2")
    try peer.goodbye("restart")
    broker.advance(milliseconds: 600_000)
    #expect(try broker.connect(pid: 3).initialize("App", #""instance":"auto""#)["application"] != "App@3")
  }

  // MARK: Reasons to keep an archive open

  @Test func aNextRequestThatWaitsHoldsItsArchiveOpen() throws {
    let broker = broker()
    let poller = try Poller(broker, serves: ["pathChanged"])
    let (peer, wait) = poller.wait(10_000)
    #expect(isHeld(broker))
    broker.advance(milliseconds: 10_000)
    #expect(try peer.result(of: wait).isNull)
    #expect(!isHeld(broker))
  }

  @Test(arguments: [false, true])
  func aConnectionWhoseSessionHasEndedHoldsNoArchiveOpen(_ byGoodbye: Bool) throws {
    let broker = broker()
    let peer = broker.connect(pid: 1, canBeCalled: false)
    let token = try #require(try peer.initialize("a")["session"]?.string)
    if byGoodbye {
      let other = broker.connect(pid: 1, canBeCalled: false)
      try other.call("goodbye", #"{"application":"a","session":"\#(token)","reason":"restart"}"#)
    } else {
      broker.advance(milliseconds: 600_000)
    }
    #expect(!isHeld(broker))
    #expect(broker.closed == ["a"])
  }

  @Test(arguments: ["initialize", "registerObjectForStateRestoration"])
  func aCallThatWaitsUntilItIsKnownWhichProcessesLiveHoldsItsArchiveOpen(_ method: String) throws {
    let broker = broker()
    let first = broker.connect(pid: 1)
    try first.initialize()
    try first.register("X")
    broker.disconnect(first)
    let second = broker.connect(pid: 2, canBeCalled: false)
    broker.killUnnoticed(first)
    broker.holdsProbes = true
    let id = second.start(method, #"{"application":"App","restorationIdentifier":"X"}"#)
    let next = second.start("ping")
    #expect(!second.hasAnswer(id) && !second.hasAnswer(next))
    #expect(isHeld(broker))
    broker.probeHeld()
    #expect(second.resultIfAny(of: id) != nil && second.hasAnswer(next))
  }

  /// The archive was closed anyway, because it could not be reopened.
  @Test func aCallThatWaitsUntilItIsKnownWhichProcessesLiveIsAnsweredAlsoIfTheArchiveIsClosed() throws {
    let broker = broker()
    let first = broker.connect(pid: 1)
    try first.initialize()
    broker.disconnect(first)
    broker.killUnnoticed(first)
    broker.holdsProbes = true
    broker.holdsCommits = true
    let second = broker.connect(pid: 2)
    let id = second.start("initialize", #"{"application":"App"}"#)
    let next = second.start("ping")
    broker.openingFailures["App"] = ArchiveError(.definite, "the disk is full")
    broker.connect(pid: 3).notify("encodeRestorableState", #"{"application":"App","object":["X"],"state":{}}"#)
    broker.failCommit("App")
    broker.openingFailures = [:]
    broker.holdsCommits = false
    broker.probeHeld()
    #expect(second.resultIfAny(of: id) != nil && second.hasAnswer(next))
    broker.inspect()
  }

  @Test func aSessionThatHoldsBackTheEndOfTheRestorationHoldsItsArchiveOpen() throws {
    let broker = broker()
    let poller = try Poller(broker)
    try poller.call("extendStateRestoration")
    #expect(isHeld(broker))
    broker.advance(milliseconds: 10_000)
    #expect(!isHeld(broker))
  }

  @Test func notificationsThatNobodyHasFetchedHoldNoArchiveOpenAndAreFetchedAfterwards() throws {
    let broker = broker()
    let poller = try Poller(broker, serves: ["registrationReplaced"])
    let handle = try poller.register("X")
    let other = broker.connect()
    try other.initialize()
    try other.register("X", below: nil, #""takeOver":true"#)
    try other.goodbye("restart")
    #expect(!isHeld(broker))
    #expect(broker.closed == ["App"])
    let request = try poller.next()
    #expect(request["method"] == "registrationReplaced")
    #expect(request["params"]?["object"]?.integer == handle)
    #expect(try poller.next().isNull)
    broker.inspect()
  }

  /// R15: it waits for the change it is about, and the archive is closed after that.
  @Test func aNotificationThatWaitsForTheDiskWhenItsArchiveIsClosedIsFetchedAfterwards() throws {
    let broker = broker()
    let poller = try Poller(broker, serves: ["registrationReplaced"])
    try poller.register("X")
    let (other, third) = (broker.connect(), broker.connect())
    try other.initialize()
    broker.holdsCommits = true
    other.start("registerObjectForStateRestoration", #"{"restorationIdentifier":"X","takeOver":true}"#)
    other.start("goodbye", #"{"reason":"restart"}"#)
    third.start("encodeRestorableState", #"{"application":"Other","object":["Z"],"state":{}}"#)
    #expect(broker.closed.isEmpty)
    broker.holdsCommits = false
    broker.commit()
    #expect(broker.closed == ["App"])
    #expect(try poller.next()["method"] == "registrationReplaced")
  }

  // MARK: State in memory only

  @Test(arguments: [false, true])
  func r19ABlankPushHidesNothingFromASessionThatHasNotDecodedBeforeItRested(_ isDetached: Bool) throws {
    let broker = broker()
    let script = broker.connect(pid: 3)
    try script.encode(#"["X"]"#, #"{"good":1}"#, #""application":"App""#)
    let peer = broker.connect(pid: 1, canBeCalled: !isDetached)
    let token = try #require(try peer.initialize()["session"]?.string)
    let scope = #""application":"App","session":"\#(token)""#
    try peer.register("X", below: nil, scope)
    broker.disconnect(peer)
    #expect(!isHeld(broker))
    #expect(broker.closed.contains("App"))
    let back = broker.connect(pid: 1, canBeCalled: !isDetached)
    try back.initialize("App", #""session":"\#(token)""#)
    try back.encode(#"["X"]"#, #"{"blank":1}"#, scope)
    #expect(try back.decode(#"["X"]"#, scope)["state"] == ["good": 1])
    broker.inspect()
  }

  /// The time of an early state runs from its claim, not from when the archive was opened.
  @Test func r19AnEarlyStateIsSettledInTimeAlsoIfItsSessionRestedMeanwhile() throws {
    let broker = broker()
    try broker.connect(pid: 3).encode(#"["X"]"#, #"{"good":1}"#, #""application":"App""#)
    let poller = try Poller(broker)
    let handle = try poller.register("X")
    broker.advance(milliseconds: 30_000)
    try poller.call("encodeRestorableState", #""object":\#(handle),"state":{"new":1}"#)
    #expect(!isHeld(broker))
    broker.advance(milliseconds: 29_000)
    try poller.call("ping")
    try poller.call("describeApplication")
    #expect(broker.application("App")?.tree.node(at: ["X"])?.state?.isEarly == true)
    broker.advance(milliseconds: 1_000)
    #expect(broker.application("App")?.tree.node(at: ["X"])?.state?.isEarly == false)
  }

  @Test func r8ALoserThatRestedCannotWriteAnyMore() throws {
    let broker = broker()
    let poller = try Poller(broker)
    let handle = try poller.register("X")
    let other = broker.connect()
    try other.initialize()
    try other.register("X", below: nil, #""takeOver":true"#)
    try other.goodbye("restart")
    #expect(!isHeld(broker))
    for object in [#"["X"]"#, "\(handle)"] {
      let failure = try poller.fail("encodeRestorableState", #""object":\#(object),"state":{}"#)
      #expect(failure.kind == "replaced")
    }
    broker.inspect()
  }

  @Test func r21WhatASessionFetchedBeforeItRestedItIsToldOfInTheEnd() throws {
    let broker = broker()
    try broker.connect(pid: 3).encode(#"["X"]"#, #"{"n":1}"#, #""application":"App""#)
    let poller = try Poller(broker, serves: ["applicationFinishedRestoringState"])
    let handle = try poller.register("X")
    #expect(try poller.call("decodeRestorableState", #""object":\#(handle)"#)["state"] == ["n": 1])
    #expect(!isHeld(broker))
    try poller.call("completeStateRestoration")
    #expect(try poller.next()["params"] == ["objects": [.integer(handle)]])
  }

  @Test func r19ASessionThatWasRestoredBeforeItRestedPushesNothingEarly() throws {
    let broker = broker()
    try broker.connect(pid: 3).encode(#"["X"]"#, #"{"old":1}"#, #""application":"App""#)
    let poller = try Poller(broker)
    let handle = try poller.register("X")
    try poller.call("completeStateRestoration")
    #expect(!isHeld(broker))
    try poller.call("encodeRestorableState", #""object":\#(handle),"state":{"new":1}"#)
    #expect(try poller.call("decodeRestorableState", #""object":\#(handle)"#)["state"] == ["new": 1])
  }

  /// A process decodes `X` and crashes, while a detached session is live, which then rests.
  private func restWithABrokenRestoration(_ broker: MemoryBroker) throws -> Poller {
    try broker.connect(pid: 3).encode(#"["X"]"#, "{}", #""application":"App""#)
    let poller = try Poller(broker)
    let victim = broker.connect(pid: 1)
    try victim.initialize()
    try victim.register("X")
    _ = try victim.decode(#"["X"]"#)
    broker.crash(victim)
    #expect(!isHeld(broker))
    #expect(broker.closed == ["App"])
    return poller
  }

  private func completedRestorations(_ broker: MemoryBroker) -> Int64? { broker.disk.archive("App")?.run?.restorations }

  @Test func r19ARestorationThatACrashCutShortIsNotCompleteWhenARestingSessionIsBack() throws {
    let broker = broker()
    let poller = try restWithABrokenRestoration(broker)
    try poller.call("completeStateRestoration")
    #expect(completedRestorations(broker) == 0)
    // It is when the object whose state was handed out last has an owner that lives.
    let handle = try poller.register("X")
    try poller.call("encodeRestorableState", #""object":\#(handle),"state":{}"#)
    #expect(completedRestorations(broker) == 1)
  }

  @Test func r19ARestorationThatACrashCutShortIsNotCompletedByTheEndOfRestingSessions() throws {
    let broker = broker()
    _ = try restWithABrokenRestoration(broker)
    broker.advance(milliseconds: 600_000)
    // Another archive is closed for this one, and its expired sessions are forgotten.
    try broker.connect(pid: 4).encode(#"["Y"]"#, "{}", #""application":"Third""#)
    try broker.connect(pid: 5).call("describeApplication", #"{"application":"App"}"#)
    #expect(broker.application("App")?.sessions.isEmpty == true)
    #expect(completedRestorations(broker) == 0)
  }

  @Test func r18WhatASessionWasToBeAskedForItIsAskedForWhenItIsBack() throws {
    let broker = broker()
    let serves = #""serves":["encodeRestorableStateWithCoder"]"#
    let peer = broker.connect(pid: 1)
    let token = try #require(try peer.initialize("App", serves)["session"]?.string)
    let handle = try peer.register("X")
    try peer.encode("\(handle)", #"{"n":1}"#)
    try peer.call("invalidateRestorableState", #"{"object":\#(handle)}"#)
    broker.disconnect(peer)
    broker.advance(milliseconds: 1_000)
    #expect(!isHeld(broker))
    let back = broker.connect(pid: 1)
    try back.initialize("App", #""session":"\#(token)",\#(serves)"#)
    broker.advance(milliseconds: 1_000)
    #expect(back.openCalls("encodeRestorableStateWithCoder").count == 1)
  }

  @Test func anotherArchiveAtTheSamePlaceIsNotGivenWhatTheSessionsOfTheOldOneHad() throws {
    let broker = broker()
    let poller = try Poller(broker, serves: ["registrationReplaced"])
    try poller.register("X")
    let other = broker.connect()
    try other.initialize()
    try other.register("X", below: nil, #""takeOver":true"#)
    try other.goodbye("restart")
    #expect(!isHeld(broker))
    try broker.disk.tamper("App") { $0 = [] }
    let next = try Poller(broker, serves: ["registrationReplaced"])
    #expect(try next.next().isNull)
    broker.inspect()
  }
}
