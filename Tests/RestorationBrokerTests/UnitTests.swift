// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Units that start an application's processes again: which are known, which are started, in which order (R20 – R23).
@Suite struct UnitTests {
  let fixture = RestoringFixture()
  var broker: MemoryBroker { fixture.broker }

  init() {
    for unit in ["main.service", "left.service", "right.service"] {
      broker.unitFiles[unit] = ["[X-Restoration]\nApplication=App\n"]
    }
  }

  /// A delegate and two workers, each with an object, that have been killed.
  private func loseApplication() throws {
    let main = try join("main", 11, delegate: true)
    try main.encode("\(try main.register("Main"))", #"{"n":1}"#)
    let left = try join("left", 12)
    try left.encode("\(try left.register("Left"))", #"{"n":2}"#)
    let right = try join("right", 13)
    try right.encode("\(try right.register("Right"))", #"{"n":3}"#)
    for peer in [left, right, main] { broker.crash(peer) }
  }

  private func join(_ role: String, _ pid: Int64, delegate: Bool = false, serves: [String] = RestoringFixture.served)
    throws -> Peer
  {
    try fixture.join(role, pid: pid, delegate: delegate, serves: serves, unit: "\(role).service")
  }

  private func units() throws -> [JSONValue] {
    let peer = broker.connect(pid: 99)
    defer { broker.disconnect(peer) }
    let overview = try peer.call("listApplications")["applications"]?.array?.first
    return try #require(overview?["units"]?.array)
  }

  private func restore() throws -> (caller: Peer, id: Int) {
    let caller = broker.connect(pid: 98)
    return (caller, caller.start("restoreApplicationState", #"{"application":"App","deadlineMilliseconds":1000}"#))
  }

  @Test func r22OfSeveralSessionsOfAClassTheOneOfTheLastUnitIsAsked() throws {
    let former = try fixture.join("worker", pid: 11, unit: "right.service")
    try former.encode("\(try former.register("Doc", below: nil, RestoringTests.made))", #"{"n":1}"#)
    broker.crash(former)
    for (pid, unit) in [(Int64(12), "left.service"), (13, "right.service")] {
      let worker = try fixture.join("worker", pid: pid, unit: unit)
      worker.serves["objectWithRestorationIdentifierPath"] = { _ in
        self.fixture.log.append("asked \(unit)")
        return "null"
      }
      try worker.call("registerRestorationClass", #"{"restorationClass":"Pages","shared":true}"#)
    }
    let (caller, id) = try restore()
    #expect(outcome(try caller.result(of: id)) == ["-Doc refused"])
    #expect(fixture.log == ["asked right.service"])
  }

  // MARK: The whole application

  @Test func r21R22TheDelegateComesFirstAndIsAskedAndThenAllTheOthersAreStarted() throws {
    try loseApplication()
    let (caller, id) = try restore()
    #expect(broker.startedUnits == ["main.service"])
    let main = try join("main", 21, delegate: true)
    #expect(broker.startedUnits == ["main.service", "left.service", "right.service"])
    #expect(fixture.log == ["main shouldRestoreApplicationState"])
    try main.register("Main")
    let left = try join("left", 22)
    try left.register("Left")
    #expect(!caller.hasAnswer(id))
    let right = try join("right", 23)
    try right.register("Right")
    #expect(outcome(try caller.result(of: id)) == ["+Main", "+Left", "+Right"])
    #expect(fixture.log.last == "main didDecodeRestorableState")
    broker.inspect()
  }

  @Test func r21ADelegateThatSaysNoIsTheOnlyOneStarted() throws {
    try loseApplication()
    let (caller, id) = try restore()
    let main = broker.connect(pid: 21, unit: "main.service")
    main.serves["shouldRestoreApplicationState"] = { _ in "false" }
    try main.initialize("App", #""process":"main","delegate":true,"serves":["shouldRestoreApplicationState"]"#)
    #expect(try caller.result(of: id)["declined"] == true)
    #expect(broker.startedUnits == ["main.service"])
  }

  @Test func r21ADelegateThatDoesNotComeIsAwaitedForHalfOfTheTime() throws {
    try loseApplication()
    let (caller, id) = try restore()
    broker.advance(milliseconds: 499)
    #expect(broker.startedUnits == ["main.service"])
    broker.advance(milliseconds: 1)
    #expect(broker.startedUnits == ["main.service", "left.service", "right.service"])
    let left = try join("left", 22)
    try left.register("Left")
    broker.advance(milliseconds: 500)
    #expect(outcome(try caller.result(of: id)) == ["+Left", "?Main", "?Right"])
  }

  @Test func r22WhereTheDelegatesUnitFailsTheOthersAreStartedAtOnce() throws {
    try loseApplication()
    broker.brokenUnits = ["main.service"]
    _ = try restore()
    #expect(broker.startedUnits == ["main.service", "left.service", "right.service"])
    #expect(broker.logged.contains { $0.contains("main.service was not started: its start job failed") })
  }

  @Test func r22WhatIsThereIsNotStartedAgain() throws {
    try loseApplication()
    let main = try join("main", 21, delegate: true)
    try main.register("Main")
    let left = try join("left", 22)
    try left.register("Left")
    let id = main.start("restoreApplicationState", #"{"deadlineMilliseconds":1000}"#)
    #expect(broker.startedUnits == ["right.service"])
    let right = try join("right", 23)
    try right.register("Right")
    #expect(outcome(try main.result(of: id)) == ["+Main", "+Left", "+Right"])
  }

  @Test func r20AProcessThatTheBrokerStartsIsToldSo() throws {
    try loseApplication()
    let (caller, id) = try restore()
    let main = broker.connect(pid: 21, unit: "main.service")
    let reply = try main.initialize("App", #""process":"main","delegate":true"#)
    #expect(reply["restoration"]?["reason"] == "restore")
    broker.advance(milliseconds: 1_000)
    #expect(caller.hasAnswer(id))
    let late = broker.connect(pid: 22, unit: "left.service")
    #expect(try late.initialize("App", #""process":"left""#)["restoration"]?["reason"] == "recover")
  }

  @Test func r22UnitsAreKnownAfterTheBrokerDied() throws {
    try loseApplication()
    broker.restart()
    #expect(try units() == ["main.service", "left.service", "right.service"])
    _ = try restore()
    #expect(broker.startedUnits == ["main.service"])
  }

  // MARK: Known units

  @Test func r22OnlyAUnitWhoseFileNamesTheApplicationIsRemembered() throws {
    broker.unitFiles["main.service"] = ["[X-Restoration]\nApplication=Other\n"]
    try loseApplication()
    #expect(try units() == ["left.service", "right.service"])
    broker.unitFiles = [:]
    _ = try restore()
    #expect(broker.startedUnits.isEmpty)
    let message = broker.logged.last { $0.contains("right.service was not started") } ?? ""
    #expect(message.contains("unknown unit"))
  }

  @Test func whatTheProcessSaysOfItsUnitGoesOverWhereItIsSeen() throws {
    let peer = broker.connect(pid: 11, unit: "left.service")
    try peer.initialize("App", #""storyboard":{"unit":"right.service"}"#)
    #expect(try units() == ["right.service"])
    let other = broker.connect(pid: 12, unit: "left.service")
    try other.initialize("App", #""storyboard":{"unit":"../../bin/sh -c x"}"#)
    #expect(try units() == ["right.service"])
  }

  @Test func r30AProcessThatWasClosedIsNotStartedAgain() throws {
    let main = try join("main", 11, delegate: true)
    try main.register("Main")
    let (left, right) = (try join("left", 12), try join("right", 13))
    try left.goodbye("closed")
    try right.goodbye("restart")
    #expect(try units() == ["main.service", "right.service"])
    try main.goodbye("userQuit")
    #expect(try units() == [])
  }

  @Test func r13AUnitThatWasMissingWhenARestorationCompletedIsForgotten() throws {
    try loseApplication()
    let main = try join("main", 21, delegate: true)
    let left = try join("left", 22)
    _ = try left.state("\(try left.register("Left"))")
    #expect(try units() == ["main.service", "right.service", "left.service"])
    try left.call("completeStateRestoration")
    #expect(try units() == ["main.service", "left.service"])
    try main.goodbye("restart")
  }

  // MARK: Single objects

  @Test func r22TheUnitOfAnObjectsLastOwnerIsStartedAndThePathAwaited() throws {
    // A view is saved below a view controller (R4).
    let objects = [("object", nil), ("viewController", nil), ("view", #"["O-viewController"]"#)]
    for (kind, parent) in objects {
      let left = try join("left", 12)
      try left.encode("\(try left.register("O-\(kind)", below: parent, #""kind":"\#(kind)""#))", "{}")
      broker.crash(left)
    }
    let main = try join("main", 11)
    let id = main.start("restoreApplicationState", #"{"deadlineMilliseconds":1000}"#)
    #expect(broker.startedUnits == ["left.service"])
    let steps = try main.call("explainRestoration", #"{"object":["O-object"]}"#)["restored"]?.array ?? []
    #expect(steps.compactMap { $0["step"]?.string } == ["lookedUp", "lookedUp", "unitStarted", "awaited"])
    let left = try join("left", 22)
    for (kind, parent) in objects { try left.register("O-\(kind)", below: parent, #""kind":"\#(kind)""#) }
    #expect(outcome(try main.result(of: id)) == ["+O-object", "+O-viewController", "+O-viewController/O-view"])
  }

  @Test func r22ImportedObjectsStartNothing() throws {
    let tool = broker.connect(pid: 5)
    let object = Document.object(#"["Main"]"#, "{}", #""storyboard":{"unit":"main.service"}"#)
    let controller = object.replacing(#""kind":"object""#, with: #""kind":"viewController""#)
    try tool.importDocument(Document.of(controller), into: "App")
    _ = try restore()
    #expect(broker.startedUnits.isEmpty)
  }

  @Test func r23WhatNobodyExpectsIsAbsentAtOnceWhereItsUnitFails() throws {
    let left = try join("left", 12)
    try left.encode("\(try left.register("Old"))", "{}")
    broker.crash(left)
    let main = try join("main", 11)
    try main.encode("\(try main.register("Main"))", "{}")
    _ = try main.state(#"["Main"]"#)
    try main.call("completeStateRestoration")
    broker.brokenUnits = ["left.service"]
    #expect(outcome(try main.call("restoreApplicationState")) == ["?Old"])
  }

  /// Main, and an object that only has a state.
  private func loseOneThatNobodyRegistered() throws {
    let main = try join("main", 11)
    try main.encode("\(try main.register("Main"))", "{}")
    try main.encode(#"["Loose"]"#, "{}")
    broker.crash(main)
  }

  @Test func r23WhatNobodyEverRegisteredIsAwaitedWhileAUnitStarts() throws {
    try loseOneThatNobodyRegistered()
    let (caller, id) = try restore()
    #expect(broker.startedUnits == ["main.service"])
    let main = try join("main", 21)
    try main.register("Main")
    #expect(!caller.hasAnswer(id))
    try main.register("Loose")
    #expect(Set(outcome(try caller.result(of: id))) == ["+Main", "+Loose"])
    #expect(try caller.result(of: id)["failedUnits"] == nil)
  }

  @Test func r22AUnitThatFailsIsNamedAndWhatOnlyHasAStateIsNotAwaited() throws {
    let main = try join("main", 11)
    try main.encode(#"["Loose"]"#, "{}")
    broker.crash(main)
    broker.brokenUnits = ["main.service"]
    let (caller, id) = try restore()
    let result = try caller.result(of: id)
    #expect(outcome(result) == ["?Loose"])
    #expect(result["failedUnits"]?.array?.first?["unit"] == "main.service")
    #expect(result["failedUnits"]?.array?.first?["message"] == "its start job failed")
    let steps = try caller.call("explainRestoration", #"{"application":"App","object":["Loose"]}"#)["restored"]?.array
    #expect(steps?.compactMap { $0["step"]?.string }.suffix(3) == ["awaited", "unitFailed", "absent"])
  }

  // MARK: Policies

  @Test func listApplicationsTellsWhatBecomesOfEachAtLogin() throws {
    let peer = broker.connect(pid: 5)
    for name in ["a", "a@2", "b", "c"] { try peer.encode(#"["A"]"#, "{}", #""application":"\#(name)""#) }
    func policies() throws -> [JSONValue?] {
      (try peer.call("listApplications")["applications"]?.array ?? []).map { $0["restoreAtLogin"] }
    }
    #expect(try policies() == ["ask", "ask", "ask", "ask"])
    broker.configure(LoginPolicies(["a": .always, "a@2": .never, "*": .never, "c": .ask]))
    #expect(try policies() == ["always", "never", "never", "ask"])
    broker.restart()
    broker.configure(LoginPolicies(["a": .always]))
    let again = broker.connect(pid: 6)
    #expect(try again.call("listApplications")["applications"]?.array?.first?["restoreAtLogin"] == "always")
  }
}
