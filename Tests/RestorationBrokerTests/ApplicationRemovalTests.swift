// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// When an application has no archive, and when it goes.
@Suite struct ApplicationRemovalTests {
  let broker = MemoryBroker()

  private func applications(_ peer: Peer) throws -> [String] {
    try peer.call("listApplications")["applications"]?.array?.compactMap { $0["application"]?.string } ?? []
  }

  // MARK: Without content

  @Test(arguments: [
    ("encodeRestorableState", #""object":["A/B"],"state":{}"#), ("encodeRestorableState", #""object":7,"state":{}"#),
    ("registerObjectForStateRestoration", #""restorationIdentifier":"A#1""#),
    ("registerObjectForStateRestoration", #""restorationIdentifier":"A","restorationParent":["B"]"#),
  ])
  func aRefusedCallMakesNoArchive(_ method: String, _ parameters: String) throws {
    let peer = broker.connect()
    for name in ["One", "Two"] { _ = try peer.fail(method, #"{"application":"\#(name)",\#(parameters)}"#) }
    #expect(try applications(peer).isEmpty)
    #expect(broker.disk.archive("One") == nil && broker.removed == ["One", "Two"])
    #expect(try peer.fail("describeApplication", #"{"application":"One"}"#).kind == "unknownApplication")
    // The name can be used at once.
    try peer.encode(#"["A"]"#, "{}", #""application":"One""#)
    #expect(try applications(peer) == ["One"])
  }

  @Test func anArchiveWithoutContentGoesWithTheLastConnectionThatNamedIt() throws {
    let (reader, worker) = (broker.connect(pid: 2), broker.connect(pid: 1))
    try worker.initialize()
    try worker.register("Main")
    try worker.goodbye("closed")
    #expect(try reader.call("describeApplication", #"{"application":"App"}"#)["objects"] == [])
    broker.disconnect(worker)
    #expect(broker.disk.archive("App") != nil)
    broker.disconnect(reader)
    #expect(broker.disk.archive("App") == nil)
    broker.inspect()
  }

  @Test(arguments: [#""kind":"viewController""#, #""restorationClass":"Pages""#])
  func whatARestorationWouldBringBackKeepsTheArchive(_ more: String) throws {
    let worker = broker.connect(pid: 1)
    try worker.initialize()
    try worker.register("Main", below: nil, more)
    broker.crash(worker)
    #expect(broker.disk.archive("App") != nil)
  }

  @Test func statesGenerationsAndSessionsKeepTheArchive() throws {
    let writer = broker.connect(pid: 1)
    try writer.encode(#"["A"]"#, "{}", #""application":"States""#)
    try writer.encode(#"["A"]"#, "{}", #""application":"Generations""#)
    try writer.call("saveApplicationState", #"{"application":"Generations"}"#)
    try writer.call("discardApplicationState", #"{"application":"Generations"}"#)
    broker.disconnect(writer)
    let worker = broker.connect(pid: 2)
    try worker.initialize("Sessions")
    broker.disconnect(worker)
    broker.advance(milliseconds: 2_000)
    for name in ["States", "Generations", "Sessions"] { #expect(broker.disk.archive(name) != nil, "\(name)") }
    let last = broker.connect(pid: 1)
    try last.call("discardApplicationState", #"{"application":"Generations","generations":true}"#)
    broker.disconnect(last)
    #expect(broker.disk.archive("Generations") == nil)
  }

  // MARK: Forgetting

  @Test func aForgottenApplicationIsGoneWithItsGenerations() throws {
    let peer = broker.connect(pid: 1)
    try peer.encode(#"["A"]"#, "{}", #""application":"App""#)
    try peer.call("saveApplicationState", #"{"application":"App"}"#)
    try peer.call("forgetApplication", #"{"application":"App"}"#)
    #expect(broker.removed == ["App"] && broker.disk.archive("App") == nil)
    #expect(try peer.fail("readArchive", #"{"application":"App"}"#).kind == "unknownApplication")
    #expect(try peer.fail("forgetApplication", #"{"application":"App"}"#).kind == "unknownApplication")
    try peer.encode(#"["B"]"#, "{}", #""application":"App""#)
    #expect(try peer.paths(#""application":"App""#) == ["B"])
    try peer.call("forgetApplication", #"{"application":"App","damaged":true}"#)
    #expect(broker.removed.last == "App with damaged files")
  }

  @Test func anApplicationWithLiveSessionsIsForgottenByForceOnly() throws {
    let (worker, other) = (broker.connect(pid: 1), broker.connect(pid: 2))
    try worker.initialize()
    let handle = try worker.register("Main")
    let waiting = worker.start(
      "registerObjectForStateRestoration",
      #"{"restorationIdentifier":"P","restorationParent":["No"],"awaitParentMilliseconds":60000}"#
    )
    #expect(try other.fail("forgetApplication", #"{"application":"App"}"#).kind == "needsForce")
    try worker.encode("\(handle)", "{}")
    try other.call("forgetApplication", #"{"application":"App","force":true}"#)
    #expect(try worker.failure(of: waiting).kind == "notInitialized")
    #expect(broker.disk.archive("App") == nil && broker.timerCount == 0)
    #expect(try worker.fail("encodeRestorableState", #"{"object":\#(handle),"state":{}}"#).kind == "notInitialized")
    try worker.initialize()
    #expect(try worker.paths().isEmpty)
    broker.inspect()
  }

  @Test func whoseProcessHasEndedDoesNotLive() throws {
    let worker = broker.connect(pid: 1)
    try worker.initialize()
    try worker.register("Main")
    broker.killUnnoticed(worker)
    let other = broker.connect(pid: 2)
    try other.call("forgetApplication", #"{"application":"App"}"#)
    #expect(broker.disk.archive("App") == nil)
  }

  /// Its save round and its restoration end, and their callers are answered.
  @Test func whatIsUnderWayEndsWhenItsApplicationIsForgotten() throws {
    let fixture = RestoringFixture()
    try fixture.save([("Main", nil, "", "{}")])
    let worker = try fixture.join("W", pid: 1, serves: RestoringFixture.served + ["encodeRestorableStateWithCoder"])
    let other = fixture.broker.connect(pid: 2)
    let restoration = other.start("restoreApplicationState", #"{"application":"App"}"#)
    let round = other.start("saveApplicationState", #"{"application":"App"}"#)
    #expect(!other.hasAnswer(restoration) && !other.hasAnswer(round))
    try worker.call("forgetApplication", #"{"force":true}"#)
    #expect(other.unanswered.isEmpty)
    #expect(fixture.broker.timerCount == 0 && fixture.broker.disk.archive("App") == nil)
  }

  @Test func anArchiveThatCannotBeReadIsForgotten() throws {
    let peer = broker.connect(pid: 1)
    try peer.encode(#"["A"]"#, "{}", #""application":"App""#)
    broker.restart()
    broker.openingFailures["App"] = .init(.unreadable, "it is of a newer broker")
    let next = broker.connect(pid: 1)
    #expect(try next.fail("readArchive", #"{"application":"App"}"#).kind == "archiveUnreadable")
    try next.call("forgetApplication", #"{"application":"App"}"#)
    #expect(broker.disk.archive("App") == nil)
  }

  @Test func r16AnObjectIsForgottenWithTheGenerations() throws {
    let peer = broker.connect(pid: 1)
    for name in ["A", "B"] { try peer.encode(#"["\#(name)"]"#, "{}", #""application":"App""#) }
    for _ in 0..<2 { try peer.call("saveApplicationState", #"{"application":"App"}"#) }
    try peer.call("unregisterObject", #"{"application":"App","object":["A"],"generations":true}"#)
    let list = try peer.call("listGenerations", #"{"application":"App"}"#)["generations"]?.array
    let kept = try #require(list?.first)
    #expect(list?.count == 1 && kept["kind"] == "forgotten")
    let generation = try #require(kept["generation"]?.integer)
    let archive = try peer.call("readArchive", #"{"application":"App","generation":\#(generation)}"#)
    #expect(archive["objects"]?.array?.compactMap { $0["path"]?.joined } == ["B"])
  }

  @Test func r13TheListCountsWholeDaysSinceTheLastSessionOrWrite() throws {
    let tool = broker.connect(pid: 9)
    func days() throws -> JSONValue? {
      try tool.call("listApplications")["applications"]?.array?.first?["unusedDays"]
    }
    let writer = broker.connect(pid: 1)
    try writer.encode(#"["A"]"#, "{}", #""application":"App""#)
    #expect(try days() == 0)
    broker.advance(days: 2)
    #expect(try days() == 2)
    // Reading is no use.
    _ = try tool.call("readArchive", #"{"application":"App"}"#)
    #expect(try days() == 2)
    try writer.initialize()
    #expect(try days() == nil)
    broker.advance(days: 1)
    try writer.goodbye("restart")
    #expect(try days() == 0)
    broker.advance(days: 3)
    #expect(try days() == 3)
  }
}
