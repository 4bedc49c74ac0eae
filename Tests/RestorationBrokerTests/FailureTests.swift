// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Archives that cannot be read, and transactions that fail (R20, R32).
@Suite struct FailureTests {
  let driver = CoreDriver()

  // MARK: Unreadable

  @Test func r20AnUnreadableArchiveIsNotTouched() throws {
    try driver.connect(pid: 1).encode(#"["A"]"#, #"{"a":1}"#, #""application":"App""#)
    driver.restart()
    driver.openingFailures["App"] = ArchiveError(.unreadable, "permission denied")
    let peer = driver.connect(pid: 2)
    let result = try peer.initialize()
    #expect(result["restoration"]?["state"] == "unreadable")
    #expect(result["restoration"]?["archive"]?.isNull == true)
    for (method, parameters) in [
      ("registerObjectForStateRestoration", peer.registration("A")),
      ("encodeRestorableState", peer.encoding(#"["A"]"#, "{}")),
      ("decodeRestorableState", #"{"object":["A"]}"#), ("readArchive", "{}"), ("describeApplication", "{}"),
      ("listGenerations", "{}"), ("discardApplicationState", "{}"), ("unregisterObject", #"{"object":["A"]}"#),
      ("setChildren", #"{"object":["A"],"children":[]}"#),
    ] {
      #expect(try peer.fail(method, parameters).code == -32011)
    }
    let second = driver.connect(pid: 3)
    #expect(try second.initialize()["restoration"]?["state"] == "unreadable")
    try second.goodbye("restart")
    #expect(driver.written.count(where: { if case .session = $0 { true } else { false } }) == 0)
    driver.disconnect(peer)
    driver.kill(peer)
    driver.openingFailures = [:]
    #expect(try driver.connect(pid: 4).decode(#"["A"]"#, #""application":"App""#)["state"] == ["a": 1])
  }

  @Test func r20AnUnreadableArchiveIsTriedAgainWhenNobodyIsLeft() throws {
    driver.openingFailures["App"] = ArchiveError(.unreadable, "permission denied")
    let peer = driver.connect(pid: 2)
    let refused = peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""application":"App""#))
    #expect(try peer.failure(of: refused).code == -32011)
    try peer.initialize()
    #expect(driver.openCount == 2)
    try peer.goodbye("restart")
    driver.openingFailures = [:]
    #expect(try peer.initialize()["restoration"]?["state"] == "none")
    try peer.register("A")
    driver.inspect()
  }

  @Test func anArchiveThatCannotBeOpenedFailsTheCallAndGoesOn() throws {
    driver.openingFailures["App"] = ArchiveError(.full, "the disk is full")
    driver.holdsOpenings = true
    let peer = driver.connect(pid: 2)
    let first = peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""application":"App""#))
    let second = peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""application":"Other""#))
    driver.openHeld()
    #expect(try peer.failure(of: first).code == -32012)
    #expect(try peer.result(of: second)["durability"] == "disk")
    driver.openingFailures = [:]
    try peer.encode(#"["A"]"#, "{}", #""application":"App""#)
  }

  // MARK: Failed transactions

  @Test func aFailedCommitGoesBackToWhatIsDurableAndSessionsGoOn() throws {
    let peer = driver.connect(pid: 1)
    try peer.initialize()
    let main = try peer.register("Main")
    try peer.encode("\(main)", #"{"a":1}"#, #""revision":1"#)
    driver.holdsCommits = true
    let encode = peer.start("encodeRestorableState", peer.encoding("\(main)", #"{"a":2}"#, #""revision":2"#))
    let register = peer.start("registerObjectForStateRestoration", peer.registration("Lost"))
    let read = peer.start("decodeRestorableState", #"{"object":["Main"]}"#)
    driver.failCommit("App")
    for call in [encode, register, read] { #expect(try peer.failure(of: call).code == -32012) }
    driver.holdsCommits = false
    driver.inspect()
    #expect(try peer.paths() == ["Main"])
    #expect(try peer.state("\(main)") == ["a": 1])
    try peer.encode("\(main)", #"{"a":2}"#, #""revision":2"#)
    try peer.register("Lost")
    #expect(try peer.state("\(main)") == ["a": 2])
    driver.inspect()
  }

  @Test func aSessionThatWasNotDurableIsForgottenAndGivenToNobodyElse() throws {
    let (first, second) = (driver.connect(pid: 1), driver.connect(pid: 2))
    try first.initialize()
    driver.holdsCommits = true
    let lost = second.start("initialize", #"{"application":"App"}"#)
    driver.failCommit("App")
    #expect(try second.failure(of: lost).code == -32012)
    driver.holdsCommits = false
    let third = driver.connect(pid: 3)
    try third.initialize()
    let handle = try third.register("Main")
    #expect(try second.fail("unregisterObject", #"{"object":\#(handle)}"#).code == -32001)
    try second.initialize()
    try first.register("First")
    driver.inspect()
  }

  @Test func aDetachedSessionThatWasNotDurableBeginsAnew() throws {
    let peer = driver.connect(pid: 1)
    try peer.encode(#"["A"]"#, "{}", #""application":"App""#)
    driver.holdsCommits = true
    let call = peer.registration("Main", below: nil, #""application":"App""#)
    let lost = peer.start("registerObjectForStateRestoration", call)
    driver.failCommit("App")
    #expect(try peer.failure(of: lost).code == -32012)
    driver.holdsCommits = false
    #expect(try peer.call("registerObjectForStateRestoration", call)["session"] != nil)
    driver.inspect()
  }

  @Test func whatHappensWhileTheArchiveIsReopenedIsNotLostNorWrittenTwice() throws {
    let (first, second, third) = (driver.connect(pid: 1), driver.connect(pid: 2), driver.connect(pid: 3))
    for (index, peer) in [first, second, third].enumerated() {
      try peer.initialize()
      try peer.register("o\(index)")
      try peer.encode(#"["o\#(index)"]"#, "{}")
    }
    driver.holdsCommits = true
    first.start("encodeRestorableState", first.encoding(#"["o0"]"#, #"{"a":1}"#))
    driver.holdsOpenings = true
    driver.failCommit("App")
    driver.holdsCommits = false
    driver.crash(second)
    driver.disconnect(third)
    let encode = first.start("encodeRestorableState", first.encoding(#"["o0"]"#, #"{"a":2}"#))
    driver.advance(milliseconds: 70_000)
    #expect(!first.hasAnswer(encode))
    driver.openHeld()
    #expect(try first.result(of: encode)["durability"] == "disk")
    driver.advance(milliseconds: 2_000)
    #expect(driver.application("App")?.sessions.count == 2)
    driver.inspect()
    driver.kill(third)
    #expect(driver.application("App")?.sessions.count == 1)
    driver.inspect()
  }

  @Test func anExitWhileConnectedIsRememberedWhileTheArchiveIsReopened() throws {
    let (first, second) = (driver.connect(pid: 1), driver.connect(pid: 2))
    try first.initialize()
    try second.initialize()
    driver.holdsCommits = true
    first.start("registerObjectForStateRestoration", first.registration("A"))
    driver.holdsOpenings = true
    driver.failCommit("App")
    driver.holdsCommits = false
    driver.kill(second)
    driver.advance(milliseconds: 5_000)
    driver.openHeld()
    driver.advance(milliseconds: 1_000)
    #expect(driver.application("App")?.sessions.count == 1)
    driver.inspect()
  }

  @Test func r19WhatWasDecodedOutlivesAFailedCommit() throws {
    try driver.connect(pid: 1).encode(#"["A"]"#, #"{"good":1}"#, #""application":"App""#)
    let (peer, other) = (driver.connect(pid: 2), driver.connect(pid: 3))
    for (peer, name) in [(peer, "A"), (other, "B")] {
      try peer.initialize()
      try peer.register(name)
    }
    driver.holdsCommits = true
    other.start("encodeRestorableState", other.encoding(#"["B"]"#, "{}"))
    driver.failCommit("App")
    driver.holdsCommits = false
    // It has not decoded: its push is early.
    try peer.encode(#"["A"]"#, #"{"blank":1}"#)
    #expect(try peer.state(#"["A"]"#) == ["good": 1])
    driver.inspect()
  }

  @Test func handlesNeverRepeatAfterAFailedCommit() throws {
    let peer = driver.connect(pid: 1)
    try peer.initialize()
    let before = try peer.register("A")
    driver.holdsCommits = true
    peer.start("registerObjectForStateRestoration", peer.registration("B"))
    driver.failCommit("App")
    driver.holdsCommits = false
    #expect(try peer.register("C") > before + 1)
    #expect(try peer.register("A") == before)
  }

  @Test func aFailedGoodbyeLeavesTheSessionToItsToken() throws {
    let peer = driver.connect(pid: 1)
    let token = try #require(try peer.initialize()["session"]?.string)
    let handle = try peer.register("A")
    driver.holdsCommits = true
    let goodbye = peer.start("goodbye", #"{"reason":"closed"}"#)
    driver.failCommit("App")
    driver.holdsCommits = false
    #expect(try peer.failure(of: goodbye).code == -32012)
    try peer.initialize("App", #""session":"\#(token)""#)
    try peer.encode("\(handle)", "{}")
    driver.inspect()
  }
}
