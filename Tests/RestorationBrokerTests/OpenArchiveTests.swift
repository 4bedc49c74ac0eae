// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Applications of which more are in use than archives may be open: those with sessions stay as they are.
@Suite struct OpenArchiveTests {
  private let broker: MemoryBroker

  init() {
    var limits = Limits()
    limits.openArchivesMax = 1
    broker = MemoryBroker(limits: limits)
  }

  /// Uses further archives.
  private func useOthers() throws {
    for name in ["Other", "Third"] {
      let peer = broker.connect(pid: 900)
      try peer.encode(#"["Z"]"#, "{}", #""application":"\#(name)""#)
      broker.disconnect(peer)
    }
  }

  @Test func aSessionThatHasLostItsConnectionIsResumedAsItWas() throws {
    let peer = broker.connect(pid: 1)
    let token = try #require(try peer.initialize()["session"]?.string)
    let object = try peer.register("X")
    try peer.encode("\(object)", #"{"n":1}"#)
    broker.disconnect(peer)
    try useOthers()
    let back = broker.connect(pid: 1)
    #expect(try back.initialize("App", #""session":"\#(token)""#)["session"]?.string == token)
    #expect(try back.state("\(object)") == ["n": 1])
    try back.encode("\(object)", #"{"n":2}"#)
    #expect(broker.closed == ["Other"])
    broker.inspect()
  }

  @Test func theEndOfAProcessIsNoticed() throws {
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    try peer.encode("\(peer.register("X"))", #"{"n":1}"#)
    broker.disconnect(peer)
    try useOthers()
    broker.kill(peer)
    #expect(broker.application("App")?.sessions.isEmpty == true)
    try useOthers()
    #expect(broker.closed.contains("App"))
  }

  @Test func aDetachedSessionIsAskedForWhatChanged() throws {
    let poller = try Poller(broker, serves: ["encodeRestorableStateWithCoder"])
    let handle = try poller.register("X")
    try poller.call("invalidateRestorableState", #""object":\#(handle)"#)
    try useOthers()
    broker.advance(milliseconds: 1_000)
    #expect(try poller.next()["method"] == "encodeRestorableStateWithCoder")
  }

  @Test func aDetachedSessionEndsInTime() throws {
    let poller = try Poller(broker)
    let handle = try poller.register("X")
    try poller.call("encodeRestorableState", #""object":\#(handle),"state":{"n":1}"#)
    try useOthers()
    broker.advance(milliseconds: 599_999)
    #expect(broker.application("App")?.sessions.isEmpty == false)
    broker.advance(milliseconds: 1)
    #expect(broker.application("App")?.sessions.isEmpty == true)
    try useOthers()
    #expect(broker.closed.contains("App"))
  }

  @Test func anInstanceWithADetachedSessionIsNotVacant() throws {
    let detached = broker.connect(pid: 1, canBeCalled: false)
    try detached.initialize("App@1")
    broker.disconnect(detached)
    let peer = broker.connect(pid: 2)
    #expect(try peer.initialize("App", #""instance":"auto""#)["application"] == "App@2")
    try peer.goodbye("restart")
    broker.advance(milliseconds: 600_000)
    #expect(try broker.connect(pid: 3).initialize("App", #""instance":"auto""#)["application"] != "App@3")
  }

  @Test(arguments: [false, true])
  func aConnectionWhoseSessionHasEndedHoldsNoArchiveOpen(_ byGoodbye: Bool) throws {
    let peer = broker.connect(pid: 1, canBeCalled: false)
    let token = try #require(try peer.initialize()["session"]?.string)
    if byGoodbye {
      let other = broker.connect(pid: 1, canBeCalled: false)
      try other.call("goodbye", #"{"application":"App","session":"\#(token)","reason":"restart"}"#)
    } else {
      broker.advance(milliseconds: 600_000)
    }
    try useOthers()
    #expect(broker.closed == ["App", "Other"])
  }

  /// The archive was closed, because it could not be reopened.
  @Test func aCallThatWaitsUntilItIsKnownWhichProcessesLiveIsAnsweredAlsoIfTheArchiveIsClosed() throws {
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

  @Test func theTreeOfAnArchiveIsNotMadeOnTheLoop() throws {
    try broker.connect(pid: 1).encode(#"["X"]"#, #"{"n":1}"#, #""application":"App""#)
    broker.restart()
    let (count, peer) = (broker.computedCount, broker.connect(pid: 1))
    try peer.initialize()
    #expect(try peer.state(#"["X"]"#) == ["n": 1])
    #expect(broker.computedCount == count + 1)
  }

  /// R32: the store finds it when it opens the files again that it had closed.
  @Test func anArchiveWhoseFilesWereChangedIsOpenedAnewByTheReadThatNoticesIt() throws {
    try broker.connect(pid: 1).encode(#"["X"]"#, #"{"n":1}"#, #""application":"App""#)
    broker.restart()
    let monitor = broker.connect(pid: 900)
    try monitor.call("subscribe")
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    let count = broker.openings.count
    broker.readFailures["App"] = ArchiveError(.changed, "its files were changed")
    broker.openingDamage["App"] = "its files were changed"
    #expect(try peer.fail("decodeRestorableState", #"{"object":["X"]}"#).kind == "storeFailed")
    #expect(broker.openings.count == count + 1)
    broker.advance(milliseconds: 1_000)
    #expect(monitor.takeNotifications("event").contains { $0["name"] == "archiveDamaged" })
    #expect(try peer.state(#"["X"]"#) == ["n": 1])
    try peer.encode(#"["X"]"#, #"{"n":2}"#)
    broker.inspect()
  }

  /// What it takes is given back, though no other application needs the room.
  @Test func aLargeApplicationWithoutSessionsLeavesMemorySoonAfterItsLastCallAndASmallOneStays() throws {
    let broker = MemoryBroker()
    for (name, count) in [("Large", 5_000), ("Small", 5)] {
      let peer = broker.connect(pid: 1)
      try peer.initialize(name)
      for number in 0..<count { try peer.register("o\(number)") }
      try peer.encode(#"["o0"]"#, "{}")
      try peer.call("goodbye", #"{"reason":"restart"}"#)
      broker.disconnect(peer)
    }
    let reader = broker.connect(pid: 2)
    broker.advance(milliseconds: 4_000)
    try reader.call("describeApplication", #"{"application":"Large"}"#)
    broker.advance(milliseconds: 4_999)
    #expect(broker.application("Large") != nil)
    broker.advance(milliseconds: 1)
    #expect(broker.application("Large") == nil && broker.application("Small") != nil)
    #expect(broker.closed == ["Large"])
    let page = try reader.call("describeApplication", #"{"application":"Large"}"#)
    #expect(page["objects"]?.array?.count == 512)
    broker.advance(milliseconds: 6_000)
    #expect(broker.application("Large") == nil)
  }

  /// Other hosts would wait for one that has ended here, as long as its host sleeps.
  @Test func anArchiveThatRoamsIsClosedSoonAfterItsLastSessionAndCall() throws {
    let broker = MemoryBroker(archivesRoam: true)
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    try peer.encode(#"["X"]"#, #"{"n":1}"#)
    broker.advance(milliseconds: 60_000)
    #expect(broker.closed.isEmpty, "a session has it")
    try peer.call("goodbye", #"{"reason":"restart"}"#)
    broker.disconnect(peer)
    broker.advance(milliseconds: 4_000)
    let tool = broker.connect(pid: 2)
    try tool.call("describeApplication", #"{"application":"App"}"#)
    broker.advance(milliseconds: 4_999)
    #expect(broker.closed.isEmpty)
    broker.advance(milliseconds: 1)
    #expect(broker.closed == ["App"])
  }
}
