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

  @Test func r30TheNextRunAfterUserQuitIsPristineAlthoughOldSessionsLive() throws {
    let (boss, old) = (try start(1, "Main", #""delegate":true"#), try start(2, "Other", #""process":"o""#))
    try boss.goodbye("userQuit")
    #expect(try situation(3, #""process":"o""#) == "none pristine")
    driver.crash(old)
    #expect(try situation(4, #""process":"o""#) == "none pristine")
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
}
