// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Sessions by `initialize`, resumed ones, detached ones, and the application of a call.
@Suite struct SessionTests {
  let broker = MemoryBroker()

  @Test func aReadThatFoundNothingDoesNotFailTheWriteBehindIt() throws {
    let (reader, writer) = (broker.connect(pid: 1), broker.connect(pid: 2))
    broker.holdsOpenings = true
    let read = reader.start("describeApplication", #"{"application":"App"}"#)
    let write = writer.start("encodeRestorableState", writer.encoding(#"["A"]"#, "{}", #""application":"App""#))
    broker.openHeld()
    #expect(reader.hasAnswer(read))
    #expect(try writer.result(of: write)["durability"] == "disk")
  }

  @Test func r9ADelegateWhoseProcessHasJustEndedGivesWay() throws {
    let first = broker.connect(pid: 3)
    try first.initialize("App", #""delegate":true"#)
    broker.killUnnoticed(first)
    try broker.connect(pid: 4).initialize("App", #""delegate":true"#)
    broker.inspect()
  }

  // MARK: Resuming

  @Test func aSessionResumedAfterTheBrokerKeepsItsHandles() throws {
    let first = broker.connect(pid: 1)
    let token = try #require(try first.initialize()["session"]?.string)
    let handle = try first.register("Main", below: nil, #""objectClass":"A""#)
    let excluded = try first.register(nil, below: nil, #""kind":"view""#)
    broker.restart()
    let second = broker.connect(pid: 1)
    try second.initialize("App", #""session":"\#(token)""#)
    try second.encode("\(handle)", #"{"a":1}"#)
    try second.encode("\(excluded)", #"{"b":1}"#)
    #expect(try second.decode("\(handle)")["status"] == "available")
    #expect(try second.register("Main") == handle)
    #expect(try second.register("New") > handle)
    broker.inspect()
  }

  /// Its message is handled all the same, though no connection knows its process any longer.
  @Test(arguments: [false, true])
  func aProcessWhoseConnectionIsLostWhileTheArchiveIsOpenedHasNotEnded(_ isBackAtOnce: Bool) throws {
    let first = broker.connect(pid: 1)
    let token = try #require(try first.initialize()["session"]?.string)
    let main = try first.register("Main")
    broker.restart()
    broker.holdsOpenings = true
    let resuming = #"{"application":"App","session":"\#(token)"}"#
    let lost = broker.connect(pid: 1)
    lost.start("initialize", resuming)
    broker.disconnect(lost)
    let second = broker.connect(pid: 1)
    let early = isBackAtOnce ? second.start("initialize", resuming) : nil
    broker.openHeld()
    broker.advance(milliseconds: 2_000)
    #expect(broker.application("App")?.sessions.count == 1)
    let call = early ?? second.start("initialize", resuming)
    #expect(try second.result(of: call)["session"] == .string(token))
    try second.encode("\(main)", #"{"a":1}"#)
    broker.inspect()
  }

  @Test func anArchiveGivesNoHandleTwice() throws {
    var limits = Limits()
    limits.openArchivesMax = 1
    let broker = MemoryBroker(limits: limits)
    let first = broker.connect(pid: 1)
    let token = try #require(try first.initialize()["session"]?.string)
    let kept = try first.register("Kept", below: nil)
    let gone = try first.register("Gone", below: nil)
    try first.encode("\(kept)", #"{"a":1}"#)
    try first.call("unregisterObject", #"{"object":\#(gone)}"#)
    broker.restart()
    let second = broker.connect(pid: 1)
    try second.initialize("App", #""session":"\#(token)""#)
    let new = try second.register("New", below: nil)
    #expect(new > gone)
    #expect(try second.decode("\(kept)")["state"] == ["a": 1])
    try second.goodbye("restart")
    // It is closed, and opened again.
    try broker.connect(pid: 2).encode(#"["A"]"#, "{}", #""application":"Other""#)
    #expect(broker.closed == ["App"])
    let third = broker.connect(pid: 3)
    try third.initialize()
    #expect(try third.register("Third", below: nil) > new)
    broker.inspect()
  }

  /// A client that does not know that its application was forgotten must not reach what is registered since.
  @Test func anArchiveGivesNoHandleOfAnotherThatWasInItsPlace() throws {
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    let former = try peer.register("A", below: nil)
    try broker.connect(pid: 2).call("forgetApplication", #"{"application":"App","force":true}"#)
    let other = broker.connect(pid: 3)
    try other.initialize()
    let later = try (1...10).map { try other.register("B\($0)", below: nil) }
    #expect(!later.contains(former))
    #expect(
      try broker.connect(pid: 1).fail("decodeRestorableState", #"{"application":"App","object":\#(former)}"#).kind
        == "unknownObject"
    )
  }

  // MARK: Order

  @Test func messagesBehindAnOpeningKeepTheirOrder() throws {
    broker.holdsOpenings = true
    let peer = broker.connect(pid: 1)
    let calls = [
      peer.start("initialize", #"{"application":"App"}"#),
      peer.start("registerObjectForStateRestoration", peer.registration("Main")),
      peer.start("encodeRestorableState", peer.encoding(#"["Main"]"#, #"{"a":1}"#)),
      peer.start("decodeRestorableState", #"{"object":["Main"]}"#),
      peer.start("goodbye", #"{"reason":"restart"}"#),
    ]
    #expect(calls.allSatisfy { !peer.hasAnswer($0) })
    let other = broker.connect(pid: 2)
    #expect(try other.call("ping") == [:])
    broker.openHeld()
    #expect(try peer.result(of: calls[3])["state"] == ["a": 1])
    #expect(try peer.result(of: calls[4]) == [:])
  }

  @Test func messagesBehindAProbeKeepTheirOrder() throws {
    let old = broker.connect(pid: 1)
    try old.initialize()
    try old.register("Main")
    broker.restart()
    broker.killUnnoticed(old)
    broker.holdsOpenings = true
    let (first, second) = (broker.connect(pid: 2), broker.connect(pid: 3))
    first.start("initialize", #"{"application":"App"}"#)
    let register = first.start("registerObjectForStateRestoration", first.registration("Main"))
    let encode = first.start("encodeRestorableState", first.encoding(#"["Main"]"#, #"{"a":1}"#))
    second.start("initialize", #"{"application":"App"}"#)
    let contested = second.start("registerObjectForStateRestoration", second.registration("Main"))
    let refused = second.start("encodeRestorableState", second.encoding(#"["Main"]"#, "{}"))
    broker.openHeld()
    #expect(first.hasAnswer(register))
    #expect(try first.result(of: encode)["durability"] == "disk")
    #expect(try second.failure(of: contested).kind == "duplicatePath")
    #expect(try second.failure(of: refused).kind == "notOwner")
    broker.inspect()
  }

  @Test func aNotificationSentBeforeLeavingIsStored() throws {
    broker.holdsOpenings = true
    let script = broker.connect(pid: 1)
    script.notify("encodeRestorableState", script.encoding(#"["A"]"#, #"{"a":1}"#, #""application":"App""#))
    broker.disconnect(script)
    broker.openHeld()
    #expect(try broker.connect(pid: 2).decode(#"["A"]"#, #""application":"App""#)["state"] == ["a": 1])
  }

  @Test func aSessionBegunByWhoHasLeftIsLost() throws {
    broker.holdsOpenings = true
    let peer = broker.connect(pid: 1)
    peer.start("initialize", #"{"application":"App"}"#)
    peer.start("registerObjectForStateRestoration", peer.registration("Main"))
    peer.start("encodeRestorableState", peer.encoding(#"["Main"]"#, "{}"))
    broker.disconnect(peer)
    broker.kill(peer)
    broker.openHeld()
    broker.advance(milliseconds: 1_000)
    #expect(try broker.connect(pid: 2).paths(#""application":"App""#) == ["Main"])
    broker.inspect()
  }

  // MARK: Instances

  @Test func autoTakesTheMostRecentVacantInstance() throws {
    for (name, pid) in [("App@x", 1), ("App@y", 2), ("App@z", 3)] as [(String, Int64)] {
      let peer = broker.connect(pid: pid)
      try peer.initialize(name)
      broker.advance(milliseconds: 1_000)
      try peer.encode(#"["A"]"#, "{}")
      try peer.goodbye(name == "App@z" ? "userQuit" : "restart")
    }
    func automatic(_ pid: Int64) throws -> String? {
      try broker.connect(pid: pid).initialize("App", #""instance":"auto""#)["application"]?.string
    }
    #expect(try automatic(4) == "App@y")
    #expect(try automatic(5) == "App@x")
    #expect(try automatic(6) == "App@1")
    #expect(try automatic(7) == "App@2")
  }

  @Test func autoTakesTheInstanceThatWasUsedLastNotTheOneThatWasWrittenLast() throws {
    for (name, pid) in [("App@x", 1), ("App@y", 2)] as [(String, Int64)] {
      let peer = broker.connect(pid: pid)
      try peer.initialize(name)
      try peer.encode(#"["A"]"#, "{}")
      try peer.goodbye("restart")
      broker.advance(milliseconds: 1_000)
    }
    try broker.connect(pid: 3).call("encodeRestorableState", #"{"application":"App@x","object":["A"],"state":{"n":2}}"#)
    let chosen = try broker.connect(pid: 4).initialize("App", #""instance":"auto""#)
    #expect(chosen["application"] == "App@y")
  }

  @Test(arguments: [false, true]) func autoTakesTheInstanceOfTheSameAffinityFirst(isRestarted: Bool) throws {
    for (pid, directory) in [(1, "alpha"), (2, "alpha"), (3, "beta")] as [(Int64, String)] {
      let peer = broker.connect(pid: pid)
      try peer.initialize("App@\(pid)", #""affinity":"/\#(directory)""#)
      try peer.encode(#"["A"]"#, "{}")
      broker.advance(milliseconds: 1_000)
      if isRestarted { broker.killUnnoticed(peer) } else { try peer.goodbye("restart") }
    }
    if isRestarted { broker.restart() }
    func automatic(_ pid: Int64, _ affinity: String?) throws -> String? {
      let more = affinity.map { #","affinity":"\#($0)""# } ?? ""
      return try broker.connect(pid: pid).initialize("App", #""instance":"auto""# + more)["application"]?.string
    }
    #expect(try automatic(4, "/alpha") == "App@2")
    #expect(try automatic(5, "/alpha") == "App@1")
    #expect(try automatic(6, "/alpha") == "App@3", "then the one that was used last")
    #expect(try automatic(7, "/alpha") == "App@4")
  }

  @Test func anInstanceHasTheAffinityOfTheNewestSessionThatGaveOne() throws {
    let given: [String?] = ["/alpha", #"\u0000 \"é"#, nil]
    for (pid, affinity) in zip(Int64(1)..., given) {
      let peer = broker.connect(pid: pid)
      try peer.initialize("App@x", affinity.map { #""affinity":"\#($0)""# } ?? "")
      try peer.encode(#"["A"]"#, "{}")
      broker.crash(peer)
    }
    broker.advance(milliseconds: 1_000)
    let other = broker.connect(pid: 4)
    try other.initialize("App@y", #""affinity":"/alpha""#)
    try other.encode(#"["A"]"#, "{}")
    broker.crash(other)
    broker.restart()
    let chosen = try broker.connect(pid: 5).initialize("App", #""instance":"auto","affinity":"\u0000 \"é""#)
    #expect(chosen["application"] == "App@x")
  }

  @Test(arguments: [
    (#""application":"App@x","instance":"y""#, "App@x names an instance already", "give App as application"),
    (#""application":"App","instance":"a b""#, #""a b" is not the name of an instance"#, "at most 48"),
    (
      #""application":"App","messageBytesMax":1180591620717411303424"#,
      "messageBytesMax is not an integer from -9223372036854775808 to 9223372036854775807: 1180591620717411303424",
      "as messageBytesMax"
    ),
  ])
  func whatInitializeRefusesIsToldWithTheNextStep(parameters: String, message: String, hint: String) throws {
    let failure = try broker.connect(pid: 1).fail("initialize", "{\(parameters)}")
    #expect(failure.message.hasPrefix(message), "\(failure.message)")
    #expect(failure.data["hint"]?.string?.contains(hint) == true, "\(failure.data)")
  }

  /// An editor that is started again at once gets the windows of the one that was killed.
  @Test(arguments: [1, 3])
  func autoTakesTheInstanceOfAProcessWhoseEndIsUnknownSoFar(count: Int64) throws {
    let peers = try (1...count).map { pid in
      let peer = broker.connect(pid: pid)
      try peer.initialize("App", #""instance":"auto""#)
      return peer
    }
    for peer in peers { broker.killUnnoticed(peer) }
    let names = try (1...count).map { pid in
      try broker.connect(pid: 10 + pid).initialize("App", #""instance":"auto""#)["application"]?.string
    }
    #expect(names.compactMap(\.self).sorted() == (1...count).map { "App@\($0)" })
  }

  @Test func anInstanceWhoseArchiveDoesNotOpenIsNotKeptForTheNextCall() throws {
    broker.openingFailures["A@1"] = ArchiveError(.definite, "the disk is full")
    let peer = broker.connect(pid: 1)
    #expect(try peer.fail("initialize", #"{"application":"A","instance":"auto"}"#).kind == "storeFailed")
    broker.openingFailures = [:]
    #expect(try peer.initialize("B", #""instance":"auto""#)["application"] == "B@1")
    #expect(try broker.connect(pid: 2).initialize("A", #""instance":"auto""#)["application"] == "A@1")
  }

  @Test func autoOfTwoAtOnceGivesTwoInstancesInOrder() throws {
    broker.holdsListings = true
    broker.holdsOpenings = true
    let (first, second) = (broker.connect(pid: 1), broker.connect(pid: 2))
    let one = first.start("initialize", #"{"application":"App","instance":"auto"}"#)
    let register = first.start("registerObjectForStateRestoration", first.registration("Main"))
    let two = second.start("initialize", #"{"application":"App","instance":"auto"}"#)
    broker.listHeld()
    broker.openHeld()
    #expect(try first.result(of: one)["application"] == "App@1")
    #expect(try first.result(of: register)["path"] == ["Main"])
    #expect(try second.result(of: two)["application"] == "App@2")
    #expect(broker.names.sorted() == ["App@1", "App@2"])
  }
}

/// Detached sessions: named by a token, ended by idleness.
@Suite struct DetachedSessionTests {
  let broker = MemoryBroker()
  let app = #""application":"App""#

  private func begin(_ peer: Peer, _ name: String = "Main") throws -> String {
    let result = try peer.call("registerObjectForStateRestoration", peer.registration(name, below: nil, app))
    return try #require(result["session"]?.string)
  }

  @Test func itEndsAfterTenIdleMinutes() throws {
    let peer = broker.connect(pid: 1)
    let token = try begin(peer)
    broker.advance(milliseconds: 599_000)
    try peer.encode(#"["Main"]"#, #"{"a":1}"#, app)
    broker.advance(milliseconds: 599_999)
    #expect(broker.application("App")?.sessions.count == 1)
    broker.advance(milliseconds: 1)
    #expect(broker.application("App")?.sessions.isEmpty == true)
    broker.inspect()
    #expect(
      try peer.fail("decodeRestorableState", #"{"object":["Main"],\#(app),"session":"\#(token)"}"#).code == -32602
    )
    // Without its token the connection begins a new session.
    #expect(try peer.decode(#"["Main"]"#, app)["state"] == ["a": 1])
    #expect(try begin(peer) != token)
    broker.inspect()
  }

  @Test func itsEndIsNeverACrash() throws {
    let peer = broker.connect(pid: 1)
    _ = try begin(peer)
    try peer.encode(#"["Main"]"#, "{}", app)
    broker.crash(peer)
    let next = broker.connect(pid: 2)
    #expect(try next.initialize()["restoration"]?["reason"] == "launch")
    #expect(try next.objects().first?["orphaned"] == true)
  }

  @Test func aTokenOfAnotherUserIsUnknown() throws {
    let token = try begin(broker.connect(pid: 1))
    let stranger = broker.connect(pid: 2, uid: 7)
    #expect(try stranger.fail("describeApplication", #"{\#(app),"session":"\#(token)"}"#).code == -32602)
    #expect(try stranger.initialize("App", #""session":"\#(token)""#)["session"] != .string(token))
  }

  @Test func itOutlivesTheBroker() throws {
    let peer = broker.connect(pid: 1)
    let token = try begin(peer)
    broker.restart()
    let again = broker.connect(pid: 1)
    try again.encode(#"["Main"]"#, #"{"a":1}"#, #"\#(app),"session":"\#(token)""#)
    broker.inspect()
    broker.advance(milliseconds: 600_000)
    #expect(broker.application("App")?.sessions.isEmpty == true)
    broker.inspect()
  }
}
