// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Which sessions poll: those over connections that cannot be called, and those that choose to.
@Suite struct PolledSessionTests {
  private let driver = CoreDriver()
  private static let encode = "encodeRestorableStateWithCoder"

  @Test func aSessionWithoutAConnectionIsDetachedAndOutlivesEachOfThem() throws {
    let poller = try Poller(driver, #""process":"script""#)
    let handle = try poller.register("Editor")
    let session = try #require(driver.application("App")?.sessions.values.first)
    #expect(session.facts.isDetached)
    #expect(session.facts.role == "script")
    driver.advance(milliseconds: 599_999)
    try poller.call("encodeRestorableState", #""object":\#(handle),"state":{}"#)
    driver.advance(milliseconds: 599_999)
    #expect(driver.application("App")?.sessions.count == 1)
    driver.advance(milliseconds: 1)
    #expect(driver.application("App")?.sessions.isEmpty == true)
  }

  @Test func aConnectionThatGoesOnRemembersTheSessionItWasGiven() throws {
    let peer = driver.connect(canBeCalled: false)
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

  @Test func aRegistrationWithoutInitializeMakesASessionThatPolls() throws {
    let first = driver.connect(canBeCalled: false)
    let result = try first.call(
      "registerObjectForStateRestoration",
      #"{"application":"App","restorationIdentifier":"Editor"}"#
    )
    let token = try #require(result["session"]?.string)
    driver.disconnect(first)
    let scope = #""application":"App","session":"\#(token)""#
    let second = driver.connect(canBeCalled: false)
    #expect(try second.call("nextRequest", #"{\#(scope),"serves":["\#(Self.encode)"]}"#).isNull)
    let saver = driver.connect(pid: 9)
    saver.start("saveApplicationState", #"{"application":"App"}"#)
    #expect(try second.call("nextRequest", #"{\#(scope)}"#)["method"]?.string == Self.encode)
  }

  @Test func aSessionIsNeeded() throws {
    let peer = driver.connect()
    try peer.encode(#"["Editor"]"#, "{}", #""application":"App""#)
    #expect(try peer.fail("nextRequest", #"{"application":"App"}"#).kind == "notInitialized")
    #expect(try peer.fail("answerRequest", #"{"application":"App","id":1,"result":1}"#).kind == "notInitialized")
    #expect(try peer.fail("nextRequest").kind == "notInitialized")
    #expect(try peer.fail("nextRequest", #"{"application":"Nope"}"#).kind == "unknownApplication")
  }

  @Test func eventsCannotBeSubscribedToWhereTheyCannotBeSent() throws {
    let peer = driver.connect(canBeCalled: false)
    let failure = try peer.fail("subscribe", #"{"application":"App"}"#)
    #expect(failure.code == -32014)
    #expect(failure.kind == "forbidden")
    #expect(driver.core.subscriptionCount == 0)
  }

  @Test func whatASessionServesIsReplacedByWhatItSaysWhenItPolls() throws {
    let poller = try Poller(driver, serves: [Self.encode, "applicationStateSaved"])
    try poller.register("Editor")
    #expect(try poller.next(#""serves":["applicationStateSaved"]"#).isNull)
    let saver = driver.connect(pid: 9)
    #expect(try saver.call("saveApplicationState", #"{"application":"App"}"#)["saved"] == true)
    #expect(try poller.next(#""serves":null"#)["method"] == "applicationStateSaved")
    #expect(try poller.next(#""serves":[]"#).isNull)
    try saver.encode(#"["Other"]"#, "{}", #""application":"App""#)
    try saver.call("saveApplicationState", #"{"application":"App"}"#)
    #expect(try poller.next().isNull)
    #expect(try poller.fail("nextRequest", #""serves":["nope"]"#).data["pointer"] == "/serves/0")
  }

  /// A client that reads nothing but answers may still have a session of its own.
  @Test func aSessionWithAConnectionIsNotCalledOverItFromItsFirstPollOn() throws {
    let peer = driver.connect()
    try peer.initialize("App", #""serves":["\#(Self.encode)","applicationStateSaved"]"#)
    let handle = try peer.register("Editor")
    #expect(try peer.call("nextRequest").isNull)
    let saver = driver.connect(pid: 9)
    saver.start("saveApplicationState", #"{"application":"App"}"#)
    #expect(peer.calls.isEmpty)
    let request = try peer.call("nextRequest")
    let id = try #require(request["id"]?.integer)
    try peer.call("answerRequest", #"[\#(id),{"states":[{"object":\#(handle),"state":{}}]}]"#)
    #expect(try peer.call("nextRequest")["method"] == "applicationStateSaved")
    #expect(peer.notifications.isEmpty)
    #expect(try peer.fail("answerRequest", #"[\#(id),null]"#).data["pointer"] == "/0")
  }

  /// Some libraries connect for each call, the one that initializes too.
  @Test func aSessionThatPollsOverOtherConnectionsDoesNotNeedItsOwn() throws {
    let opened = driver.connect(pid: 7)
    let result = try opened.call("initialize", #"{"application":"App","serves":["\#(Self.encode)"]}"#)
    let scope = #""application":"App","session":"\#(try #require(result["session"]?.string))""#
    driver.disconnect(opened)
    func call(_ method: String, _ members: String = "") throws -> JSONValue {
      let peer = driver.connect(pid: 7)
      defer { driver.disconnect(peer) }
      return try peer.call(method, "{\(scope)\(members)}")
    }
    let registered = try call("registerObjectForStateRestoration", #","restorationIdentifier":"Editor""#)
    let handle = try #require(registered["object"]?.integer)
    #expect(try call("nextRequest").isNull)
    let saver = driver.connect(pid: 9)
    let round = saver.start("saveApplicationState", #"{"application":"App"}"#)
    let id = try #require(try call("nextRequest")["id"]?.integer)
    _ = try call("answerRequest", #","id":\#(id),"result":{"states":[{"object":\#(handle),"state":{}}]}"#)
    #expect(try saver.result(of: round)["stale"] == [])
  }

  @Test func aPollerThatResumesOverAConnectionIsCalledThere() throws {
    let poller = try Poller(driver, serves: [Self.encode])
    let handle = try poller.register("Editor")
    let saver = driver.connect(pid: 9)
    let round = saver.start("saveApplicationState", #"{"application":"App"}"#)
    let (id, _) = try poller.nextCall(Self.encode)
    let (waiting, wait) = poller.wait()
    let peer = driver.connect(pid: 700)
    try peer.initialize("App", #""session":"\#(poller.token)","serves":["\#(Self.encode)"]"#)
    #expect(try waiting.result(of: wait).isNull)
    // Calls fetched before are answered as before.
    #expect(peer.openCalls(Self.encode).isEmpty)
    try peer.call("answerRequest", #"{"id":\#(id),"result":{"states":[{"object":\#(handle),"state":{"n":1}}]}}"#)
    #expect(try saver.result(of: round)["objects"] == 1)
    saver.start("saveApplicationState", #"{"application":"App"}"#)
    #expect(peer.openCalls(Self.encode).count == 1)
  }

  @Test func whatAPollerHasNotFetchedComesOverTheConnectionThatResumesIt() throws {
    let poller = try Poller(driver, serves: [Self.encode, "registrationReplaced"])
    let handle = try poller.register("Editor")
    try poller.register("Other")
    let other = driver.connect()
    try other.initialize()
    try other.register("Other", below: nil, #""takeOver":true"#)
    let saver = driver.connect(pid: 9)
    let round = saver.start("saveApplicationState", #"{"application":"App"}"#)
    let peer = driver.connect(pid: 700)
    try peer.initialize(
      "App",
      #""session":"\#(poller.token)","serves":["\#(Self.encode)","registrationReplaced"]"#
    )
    #expect(peer.takeNotifications("registrationReplaced").count == 1)
    let call = try #require(peer.openCalls(Self.encode).first)
    peer.answer(call.id, #"{"states":[{"object":\#(handle),"state":{"n":1}}]}"#)
    #expect(try saver.result(of: round)["stale"] == [])
    #expect(try saver.result(of: round)["objects"] == 1)
    #expect(try peer.call("nextRequest").isNull)
  }

  @Test func whatAPollerNoLongerServesIsNotSentToIt() throws {
    let poller = try Poller(driver, serves: [Self.encode, "registrationReplaced"])
    try poller.register("Editor")
    try poller.register("Other")
    let other = driver.connect()
    try other.initialize()
    try other.register("Other", below: nil, #""takeOver":true"#)
    let saver = driver.connect(pid: 9)
    let round = saver.start("saveApplicationState", #"{"application":"App"}"#)
    let peer = driver.connect(pid: 700)
    try peer.initialize("App", #""session":"\#(poller.token)""#)
    #expect(peer.calls.isEmpty)
    #expect(peer.notifications.isEmpty)
    #expect(try saver.result(of: round)["stale"]?.array?.first?["why"] == "disconnected")
  }

  /// R12: a session whose old connection ends after it has resumed is not left out of the round.
  @Test func aSessionThatHasMovedToAnotherConnectionIsAskedAgain() throws {
    let before = driver.connect()
    let token = try #require(try before.initialize("App", #""serves":["\#(Self.encode)"]"#)["session"]?.string)
    let handle = try before.register("Editor")
    let saver = driver.connect(pid: 9)
    let round = saver.start("saveApplicationState", #"{"application":"App"}"#)
    #expect(before.openCalls(Self.encode).count == 1)
    let after = driver.connect()
    try after.initialize("App", #""session":"\#(token)","serves":["\#(Self.encode)"]"#)
    #expect(!before.isConnected)
    let call = try #require(after.openCalls(Self.encode).first)
    after.answer(call.id, #"{"states":[{"object":\#(handle),"state":{"n":1}}]}"#)
    #expect(try saver.result(of: round)["stale"] == [])
  }

  @Test func aSessionThatIsResumedWithoutAConnectionPollsFromThenOn() throws {
    let peer = driver.connect(pid: 700)
    let token = try #require(try peer.initialize("App", #""serves":["\#(Self.encode)"]"#)["session"]?.string)
    let handle = try peer.register("Editor")
    let saver = driver.connect(pid: 9)
    let round = saver.start("saveApplicationState", #"{"application":"App"}"#)
    #expect(peer.openCalls(Self.encode).count == 1)
    let poller = try Poller(driver, serves: [Self.encode], #""session":"\#(token)""#)
    #expect(poller.token == token)
    #expect(!peer.isConnected)
    let (id, _) = try poller.nextCall(Self.encode)
    try poller.answer(id, #"{"states":[{"object":\#(handle),"state":{"n":1}}]}"#)
    #expect(try saver.result(of: round)["objects"] == 1)
    // Its process may end without that being a crash.
    driver.kill(peer)
    driver.advance(milliseconds: 2_000)
    #expect(driver.application("App")?.sessions.count == 1)
  }

  @Test func afterARestartASessionServesAndPollsAsBefore() throws {
    let poller = try Poller(driver, serves: [Self.encode])
    let handle = try poller.register("Editor")
    let first = driver.connect(pid: 9)
    first.start("saveApplicationState", #"{"application":"App"}"#)
    let (old, _) = try poller.nextCall(Self.encode)
    driver.restart()
    let saver = driver.connect(pid: 9)
    let round = saver.start("saveApplicationState", #"{"application":"App"}"#)
    let (id, _) = try poller.nextCall(Self.encode)
    #expect(id != old)
    // The answer to the old call cannot be mistaken for that to the new one.
    #expect(try poller.fail("answerRequest", #""id":\#(old),"result":{}"#).data["pointer"] == "/id")
    try poller.answer(id, #"{"states":[{"object":\#(handle),"state":{}}]}"#)
    #expect(try saver.result(of: round)["objects"] == 1)
  }

  /// R9: a session that polls is live, so its roles stay its own, even against its own process.
  @Test func aPollingDelegateIsTheDelegate() throws {
    let poller = try Poller(driver, serves: ["shouldSaveApplicationState"], #""delegate":true"#)
    let peer = driver.connect(pid: 700)
    #expect(try peer.fail("initialize", #"{"application":"App","delegate":true}"#).kind == "alreadyServed")
    let handle = try poller.register("Editor")
    try poller.call("encodeRestorableState", #""object":\#(handle),"state":{}"#)
    let saver = driver.connect(pid: 9)
    let round = saver.start("saveApplicationState", #"{"application":"App"}"#)
    let (id, _) = try poller.nextCall("shouldSaveApplicationState")
    try poller.answer(id, "false")
    #expect(try saver.result(of: round)["reason"] == "declined")
  }

  // MARK: Restoring

  /// R21: a session that polls takes part in a restoration like any other.
  @Test func aPollerIsRestored() throws {
    let fixture = RestoringFixture()
    try fixture.save([("Main", nil, "", #"{"zoom":1}"#), ("Made", nil, #""restorationClass":"C""#, #"{"n":2}"#)])
    let poller = try Poller(
      fixture.driver,
      serves: [
        "objectWithRestorationIdentifierPath", "decodeRestorableStateWithCoder", "applicationFinishedRestoringState",
      ]
    )
    try poller.call("registerRestorationClass", #""restorationClass":"C""#)
    let main = try poller.register("Main")
    let tool = fixture.driver.connect(pid: 9)
    let restoration = tool.start("restoreApplicationState", #"{"application":"App"}"#)
    let (make, parameters) = try poller.nextCall("objectWithRestorationIdentifierPath")
    #expect(parameters["state"] == ["n": 2])
    let made = try poller.register("Made", #""restorationClass":"C""#)
    try poller.answer(make, #"{"object":\#(made)}"#)
    let (decode, batch) = try poller.nextCall("decodeRestorableStateWithCoder")
    #expect(batch["objects"]?.array?.compactMap { $0["path"]?.joined } == ["Main", "Made"])
    try poller.answer(decode, "{}")
    #expect(outcome(try tool.result(of: restoration)) == ["+Main", "+Made"])
    let finished = try poller.next()
    #expect(finished["method"] == "applicationFinishedRestoringState")
    #expect(Set((finished["params"]?["objects"]?.array ?? []).compactMap(\.integer)) == [main, made])
  }

  @Test func aRestorationDoesNotWaitForAPollerBeyondItsDeadline() throws {
    let fixture = RestoringFixture()
    try fixture.save([("Main", nil, "", #"{"zoom":1}"#)])
    let poller = try Poller(fixture.driver, serves: ["decodeRestorableStateWithCoder"])
    try poller.register("Main")
    let tool = fixture.driver.connect(pid: 9)
    let restoration = tool.start("restoreApplicationState", #"{"application":"App","deadlineMilliseconds":3000}"#)
    #expect(!tool.hasAnswer(restoration))
    fixture.driver.advance(milliseconds: 3_000)
    #expect(outcome(try tool.result(of: restoration)) == ["-Main late"])
    #expect(try poller.next().isNull)
  }

  /// R31: a state that a process has not fetched is not blamed for its crash.
  @Test(arguments: [false, true]) func whatWasNotFetchedIsNotToBlame(_ isFetched: Bool) throws {
    let fixture = RestoringFixture()
    try fixture.save([("Main", nil, "", #"{"zoom":1}"#)])
    for attempt in 1...2 {
      let pid = Int64(700 + attempt)
      let peer = fixture.driver.connect(pid: pid)
      try peer.initialize("App", #""serves":["decodeRestorableStateWithCoder"]"#)
      #expect(try peer.call("nextRequest").isNull)
      try peer.register("Main")
      peer.start("restoreApplicationState")
      if isFetched { #expect(try peer.call("nextRequest")["method"] == "decodeRestorableStateWithCoder") }
      fixture.driver.crash(peer)
    }
    let tool = fixture.driver.connect(pid: 9)
    let listed = try tool.call("listQuarantine", #"{"application":"App"}"#)
    #expect(listed["objects"]?.array?.isEmpty == !isFetched, "\(listed)")
  }
}
