// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// What nobody has can be forgotten (R13, R22).
@Suite struct ForgettingTests {
  let fixture = RestoringFixture()
  var broker: MemoryBroker { fixture.broker }

  static let controller = RestorationConcernTests.controller
  static let page = RestorationConcernTests.page
  static let forgotten = #"{"object":null,"forget":true}"#

  /// Main with a page, which has a note below it.
  private func savePage() throws {
    try fixture.save([
      ("Main", nil, Self.controller, "{}"),
      ("Page", #"["Main"]"#, Self.page, #"{"n":1}"#),
      ("Note", #"["Main","Page"]"#, "", #"{"n":2}"#),
    ])
  }

  // MARK: By its factory

  @Test func r22WhatAClassForgetsIsNotAskedForAgain() throws {
    try savePage()
    for launch in 1...2 {
      let worker = try fixture.join("W", pid: Int64(launch))
      var asked = 0
      worker.serves["objectWithRestorationIdentifierPath"] = { _ in
        asked += 1
        return Self.forgotten
      }
      try worker.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
      try worker.register("Main", below: nil, Self.controller)
      let result = outcome(try worker.call("restoreApplicationState"))
      #expect(asked == (launch == 1 ? 1 : 0))
      #expect(result == (launch == 1 ? ["+Main", "-Main/Page refused", "-Main/Page/Note parentSkipped"] : ["+Main"]))
      #expect(try worker.paths() == ["Main"])
      broker.crash(worker)
    }
  }

  @Test func r22WhatTheDelegateForgetsIsNotLookedForInAnotherWay() throws {
    try fixture.save([("Page", nil, Self.controller, "{}")])
    let delegate = try fixture.join("D", pid: 1, delegate: true)
    delegate.serves["viewControllerWithRestorationIdentifierPath"] = { _ in Self.forgotten }
    let result = try delegate.call("restoreApplicationState")
    #expect(outcome(result) == ["-Page refused"])
    #expect(result["milliseconds"] == 0)
    #expect(try delegate.paths().isEmpty)
  }

  @Test func r13WhatLivesBelowAForgottenObjectStays() throws {
    try savePage()
    let worker = try fixture.join("W", pid: 1)
    worker.serves["objectWithRestorationIdentifierPath"] = { _ in Self.forgotten }
    try worker.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    try worker.register("Main", below: nil, Self.controller)
    try worker.register("Note", below: #"["Main","Page"]"#)
    try worker.call("restoreApplicationState")
    #expect(try worker.paths() == ["Main", "Main/Page", "Main/Page/Note"])
    #expect(try worker.state(#"["Main","Page"]"#) == nil)
    #expect(try worker.state(#"["Main","Page","Note"]"#) == ["n": 2])
  }

  @Test func r16GenerationsKeepWhatIsForgotten() throws {
    try savePage()
    let worker = try fixture.join("W", pid: 1)
    worker.serves["objectWithRestorationIdentifierPath"] = { _ in Self.forgotten }
    try worker.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    try worker.register("Main", below: nil, Self.controller)
    let generation = try #require(try worker.call("listGenerations")["generations"]?.array?.first?["generation"])
    try worker.call("restoreApplicationState")
    let archive = try worker.call("readArchive", #"{"generation":\#(JSONText(generation).string)}"#)
    #expect(archive["objects"]?.array?.compactMap { $0["path"]?.joined } == ["Main", "Main/Page", "Main/Page/Note"])
  }

  // MARK: By hand

  @Test func r13AVacantPathIsUnregisteredWithAllThatIsVacantBelowIt() throws {
    try savePage()
    let reader = broker.connect(pid: 3)
    try reader.call("unregisterObject", #"{"application":"App","object":["Main","Page"]}"#)
    #expect(try reader.paths(#""application":"App""#) == ["Main"])
    let worker = try fixture.join("W", pid: 1)
    try worker.call("unregisterObject", #"{"object":["Main"],"keepState":true}"#)
    #expect(try worker.paths() == ["Main"])
    try worker.call("unregisterObject", #"{"object":["Main"]}"#)
    #expect(try worker.paths().isEmpty)
    #expect(try worker.fail("unregisterObject", #"{"object":["Main"]}"#).kind == "unknownObject")
  }

  /// As the removal by an owner is, or who watches an application would show what is no longer there.
  @Test func r13EachForgottenObjectIsAnnounced() throws {
    try savePage()
    let monitor = broker.connect(pid: 9)
    try monitor.call("subscribe", #"{"events":["objectUnregistered"]}"#)
    let worker = try fixture.join("W", pid: 1)
    try worker.call("unregisterObject", #"{"object":["Main","Page"],"keepState":true}"#)
    try worker.call("unregisterObject", #"{"object":["Main","Page"]}"#)
    try broker.connect(pid: 3).call("unregisterObject", #"{"application":"App","object":["Main"]}"#)
    let events = monitor.takeNotifications("event")
    #expect(events.map { $0["path"]?.joined } == ["Main/Page/Note", "Main/Page", "Main"])
    #expect(events.map { $0["process"] } == ["W", "W", JSONValue.null])
    for event in events {
      #expect(event["object"] == JSONValue.null && event["cause"] == "unregistered" && event["stateKept"] == false)
    }
  }

  @Test func r13ThePathOfADisconnectedOwnerIsNotVacant() throws {
    let owner = broker.connect(pid: 1)
    try owner.initialize()
    try owner.register("Main")
    broker.disconnect(owner)
    broker.advance(milliseconds: 2_000)
    let other = broker.connect(pid: 2)
    try other.initialize()
    #expect(try other.fail("unregisterObject", #"{"object":["Main"]}"#).kind == "notOwner")
  }

  @Test func r13WhoeverWasReplacedDoesNotForgetThePath() throws {
    let first = broker.connect(pid: 1)
    try first.initialize()
    try first.register("Main")
    let second = broker.connect(pid: 2)
    try second.initialize()
    let handle = try second.register("Main", below: nil, #""takeOver":true"#)
    try second.encode("\(handle)", "{}")
    try second.goodbye("restart")
    #expect(try first.fail("unregisterObject", #"{"object":["Main"]}"#).kind == "replaced")
  }

  @Test func r23WhatIsForgottenMeanwhileIsNoLongerAwaited() throws {
    try fixture.save([("Main", nil, "", "{}")])
    let worker = try fixture.join("W", pid: 1)
    let restoration = worker.start("restoreApplicationState")
    #expect(!worker.hasAnswer(restoration))
    try worker.call("unregisterObject", #"{"object":["Main"]}"#)
    #expect(outcome(try worker.result(of: restoration)) == ["?Main"])
  }

  @Test func r22WhatIsForgottenMeanwhileIsNotMade() throws {
    try fixture.save([("Page", nil, Self.page, "{}")])
    let worker = try fixture.join("W", pid: 1)
    worker.serves["objectWithRestorationIdentifierPath"] = { _ in
      _ = try? worker.call("unregisterObject", #"{"object":["Page"]}"#)
      return "null"
    }
    try worker.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    #expect(outcome(try worker.call("restoreApplicationState")) == ["?Page"])
  }
}
