// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// What vectors cannot say of sessions that fetch their calls: connections that cannot be called, restarts, times,
/// failed commits.
@Suite struct PollingTests {
  private let broker = MemoryBroker()
  private static let encode = "encodeRestorableStateWithCoder"

  /// Begins a save round; its answer comes to the second.
  private func save(_ more: String = "") throws -> (Peer, Int) {
    let saver = broker.connect(pid: 9)
    return (saver, saver.start("saveApplicationState", #"{"application":"App"\#(more)}"#))
  }

  @Test func whatComesAfterTheConnectionOfAWaitEndedIsFetchedByTheNext() throws {
    let poller = try Poller(broker, serves: [Self.encode])
    try poller.register("Editor")
    let (peer, _) = poller.wait()
    broker.disconnect(peer)
    _ = try save()
    _ = try poller.nextCall(Self.encode)
  }

  @Test func oneConnectionMayHaveManyWaitsForManySessionsUpToALimit() throws {
    var limits = Limits()
    limits.parkedMax = 2
    let broker = MemoryBroker(limits: limits)
    let pollers = try (0..<3).map { _ in try Poller(broker) }
    let peer = broker.connect(pid: 700)
    let waits = pollers.prefix(2).map { peer.start("nextRequest", $0.scoped(#""waitMilliseconds":1000"#)) }
    let failure = try peer.fail("nextRequest", pollers[2].scoped(#""waitMilliseconds":1000"#))
    #expect(failure.kind == "limitExceeded")
    #expect(failure.data["limit"] == "parkedMax")
    // Its own wait makes room for a new one.
    peer.start("nextRequest", pollers[1].scoped(#""waitMilliseconds":1000"#))
    #expect(try peer.result(of: waits[1]).isNull)
    #expect(!peer.hasAnswer(waits[0]))
  }

  @Test func whatWasNotFetchedCannotBeAnswered() throws {
    let poller = try Poller(broker, serves: [Self.encode])
    try poller.register("Editor")
    _ = try save(#","deadlineMilliseconds":1000"#)
    let (former, _) = try poller.nextCall(Self.encode)
    broker.advance(milliseconds: 1_000)
    let (saver, round) = try save(#","deadlineMilliseconds":1000"#)
    // The poller cannot know this number yet.
    #expect(try poller.fail("answerRequest", #""id":\#(former + 1),"result":{}"#).data["pointer"] == "/id")
    let (id, _) = try poller.nextCall(Self.encode)
    #expect(id == former + 1)
    broker.advance(milliseconds: 1_000)
    #expect(saver.hasAnswer(round))
    #expect(try poller.fail("answerRequest", #""id":\#(id),"result":{}"#).data["pointer"] == "/id")
  }

  /// R15: a notified change is on disk.
  @Test func aNotificationWaitsForTheChangeItIsAbout() throws {
    let poller = try Poller(broker, serves: ["registrationReplaced"])
    try poller.register("Editor")
    let other = broker.connect()
    try other.initialize()
    let (peer, wait) = poller.wait()
    broker.holdsCommits = true
    other.start("registerObjectForStateRestoration", other.registration("Editor", #""takeOver":true"#))
    #expect(!peer.hasAnswer(wait))
    broker.commit()
    #expect(try peer.result(of: wait)["method"] == "registrationReplaced")
  }

  /// R15: a change that was not stored did not happen.
  @Test func aNotificationOfAFailedTransactionNeverComesAndTheWaitGoesOn() throws {
    let poller = try Poller(broker, serves: ["registrationReplaced"])
    try poller.register("Editor")
    let other = broker.connect()
    try other.initialize()
    let (peer, wait) = poller.wait()
    broker.holdsCommits = true
    other.start("registerObjectForStateRestoration", other.registration("Editor", #""takeOver":true"#))
    broker.failCommit("App")
    broker.holdsCommits = false
    broker.advance(milliseconds: 10)
    #expect(!peer.hasAnswer(wait))
    try other.register("Editor", #""takeOver":true"#)
    #expect(try peer.result(of: wait)["method"] == "registrationReplaced")
  }

  // MARK: Sessions

  @Test func aSessionWithoutAConnectionIsDetachedAndOutlivesEachOfThem() throws {
    let poller = try Poller(broker, #""process":"script""#)
    let handle = try poller.register("Editor")
    let session = try #require(broker.application("App")?.sessions.values.first)
    #expect(session.facts.isDetached)
    #expect(session.facts.role == "script")
    broker.advance(milliseconds: 599_999)
    try poller.call("encodeRestorableState", #""object":\#(handle),"state":{}"#)
    broker.advance(milliseconds: 599_999)
    #expect(broker.application("App")?.sessions.count == 1)
    broker.advance(milliseconds: 1)
    #expect(broker.application("App")?.sessions.isEmpty == true)
  }

  @Test func aConnectionThatGoesOnRemembersTheSessionItWasGiven() throws {
    let peer = broker.connect(canBeCalled: false)
    try peer.initialize("App", #""serves":["\#(Self.encode)"]"#)
    let handle = try peer.register("Editor", #""application":"App""#)
    try peer.encode("\(handle)", #"{"n":1}"#, #""application":"App""#)
    // It is not the session of the connection: the application is named in every call.
    #expect(try peer.fail("nextRequest").kind == "notInitialized")
    #expect(try peer.call("nextRequest", #"{"application":"App"}"#).isNull)
    // Another session is another one.
    let second = try peer.initialize("App")
    #expect(try peer.fail("unregisterObject", #"{"application":"App","object":\#(handle)}"#).kind == "notOwner")
    #expect(second["session"]?.string?.count == 32)
  }

  @Test func eventsCannotBeSubscribedToWhereTheyCannotBeSent() throws {
    let peer = broker.connect(canBeCalled: false)
    let failure = try peer.fail("subscribe", #"{"application":"App"}"#)
    #expect(failure.code == -32014)
    #expect(failure.kind == "forbidden")
    #expect(broker.core.subscriptionCount == 0)
  }

  @Test func aSessionThatIsResumedWithoutAConnectionPollsFromThenOn() throws {
    let peer = broker.connect(pid: 700)
    let token = try #require(try peer.initialize("App", #""serves":["\#(Self.encode)"]"#)["session"]?.string)
    let handle = try peer.register("Editor")
    let saver = broker.connect(pid: 9)
    let round = saver.start("saveApplicationState", #"{"application":"App"}"#)
    #expect(peer.openCalls(Self.encode).count == 1)
    let poller = try Poller(broker, serves: [Self.encode], #""session":"\#(token)""#)
    #expect(poller.token == token)
    #expect(!peer.isConnected)
    let (id, _) = try poller.nextCall(Self.encode)
    try poller.answer(id, #"{"states":[{"object":\#(handle),"state":{"n":1}}]}"#)
    #expect(try saver.result(of: round)["objects"] == 1)
    // Its process may end without that being a crash.
    broker.kill(peer)
    broker.advance(milliseconds: 2_000)
    #expect(broker.application("App")?.sessions.count == 1)
  }

  @Test func afterARestartASessionServesAndPollsAsBefore() throws {
    let poller = try Poller(broker, serves: [Self.encode])
    let handle = try poller.register("Editor")
    let first = broker.connect(pid: 9)
    first.start("saveApplicationState", #"{"application":"App"}"#)
    let (old, _) = try poller.nextCall(Self.encode)
    broker.restart()
    let saver = broker.connect(pid: 9)
    let round = saver.start("saveApplicationState", #"{"application":"App"}"#)
    let (id, _) = try poller.nextCall(Self.encode)
    #expect(id != old)
    // The answer to the old call cannot be mistaken for that to the new one.
    #expect(try poller.fail("answerRequest", #""id":\#(old),"result":{}"#).data["pointer"] == "/id")
    try poller.answer(id, #"{"states":[{"object":\#(handle),"state":{}}]}"#)
    #expect(try saver.result(of: round)["objects"] == 1)
  }

  /// R31: a state that a process has not fetched is not blamed for its crash.
  @Test(arguments: [false, true]) func whatWasNotFetchedIsNotToBlame(_ isFetched: Bool) throws {
    let fixture = RestoringFixture()
    try fixture.save([("Main", nil, "", #"{"zoom":1}"#)])
    for attempt in 1...2 {
      let pid = Int64(700 + attempt)
      let peer = fixture.broker.connect(pid: pid)
      try peer.initialize("App", #""serves":["decodeRestorableStateWithCoder"]"#)
      #expect(try peer.call("nextRequest").isNull)
      try peer.register("Main")
      peer.start("restoreApplicationState")
      if isFetched { #expect(try peer.call("nextRequest")["method"] == "decodeRestorableStateWithCoder") }
      fixture.broker.crash(peer)
    }
    let tool = fixture.broker.connect(pid: 9)
    let listed = try tool.call("listQuarantine", #"{"application":"App"}"#)
    #expect(listed["objects"]?.array?.isEmpty == !isFetched, "\(listed)")
  }
}

extension Peer {
  fileprivate func registration(_ identifier: String, _ more: String) -> String {
    registration(identifier, below: nil, more)
  }

  @discardableResult
  fileprivate func register(_ identifier: String, _ more: String) throws -> Int64 {
    try register(identifier, below: nil, more)
  }
}
