// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// How sessions end, and the situation of the next run (R20, R30).
@Suite struct EndingTests {
  let driver = CoreDriver()

  private func start(_ pid: Int64, _ name: String? = nil, _ more: String = "") throws -> Peer {
    let peer = driver.connect(pid: pid)
    try peer.initialize("App", more)
    if let name {
      try peer.register(name)
      try peer.encode(#"["\#(name)"]"#, #"{"by":\#(pid)}"#)
    }
    return peer
  }

  /// State and reason reported to a new session.
  private func situation(_ pid: Int64, _ more: String = "") throws -> String {
    let peer = driver.connect(pid: pid)
    let restoration = try #require(try peer.initialize("App", more)["restoration"])
    defer { driver.inspect() }
    return "\(restoration["state"]?.string ?? "") \(restoration["reason"]?.string ?? "")"
  }

  // MARK: Goodbye

  @Test(arguments: ["restart", "logout"])
  func r30RestartAndLogoutKeepEverything(_ reason: String) throws {
    let peer = try start(1, "Main")
    try peer.goodbye(reason)
    driver.inspect()
    #expect(try peer.fail("unregisterObject", #"{"object":["Main"]}"#).kind == "notInitialized")
    #expect(try situation(2) == "available launch")
    #expect(try peer.decode(#"["Main"]"#, #""application":"App""#)["state"] == ["by": 1])
  }

  @Test func r30ClosedRemovesTheObjectsOfThatSessionDurably() throws {
    let (first, second) = (try start(1, "Main"), try start(2, "Other"))
    try first.goodbye("closed")
    driver.inspect()
    #expect(try second.paths() == ["Other"])
    driver.restart()
    #expect(try driver.connect(pid: 3).paths(#""application":"App""#) == ["Other"])
  }

  @Test func r30ClosedByEverybodyLeavesNothing() throws {
    try start(1, "Main").goodbye("closed")
    #expect(try situation(2) == "none pristine")
  }

  @Test func r30UserQuitOfTheDelegateEmptiesTheHead() throws {
    let (boss, other) = (try start(1, "Main", #""delegate":true"#), try start(2, "Other"))
    try boss.goodbye("userQuit")
    driver.inspect()
    #expect(try other.encode(#"["Other"]"#, #"{"late":1}"#) == ["discarded": true])
    #expect(try other.encode(#"["New"]"#, #"{"late":1}"#) == ["discarded": true])
    #expect(try other.call("registerObjectForStateRestoration", other.registration("X")) == ["discarded": true])
    let next = try start(3)
    #expect(try next.objects().isEmpty)
    #expect(try next.fail("decodeRestorableState", #"{"object":["Other"]}"#).kind == "unknownObject")
    try next.register("Other")
    try next.encode(#"["Other"]"#, #"{"new":1}"#)
    #expect(try other.encode(#"["Other"]"#, #"{"late":2}"#) == ["discarded": true])
    #expect(try next.state(#"["Other"]"#) == ["new": 1])
    try other.goodbye("closed")
    #expect(try next.state(#"["Other"]"#) == ["new": 1])
    driver.inspect()
  }

  @Test func r30TheNextRunAfterUserQuitIsPristineAlthoughOldSessionsLive() throws {
    let (boss, old) = (try start(1, "Main", #""delegate":true"#), try start(2, "Other", #""process":"o""#))
    try boss.goodbye("userQuit")
    #expect(try situation(3, #""process":"o""#) == "none pristine")
    driver.crash(old)
    #expect(try situation(4, #""process":"o""#) == "none pristine")
  }

  @Test func r30GenerationsOutliveUserQuit() throws {
    try start(1, "Main").goodbye("restart")
    try start(2).goodbye("userQuit")
    let reader = driver.connect(pid: 3)
    let objects = try reader.call("readArchive", #"{"application":"App","generation":1}"#)["objects"]?.array
    #expect(objects?.first?["state"] == ["by": 1])
    #expect(try situation(4) == "none pristine")
  }

  @Test func r30UserQuitOfTheLastSessionEmptiesTheHead() throws {
    let (first, second) = (try start(1, "Main"), try start(2, "Other"))
    try first.goodbye("userQuit")
    #expect(try second.paths() == ["Other"])
    try second.goodbye("userQuit")
    driver.inspect()
    #expect(driver.application("App")?.tree.count == 0)
    #expect(try situation(3) == "none pristine")
  }

  @Test func r30UserQuitOfAnotherThanTheDelegateMeansClosed() throws {
    let (boss, other) = (try start(1, "Main", #""delegate":true"#), try start(2, "Other"))
    try other.goodbye("userQuit")
    #expect(try boss.paths() == ["Main"])
    try boss.encode(#"["Main"]"#, #"{"a":1}"#)
    driver.inspect()
  }

  @Test func r30DiscardedSessionsStayDiscardedWhenTheBrokerRestarts() throws {
    let boss = try start(1, "Main", #""delegate":true"#)
    let other = driver.connect(pid: 2)
    let token = try #require(try other.initialize()["session"]?.string)
    try other.register("Other")
    try boss.goodbye("userQuit")
    driver.restart()
    let again = driver.connect(pid: 2)
    #expect(try again.initialize("App", #""session":"\#(token)""#)["session"] == .string(token))
    #expect(try again.encode(#"["Other"]"#, #"{"late":1}"#) == ["discarded": true])
    driver.inspect()
  }

  // MARK: Without goodbye

  @Test func r30AProcessThatEndsWithinASecondHasCrashed() throws {
    let peer = try start(1, "Main")
    driver.disconnect(peer)
    driver.advance(milliseconds: 900)
    driver.kill(peer)
    #expect(driver.application("App")?.sessions.isEmpty == true)
    #expect(try situation(2) == "available recover")
  }

  @Test func r30AProcessThatLivesIsDisconnectedAndThatIsNoCrash() throws {
    let peer = driver.connect(pid: 1)
    let token = try #require(try peer.initialize()["session"]?.string)
    let handle = try peer.register("Main")
    driver.disconnect(peer)
    driver.advance(milliseconds: 3_600_000)
    #expect(driver.application("App")?.sessions.count == 1)
    let again = driver.connect(pid: 1)
    #expect(try again.initialize("App", #""session":"\#(token)""#)["session"] == .string(token))
    try again.encode("\(handle)", #"{"a":1}"#)
    try again.goodbye("restart")
    #expect(try situation(2) == "available launch")
  }

  @Test func r30AProcessThatEndsLaterWithoutHavingComeBackHasCrashedToo() throws {
    let peer = try start(1, "Main")
    driver.disconnect(peer)
    driver.advance(milliseconds: 60_000)
    driver.kill(peer)
    #expect(try situation(2) == "available recover")
  }

  @Test func r30AnExitWhileConnectedIsACrashASecondLater() throws {
    let (peer, other) = (try start(1, "Main"), try start(2))
    driver.kill(peer)
    #expect(driver.application("App")?.sessions.count == 2)
    driver.advance(milliseconds: 1_000)
    #expect(driver.application("App")?.sessions.count == 1)
    #expect(try other.objects().first?["orphaned"] == true)
    driver.inspect()
    driver.disconnect(peer)
    driver.inspect()
  }

  @Test func r30WhatAProcessSentBeforeItDiedStillCounts() throws {
    let peer = try start(1, "Main")
    driver.kill(peer)
    try peer.encode(#"["Main"]"#, #"{"last":1}"#)
    try peer.goodbye("restart")
    #expect(try situation(2) == "available launch")
    driver.advance(milliseconds: 2_000)
    driver.inspect()
  }

  @Test func r30AnExitBeforeTheConnectionIsLostIsACrashAtOnce() throws {
    let peer = try start(1, "Main")
    driver.kill(peer)
    driver.disconnect(peer)
    #expect(driver.application("App")?.sessions.isEmpty == true)
    #expect(try situation(2) == "available recover")
  }

  @Test func r16AProcessThatHasJustDiedDoesNotKeepItsRunGoing() throws {
    let peer = try start(1, "Main")
    driver.disconnect(peer)
    driver.killUnnoticed(peer)
    #expect(try situation(2) == "available recover")
    #expect(driver.application("App")?.generations.all.count == 1)
  }

  // MARK: Reasons

  @Test func r20AnApplicationWithoutAnythingIsPristine() throws {
    #expect(try situation(1) == "none pristine")
    #expect(try situation(2, #""process":"editor""#) == "none pristine")
  }

  @Test func r20AStateThatAScriptLeftIsNoCrash() throws {
    try driver.connect(pid: 1).encode(#"["A"]"#, "{}", #""application":"App""#)
    #expect(try situation(2) == "available launch")
  }

  @Test func r20ReasonsAreToldByProcessRole() throws {
    let main = try start(1, "Main", #""process":"main""#)
    let editor = try start(2, "Editor", #""process":"editor""#)
    driver.crash(editor)
    // The role that crashed restarts within the run.
    #expect(try situation(3, #""process":"editor""#) == "available recover")
    try main.goodbye("restart")
    driver.restart()
    driver.killUnnoticed(driver.connect(pid: 3))
    #expect(try situation(4, #""process":"main""#) == "available launch")
    #expect(try situation(5, #""process":"editor""#) == "available recover")
    #expect(try situation(6, #""process":"new""#) == "available recover")
  }

  @Test func r20ARunAfterACleanOneLaunches() throws {
    driver.crash(try start(1, "Main"))
    #expect(try situation(2) == "available recover")
    driver.application("App").map { #expect($0.sessions.count == 1) }
    let last = driver.connect(pid: 2)
    try last.initialize()
    try last.goodbye("logout")
    driver.kill(last)
    driver.advance(milliseconds: 2_000)
    let third = try start(3)
    try third.goodbye("restart")
    #expect(try situation(4) == "available launch")
  }

  @Test func r20SessionsThatDiedWithTheBrokerHaveCrashed() throws {
    let peer = try start(1, "Main")
    driver.killUnnoticed(peer)
    driver.restart()
    #expect(try situation(2) == "available recover")
  }

  @Test func r20SessionsThatOutliveTheBrokerContinueTheirRun() throws {
    let peer = driver.connect(pid: 1)
    let token = try #require(try peer.initialize()["session"]?.string)
    let handle = try peer.register("Main")
    try peer.encode("\(handle)", #"{"a":1}"#)
    let run = driver.archives["App"]?.head.run?.run
    driver.restart()
    let other = driver.connect(pid: 2)
    try other.initialize()
    let again = driver.connect(pid: 1)
    try again.initialize("App", #""session":"\#(token)""#)
    #expect(try again.state("\(handle)") == ["a": 1])
    try again.encode("\(handle)", #"{"a":2}"#)
    #expect(driver.archives["App"]?.head.run?.run == run)
    #expect(try again.call("listGenerations")["generations"] == [])
    driver.inspect()
  }

  @Test func r20DiscardedStateMakesTheNextRunPristine() throws {
    let peer = try start(1, "Main")
    driver.crash(peer)
    try driver.connect(pid: 2).call("discardApplicationState", #"{"application":"App"}"#)
    #expect(try situation(3) == "none pristine")
  }

  @Test func r26TheCoderOfTheNewestWriteIsTold() throws {
    let peer = try start(1, "Main", #""bundleVersion":"7""#)
    try peer.goodbye("restart")
    let coder = try driver.connect(pid: 2).initialize()["restoration"]?["coder"]
    #expect(coder?["UIApplicationStateRestorationBundleVersionKey"] == "7")
    #expect(try driver.connect(pid: 3).initialize("Other")["restoration"]?["coder"]?.isNull == true)
  }
}
