// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Archives that cannot be read, and transactions that fail (R20, R32).
@Suite struct FailureTests {
  let broker = MemoryBroker()

  // MARK: Unreadable

  @Test func r20AnUnreadableArchiveIsNotTouched() throws {
    try broker.connect(pid: 1).encode(#"["A"]"#, #"{"a":1}"#, #""application":"App""#)
    broker.restart()
    broker.openingFailures["App"] = ArchiveError(.unreadable, "permission denied")
    let peer = broker.connect(pid: 2)
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
    let second = broker.connect(pid: 3)
    #expect(try second.initialize()["restoration"]?["state"] == "unreadable")
    try second.goodbye("restart")
    #expect(broker.written.count(where: { if case .session = $0 { true } else { false } }) == 0)
    broker.disconnect(peer)
    broker.kill(peer)
    broker.openingFailures = [:]
    #expect(try broker.connect(pid: 4).decode(#"["A"]"#, #""application":"App""#)["state"] == ["a": 1])
  }

  @Test func r20AnUnreadableArchiveIsTriedAgainWhenNobodyIsLeft() throws {
    broker.openingFailures["App"] = ArchiveError(.unreadable, "permission denied")
    let peer = broker.connect(pid: 2)
    let refused = peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""application":"App""#))
    let failure = try peer.failure(of: refused)
    #expect(failure.code == -32011)
    let hint = try #require(failure.data["hint"]?.string)
    #expect(hint.contains("call again") && !hint.contains("restart"))
    try peer.initialize()
    #expect(broker.openings.count == 2)
    try peer.goodbye("restart")
    broker.openingFailures = [:]
    #expect(try peer.initialize()["restoration"]?["state"] == "none")
    try peer.register("A")
    broker.inspect()
  }

  @Test func anArchiveThatCannotBeOpenedFailsTheCallAndGoesOn() throws {
    broker.openingFailures["App"] = ArchiveError(.full, "the disk is full")
    broker.holdsOpenings = true
    let peer = broker.connect(pid: 2)
    let first = peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""application":"App""#))
    let second = peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""application":"Other""#))
    broker.openHeld()
    #expect(try peer.failure(of: first).code == -32012)
    #expect(try peer.result(of: second)["durability"] == "disk")
    broker.openingFailures = [:]
    try peer.encode(#"["A"]"#, "{}", #""application":"App""#)
  }

  @Test func anErrorOfACallThatWritesNothingDoesNotSpeakOfRoom() throws {
    broker.openingFailures["App"] = ArchiveError(.definite, "the fleet's store does not answer")
    let failure = try broker.connect(pid: 2).fail("initialize", #"{"application":"App"}"#)
    #expect(failure.kind == "storeFailed" && failure.data["hint"]?.string?.hasSuffix("then call again.") == true)
  }

  @Test func anErrorThatDoesNotEndByItselfSaysSo() throws {
    for (kind, refused) in [(.definite, nil), (.refused, true)] as [(ArchiveError.Kind, JSONValue?)] {
      broker.openingFailures["App"] = ArchiveError(kind, "the host has no ticket")
      let failure = try broker.connect(pid: 2).fail("initialize", #"{"application":"App"}"#)
      #expect(failure.kind == "storeFailed" && failure.data["indeterminate"] == false)
      #expect(failure.data["refused"] == refused)
    }
  }

  // MARK: Failed transactions

  @Test func aFailedCommitGoesBackToWhatIsDurableAndSessionsGoOn() throws {
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    let main = try peer.register("Main")
    try peer.encode("\(main)", #"{"a":1}"#, #""revision":1"#)
    broker.holdsCommits = true
    let encode = peer.start("encodeRestorableState", peer.encoding("\(main)", #"{"a":2}"#, #""revision":2"#))
    let register = peer.start("registerObjectForStateRestoration", peer.registration("Lost"))
    let read = peer.start("decodeRestorableState", #"{"object":["Main"]}"#)
    broker.failCommit("App")
    for call in [encode, register, read] { #expect(try peer.failure(of: call).code == -32012) }
    broker.holdsCommits = false
    broker.inspect()
    #expect(try peer.paths() == ["Main"])
    #expect(try peer.state("\(main)") == ["a": 1])
    try peer.encode("\(main)", #"{"a":2}"#, #""revision":2"#)
    try peer.register("Lost")
    #expect(try peer.state("\(main)") == ["a": 2])
    broker.inspect()
  }

  /// A writer that tries again and again costs its application's readers nothing.
  @Test func readersAreServedAndWritersRefusedAtOnceWhileTheDiskIsFull() throws {
    let (writer, reader) = (broker.connect(pid: 1), broker.connect(pid: 2))
    try writer.initialize()
    let main = try writer.register("Main")
    try writer.encode("\(main)", #"{"a":1}"#)
    let named = #""application":"App""#
    let reports = ["readArchive", "describeApplication", "listGenerations", "exportArchive"]
    func read() -> [Int] {
      reports.map { reader.start($0, "{\(named)}") }
        + [reader.start("decodeRestorableState", #"{"object":["Main"],\#(named)}"#)]
    }
    for round in 1...3 {
      broker.holdsCommits = true
      let encode = writer.start("encodeRestorableState", writer.encoding("\(main)", #"{"a":2}"#))
      // What they would be shown may never be durable; only at first that is not expected.
      let waiting = read()
      broker.failCommit("App", thenWait: 0)
      #expect(try writer.failure(of: encode).code == -32012)
      if round > 1 { for call in waiting { _ = try reader.result(of: call) } }
      let refusal = try writer.fail("encodeRestorableState", writer.encoding("\(main)", #"{"a":3}"#))
      #expect(refusal.code == -32012 && refusal.message.contains("the disk is full"))
      #expect(try writer.fail("registerObjectForStateRestoration", writer.registration("B")).code == -32012)
      for call in read() { _ = try reader.result(of: call) }
      #expect(try reader.decode(#"["Main"]"#, named)["state"] == ["a": 1])
      broker.advance(milliseconds: 80)
    }
    #expect(broker.closed.isEmpty)
    broker.holdsCommits = false
    try writer.encode("\(main)", #"{"a":4}"#)
    for call in read() { _ = try reader.result(of: call) }
    #expect(try reader.decode(#"["Main"]"#, named)["state"] == ["a": 4])
    broker.inspect()
  }

  /// What waits for a place begins in the archive that is opened anew, or is told that there is none.
  @Test(arguments: [nil, .unreadable, .definite] as [ArchiveError.Kind?])
  func callsThatWaitForEarlierOnesAreAnsweredAfterAFailedCommit(_ failure: ArchiveError.Kind?) throws {
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    let main = try peer.register("Main")
    try peer.encode("\(main)", #"{"a":1}"#)
    broker.holdsCommits = true
    peer.start("encodeRestorableState", peer.encoding("\(main)", #"{"a":2}"#))
    let readers = (1...5).map { _ in broker.connect() }
    let pages = readers.map { ($0, $0.start("readArchive", #"{"application":"App"}"#)) }
    if let failure { broker.openingFailures["App"] = ArchiveError(failure, "the disk is gone") }
    broker.failCommit("App")
    for (reader, page) in pages.prefix(4) { #expect(try reader.failure(of: page).code == -32012) }
    let (last, page) = pages[4]
    if failure == nil {
      #expect(try last.result(of: page)["objects"]?.array?.first?["state"] == ["a": 1])
      broker.inspect()
    } else {
      _ = try last.failure(of: page)
    }
    #expect(peer.unanswered.isEmpty)
  }

  /// What makes room, or ends something, is tried as soon as that may succeed.
  @Test func whatRemovesSomethingIsNotRefusedWhileTheDiskIsFull() throws {
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    let main = try peer.register("Main")
    broker.holdsCommits = true
    peer.start("encodeRestorableState", peer.encoding("\(main)", "{}"))
    broker.failCommit("App", thenWait: 0)
    broker.holdsCommits = false
    let calls = [
      peer.start("unregisterObject", #"{"object":\#(main)}"#), peer.start("discardApplicationState"),
      peer.start("goodbye", #"{"reason":"closed"}"#),
    ]
    broker.advance(milliseconds: 80)
    for call in calls { _ = try peer.result(of: call) }
    broker.inspect()
  }

  /// What has ended would be written again and again; the next broker finds it.
  @Test func aBrokerEndsWhileTheDiskIsFull() throws {
    let (first, second, third) = (broker.connect(pid: 1), broker.connect(pid: 2), broker.connect(pid: 3))
    try first.initialize()
    try first.encode(#"["Main"]"#, #"{"a":1}"#)
    broker.holdsCommits = true
    broker.crash(first)
    broker.failCommit("App", thenWait: 0)
    broker.saveBeforeEnd()
    #expect(broker.isPreparedToStop)
    let object = #"{"application":"App","object":["Main"]}"#
    let calls = [second.start("unregisterObject", object), third.start("decodeRestorableState", object)]
    let behind = [third.start("ping"), third.start("decodeRestorableState", object)]
    broker.stop()
    broker.advance(milliseconds: 80)
    #expect(!broker.isStopped)
    broker.failCommit("App")
    #expect(broker.isStopped && broker.removed.isEmpty)
    for call in zip([second, third], calls) { #expect(try call.0.failure(of: call.1).code == -32012) }
    _ = try third.result(of: behind[0])
    #expect(try third.failure(of: behind[1]).code == -32012)
    broker.restart()
    broker.holdsCommits = false
    let peer = broker.connect(pid: 4)
    #expect(try peer.decode(#"["Main"]"#, #""application":"App""#)["state"] == ["a": 1])
    #expect(broker.application("App")?.sessions.isEmpty == true)
  }

  @Test func anExportOutlivesAFailedCommit() throws {
    let (writer, reader) = (broker.connect(pid: 1), broker.connect(pid: 2))
    try reader.initialize("App", #""messageBytesMax":1"#)
    for index in 0..<3 { try reader.encode(#"["o\#(index)"]"#, "{}") }
    var cursor = try #require(try reader.call("exportArchive")["cursor"]?.string)
    for _ in 1...2 {
      broker.holdsCommits = true
      writer.start("encodeRestorableState", writer.encoding(#"["o0"]"#, #"{"a":1}"#, #""application":"App""#))
      broker.failCommit("App")
      broker.holdsCommits = false
      cursor = try reader.call("exportArchive", #"{"cursor":"\#(cursor)"}"#)["cursor"]?.string ?? ""
    }
    #expect(cursor.isEmpty)
  }

  @Test(arguments: [0, 200])
  func r18WhatWasInvalidatedBeforeAFailedCommitIsAskedForAfterIt(_ milliseconds: Int64) throws {
    let peer = broker.connect(pid: 1)
    try peer.initialize("App", #""serves":["encodeRestorableStateWithCoder"]"#)
    let main = try peer.register("Main")
    try peer.encode("\(main)", #"{"a":1}"#)
    broker.holdsCommits = true
    let encode = peer.start("encodeRestorableState", peer.encoding("\(main)", #"{"a":2}"#))
    try peer.call("invalidateRestorableState", #"{"object":\#(main)}"#)
    broker.advance(milliseconds: milliseconds)
    let before = peer.calls.count
    broker.failCommit("App")
    #expect(try peer.failure(of: encode).code == -32012)
    broker.holdsCommits = false
    broker.advance(milliseconds: 1_000)
    #expect(peer.calls.count == before + 1)
    peer.answerEncode { _ in #"{"a":3}"# }
    #expect(try peer.state("\(main)") == ["a": 3])
  }

  @Test func r18WhatWasPulledIntoAFailedCommitIsSavedByTheNextRound() throws {
    let peer = broker.connect(pid: 1)
    try peer.initialize("App", #""serves":["encodeRestorableStateWithCoder"]"#)
    let main = try peer.register("Main")
    peer.serves["encodeRestorableStateWithCoder"] = Peer.states { _ in #"{"a":1}"# }
    try peer.call("saveApplicationState")
    peer.serves["encodeRestorableStateWithCoder"] = Peer.states { _ in #"{"a":2}"# }
    try peer.call("invalidateRestorableState", #"{"object":\#(main)}"#)
    broker.holdsCommits = true
    broker.advance(milliseconds: 100)
    #expect(peer.calls.count == 2)
    broker.failCommit("App")
    broker.holdsCommits = false
    broker.advance(milliseconds: 20_000)
    #expect(try peer.state("\(main)") == ["a": 2])
  }

  @Test func aSessionThatWasNotDurableIsForgottenAndGivenToNobodyElse() throws {
    let (first, second) = (broker.connect(pid: 1), broker.connect(pid: 2))
    try first.initialize()
    broker.holdsCommits = true
    let lost = second.start("initialize", #"{"application":"App"}"#)
    broker.failCommit("App")
    #expect(try second.failure(of: lost).code == -32012)
    broker.holdsCommits = false
    let third = broker.connect(pid: 3)
    try third.initialize()
    let handle = try third.register("Main")
    #expect(try second.fail("unregisterObject", #"{"object":\#(handle)}"#).code == -32001)
    try second.initialize()
    try first.register("First")
    broker.inspect()
  }

  @Test func aReaderThatFoundNothingIsAnsweredOnceThereIsSomething() throws {
    let (first, second, reader) = (broker.connect(pid: 1), broker.connect(pid: 2), broker.connect(pid: 3))
    broker.holdsCommits = true
    let lost = first.start("initialize", #"{"application":"App"}"#)
    broker.failCommit("App")
    #expect(try first.failure(of: lost).code == -32012)
    broker.holdsCommits = false
    let named = #"{"application":"App"}"#
    #expect(try reader.fail("readArchive", named).code == -32018)
    try second.initialize()
    #expect(try reader.call("readArchive", named)["objects"]?.array?.isEmpty == true)
    broker.inspect()
  }

  @Test func aReadThatIsUnderWayWhenTheArchiveCannotBeOpenedAnewIsAnswered() throws {
    try broker.connect(pid: 1).encode(#"["A"]"#, "{}", #""application":"App""#)
    // The next broker has no state at hand.
    broker.restart()
    let (owner, reader) = (broker.connect(pid: 2), broker.connect(pid: 3))
    try owner.initialize()
    broker.holdsCommits = true
    let lost = owner.start("registerObjectForStateRestoration", owner.registration("B"))
    broker.openingFailures["App"] = ArchiveError(.definite, "the disk is gone")
    broker.betweenPieces = { [broker] in broker.failCommit("App", thenWait: 0) }
    let read = reader.start("decodeRestorableState", #"{"application":"App","object":["A"]}"#)
    broker.betweenPieces = nil
    #expect(try owner.failure(of: lost).code == -32012)
    #expect(try reader.failure(of: read).code == -32012)
  }

  @Test func aDetachedSessionThatWasNotDurableBeginsAnew() throws {
    let peer = broker.connect(pid: 1)
    try peer.encode(#"["A"]"#, "{}", #""application":"App""#)
    broker.holdsCommits = true
    let call = peer.registration("Main", below: nil, #""application":"App""#)
    let lost = peer.start("registerObjectForStateRestoration", call)
    broker.failCommit("App")
    #expect(try peer.failure(of: lost).code == -32012)
    broker.holdsCommits = false
    #expect(try peer.call("registerObjectForStateRestoration", call)["session"] != nil)
    broker.inspect()
  }

  @Test func whatHappensWhileTheArchiveIsReopenedIsNotLostNorWrittenTwice() throws {
    let (first, second, third) = (broker.connect(pid: 1), broker.connect(pid: 2), broker.connect(pid: 3))
    for (index, peer) in [first, second, third].enumerated() {
      try peer.initialize()
      try peer.register("o\(index)")
      try peer.encode(#"["o\#(index)"]"#, "{}")
    }
    broker.holdsCommits = true
    first.start("encodeRestorableState", first.encoding(#"["o0"]"#, #"{"a":1}"#))
    broker.holdsOpenings = true
    broker.failCommit("App")
    broker.holdsCommits = false
    broker.crash(second)
    broker.disconnect(third)
    let encode = first.start("encodeRestorableState", first.encoding(#"["o0"]"#, #"{"a":2}"#))
    broker.advance(milliseconds: 70_000)
    #expect(!first.hasAnswer(encode))
    broker.openHeld()
    #expect(try first.result(of: encode)["durability"] == "disk")
    broker.advance(milliseconds: 2_000)
    #expect(broker.application("App")?.sessions.count == 2)
    broker.inspect()
    broker.kill(third)
    #expect(broker.application("App")?.sessions.count == 1)
    broker.inspect()
  }

  @Test func anExitWhileConnectedIsRememberedWhileTheArchiveIsReopened() throws {
    let (first, second) = (broker.connect(pid: 1), broker.connect(pid: 2))
    try first.initialize()
    try second.initialize()
    broker.holdsCommits = true
    first.start("registerObjectForStateRestoration", first.registration("A"))
    broker.holdsOpenings = true
    broker.failCommit("App")
    broker.holdsCommits = false
    broker.kill(second)
    broker.advance(milliseconds: 5_000)
    broker.openHeld()
    broker.advance(milliseconds: 1_000)
    #expect(broker.application("App")?.sessions.count == 1)
    broker.inspect()
  }

  @Test func r19WhatWasDecodedOutlivesAFailedCommit() throws {
    try broker.connect(pid: 1).encode(#"["A"]"#, #"{"good":1}"#, #""application":"App""#)
    let (peer, other) = (broker.connect(pid: 2), broker.connect(pid: 3))
    for (peer, name) in [(peer, "A"), (other, "B")] {
      try peer.initialize()
      try peer.register(name)
    }
    broker.holdsCommits = true
    other.start("encodeRestorableState", other.encoding(#"["B"]"#, "{}"))
    broker.failCommit("App")
    broker.holdsCommits = false
    // It has not decoded: its push is early.
    try peer.encode(#"["A"]"#, #"{"blank":1}"#)
    #expect(try peer.state(#"["A"]"#) == ["good": 1])
    broker.inspect()
  }

  @Test func handlesNeverRepeatAfterAFailedCommit() throws {
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    let before = try peer.register("A")
    broker.holdsCommits = true
    peer.start("registerObjectForStateRestoration", peer.registration("B"))
    broker.failCommit("App")
    broker.holdsCommits = false
    #expect(try peer.register("C") > before + 1)
    #expect(try peer.register("A") == before)
  }

  @Test func aFailedGoodbyeLeavesTheSessionToItsToken() throws {
    let peer = broker.connect(pid: 1)
    let token = try #require(try peer.initialize()["session"]?.string)
    let handle = try peer.register("A")
    broker.holdsCommits = true
    let goodbye = peer.start("goodbye", #"{"reason":"closed"}"#)
    broker.failCommit("App")
    broker.holdsCommits = false
    #expect(try peer.failure(of: goodbye).code == -32012)
    try peer.initialize("App", #""session":"\#(token)""#)
    try peer.encode("\(handle)", "{}")
    broker.inspect()
  }
}
