// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Sessions whose archive is closed to make room for another one, and stays theirs.
@Suite struct RestingSessionTests {
  private func driver(archives: Int = 1) -> CoreDriver {
    var limits = Limits()
    limits.openArchivesMax = archives
    return CoreDriver(limits: limits)
  }

  /// Whether no further archive can be opened; if one can, an open one has been closed for it.
  private func isHeld(_ driver: CoreDriver) -> Bool {
    let other = driver.connect(pid: 900)
    defer { driver.disconnect(other) }
    let id = other.start("encodeRestorableState", other.encoding(#"["Z"]"#, "{}", #""application":"Other""#))
    guard other.resultIfAny(of: id) == nil else { return false }
    return (try? other.failure(of: id))?.data["limit"] == "openArchivesMax"
  }

  @Test func anArchiveWhoseSessionsHaveLostTheirConnectionsIsClosedAndTheyComeBackToIt() throws {
    let driver = driver(archives: 1)
    let (first, second) = (driver.connect(pid: 1), driver.connect(pid: 2))
    let token = try #require(try first.initialize("a")["session"]?.string)
    let object = try first.register("X")
    try first.encode("\(object)", #"{"n":1}"#)
    driver.disconnect(first)
    try second.encode(#"["Y"]"#, "{}", #""application":"b""#)
    #expect(driver.closed == ["a"])
    let back = driver.connect(pid: 1)
    #expect(try back.initialize("a", #""session":"\#(token)""#)["session"]?.string == token)
    try back.encode("\(object)", #"{"n":2}"#)
    driver.disconnect(back)
    try second.encode(#"["Y"]"#, "{}", #""application":"b""#)
    driver.kill(back)
    let next = driver.connect(pid: 3)
    #expect(try next.initialize("a")["restoration"]?["reason"]?.string == "recover")
    driver.inspect("a")
  }

  /// A session made by `initialize` over HTTP, whose connection is gone; returns the members its calls must have.
  private func leaveSession(
    _ application: String,
    _ driver: CoreDriver,
    pid: Int64,
    _ more: String = ""
  ) throws -> String {
    let peer = driver.connect(pid: pid, canBeCalled: false)
    let token = try #require(try peer.initialize(application, more)["session"]?.string)
    driver.disconnect(peer)
    return #""application":"\#(application)","session":"\#(token)""#
  }

  @Test func anArchiveOfDetachedSessionsWithoutConnectionIsClosedAndTheyGoOn() throws {
    let driver = driver(archives: 2)
    let scope = try leaveSession("a", driver, pid: 1)
    let peer = driver.connect(pid: 1, canBeCalled: false)
    let object = try peer.register("X", below: nil, scope)
    try peer.encode("\(object)", #"{"n":1}"#, scope)
    driver.disconnect(peer)
    driver.advance(milliseconds: 1)
    _ = try leaveSession("b", driver, pid: 2)
    let other = driver.connect(pid: 3)
    try other.encode(#"["Y"]"#, #"{"in":"c"}"#, #""application":"c""#)
    #expect(try other.decode(#"["Y"]"#, #""application":"c""#)["state"] == ["in": "c"])
    #expect(driver.closed == ["a"])
    let back = driver.connect(pid: 1, canBeCalled: false)
    #expect(try back.decode("\(object)", scope)["state"] == ["n": 1])
    try back.encode("\(object)", #"{"n":2}"#, scope)
    #expect(try back.register("X", below: nil, scope) == object)
    driver.inspect("a")
  }

  @Test func aDetachedSessionThatIsConnectedHoldsItsArchiveOpen() throws {
    let driver = driver(archives: 1)
    let peer = driver.connect(pid: 1, canBeCalled: false)
    try peer.initialize("a")
    #expect(isHeld(driver))
    // The token may be left out on this connection.
    try peer.register("X", below: nil, #""application":"a""#)
    driver.disconnect(peer)
    try driver.connect(pid: 3).initialize("b")
    #expect(driver.closed == ["a"])
  }

  @Test func whatADetachedSessionHasYetToFetchHoldsItsArchiveOpen() throws {
    let driver = driver(archives: 1)
    let scope = try leaveSession("a", driver, pid: 1, #""serves":["encodeRestorableStateWithCoder"]"#)
    let peer = driver.connect(pid: 1, canBeCalled: false)
    let object = try peer.register("X", below: nil, scope)
    try peer.call("invalidateRestorableState", #"{"object":\#(object),\#(scope)}"#)
    driver.disconnect(peer)
    #expect(isHeld(driver))
    driver.advance(milliseconds: 1_000)
    #expect(isHeld(driver))
    let back = driver.connect(pid: 1, canBeCalled: false)
    let call = try #require(try back.call("nextRequest", "{\(scope)}")["id"]?.integer)
    driver.disconnect(back)
    #expect(isHeld(driver))
    let last = driver.connect(pid: 1, canBeCalled: false)
    let states = #"{"states":[{"object":\#(object),"state":{"n":1}}]}"#
    try last.call("answerRequest", #"{"id":\#(call),"result":\#(states),\#(scope)}"#)
    driver.disconnect(last)
    #expect(!isHeld(driver))
    #expect(try driver.connect(pid: 1, canBeCalled: false).decode("\(object)", scope)["state"] == ["n": 1])
  }

  @Test func aDetachedSessionEndsInTimeAlsoWhereItsArchiveIsClosed() throws {
    let driver = driver(archives: 1)
    let scope = try leaveSession("a", driver, pid: 1)
    let peer = driver.connect(pid: 1, canBeCalled: false)
    try peer.register("X", below: nil, scope)
    driver.disconnect(peer)
    driver.advance(milliseconds: 300_000)
    _ = try leaveSession("b", driver, pid: 2)
    #expect(driver.closed == ["a"])
    driver.advance(milliseconds: 299_999)
    let contender = driver.connect(pid: 3)
    let registration = #"{"restorationIdentifier":"X","application":"a"}"#
    #expect(try contender.fail("registerObjectForStateRestoration", registration).kind == "duplicatePath")
    driver.advance(milliseconds: 1)
    try contender.register("X", below: nil, #""application":"a""#)
    #expect(try driver.connect(pid: 1).fail("describeApplication", "{\(scope)}").code == -32602)
    driver.inspect("a")
  }

  /// A broker that exited before would forget what only its memory knows of them.
  @Test func aBrokerIsNotIdleWhileDetachedSessionsRest() throws {
    let driver = driver()
    _ = try leaveSession("a", driver, pid: 1)
    #expect(!isHeld(driver))
    #expect(driver.core.awaitsRestingSessions(at: driver.now))
    driver.advance(milliseconds: 599_999)
    #expect(driver.core.awaitsRestingSessions(at: driver.now))
    driver.advance(milliseconds: 1)
    #expect(!driver.core.awaitsRestingSessions(at: driver.now))
  }

  @Test func anInstanceWhoseDetachedSessionRestsIsNotVacant() throws {
    let driver = driver(archives: 1)
    _ = try leaveSession("App@1", driver, pid: 1)
    let peer = driver.connect(pid: 2)
    #expect(try peer.initialize("App", #""instance":"auto""#)["application"] == "App@2")
    try peer.goodbye("restart")
    driver.advance(milliseconds: 600_000)
    #expect(try driver.connect(pid: 3).initialize("App", #""instance":"auto""#)["application"] != "App@3")
  }

  // MARK: Reasons to keep an archive open

  @Test func aNextRequestThatWaitsHoldsItsArchiveOpen() throws {
    let driver = driver()
    let poller = try Poller(driver, serves: ["pathChanged"])
    let (peer, wait) = poller.wait(10_000)
    #expect(isHeld(driver))
    driver.advance(milliseconds: 10_000)
    #expect(try peer.result(of: wait).isNull)
    #expect(!isHeld(driver))
  }

  @Test(arguments: [false, true])
  func aConnectionWhoseSessionHasEndedHoldsNoArchiveOpen(_ byGoodbye: Bool) throws {
    let driver = driver()
    let peer = driver.connect(pid: 1, canBeCalled: false)
    let token = try #require(try peer.initialize("a")["session"]?.string)
    if byGoodbye {
      let other = driver.connect(pid: 1, canBeCalled: false)
      try other.call("goodbye", #"{"application":"a","session":"\#(token)","reason":"restart"}"#)
    } else {
      driver.advance(milliseconds: 600_000)
    }
    #expect(!isHeld(driver))
    #expect(driver.closed == ["a"])
  }

  @Test(arguments: ["initialize", "registerObjectForStateRestoration"])
  func aCallThatWaitsUntilItIsKnownWhichProcessesLiveHoldsItsArchiveOpen(_ method: String) throws {
    let driver = driver()
    let first = driver.connect(pid: 1)
    try first.initialize()
    try first.register("X")
    driver.disconnect(first)
    let second = driver.connect(pid: 2, canBeCalled: false)
    driver.holdsProbes = true
    let id = second.start(method, #"{"application":"App","restorationIdentifier":"X"}"#)
    let next = second.start("ping")
    #expect(!second.hasAnswer(id) && !second.hasAnswer(next))
    #expect(isHeld(driver))
    driver.killUnnoticed(first)
    driver.probeHeld()
    #expect(second.resultIfAny(of: id) != nil && second.hasAnswer(next))
  }

  /// The archive was closed anyway, because it could not be reopened.
  @Test func aCallThatWaitsUntilItIsKnownWhichProcessesLiveIsAnsweredAlsoIfTheArchiveIsClosed() throws {
    let driver = driver()
    let first = driver.connect(pid: 1)
    try first.initialize()
    driver.disconnect(first)
    driver.holdsProbes = true
    driver.holdsCommits = true
    let second = driver.connect(pid: 2)
    let id = second.start("initialize", #"{"application":"App"}"#)
    let next = second.start("ping")
    driver.openingFailures["App"] = ArchiveError(.definite, "the disk is full")
    driver.connect(pid: 3).notify("encodeRestorableState", #"{"application":"App","object":["X"],"state":{}}"#)
    driver.failCommit("App")
    driver.openingFailures = [:]
    driver.holdsCommits = false
    driver.probeHeld()
    #expect(second.resultIfAny(of: id) != nil && second.hasAnswer(next))
    driver.inspect()
  }

  @Test func aSessionThatHoldsBackTheEndOfTheRestorationHoldsItsArchiveOpen() throws {
    let driver = driver()
    let poller = try Poller(driver)
    try poller.call("extendStateRestoration")
    #expect(isHeld(driver))
    driver.advance(milliseconds: 10_000)
    #expect(!isHeld(driver))
  }

  @Test func notificationsThatNobodyHasFetchedHoldNoArchiveOpenAndAreFetchedAfterwards() throws {
    let driver = driver()
    let poller = try Poller(driver, serves: ["registrationReplaced"])
    let handle = try poller.register("X")
    let other = driver.connect()
    try other.initialize()
    try other.register("X", below: nil, #""takeOver":true"#)
    try other.goodbye("restart")
    #expect(!isHeld(driver))
    #expect(driver.closed == ["App"])
    let request = try poller.next()
    #expect(request["method"] == "registrationReplaced")
    #expect(request["params"]?["object"]?.integer == handle)
    #expect(try poller.next().isNull)
    driver.inspect()
  }

  /// R15: it waits for the change it is about, and the archive is closed after that.
  @Test func aNotificationThatWaitsForTheDiskWhenItsArchiveIsClosedIsFetchedAfterwards() throws {
    let driver = driver()
    let poller = try Poller(driver, serves: ["registrationReplaced"])
    try poller.register("X")
    let (other, third) = (driver.connect(), driver.connect())
    try other.initialize()
    driver.holdsCommits = true
    other.start("registerObjectForStateRestoration", #"{"restorationIdentifier":"X","takeOver":true}"#)
    other.start("goodbye", #"{"reason":"restart"}"#)
    third.start("encodeRestorableState", #"{"application":"Other","object":["Z"],"state":{}}"#)
    #expect(driver.closed == ["App"])
    driver.holdsCommits = false
    driver.commit()
    #expect(try poller.next()["method"] == "registrationReplaced")
  }

  // MARK: State in memory only

  @Test(arguments: [false, true])
  func r19ABlankPushHidesNothingFromASessionThatHasNotDecodedBeforeItRested(_ isDetached: Bool) throws {
    let driver = driver()
    let script = driver.connect(pid: 3)
    try script.encode(#"["X"]"#, #"{"good":1}"#, #""application":"App""#)
    let peer = driver.connect(pid: 1, canBeCalled: !isDetached)
    let token = try #require(try peer.initialize()["session"]?.string)
    let scope = #""application":"App","session":"\#(token)""#
    try peer.register("X", below: nil, scope)
    driver.disconnect(peer)
    #expect(!isHeld(driver))
    #expect(driver.closed.contains("App"))
    let back = driver.connect(pid: 1, canBeCalled: !isDetached)
    try back.initialize("App", #""session":"\#(token)""#)
    try back.encode(#"["X"]"#, #"{"blank":1}"#, scope)
    #expect(try back.decode(#"["X"]"#, scope)["state"] == ["good": 1])
    driver.inspect()
  }

  /// The time of an early state runs from its claim, not from when the archive was opened.
  @Test func r19AnEarlyStateIsSettledInTimeAlsoIfItsSessionRestedMeanwhile() throws {
    let driver = driver()
    try driver.connect(pid: 3).encode(#"["X"]"#, #"{"good":1}"#, #""application":"App""#)
    let poller = try Poller(driver)
    let handle = try poller.register("X")
    driver.advance(milliseconds: 30_000)
    try poller.call("encodeRestorableState", #""object":\#(handle),"state":{"new":1}"#)
    #expect(!isHeld(driver))
    driver.advance(milliseconds: 29_000)
    try poller.call("ping")
    try poller.call("describeApplication")
    #expect(driver.application("App")?.tree.node(at: ["X"])?.state?.isEarly == true)
    driver.advance(milliseconds: 1_000)
    #expect(driver.application("App")?.tree.node(at: ["X"])?.state?.isEarly == false)
  }

  @Test func r8ALoserThatRestedCannotWriteAnyMore() throws {
    let driver = driver()
    let poller = try Poller(driver)
    let handle = try poller.register("X")
    let other = driver.connect()
    try other.initialize()
    try other.register("X", below: nil, #""takeOver":true"#)
    try other.goodbye("restart")
    #expect(!isHeld(driver))
    for object in [#"["X"]"#, "\(handle)"] {
      let failure = try poller.fail("encodeRestorableState", #""object":\#(object),"state":{}"#)
      #expect(failure.kind == "replaced")
    }
    driver.inspect()
  }

  @Test func r21WhatASessionFetchedBeforeItRestedItIsToldOfInTheEnd() throws {
    let driver = driver()
    try driver.connect(pid: 3).encode(#"["X"]"#, #"{"n":1}"#, #""application":"App""#)
    let poller = try Poller(driver, serves: ["applicationFinishedRestoringState"])
    let handle = try poller.register("X")
    #expect(try poller.call("decodeRestorableState", #""object":\#(handle)"#)["state"] == ["n": 1])
    #expect(!isHeld(driver))
    try poller.call("completeStateRestoration")
    #expect(try poller.next()["params"] == ["objects": [.integer(handle)]])
  }

  @Test func r19ASessionThatWasRestoredBeforeItRestedPushesNothingEarly() throws {
    let driver = driver()
    try driver.connect(pid: 3).encode(#"["X"]"#, #"{"old":1}"#, #""application":"App""#)
    let poller = try Poller(driver)
    let handle = try poller.register("X")
    try poller.call("completeStateRestoration")
    #expect(!isHeld(driver))
    try poller.call("encodeRestorableState", #""object":\#(handle),"state":{"new":1}"#)
    #expect(try poller.call("decodeRestorableState", #""object":\#(handle)"#)["state"] == ["new": 1])
  }

  /// A process decodes `X` and crashes, while a detached session is live, which then rests.
  private func restWithABrokenRestoration(_ driver: CoreDriver) throws -> Poller {
    try driver.connect(pid: 3).encode(#"["X"]"#, "{}", #""application":"App""#)
    let poller = try Poller(driver)
    let victim = driver.connect(pid: 1)
    try victim.initialize()
    try victim.register("X")
    _ = try victim.decode(#"["X"]"#)
    driver.crash(victim)
    #expect(!isHeld(driver))
    #expect(driver.closed == ["App"])
    return poller
  }

  private func completedRestorations(_ driver: CoreDriver) -> Int64? { driver.archives["App"]?.head.run?.restorations }

  @Test func r19ARestorationThatACrashCutShortIsNotCompleteWhenARestingSessionIsBack() throws {
    let driver = driver()
    let poller = try restWithABrokenRestoration(driver)
    try poller.call("completeStateRestoration")
    #expect(completedRestorations(driver) == 0)
    // It is when the object whose state was handed out last has an owner that lives.
    let handle = try poller.register("X")
    try poller.call("encodeRestorableState", #""object":\#(handle),"state":{}"#)
    #expect(completedRestorations(driver) == 1)
  }

  @Test func r19ARestorationThatACrashCutShortIsNotCompletedByTheEndOfRestingSessions() throws {
    let driver = driver()
    _ = try restWithABrokenRestoration(driver)
    driver.advance(milliseconds: 600_000)
    // Another archive is closed for this one, and its expired sessions are forgotten.
    try driver.connect(pid: 4).encode(#"["Y"]"#, "{}", #""application":"Third""#)
    try driver.connect(pid: 5).call("describeApplication", #"{"application":"App"}"#)
    #expect(driver.application("App")?.sessions.isEmpty == true)
    #expect(completedRestorations(driver) == 0)
  }

  @Test func r18WhatASessionWasToBeAskedForItIsAskedForWhenItIsBack() throws {
    let driver = driver()
    let serves = #""serves":["encodeRestorableStateWithCoder"]"#
    let peer = driver.connect(pid: 1)
    let token = try #require(try peer.initialize("App", serves)["session"]?.string)
    let handle = try peer.register("X")
    try peer.encode("\(handle)", #"{"n":1}"#)
    try peer.call("invalidateRestorableState", #"{"object":\#(handle)}"#)
    driver.disconnect(peer)
    driver.advance(milliseconds: 1_000)
    #expect(!isHeld(driver))
    let back = driver.connect(pid: 1)
    try back.initialize("App", #""session":"\#(token)",\#(serves)"#)
    driver.advance(milliseconds: 1_000)
    #expect(back.openCalls("encodeRestorableStateWithCoder").count == 1)
  }

  @Test func anotherArchiveAtTheSamePlaceIsNotGivenWhatTheSessionsOfTheOldOneHad() throws {
    let driver = driver()
    let poller = try Poller(driver, serves: ["registrationReplaced"])
    try poller.register("X")
    let other = driver.connect()
    try other.initialize()
    try other.register("X", below: nil, #""takeOver":true"#)
    try other.goodbye("restart")
    #expect(!isHeld(driver))
    driver.tamper("App") { $0 = NaiveArchive(uuid: "another") }
    let next = try Poller(driver, serves: ["registrationReplaced"])
    #expect(try next.next().isNull)
    driver.inspect()
  }
}
