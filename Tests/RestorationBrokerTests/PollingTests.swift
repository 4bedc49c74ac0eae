// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Sessions that fetch the broker's calls by `nextRequest` and answer them by `answerRequest`.
@Suite struct PollingTests {
  private let driver = CoreDriver()
  private static let encode = "encodeRestorableStateWithCoder"

  /// Begins a save round; its answer comes to the second.
  private func save(_ more: String = "") throws -> (Peer, Int) {
    let saver = driver.connect(pid: 9)
    return (saver, saver.start("saveApplicationState", #"{"application":"App"\#(more)}"#))
  }

  @Test func whatAPollerAnswersIsSaved() throws {
    let poller = try Poller(driver, serves: [Self.encode])
    let handle = try poller.register("Editor")
    let (saver, round) = try save()
    let (id, parameters) = try poller.nextCall(Self.encode)
    #expect(parameters["objects"] == [["object": .integer(handle), "path": ["Editor"]]])
    #expect(!saver.hasAnswer(round))
    try poller.answer(id, #"{"states":[{"object":\#(handle),"state":{"cursor":17}}]}"#)
    #expect(try saver.result(of: round)["saved"] == true)
    #expect(try saver.result(of: round)["stale"] == [])
    #expect(try saver.decode(#"["Editor"]"#, #""application":"App""#)["state"] == ["cursor": 17])
    #expect(try poller.next().isNull)
  }

  @Test func anObjectThatIsInvalidatedIsAskedForByPolling() throws {
    let poller = try Poller(driver, serves: [Self.encode])
    let handle = try poller.register("Editor")
    try poller.call("invalidateRestorableState", #""object":\#(handle)"#)
    let (peer, wait) = poller.wait()
    driver.advance(milliseconds: 99)
    #expect(!peer.hasAnswer(wait))
    driver.advance(milliseconds: 1)
    let request = try peer.result(of: wait)
    #expect(request["params"]?["round"] == 0)
    try poller.answer(request["id"]?.integer ?? 0, #"{"states":[{"object":\#(handle),"state":{"n":1}}]}"#)
    #expect(try poller.call("decodeRestorableState", #""object":["Editor"]"#)["state"] == ["n": 1])
  }

  /// R12: a client that does not fetch is late, and its unfetched calls are gone.
  @Test func aPollerThatDoesNotComeIsLateAndItsCallIsGone() throws {
    let poller = try Poller(driver, serves: [Self.encode])
    try poller.register("Editor")
    let (saver, round) = try save(#","deadlineMilliseconds":2000"#)
    driver.advance(milliseconds: 2_000)
    #expect(try saver.result(of: round)["stale"]?.array?.first?["why"] == "late")
    #expect(try poller.next().isNull)
  }

  @Test func anErrorIsAnAnswerToo() throws {
    let poller = try Poller(driver, serves: [Self.encode])
    try poller.register("Editor")
    let (saver, round) = try save()
    let (id, _) = try poller.nextCall(Self.encode)
    try poller.call("answerRequest", #""id":\#(id),"error":{"code":-1,"message":"not now"}"#)
    #expect(try saver.result(of: round)["stale"]?.array?.first?["why"] == "failed")
  }

  // MARK: Waiting

  @Test func aWaitEndsWithWhatComesAndDelaysNothingBehindIt() throws {
    let poller = try Poller(driver, serves: [Self.encode])
    let handle = try poller.register("Editor")
    let (peer, wait) = poller.wait()
    #expect(try peer.call("ping") == [:])
    let written = try peer.call("encodeRestorableState", poller.scoped(#""object":\#(handle),"state":{"n":1}"#))
    #expect(written["durability"] == "disk")
    #expect(!peer.hasAnswer(wait))
    _ = try save()
    #expect(try peer.result(of: wait)["method"]?.string == Self.encode)
  }

  @Test func aWaitWithoutAnythingEndsWithNullInTime() throws {
    let poller = try Poller(driver)
    let (peer, wait) = poller.wait(30_000)
    driver.advance(milliseconds: 29_999)
    #expect(!peer.hasAnswer(wait))
    driver.advance(milliseconds: 1)
    #expect(try peer.result(of: wait).isNull)
    let (other, again) = poller.wait(1)
    driver.advance(milliseconds: 1)
    #expect(try other.result(of: again).isNull)
  }

  @Test func aSecondWaitEndsTheFirstWithNull() throws {
    let poller = try Poller(driver, serves: [Self.encode])
    try poller.register("Editor")
    let (first, one) = poller.wait()
    let (second, two) = poller.wait()
    #expect(try first.result(of: one).isNull)
    _ = try save()
    #expect(try second.result(of: two)["method"]?.string == Self.encode)
    #expect(driver.application("App")?.sessions.count == 1)
  }

  @Test func whatComesAfterTheConnectionOfAWaitEndedIsFetchedByTheNext() throws {
    let poller = try Poller(driver, serves: [Self.encode])
    try poller.register("Editor")
    let (peer, _) = poller.wait()
    driver.disconnect(peer)
    _ = try save()
    _ = try poller.nextCall(Self.encode)
  }

  @Test func aCancelledWaitIsAnsweredAndTakesNothing() throws {
    let poller = try Poller(driver, serves: [Self.encode])
    try poller.register("Editor")
    let (peer, wait) = poller.wait()
    peer.notify("$/cancelRequest", #"{"id":\#(wait)}"#)
    #expect(try peer.failure(of: wait).code == -32800)
    _ = try save()
    _ = try poller.nextCall(Self.encode)
    // The timer of the wait is gone with it.
    driver.advance(milliseconds: 40_000)
    #expect(try peer.failure(of: wait).kind == "requestCancelled")
  }

  @Test func aWaitEndsWithItsSession() throws {
    let poller = try Poller(driver)
    let (peer, wait) = poller.wait()
    try poller.call("goodbye", #""reason":"restart""#)
    #expect(try peer.failure(of: wait).kind == "notInitialized")
    #expect(try poller.fail("nextRequest").data["pointer"] == "/session")
  }

  @Test func oneConnectionMayHaveManyWaitsForManySessionsUpToALimit() throws {
    var limits = Limits()
    limits.parkedMax = 2
    let driver = CoreDriver(limits: limits)
    let pollers = try (0..<3).map { _ in try Poller(driver) }
    let peer = pollers[0].connect()
    let waits = pollers.prefix(2).map { peer.start("nextRequest", $0.scoped(#""waitMilliseconds":1000"#)) }
    let failure = try peer.fail("nextRequest", pollers[2].scoped(#""waitMilliseconds":1000"#))
    #expect(failure.kind == "limitExceeded")
    #expect(failure.data["limit"] == "parkedMax")
    // Its own wait makes room for a new one.
    peer.start("nextRequest", pollers[1].scoped(#""waitMilliseconds":1000"#))
    #expect(try peer.result(of: waits[1]).isNull)
    #expect(!peer.hasAnswer(waits[0]))
  }

  @Test func aNotificationFetchesNothing() throws {
    let poller = try Poller(driver)
    try poller.register("Editor")
    let peer = poller.connect()
    peer.notify("nextRequest", poller.scoped(#""serves":["\#(Self.encode)"]"#))
    _ = try save()
    peer.notify("nextRequest", poller.scoped(#""waitMilliseconds":1000"#))
    _ = try poller.nextCall(Self.encode)
  }

  // MARK: Answering

  @Test func onlyACallThatWaitsForItsAnswerCanBeAnswered() throws {
    let poller = try Poller(driver, serves: [Self.encode])
    let other = try Poller(driver, pid: 701)
    let handle = try poller.register("Editor")
    _ = try save()
    let number = try #require(driver.application("App")?.sessions.count)
    #expect(number == 2)
    let (id, _) = try poller.nextCall(Self.encode)
    for (who, id) in [(poller, id + 1), (poller, 1), (other, id)] {
      let failure = try who.fail("answerRequest", #""id":\#(id),"result":{}"#)
      #expect(failure.code == -32602)
      #expect(failure.data["pointer"] == "/id")
    }
    try poller.answer(id, #"{"states":[{"object":\#(handle),"state":{}}]}"#)
    #expect(try poller.fail("answerRequest", #""id":\#(id),"result":{}"#).data["pointer"] == "/id")
  }

  @Test func whatWasNotFetchedCannotBeAnswered() throws {
    let poller = try Poller(driver, serves: [Self.encode])
    try poller.register("Editor")
    let (saver, round) = try save(#","deadlineMilliseconds":1000"#)
    // No client knows the number of the call; it is the first one of this broker.
    #expect(try poller.fail("answerRequest", #""id":\#(7 << 32 | 1),"result":{}"#).data["pointer"] == "/id")
    let (id, _) = try poller.nextCall(Self.encode)
    #expect(id == 7 << 32 | 1)
    driver.advance(milliseconds: 1_000)
    #expect(saver.hasAnswer(round))
    #expect(try poller.fail("answerRequest", #""id":\#(id),"result":{}"#).data["pointer"] == "/id")
  }

  /// A call made over a connection is answered there.
  @Test func aCallOverAConnectionIsNotAnsweredByACall() throws {
    let peer = driver.connect()
    try peer.initialize("App", #""serves":["\#(Self.encode)"]"#)
    try peer.register("Editor")
    _ = try save()
    let call = try #require(peer.openCalls(Self.encode).first)
    #expect(try peer.fail("answerRequest", #"{"id":\#(call.id),"result":{}}"#).data["pointer"] == "/id")
    #expect(try peer.fail("answerRequest", #"{"id":\#(7 << 32 | 1),"result":{}}"#).data["pointer"] == "/id")
  }

  // MARK: Notifications

  @Test func notificationsAreFetchedWithoutAnIdAndOnlyWhatIsServed() throws {
    let poller = try Poller(driver, serves: ["pathChanged"])
    let main = driver.connect()
    try main.initialize()
    try main.register("Main")
    let handle = try poller.register("Editor", #""restorationParent":["Main"]"#)
    try main.call("setRestorationIdentifier", #"{"object":["Main"],"restorationIdentifier":"Window"}"#)
    try main.call("saveApplicationState")
    #expect(
      try poller.next() == [
        "id": nil, "method": "pathChanged", "params": ["object": .integer(handle), "path": ["Window", "Editor"]],
      ]
    )
    #expect(try poller.next().isNull)
  }

  /// R15: a notified change is on disk.
  @Test func aNotificationWaitsForTheChangeItIsAbout() throws {
    let poller = try Poller(driver, serves: ["registrationReplaced"])
    try poller.register("Editor")
    let other = driver.connect()
    try other.initialize()
    let (peer, wait) = poller.wait()
    driver.holdsCommits = true
    other.start("registerObjectForStateRestoration", other.registration("Editor", #""takeOver":true"#))
    #expect(!peer.hasAnswer(wait))
    driver.commit()
    #expect(try peer.result(of: wait)["method"] == "registrationReplaced")
  }

  /// R15: a change that was not stored did not happen.
  @Test func aNotificationOfAFailedTransactionNeverComesAndTheWaitGoesOn() throws {
    let poller = try Poller(driver, serves: ["registrationReplaced"])
    try poller.register("Editor")
    let other = driver.connect()
    try other.initialize()
    let (peer, wait) = poller.wait()
    driver.holdsCommits = true
    other.start("registerObjectForStateRestoration", other.registration("Editor", #""takeOver":true"#))
    driver.failCommit("App")
    driver.holdsCommits = false
    driver.advance(milliseconds: 10)
    #expect(!peer.hasAnswer(wait))
    try other.register("Editor", #""takeOver":true"#)
    #expect(try peer.result(of: wait)["method"] == "registrationReplaced")
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
