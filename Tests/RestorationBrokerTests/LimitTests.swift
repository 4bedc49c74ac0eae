// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationTransport
internal import RestorationWire
internal import Testing

/// A value equal to a limit passes and one more fails; the error names the limit, the value and the place.
@Suite struct CoreLimitTests {
  private func broker(_ change: (inout Limits) -> Void) -> MemoryBroker {
    var limits = Limits()
    change(&limits)
    return MemoryBroker(limits: limits)
  }

  private func expect(
    _ failure: Peer.Failure,
    _ limit: String,
    _ value: Int64,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(failure.code == -32008, sourceLocation: sourceLocation)
    #expect(failure.data["limit"] == .string(limit), sourceLocation: sourceLocation)
    #expect(failure.data["value"] == .integer(value), sourceLocation: sourceLocation)
    #expect(failure.data["max"]?.integer ?? value < value, sourceLocation: sourceLocation)
  }

  @Test func objectsOfAnApplication() throws {
    let broker = broker { $0.objectsPerApplicationMax = 3 }
    let peer = broker.connect()
    try peer.initialize()
    for name in ["a", "b"] { try peer.register(name) }
    let tooMany = try peer.fail("encodeRestorableState", peer.encoding(#"["a","x","y"]"#, "{}"))
    expect(tooMany, "objectsPerApplicationMax", 4)
    #expect(try peer.paths() == ["a", "b"])
    try peer.encode(#"["a","x"]"#, "{}")
    expect(try peer.fail("registerObjectForStateRestoration", peer.registration("d")), "objectsPerApplicationMax", 4)
    try peer.register("b")
    try peer.encode(#"["a","x"]"#, #"{"a":1}"#)
    try peer.call("unregisterObject", #"{"object":["b"]}"#)
    try peer.register("d")
    broker.inspect()
  }

  /// What would wait is refused, so that the process goes on to be read.
  @Test func bytesOfCallsThatWait() throws {
    let broker = broker { $0.waitingBytesPerProcessMax = 65_536 }
    let peer = broker.connect()
    try peer.initialize()
    let call = peer.registration("a", below: #"["Missing"]"#, #""awaitParentMilliseconds":1000"#)
    let waiting = (0..<1_000).map { _ in peer.start("registerObjectForStateRestoration", call) }
    let count = waiting.prefix { !peer.hasAnswer($0) }.count
    #expect(count > 10 && count < 500)
    for id in waiting.dropFirst(count) {
      let failure = try peer.failure(of: id)
      expect(failure, "waitingBytesPerProcessMax", 65_537)
    }
    try peer.call("ping")
    broker.advance(milliseconds: 2_000)
    for id in waiting.prefix(count) { #expect(try peer.failure(of: id).code != -32008) }
    try peer.register("Missing")
    broker.inspect()
  }

  @Test func bytesOfACallThatHasWaitedForItsArchive() throws {
    let broker = broker { $0.waitingBytesPerProcessMax = 65_536 }
    broker.holdsOpenings = true
    let peer = broker.connect()
    let padding = String(repeating: " ", count: 70_000)
    let more = #""application":"App","awaitParentMilliseconds":1000\#(padding)"#
    let call = peer.start("registerObjectForStateRestoration", peer.registration("a", below: #"["Missing"]"#, more))
    #expect(!peer.hasAnswer(call))
    broker.openHeld()
    expect(try peer.failure(of: call), "waitingBytesPerProcessMax", 65_537)
  }

  @Test func sessionsOfAProcessInAllApplications() throws {
    let broker = broker { $0.sessionsPerProcessMax = 2 }
    let peers = (1...3).map { _ in broker.connect(pid: 7) }
    try peers[0].call("initialize", #"{"application":"A"}"#)
    try peers[1].call("initialize", #"{"application":"B"}"#)
    expect(try peers[2].fail("initialize", #"{"application":"C"}"#), "sessionsPerProcessMax", 3)
    try broker.connect(pid: 8).call("initialize", #"{"application":"C"}"#)
    try peers[0].call("goodbye", #"{"reason":"closed"}"#)
    try peers[2].call("initialize", #"{"application":"C"}"#)
    broker.inspect()
  }

  @Test func aSessionThatHasLostItsConnectionCounts() throws {
    let broker = broker { $0.sessionsPerProcessMax = 1 }
    let lost = broker.connect(pid: 7)
    try lost.call("initialize", #"{"application":"A"}"#)
    try lost.call("registerObjectForStateRestoration", #"{"restorationIdentifier":"X"}"#)
    broker.disconnect(lost)
    expect(try broker.connect(pid: 7).fail("initialize", #"{"application":"B"}"#), "sessionsPerProcessMax", 2)
    try broker.connect(pid: 8).call("initialize", #"{"application":"B"}"#)
    broker.inspect()
  }

  @Test func aDetachedSessionCountsAsLongAsItLives() throws {
    let broker = broker { $0.sessionsPerProcessMax = 1 }
    let gone = broker.connect(pid: 7, canBeCalled: false)
    try gone.register("X", below: nil, #""application":"A""#)
    broker.disconnect(gone)
    expect(try broker.connect(pid: 7).fail("initialize", #"{"application":"B"}"#), "sessionsPerProcessMax", 2)
    broker.advance(milliseconds: 11 * 60_000)
    try broker.connect(pid: 7).call("initialize", #"{"application":"B"}"#)
    broker.inspect()
  }

  @Test func bytesOfNotificationsThatWait() throws {
    let broker = broker { _ in }
    broker.holdsOpenings = true
    let peer = broker.connect()
    let call = peer.start("initialize", #"{"application":"App"}"#)
    let state = #"{"a":"\#(String(repeating: "x", count: 200_000))"}"#
    for index in 1...5 { peer.notify("encodeRestorableState", peer.encoding(#"["o\#(index)"]"#, state)) }
    #expect(!peer.connection.connection.usage.isPaused)
    peer.notify("encodeRestorableState", peer.encoding(#"["o6"]"#, state))
    #expect(peer.connection.connection.usage.isPaused)
    broker.openHeld()
    #expect(peer.hasAnswer(call) && !peer.connection.connection.usage.isPaused)
    broker.inspect()
  }

  @Test func theLastTenthOfAnApplicationsSessionsIsKeptForProcessesWithoutOne() throws {
    let broker = broker { $0.sessionsPerApplicationMax = 10 }
    let initialize = #"{"application":"App"}"#
    for _ in 1...9 { try broker.connect(pid: 7).call("initialize", initialize) }
    expect(try broker.connect(pid: 7).fail("initialize", initialize), "sessionsPerApplicationMax", 10)
    try broker.connect(pid: 8).call("initialize", initialize)
    expect(try broker.connect(pid: 9).fail("initialize", initialize), "sessionsPerApplicationMax", 11)
    broker.inspect()
  }

  /// Sessions that have no connection of their own count as well.
  @Test func sessionsOfAnApplication() throws {
    let broker = broker { $0.sessionsPerApplicationMax = 2 }
    let (bound, detached, third) = (broker.connect(), broker.connect(), broker.connect())
    try bound.initialize()
    let registration = #"{"application":"App","restorationIdentifier":"D"}"#
    try detached.call("registerObjectForStateRestoration", registration)
    let initialize = #"{"application":"App"}"#
    expect(try third.fail("initialize", initialize), "sessionsPerApplicationMax", 3)
    expect(try third.fail("registerObjectForStateRestoration", registration), "sessionsPerApplicationMax", 3)
    // Calls without a session continue, and so do existing sessions.
    try third.call("encodeRestorableState", #"{"application":"App","object":["X"],"state":{}}"#)
    try detached.call("registerObjectForStateRestoration", #"{"application":"App","restorationIdentifier":"E"}"#)
    try bound.call("goodbye", #"{"reason":"closed"}"#)
    try third.call("initialize", initialize)
    broker.inspect()
  }

  /// A state of 20 KB, which refers 1,024 times to a path of 4 KB, would be given out as 4 MB.
  @Test func bytesOfAStateWithThePathsOfItsReferences() throws {
    let broker = MemoryBroker()
    let peer = broker.connect()
    try peer.initialize()
    var deepest: Int64?
    for level in 10...25 {
      deepest = try peer.register("\(level)" + String(repeating: "x", count: 253), below: deepest.map { "\($0)" })
    }
    let reference = #"{"$restorable":\#(try #require(deepest))}"#
    func state(_ count: Int) -> String {
      #"{"list":[\#([String](repeating: reference, count: count).joined(separator: ","))]}"#
    }
    try peer.register("Main")
    for count in [510, 1_024] {
      let failure = try peer.fail("encodeRestorableState", peer.encoding(#"["Main"]"#, state(count)))
      #expect(failure.kind == "limitExceeded")
      #expect(failure.data["limit"] == "frameBytesMax")
      #expect(failure.data["max"] == 2_097_152)
      #expect(failure.data["value"]?.integer ?? 0 > 2_097_152)
      #expect(failure.data["path"] == ["Main"])
    }
    try peer.encode(#"["Main"]"#, state(500))
    #expect(try peer.decode(#"["Main"]"#)["state"]?["list"]?.array?.count == 500)
    broker.inspect()
  }

  @Test func bytesOfAStateWithThePathsOfItsReferencesWhenItIsImportedOrBroughtBack() throws {
    let broker = broker { ($0.frameBytesMax, $0.stateBytesMax) = (65_536, 32_768) }
    let tool = broker.connect()
    let long = String(repeating: "x", count: 250)
    func document(_ count: Int) -> String {
      let list = [String](repeating: #"{"$restorable":["\#(long)"]}"#, count: count).joined(separator: ",")
      return Document.of(Document.object(#"["\#(long)"]"#, "{}"), Document.object(#"["B"]"#, #"{"list":[\#(list)]}"#))
    }
    let refused = try tool.fail("importArchive", tool.importing(document(120), into: "Other"))
    #expect(refused.data["limit"] == "frameBytesMax")
    #expect(refused.data["pointer"] == "/document/objects/1/state")
    try tool.importDocument(document(100), into: "Other")

    let peer = broker.connect(pid: 2)
    try peer.initialize()
    for name in ["a", "B"] { try peer.register(name) }
    let list = [String](repeating: #"{"$restorable":["a"]}"#, count: 120).joined(separator: ",")
    try peer.encode(#"["B"]"#, #"{"list":[\#(list)]}"#)
    try peer.call("saveApplicationState")
    try peer.encode(#"["B"]"#, "{}")
    try peer.call("setRestorationIdentifier", #"{"object":["a"],"restorationIdentifier":"\#(long)"}"#)
    let back = #"{"generation":1,"objects":[["B"]],"force":true}"#
    expect(try peer.fail("rollBack", back), "frameBytesMax", Int64(11 + 119 + 120 * (42 + 254)))
    #expect(try peer.decode(#"["B"]"#)["state"] == .object([:]))
    try peer.call("setRestorationIdentifier", #"{"object":["\#(long)"],"restorationIdentifier":"b"}"#)
    try peer.call("rollBack", back)
    #expect(try peer.decode(#"["B"]"#)["state"]?["list"]?.array?.count == 120)
    broker.inspect()
  }

  @Test func bytesOfAPath() throws {
    let broker = broker { $0.pathBytesMax = 10 }
    let peer = broker.connect()
    try peer.initialize()
    try peer.register("abcd")
    try peer.register("12345", below: #"["abcd"]"#)
    expect(
      try peer.fail("registerObjectForStateRestoration", peer.registration("123456", below: #"["abcd"]"#)),
      "pathBytesMax",
      11
    )
    expect(
      try peer.fail(
        "registerObjectForStateRestoration",
        peer.registration("1234", below: #"["abcd"]"#, #""position":1"#)
      ),
      "pathBytesMax",
      11
    )
    expect(try peer.fail("registerObjectForStateRestoration", peer.registration("ééééé1")), "pathBytesMax", 11)
    try peer.register("ééééé")
    try peer.encode(#"["a","b","c","d","ef"]"#, "{}")
    expect(try peer.fail("encodeRestorableState", peer.encoding(#"["a","b","c","d","efg"]"#, "{}")), "pathBytesMax", 11)
    expect(
      try peer.fail("setRestorationIdentifier", #"{"object":["abcd"],"restorationIdentifier":"abcde"}"#),
      "pathBytesMax",
      11
    )
    try peer.call("setRestorationIdentifier", #"{"object":["abcd"],"restorationIdentifier":"abc"}"#)
    #expect(try peer.paths().contains("abc/12345"))
    broker.inspect()
  }

  @Test func bytesOfAState() throws {
    let broker = broker { $0.stateBytesMax = 40 }
    let peer = broker.connect()
    try peer.initialize()
    func state(_ bytes: Int) -> String { #"{"a":"\#(String(repeating: "x", count: bytes - 8))"}"# }
    try peer.encode(#"["A"]"#, state(40))
    expect(try peer.fail("encodeRestorableState", peer.encoding(#"["A"]"#, state(41))), "stateBytesMax", 41)
    try peer.encode(#"["A"]"#, #"{     "a"  :                              1                         }"#)
    let elements = #""elements":[{"role":"selected","indexPath":[]}]"#
    let failure = try peer.fail("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", elements))
    #expect(failure.data["limit"] == "stateBytesMax" && failure.message.hasPrefix("A: stateBytesMax is 40, "))
    #expect(failure.data["path"] == ["A"])
    let own = try peer.fail("encodeRestorableState", peer.encoding("[]", state(41)))
    #expect(own.message.hasPrefix("stateBytesMax is"))
    #expect(try peer.state(#"["A"]"#) == ["a": 1])
  }

  @Test func depthOfAState() throws {
    let broker = broker { $0.stateDepthMax = 4 }
    let peer = broker.connect()
    try peer.initialize()
    try peer.encode(#"["A"]"#, #"{"a":[{"b":[1]}]}"#)
    expect(try peer.fail("encodeRestorableState", peer.encoding(#"["A"]"#, #"{"a":[{"b":[[]]}]}"#)), "stateDepthMax", 5)
  }

  @Test func referencesOfAState() throws {
    let broker = broker { $0.referencesPerStateMax = 2 }
    let peer = broker.connect()
    try peer.initialize()
    try peer.register("T")
    let reference = #"{"$restorable":["T"]}"#
    try peer.encode(#"["A"]"#, #"{"a":[\#(reference),\#(reference)]}"#)
    let state = #"{"a":[\#(reference),\#(reference)],"b":\#(reference)}"#
    expect(try peer.fail("encodeRestorableState", peer.encoding(#"["A"]"#, state)), "referencesPerStateMax", 3)
  }

  private func state(_ bytes: Int, _ letter: String = "x") -> String {
    #"{"a":"\#(String(repeating: letter, count: bytes - 8))"}"#
  }

  /// Of the head, as the limit counts them.
  private func bytes(_ peer: Peer) throws -> Int {
    Int(try peer.call("listApplications")["applications"]?.array?.first?["bytes"]?.integer ?? 0)
  }

  @Test func bytesOfAnArchive() throws {
    let broker = broker { $0.archiveBytesMax = 1_000 }
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    try peer.register("A")
    try peer.encode(#"["A"]"#, state(60))
    // The name, the state, and once for all states what is known of their writer.
    let room = 1_000 - (try bytes(peer)) - 1
    #expect(room < 1_000 - 62)
    try peer.encode(#"["B"]"#, state(room))
    #expect(try bytes(peer) == 1_000)
    expect(try peer.fail("encodeRestorableState", peer.encoding(#"["B"]"#, state(room + 1))), "archiveBytesMax", 1_001)
    expect(try peer.fail("encodeRestorableState", peer.encoding(#"["C"]"#, "{}")), "archiveBytesMax", 1_003)
    expect(try peer.fail("registerObjectForStateRestoration", peer.registration("DD")), "archiveBytesMax", 1_002)
    let rename = #"{"object":["A"],"restorationIdentifier":"AAA"}"#
    expect(try peer.fail("setRestorationIdentifier", rename), "archiveBytesMax", 1_002)
    let classes = peer.registration("A", below: nil, #""objectClass":["C"]"#)
    #expect(try peer.fail("registerObjectForStateRestoration", classes).data["limit"] == "archiveBytesMax")
    #expect(try peer.paths() == ["A", "B"])
    try peer.encode(#"["A"]"#, state(50))
    try peer.encode(#"["B"]"#, state(room + 10))
    broker.inspect()
  }

  @Test func whatGenerationsKeepHasRoomOfItsOwn() throws {
    let broker = broker { $0.archiveBytesMax = 1_000 }
    for letter in ["1", "2", "3", "4"] {
      let peer = broker.connect(pid: 1)
      try peer.initialize()
      try peer.encode(#"["A"]"#, state(850, letter))
      try peer.encode(#"["A"]"#, state(850, "x"))
      try peer.goodbye("restart")
      broker.inspect()
    }
  }

  @Test func r16GenerationsThatHaveNoRoomAreGivenUpAndToldButNotThePinnedOne() throws {
    let broker = broker { $0.archiveBytesMax = 1_000 }
    let watcher = broker.connect(pid: 900)
    try watcher.call("subscribe", #"{"events":["generationDropped"]}"#)
    for letter in ["1", "2", "3", "4"] {
      let peer = broker.connect(pid: 1)
      try peer.initialize()
      try peer.encode(#"["A"]"#, state(600, letter))
      try peer.goodbye("restart")
    }
    let told = watcher.takeNotifications("event")
    #expect(told.map { $0["generation"]?.integer } == [2, 3])
    #expect(told.allSatisfy { $0["cause"] == "room" })
    let left = try watcher.call("listGenerations", #"{"application":"App"}"#)["generations"]?.array ?? []
    let numbers = left.compactMap { $0["generation"]?.integer }
    #expect(numbers.contains(1) && !numbers.contains(2) && !numbers.contains(3))
    broker.inspect()
  }

  @Test func r19AStateThatAnEarlyOneHidesIsGivenUpIfNothingElseCanBe() throws {
    let broker = broker { $0.archiveBytesMax = 1_000 }
    let before = broker.connect(pid: 1)
    try before.initialize()
    try before.encode(#"["A"]"#, state(800, "1"))
    try before.goodbye("restart")
    // The run continues, so that no generation holds the next state, and the first one stays pinned.
    try broker.connect(pid: 3).initialize()
    let first = broker.connect(pid: 4)
    try first.initialize()
    try first.register("A")
    #expect(try first.state(#"["A"]"#)?["a"]?.string?.first == "1")
    try first.encode(#"["A"]"#, state(700))
    broker.crash(first)
    let second = broker.connect(pid: 2)
    try second.initialize()
    try second.register("A")
    try second.encode(#"["A"]"#, state(850, "y"))
    #expect(try second.state(#"["A"]"#)?["a"]?.string?.first == "y")
    broker.inspect()
  }

  @Test func r19AnEarlyStateTakesTheRoomOfTheOneItHides() throws {
    let broker = broker { $0.archiveBytesMax = 1_000 }
    // The run continues, so that no generation holds the older state.
    try broker.connect(pid: 3).initialize()
    let first = broker.connect(pid: 1)
    try first.initialize()
    try first.register("A")
    try first.encode(#"["A"]"#, state(600))
    broker.crash(first)
    let second = broker.connect(pid: 2)
    try second.initialize("App", #""serves":["encodeRestorableStateWithCoder"]"#)
    try second.register("A")
    try second.call("encodeRestorableState", second.encoding(#"["A"]"#, state(800, "y")))
    // It replaces the early one.
    try second.call("encodeRestorableState", second.encoding(#"["A"]"#, state(810, "z")))
    let id = second.start("saveApplicationState")
    second.answerEncode { _ in state(1_000, "y") }
    let stale = try second.result(of: id)["stale"]?.array ?? []
    #expect(stale.map { $0["why"]?.string } == ["limitExceeded"])
    #expect(try second.state(#"["A"]"#)?["a"]?.string?.first == "x")
    broker.inspect()
  }

  @Test func aFullArchiveTakesTheSameStateAgainWithoutWaitingForTheDisk() throws {
    let broker = broker { $0.archiveBytesMax = 1_000 }
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    broker.holdsCommits = true
    var calls: [Int] = []
    for round in 0..<5 {
      calls.append(peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, state(850, String(round)))))
    }
    broker.commit()
    for call in calls { #expect(try peer.result(of: call)["durability"] == "disk") }
  }

  /// Every writer has a text of its own.
  @Test func whatNoStateNamesTakesNoRoomAndIsForgotten() throws {
    let broker = broker { $0.archiveBytesMax = 4_000 }
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    for round in 1...50 {
      let name = "C" + String(repeating: "\(round % 10)", count: 200) + "\(round)"
      try peer.register("A", below: nil, #""objectClass":["\#(name)"]"#)
      try peer.encode(#"["A"]"#, "{}")
    }
    #expect(try bytes(peer) < 1_000)
    // Rows that nobody can read are deleted when there is time; the next write tells which writers that leaves.
    broker.advance(milliseconds: 120_000)
    try peer.encode(#"["A"]"#, #"{"n":1}"#)
    #expect(broker.disk.archive("App")?.contexts.count == 1)
    broker.inspect()
  }

  @Test func connectionsOfAnApplication() throws {
    let broker = broker { $0.connectionsPerApplicationMax = 2 }
    let (first, second, third) = (broker.connect(pid: 1), broker.connect(pid: 2), broker.connect(pid: 3))
    try first.initialize()
    try second.encode(#"["A"]"#, "{}", #""application":"App""#)
    expect(try third.fail("initialize", #"{"application":"App"}"#), "connectionsPerApplicationMax", 3)
    expect(try third.fail("describeApplication", #"{"application":"App"}"#), "connectionsPerApplicationMax", 3)
    try third.initialize("Other")
    _ = try second.objects(#""application":"App""#)
    broker.disconnect(second)
    let fourth = broker.connect(pid: 4)
    try fourth.initialize()
  }

  @Test func openArchivesCloseTheLeastRecentlyUsed() throws {
    let broker = broker { $0.openArchivesMax = 3 }
    let peer = broker.connect(pid: 1)
    for name in ["a", "b", "c"] {
      broker.advance(milliseconds: 1)
      try peer.encode(#"["X"]"#, #"{"in":"\#(name)"}"#, #""application":"\#(name)""#)
    }
    broker.advance(milliseconds: 1)
    _ = try peer.decode(#"["X"]"#, #""application":"a""#)
    broker.advance(milliseconds: 1)
    try peer.encode(#"["X"]"#, "{}", #""application":"d""#)
    #expect(broker.closed == ["b"])
    #expect(try peer.decode(#"["X"]"#, #""application":"b""#)["state"] == ["in": "b"])
    #expect(broker.closed == ["b", "c"])
    #expect(broker.core.applications.count == 3)
  }

  @Test func moreApplicationsAreInUseThanArchivesMayBeOpen() throws {
    let broker = broker { $0.openArchivesMax = 2 }
    let peers = (1...5).map { broker.connect(pid: $0) }
    for (name, peer) in zip(["a", "b", "c", "d", "e"], peers) { try peer.initialize(name) }
    for peer in peers { try peer.encode("\(peer.register("X"))", #"{"n":1}"#) }
    #expect(broker.closed.isEmpty)
    for peer in peers.prefix(2) { try peer.goodbye("restart") }
    #expect(broker.closed.isEmpty)
    try broker.connect(pid: 6).initialize("f")
    #expect(broker.closed.sorted() == ["a", "b"])
    for (name, peer) in zip(["c", "d", "e"], peers.dropFirst(2)) {
      #expect(try peer.state(#"["X"]"#) == ["n": 1])
      broker.inspect(name)
      try peer.goodbye("restart")
    }
    // Those that are too many do not stay until a further one comes.
    broker.advance(milliseconds: 5_000)
    #expect(broker.core.applications.count == 2)
  }

  @Test func anArchiveIsNotClosedUnderARead() throws {
    let broker = broker { $0.openArchivesMax = 1 }
    let (first, second, third) = (broker.connect(pid: 1), broker.connect(pid: 2), broker.connect(pid: 3))
    try first.encode(#"["X"]"#, #"{"a":1}"#, #""application":"a""#)
    broker.holdsCommits = true
    first.start("encodeRestorableState", first.encoding(#"["X"]"#, #"{"a":2}"#, #""application":"a""#))
    let read = first.start("decodeRestorableState", #"{"object":["X"],"application":"a"}"#)
    let write = second.start("encodeRestorableState", second.encoding(#"["X"]"#, "{}", #""application":"b""#))
    #expect(broker.closed.isEmpty)
    broker.holdsCommits = false
    broker.commit()
    #expect(try first.result(of: read)["state"] == ["a": 2])
    #expect(second.resultIfAny(of: write) != nil)
    try third.encode(#"["X"]"#, "{}", #""application":"c""#)
    #expect(broker.closed.sorted() == ["a", "b"])
  }

  /// One process keeps no more of all applications in memory than of one.
  @Test func textsOfAllApplicationsInWhichAProcessHasSessions() throws {
    let broker = broker { $0.archiveBytesMax = 3 << 20 }
    let classes = (0..<64).map { #""\#($0)\#(String(repeating: "c", count: 250))""# }.joined(separator: ",")
    func fill(_ peer: Peer, _ count: Int) throws {
      for number in 0..<count { try peer.register("o\(number)", #""objectClass":[\#(classes)]"#) }
    }
    let (first, second) = (broker.connect(pid: 1), broker.connect(pid: 1))
    try first.initialize("A")
    try fill(first, 150)
    try second.initialize("B")
    try fill(second, 40)
    var refused: Int?
    for number in 40..<140 where refused == nil {
      let object = second.registration("o\(number)", #""objectClass":[\#(classes)]"#)
      let call = second.start("registerObjectForStateRestoration", object)
      if second.resultIfAny(of: call) == nil { refused = call }
    }
    let failure = try second.failure(of: #require(refused))
    #expect(failure.data["limit"] == "archiveBytesMax" && failure.data["max"] == .integer(3 << 20))
    #expect((failure.data["value"]?.integer ?? 0) > 3 << 20)
    // Others may, and so may it when it has left the other application.
    let other = broker.connect(pid: 2)
    try other.initialize("B")
    try other.register("other")
    try first.call("goodbye", #"{"reason":"restart"}"#)
    try second.register("more")
    broker.inspect()
  }

  /// Method, member, a value at the bound, and one beyond it.
  private static let bounds: [(String, String, String, String)] = [
    ("saveApplicationState", "deadlineMilliseconds", "600000", "600001"),
    ("saveApplicationState", "deadlineMilliseconds", "1", "0"),
    ("restoreApplicationState", "deadlineMilliseconds", "3600000", "3600001"),
    ("restoreApplicationState", "deadlineMilliseconds", "1", "0"),
    ("nextRequest", "waitMilliseconds", "30000", "30001"),
    ("verifyArchive", "progressToken", text(1_022), text(1_023)),
    (registration, "awaitParentMilliseconds", "86400000", "86400001"),
    (registration, "position", "9007199254740991", "9007199254740992"),
    (registration, "restorationClass", text(1_024), text(1_025)),
    (registration, "objectClass", "[\(text(255))]", "[\(text(256))]"),
    (registration, "objectClass", names(64), names(65)),
    (registration, "restorationIdentifier", text(255), text(256)),
    ("initialize", "process", text(255), text(256)),
    ("initialize", "application", text(128), text(129)),
    ("initialize", "instance", text(48), text(49)),
  ]

  /// What a call may say besides the limits that can be configured.
  @Test(arguments: bounds)
  func whatACallMaySay(_ method: String, _ member: String, _ most: String, _ tooMuch: String) throws {
    func isRefused(_ value: String) throws -> Bool {
      let broker = broker { _ in }
      defer { broker.inspect() }
      let peer = broker.connect()
      if method != "initialize" { try peer.initialize() }
      let name =
        method == Self.registration && member != "restorationIdentifier" ? #""restorationIdentifier":"A","# : ""
      let application = method == "initialize" && member != "application" ? #""application":"App","# : ""
      let call = peer.start(method, #"{\#(name)\#(application)"\#(member)":\#(value)}"#)
      guard peer.hasAnswer(call), peer.resultIfAny(of: call) == nil else { return false }
      let failure = try peer.failure(of: call)
      #expect([-32602, -32004, -32008].contains(failure.code), "\(failure)")
      return true
    }
    #expect(try !isRefused(most), "\(member) \(most)")
    #expect(try isRefused(tooMuch), "\(member) \(tooMuch)")
  }

  @Test(arguments: [
    ("decodeRestorableState", #"{"object":["$"]}"#), ("decodeRestorableState", #"{"object":["x","$"]}"#),
    ("encodeRestorableState", #"{"object":["$"],"state":{}}"#),
    ("encodeRestorableState", #"{"object":["A"],"state":{"UIStateRestoration$":1}}"#),
    ("encodeRestorableState", #"{"object":["A"],"state":{"r":{"$restorable":["$"]}}}"#),
    ("setRestorationParent", #"{"object":["A"],"restorationParent":["$"]}"#),
    ("$", "{}"), ("subscribe", #"{"events":["$"]}"#), ("explainRestoration", #"{"object":[$250]}"#),
  ])
  func anErrorRepeatsNoLongValue(method: String, parameters: String) throws {
    let broker = broker { _ in }
    let peer = broker.connect()
    try peer.initialize()
    try peer.register("A")
    let long = String(repeating: "x", count: 70_000)
    let many = repeatElement("\"\(String(repeating: "x", count: 250))\"", count: 300).joined(separator: ",")
    func filled(_ text: String) -> String {
      text.replacing("$250", with: many).replacing("$restorable", with: "\0").replacing("$", with: long)
        .replacing("\0", with: "$restorable")
    }
    let call = peer.start(filled(method), filled(parameters))
    #expect(try peer.failure(of: call).message.utf8.count <= 1_100)
    #expect(try peer.text(call).utf8.count < 2_048)
  }

  private static let registration = "registerObjectForStateRestoration"

  private static func text(_ count: Int) -> String { "\"\(String(repeating: "x", count: count))\"" }

  private static func names(_ count: Int) -> String {
    "[\((0..<count).map { "\"C\($0)\"" }.joined(separator: ","))]"
  }
}
