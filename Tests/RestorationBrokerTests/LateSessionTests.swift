// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Processes that come after the restoration (R29).
@Suite struct LateSessionTests {
  let fixture = RestoringFixture()
  var broker: MemoryBroker { fixture.broker }
  let main: Peer

  /// `Main` is restored, and `Tab` of the role `tabs` is absent.
  init() throws {
    let former = try fixture.join("tabs", pid: 1)
    for (name, parent) in [("Tab", nil), ("Text", #"["Tab"]"#)] {
      try former.encode("\(try former.register(name, below: parent))", #"{"of":"\#(name)"}"#)
    }
    let main = try fixture.join("main", pid: 2)
    try main.encode("\(try main.register("Main"))", "{}")
    for peer in [former, main] { try peer.goodbye("restart") }
    self.main = try fixture.join("main", pid: 3)
    try self.main.register("Main")
  }

  private func restore(_ parameters: String = #"{"deadlineMilliseconds":1000}"#) throws -> [String] {
    let id = main.start("restoreApplicationState", parameters)
    broker.advance(milliseconds: 1_000)
    defer { fixture.log = [] }
    return outcome(try main.result(of: id))
  }

  private func tell(_ peer: Peer, _ name: String, below parent: String? = nil, _ more: String = "") throws -> JSONValue
  {
    try peer.call("registerObjectForStateRestoration", peer.registration(name, below: parent, more))
  }

  private func isHanded(_ peer: Peer, _ name: String, below parent: String? = nil) throws -> Bool {
    try tell(peer, name, below: parent)["restoration"]?["handing"] == true
  }

  @Test func r29ALateProcessIsHandedItsObjectsAndNobodyElseIsAsked() throws {
    #expect(try restore() == ["+Main", "?Tab", "?Tab/Text"])
    let late = try fixture.join("tabs", pid: 4)
    #expect(try isHanded(late, "Tab"))
    #expect(try isHanded(late, "Text", below: #"["Tab"]"#))
    #expect(fixture.log == ["tabs decode Tab", "tabs decode Tab/Text"])
    #expect(fixture.finished(late).count == 2 && fixture.finished(main).count == 1)
    let steps = try late.call("explainRestoration", #"{"object":["Tab"]}"#)["restored"]?.array ?? []
    #expect(steps.compactMap { $0["step"]?.string } == ["located", "handedOut", "finished"])
    // It has what it had, so that nothing is left to be brought back.
    #expect(try restore("{}") == [])
    broker.inspect()
  }

  @Test func r29WhatACrashHasMadeVacantSinceIsHandedToTheSuccessor() throws {
    #expect(try restore() == ["+Main", "?Tab", "?Tab/Text"])
    for pid in 4...5 {
      let worker = try fixture.join("extra", pid: Int64(pid))
      #expect(try isHanded(worker, "New") == (pid == 5))
      try worker.encode(#"["New"]"#, #"{"pid":\#(pid)}"#)
      // What was vacant before is another one's.
      if pid == 4 { #expect(try !isHanded(worker, "Tab")) }
      broker.crash(worker)
    }
    let goodbye = try fixture.join("extra", pid: 6)
    #expect(try isHanded(goodbye, "New"))
    try goodbye.goodbye("restart")
    #expect(try !isHanded(try fixture.join("extra", pid: 7), "New"))
  }

  @Test func r29AProcessThatHasDiedUnnoticedIsSucceededInTheSameWay() throws {
    #expect(try restore().contains("+Main"))
    let worker = try fixture.join("extra", pid: 4)
    try worker.encode("\(try worker.register("New"))", "{}")
    broker.killUnnoticed(worker)
    #expect(try isHanded(try fixture.join("extra", pid: 5), "New"))
  }

  @Test func r29OnlyWhoServesDecodingAndCameAfterIsHandedAnything() throws {
    let early = try fixture.join("tabs", pid: 4)
    #expect(try restore() == ["+Main", "?Tab", "?Tab/Text"])
    #expect(try !isHanded(early, "Tab"))
    try early.call("unregisterObject", #"{"object":["Tab"],"keepState":true}"#)
    #expect(try !isHanded(try fixture.join("tabs", pid: 5, serves: []), "Text", below: #"["Tab"]"#))
    #expect(try !isHanded(try fixture.join("other", pid: 6), "Tab"))
    #expect(fixture.log == [])
  }

  @Test(arguments: [false, true]) func r29WithoutADrivenRestorationOrAfterANoNothingIsHandedOut(_ isAsked: Bool) throws
  {
    try main.goodbye("restart")
    let delegate = try fixture.join("main", pid: 8, delegate: true)
    delegate.serves["shouldRestoreApplicationState"] = { _ in "false" }
    if isAsked { #expect(try delegate.call("restoreApplicationState")["declined"] == true) }
    #expect(try !isHanded(try fixture.join("tabs", pid: 4), "Tab"))
  }

  @Test func r29ADecodeThatIsReadBeforeTheHandOutCancelsIt() throws {
    #expect(try restore().contains("?Tab"))
    let late = try fixture.join("tabs", pid: 4)
    broker.holdsCommits = true
    let registration = late.start("registerObjectForStateRestoration", late.registration("Tab"))
    let decode = late.start("decodeRestorableState", #"{"object":["Tab"]}"#)
    broker.holdsCommits = false
    broker.commit()
    #expect(try late.result(of: registration)["restoration"]?["handing"] == true)
    #expect(try late.result(of: decode)["state"] == ["of": "Tab"])
    #expect(fixture.log == [])
  }

  @Test func r29WhatIsPushedBeforeTheHandOutHidesNothing() throws {
    #expect(try restore().contains("?Tab"))
    let late = try fixture.join("tabs", pid: 4)
    var states: [JSONValue] = []
    late.serves["decodeRestorableStateWithCoder"] = { parameters in
      states += (parameters["objects"]?.array ?? []).compactMap { $0["state"] }
      return "{}"
    }
    broker.holdsCommits = true
    late.start("registerObjectForStateRestoration", late.registration("Tab"))
    late.start("encodeRestorableState", late.encoding(#"["Tab"]"#, #"{"blank":1}"#))
    broker.holdsCommits = false
    broker.commit()
    #expect(states == [["of": "Tab"]])
  }

  @Test func r29AStateThatIsTooLongIsDeferredAndALostBatchComesAgain() throws {
    try main.encode(#"["Tab"]"#, #"{"long":"\#(String(repeating: "x", count: 3_000))"}"#)
    #expect(try restore().contains("?Tab"))
    let late = try fixture.join("tabs", pid: 4, messageBytesMax: 4_096)
    late.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    let token = try #require(broker.application("App")?.sessions.values.first { $0.facts.role == "tabs" }?.token)
    #expect(try isHanded(late, "Tab"))
    #expect(
      late.openCalls("decodeRestorableStateWithCoder").first?.parameters["objects"]?.array?.first?["deferred"] == true
    )
    broker.disconnect(late)
    let back = try fixture.join("tabs", pid: 4, session: token)
    #expect(fixture.log == ["tabs decode Tab"])
    #expect(fixture.finished(back).count == 1)
    #expect(try back.state(#"["Tab"]"#)?["long"] != nil)
  }

  @Test func r29ARestorationThatBeginsMeanwhileDoesNotHandItOutOnceMore() throws {
    #expect(try restore().contains("?Tab"))
    let late = try fixture.join("tabs", pid: 4)
    late.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    #expect(try isHanded(late, "Tab"))
    #expect(try isHanded(late, "Text", below: #"["Tab"]"#))
    let id = main.start("restoreApplicationState", "{}")
    let first = late.openCalls("decodeRestorableStateWithCoder")
    #expect(first.map { $0.parameters["objects"]?.array?.count } == [1])
    late.answer(first[0].id, "{}")
    let second = late.openCalls("decodeRestorableStateWithCoder")
    #expect(second.compactMap { $0.parameters["objects"]?.array?.first?["path"]?.joined } == ["Tab/Text"])
    late.answer(second[0].id, "{}")
    #expect(outcome(try main.result(of: id)) == ["+Tab/Text"])
    #expect(fixture.finished(late).count == 2)
  }

  @Test func r29RoundsAreNotHeldUpAndTheFactsOutliveTheBroker() throws {
    #expect(try restore().contains("?Tab"))
    broker.restart()
    let late = try fixture.join("tabs", pid: 4)
    late.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    #expect(try isHanded(late, "Tab"))
    #expect(late.openCalls("decodeRestorableStateWithCoder").count == 1)
    try late.encode("\(try late.register("New"))", "{}")
    #expect(try late.call("saveApplicationState")["saved"] == true)
  }

  @Test func r29ANewObjectIsHandedNothingAndReplacesWhatWasThere() throws {
    #expect(try restore().contains("?Tab"))
    let late = try fixture.join("tabs", pid: 4)
    let reply = try tell(late, "Tab", below: nil, #""fresh":true"#)
    #expect(reply["restoration"] == ["state": "none", "classMatches": true])
    #expect(try late.state(#"["Tab"]"#) == nil && fixture.log == [])
    #expect(try main.state(#"["Tab"]"#) == ["of": "Tab"])
    broker.crash(late)
    // It has never been encoded: what was there is there.
    let next = try fixture.join("tabs", pid: 5)
    _ = try tell(next, "Tab", below: nil, #""fresh":true"#)
    try next.encode(#"["Tab"]"#, #"{"of":"new"}"#)
    #expect(try main.state(#"["Tab"]"#) == ["of": "new"] && next.state(#"["Tab"]"#) == ["of": "new"])
    // It registers its own object once more.
    _ = try tell(next, "Tab", below: nil, #""fresh":true"#)
    #expect(try next.state(#"["Tab"]"#) == ["of": "new"])
  }

  @Test func r29ANewObjectIsNewAfterARestartOfTheBroker() throws {
    let broker = MemoryBroker()
    let first = broker.connect(pid: 1)
    try first.encode(#"["F"]"#, #"{"n":"old"}"#, #""application":"App""#)
    let token = try first.initialize()["session"]?.string
    try first.register("F", below: nil, #""fresh":true"#)
    #expect(try first.state(#"["F"]"#) == nil)
    broker.restart()
    let second = broker.connect(pid: 1)
    try second.initialize("App", #""session":"\#(try #require(token))""#)
    #expect(try second.state(#"["F"]"#) == nil)
    broker.inspect()
    try second.encode(#"["F"]"#, #"{"n":"new"}"#)
    broker.restart()
    let third = broker.connect(pid: 1)
    try third.initialize("App", #""session":"\#(try #require(token))""#)
    #expect(try third.state(#"["F"]"#) == ["n": "new"])
    broker.inspect()
  }

  @Test func r29OneThatGoesAwayInTheMiddleHoldsNobodyUpAndGetsItWhenItIsBack() throws {
    #expect(try restore().contains("?Tab"))
    let late = try fixture.join("tabs", pid: 4)
    late.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    let token = try #require(broker.application("App")?.sessions.values.first { $0.facts.role == "tabs" }?.token)
    #expect(try isHanded(late, "Tab"))
    broker.disconnect(late)
    #expect(try main.state(#"["Tab"]"#) == ["of": "Tab"])
    // The next broker knows as well that it has not answered.
    broker.restart()
    let back = try fixture.join("tabs", pid: 4, session: token)
    #expect(fixture.log == ["tabs decode Tab"])
    #expect(fixture.finished(back).count == 1)
  }

  @Test func r29AHandOutCompletesNoRestoration() throws {
    try main.goodbye("restart")
    // Nothing is there that could be restored, so that only the hand-out could complete it.
    let other = try fixture.join("other", pid: 5)
    let id = other.start("restoreApplicationState", #"{"deadlineMilliseconds":1000}"#)
    broker.advance(milliseconds: 1_000)
    #expect(outcome(try other.result(of: id)) == ["?Tab", "?Tab/Text", "?Main"])
    let late = try fixture.join("tabs", pid: 6)
    #expect(try isHanded(late, "Tab"))
    broker.advance(milliseconds: 20_000)
    #expect(broker.backups == 0)
  }

  @Test func r29WhatIsRegisteredDuringARestorationOfSomethingElseIsHandedOutAfterIt() throws {
    let former = try fixture.join("tabs", pid: 9)
    try former.encode("\(try former.register("Side"))", "{}")
    try former.goodbye("restart")
    #expect(try restore().contains("?Side"))
    let late = try fixture.join("tabs", pid: 4)
    let id = main.start("restoreApplicationState", #"{"objects":[["Tab"]],"deadlineMilliseconds":1000}"#)
    #expect(try isHanded(late, "Side") && fixture.log == [])
    broker.advance(milliseconds: 1_000)
    #expect(outcome(try main.result(of: id)) == ["?Tab", "?Tab/Text"])
    #expect(fixture.log == ["tabs decode Side"])
  }

  @Test(arguments: ["{}", #"{"objects":[["Tab"]]}"#])
  func r29AfterANoAndThenAYesTheLateAreHandedTheirs(_ declined: String) throws {
    try main.goodbye("restart")
    let delegate = try fixture.join("main", pid: 8, delegate: true)
    var answers = ["false", "true"]
    delegate.serves["shouldRestoreApplicationState"] = { _ in answers.removeFirst() }
    #expect(try delegate.call("restoreApplicationState", declined)["declined"] == true)
    let id = delegate.start("restoreApplicationState", #"{"deadlineMilliseconds":1000}"#)
    broker.advance(milliseconds: 1_000)
    #expect(outcome(try delegate.result(of: id)).contains("?Tab"))
    #expect(try isHanded(try fixture.join("tabs", pid: 4), "Tab"))
  }

  @Test(arguments: [("other", ""), ("tabs", #""fresh":true"#)])
  func r29WhatItWasNotHandedASessionIsNotHandedWhenItIsBack(_ role: String, _ more: String) throws {
    #expect(try restore().contains("?Tab"))
    let late = try fixture.join(role, pid: 4)
    let token = try #require(broker.application("App")?.sessions.values.first { $0.facts.role == role }?.token)
    #expect(try tell(late, "Tab", below: nil, more)["restoration"]?["handing"] != true)
    _ = try late.state(#"["Tab"]"#)
    try late.encode(#"["Tab"]"#, #"{"of":"\#(role)"}"#)
    broker.disconnect(late)
    let back = try fixture.join(role, pid: 4, session: token)
    #expect(fixture.log == [])
    // What it pushes is not early, because nothing is to be handed to it first.
    try back.encode(#"["Tab"]"#, #"{"of":"late"}"#)
    #expect(try back.state(#"["Tab"]"#) == ["of": "late"])
  }

  @Test func r29WhatASessionCouldNotDecodeIsNotHandedToItAgain() throws {
    #expect(try restore().contains("?Tab"))
    let late = try fixture.join("tabs", pid: 4)
    late.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    let token = try #require(broker.application("App")?.sessions.values.first { $0.facts.role == "tabs" }?.token)
    #expect(try isHanded(late, "Tab"))
    let call = try #require(late.openCalls("decodeRestorableStateWithCoder").first)
    late.answer(call.id, errorCode: 1, "no")
    broker.disconnect(late)
    _ = try fixture.join("tabs", pid: 4, session: token)
    #expect(fixture.log == [])
  }

  @Test func r29AStateThatIsFetchedMeanwhileDoesNotMakeTheNextOneDeferred() throws {
    #expect(try restore().contains("?Tab"))
    let late = try fixture.join("tabs", pid: 4)
    broker.holdsCommits = true
    for (name, parent) in [("Tab", nil), ("Text", #"["Tab"]"#)] {
      late.start("registerObjectForStateRestoration", late.registration(name, below: parent))
      if parent == nil { late.start("decodeRestorableState", #"{"object":["Tab"]}"#) }
    }
    broker.holdsCommits = false
    broker.commit()
    #expect(fixture.log == ["tabs decode Tab/Text"])
  }

  @Test func r29WhatWasRefusedAndWhatIsBelowItIsHandedToNobody() throws {
    let former = try fixture.join("tabs", pid: 9)
    try former.encode("\(try former.register("Doc", below: nil, #""restorationClass":"Docs""#))", "{}")
    try former.encode("\(try former.register("Page", below: #"["Doc"]"#))", "{}")
    try former.goodbye("restart")
    try main.call("registerRestorationClass", #"{"restorationClass":"Docs"}"#)
    #expect(try restore() == ["+Main", "-Doc refused", "-Doc/Page parentSkipped", "?Tab", "?Tab/Text"])
    let late = try fixture.join("tabs", pid: 4)
    #expect(try !isHanded(late, "Doc") && !isHanded(late, "Page", below: #"["Doc"]"#))
    #expect(try isHanded(late, "Tab"))
  }
}
