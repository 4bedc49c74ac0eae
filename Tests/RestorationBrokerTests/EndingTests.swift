// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// How sessions end, and the situation of the next run (R20, R30).
@Suite struct EndingTests {
  let broker = MemoryBroker()

  private func start(_ pid: Int64, _ name: String? = nil, _ more: String = "") throws -> Peer {
    let peer = broker.connect(pid: pid)
    try peer.initialize("App", more)
    if let name {
      try peer.register(name)
      try peer.encode(#"["\#(name)"]"#, #"{"by":\#(pid)}"#)
    }
    return peer
  }

  /// State and reason reported to a new session.
  private func situation(_ pid: Int64, _ more: String = "") throws -> String {
    let peer = broker.connect(pid: pid)
    let restoration = try #require(try peer.initialize("App", more)["restoration"])
    defer { broker.inspect() }
    return "\(restoration["state"]?.string ?? "") \(restoration["reason"]?.string ?? "")"
  }

  // MARK: The broker ends

  @Test func r33WhatHappensWhileArchivesAreClosedIsFoundOutByTheNextBroker() throws {
    let peer = try start(1, "Main")
    broker.saveBeforeEnd()
    broker.holdsClosings = true
    broker.stop()
    broker.crash(peer)
    #expect(!broker.logged.contains { $0.hasPrefix("fatal") } && !broker.isStopped, "\(broker.logged)")
    broker.closeHeld()
    #expect(broker.isStopped)
    broker.restart()
    let found = try situation(2)
    #expect(found == "available recover")
  }

  // MARK: Goodbye

  @Test func r30TheNextRunAfterUserQuitIsPristineAlthoughOldSessionsLive() throws {
    let (boss, old) = (try start(1, "Main", #""delegate":true"#), try start(2, "Other", #""process":"o""#))
    try boss.goodbye("userQuit")
    #expect(try situation(3, #""process":"o""#) == "none pristine")
    broker.crash(old)
    #expect(try situation(4, #""process":"o""#) == "none pristine")
  }

  @Test func r30DiscardedSessionsStayDiscardedWhenTheBrokerRestarts() throws {
    let boss = try start(1, "Main", #""delegate":true"#)
    let other = broker.connect(pid: 2)
    let token = try #require(try other.initialize()["session"]?.string)
    try other.register("Other")
    try boss.goodbye("userQuit")
    broker.restart()
    let again = broker.connect(pid: 2)
    #expect(try again.initialize("App", #""session":"\#(token)""#)["session"] == .string(token))
    #expect(try again.encode(#"["Other"]"#, #"{"late":1}"#) == ["discarded": true])
    broker.inspect()
  }

  // MARK: Without goodbye

  @Test func r30AProcessThatEndsWithinASecondHasCrashed() throws {
    let peer = try start(1, "Main")
    broker.disconnect(peer)
    broker.advance(milliseconds: 900)
    broker.kill(peer)
    #expect(broker.application("App")?.sessions.isEmpty == true)
    #expect(try situation(2) == "available recover")
  }

  @Test func r30AProcessThatLivesIsDisconnectedAndThatIsNoCrash() throws {
    let peer = broker.connect(pid: 1)
    let token = try #require(try peer.initialize()["session"]?.string)
    let handle = try peer.register("Main")
    broker.disconnect(peer)
    broker.advance(milliseconds: 3_600_000)
    #expect(broker.application("App")?.sessions.count == 1)
    let again = broker.connect(pid: 1)
    #expect(try again.initialize("App", #""session":"\#(token)""#)["session"] == .string(token))
    try again.encode("\(handle)", #"{"a":1}"#)
    try again.goodbye("restart")
    #expect(try situation(2) == "available launch")
  }

  @Test func r30AProcessThatEndsLaterWithoutHavingComeBackHasCrashedToo() throws {
    let peer = try start(1, "Main")
    broker.disconnect(peer)
    broker.advance(milliseconds: 60_000)
    broker.kill(peer)
    #expect(try situation(2) == "available recover")
  }

  @Test func r30AnExitWhileConnectedIsACrashASecondLater() throws {
    let (peer, other) = (try start(1, "Main"), try start(2))
    broker.kill(peer)
    #expect(broker.application("App")?.sessions.count == 2)
    broker.advance(milliseconds: 1_000)
    #expect(broker.application("App")?.sessions.count == 1)
    #expect(try other.objects().first?["orphaned"] == true)
    broker.inspect()
    broker.disconnect(peer)
    broker.inspect()
  }

  @Test func r20AProcessHasCrashedForTheNextOneAlsoWhileAChildHoldsItsConnection() throws {
    let peer = try start(1, "Main")
    broker.kill(peer)
    #expect(try situation(2) == "available recover")
    #expect(broker.application("App")?.sessions.count == 1)
    broker.disconnect(peer)
    broker.inspect()
  }

  @Test func r30WhatAProcessSentBeforeItDiedStillCounts() throws {
    let peer = try start(1, "Main")
    broker.kill(peer)
    try peer.encode(#"["Main"]"#, #"{"last":1}"#)
    try peer.goodbye("restart")
    #expect(try situation(2) == "available launch")
    broker.advance(milliseconds: 2_000)
    broker.inspect()
  }

  @Test func r30AnExitBeforeTheConnectionIsLostIsACrashAtOnce() throws {
    let peer = try start(1, "Main")
    broker.kill(peer)
    broker.disconnect(peer)
    #expect(broker.application("App")?.sessions.isEmpty == true)
    #expect(try situation(2) == "available recover")
  }

  @Test func r16AProcessThatHasJustDiedDoesNotKeepItsRunGoing() throws {
    let peer = try start(1, "Main")
    broker.disconnect(peer)
    broker.killUnnoticed(peer)
    #expect(try situation(2) == "available recover")
    #expect(broker.application("App")?.generations.all.count == 1)
  }

  // MARK: Reasons

  @Test func r20ReasonsAreToldByProcessRole() throws {
    let main = try start(1, "Main", #""process":"main""#)
    let editor = try start(2, "Editor", #""process":"editor""#)
    broker.crash(editor)
    // The role that crashed restarts within the run.
    #expect(try situation(3, #""process":"editor""#) == "available recover")
    try main.goodbye("restart")
    broker.restart()
    broker.killUnnoticed(broker.connect(pid: 3))
    #expect(try situation(4, #""process":"main""#) == "available launch")
    #expect(try situation(5, #""process":"editor""#) == "available recover")
    #expect(try situation(6, #""process":"new""#) == "available recover")
  }

  @Test func r20ARunAfterACleanOneLaunches() throws {
    broker.crash(try start(1, "Main"))
    #expect(try situation(2) == "available recover")
    broker.application("App").map { #expect($0.sessions.count == 1) }
    let last = broker.connect(pid: 2)
    try last.initialize()
    try last.goodbye("logout")
    broker.kill(last)
    broker.advance(milliseconds: 2_000)
    let third = try start(3)
    try third.goodbye("restart")
    #expect(try situation(4) == "available launch")
  }

  @Test func r20SessionsThatDiedWithTheBrokerHaveCrashed() throws {
    let peer = try start(1, "Main")
    broker.killUnnoticed(peer)
    broker.restart()
    #expect(try situation(2) == "available recover")
  }

  @Test func r20SessionsThatOutliveTheBrokerContinueTheirRun() throws {
    let peer = broker.connect(pid: 1)
    let token = try #require(try peer.initialize()["session"]?.string)
    let handle = try peer.register("Main")
    try peer.encode("\(handle)", #"{"a":1}"#)
    let run = broker.disk.archive("App")?.run?.run
    broker.restart()
    let other = broker.connect(pid: 2)
    try other.initialize()
    let again = broker.connect(pid: 1)
    try again.initialize("App", #""session":"\#(token)""#)
    #expect(try again.state("\(handle)") == ["a": 1])
    try again.encode("\(handle)", #"{"a":2}"#)
    #expect(broker.disk.archive("App")?.run?.run == run)
    #expect(try again.call("listGenerations")["generations"] == [])
    broker.inspect()
  }

  @Test func r20DiscardedStateMakesTheNextRunPristine() throws {
    let peer = try start(1, "Main")
    broker.crash(peer)
    try broker.connect(pid: 2).call("discardApplicationState", #"{"application":"App"}"#)
    #expect(try situation(3) == "none pristine")
  }
}
