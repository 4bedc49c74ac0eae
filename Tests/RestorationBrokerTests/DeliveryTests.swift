// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// In a run that restores, what is saved is given to whoever registers it (R29).
@Suite struct DeliveryTests {
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

  @Test func r29AProcessThatComesLaterIsGivenItsObjectsAndNobodyElseIsAsked() throws {
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

  /// Its owner shows a blank object, has pushed that, and has not answered the call with the older state.
  private func blank() throws -> Peer {
    #expect(try restore() == ["+Main", "?Tab", "?Tab/Text"])
    let worker = try fixture.join("tabs", pid: 4)
    worker.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    #expect(try isHanded(worker, "Tab"))
    try worker.encode(#"["Tab"]"#, #"{"is":"blank"}"#)
    return worker
  }

  @Test(arguments: [true, false])
  func r19AnObjectThatIsClosedBeforeItsStateHasComeIsOpenedAgainWithThatState(_ saysGoodbye: Bool) throws {
    let worker = try blank()
    if saysGoodbye { try worker.goodbye("closed") } else { try worker.call("unregisterObject", #"{"object":["Tab"]}"#) }
    try main.call("reopenObject", #"{"path":["Tab"]}"#)
    #expect(try main.state(#"["Tab"]"#) == ["of": "Tab"])
    broker.inspect()
  }

  @Test func r19AnObjectThatIsReleasedBeforeItsStateHasComeIsDeliveredThatState() throws {
    let worker = try blank()
    try worker.call("unregisterObject", #"{"object":["Tab"],"keepState":true}"#)
    let next = try fixture.join("tabs", pid: 5)
    #expect(try isHanded(next, "Tab"))
    #expect(fixture.log == ["tabs decode Tab"])
    #expect(try next.state(#"["Tab"]"#) == ["of": "Tab"])
  }

  @Test func r29AnObjectThatIsSaidToBeFreshAfterItWasRegisteredIsGivenNothing() throws {
    let worker = try blank()
    _ = try tell(worker, "Tab", below: nil, #""fresh":true"#)
    #expect(try worker.state(#"["Tab"]"#) == ["is": "blank"])
    worker.answer(try #require(worker.openCalls("decodeRestorableStateWithCoder").first).id, "{}")
    #expect(try main.state(#"["Tab"]"#) == ["is": "blank"])
    broker.inspect()
  }

  @Test(arguments: [nil, "restart", "logout"])
  func r29AProcessIsGivenWhatTheOneBeforeItHasLeftHoweverThatEnded(_ goodbye: String?) throws {
    #expect(try restore() == ["+Main", "?Tab", "?Tab/Text"])
    let worker = try fixture.join("extra", pid: 4)
    #expect(try !isHanded(worker, "New"))
    try worker.encode(#"["New"]"#, #"{"n":1}"#)
    if let goodbye { try worker.goodbye(goodbye) } else { broker.crash(worker) }
    let next = try fixture.join("another", pid: 5)
    #expect(try isHanded(next, "New") && fixture.log == ["another decode New"])
    // What another process had last is given to this one as well.
    #expect(try isHanded(next, "Tab"))
  }

  @Test func r29AProcessThatCrashesInARestorationAndIsBackBeforeItsEndIsGivenItsObjects() throws {
    let worker = try fixture.join("tabs", pid: 4)
    #expect(try tell(worker, "Tab")["restoration"]?["state"] == "available")
    worker.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    main.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    let id = main.start("restoreApplicationState", #"{"deadlineMilliseconds":10000}"#)
    broker.advance(milliseconds: 5_000)
    #expect(worker.openCalls("decodeRestorableStateWithCoder").count == 1)
    broker.crash(worker)
    let back = try fixture.join("tabs", pid: 5)
    _ = try tell(back, "Tab")
    _ = try tell(back, "Text", below: #"["Tab"]"#)
    broker.advance(milliseconds: 10_000)
    _ = try main.result(of: id)
    #expect(fixture.log.filter { $0.hasPrefix("tabs") }.joined(separator: " ").contains("Tab/Text"))
    #expect(fixture.log.contains { $0.hasPrefix("tabs decode Tab") })
    #expect(fixture.finished(back).count == 2)
  }

  @Test func r29AfterANoAProcessIsGivenOnlyWhatWasWrittenInTheRun() throws {
    try main.goodbye("restart")
    let delegate = try fixture.join("main", pid: 8, delegate: true)
    delegate.serves["shouldRestoreApplicationState"] = { _ in "false" }
    #expect(try delegate.call("restoreApplicationState")["declined"] == true)
    let worker = try fixture.join("tabs", pid: 4)
    #expect(try !isHanded(worker, "Tab") && !isHanded(worker, "Text", below: #"["Tab"]"#))
    try worker.encode(#"["Tab"]"#, #"{"of":"hour"}"#)
    broker.crash(worker)
    let next = try fixture.join("tabs", pid: 5)
    #expect(try isHanded(next, "Tab") && !isHanded(next, "Text", below: #"["Tab"]"#))
    // Its blank window does not replace the hour before it was shown that.
    try next.encode(#"["Tab"]"#, #"{"of":"blank"}"#)
    broker.crash(next)
    #expect(try isHanded(try fixture.join("tabs", pid: 6), "Tab"))
  }

  @Test func r29WhatAProcessWroteBeforeItWasGivenItsStateIsDroppedThen() throws {
    #expect(try restore().contains("?Tab"))
    let blank = try fixture.join("tabs", pid: 4)
    blank.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    #expect(try isHanded(blank, "Tab"))
    try blank.encode(#"["Tab"]"#, #"{"of":"blank"}"#)
    #expect(try main.state(#"["Tab"]"#) == ["of": "blank"])
    let call = try #require(blank.openCalls("decodeRestorableStateWithCoder").first)
    blank.answer(call.id, "{}")
    #expect(try main.state(#"["Tab"]"#) == ["of": "Tab"])
    try blank.goodbye("restart")
    #expect(try main.state(#"["Tab"]"#) == ["of": "Tab"])
    broker.inspect()
  }

  /// Sends messages at once: the later ones come before the older state was stored again.
  private func send(_ messages: [String], by worker: Peer) {
    let lines = messages.map { #"{"jsonrpc":"2.0",\#($0)}"# + "\n" }
    worker.connection.send(bytes: Array(lines.joined().utf8))
  }

  private func answer(of worker: Peer) throws -> String {
    #""id":\#(try #require(worker.openCalls("decodeRestorableStateWithCoder").first).id),"result":{}"#
  }

  private static let decode = #""id":999,"method":"decodeRestorableState","params":{"object":["Tab"]}"#

  /// As of a program that ends when it is restored.
  @Test(arguments: ["restart", "logout"], [true, false])
  func r19AGoodbyeRightBehindTheOlderStateDoesNotConfirmWhatWasWrittenBefore(_ reason: String, _ fetches: Bool) throws {
    let worker = try blank()
    let goodbye = #""id":1000,"method":"goodbye","params":{"reason":"\#(reason)"}"#
    send([fetches ? Self.decode : try answer(of: worker), goodbye], by: worker)
    #expect(try main.state(#"["Tab"]"#) == ["of": "Tab"])
    broker.inspect()
  }

  @Test func r29AnObjectThatIsSaidToBeFreshRightBehindTheAnswerIsNew() throws {
    let worker = try blank()
    let registration = worker.registration("Tab", below: nil, #""fresh":true"#)
    let fresh = #""id":1000,"method":"registerObjectForStateRestoration","params":\#(registration)"#
    send([try answer(of: worker), fresh], by: worker)
    #expect(try worker.decode(#"["Tab"]"#)["status"] == "none")
    try worker.encode(#"["Tab"]"#, #"{"is":"new"}"#)
    #expect(try main.state(#"["Tab"]"#) == ["is": "new"])
    broker.inspect()
  }

  @Test func r29WhatAnOwnerWroteBeforeItFetchesItsStateIsDroppedThen() throws {
    let worker = try fixture.join("tabs", pid: 4, serves: [])
    _ = try tell(worker, "Tab")
    try worker.encode(#"["Tab"]"#, #"{"of":"blank"}"#)
    #expect(try worker.state(#"["Tab"]"#) == ["of": "Tab"])
    #expect(try main.state(#"["Tab"]"#) == ["of": "Tab"])
    try worker.goodbye("restart")
    #expect(try main.state(#"["Tab"]"#) == ["of": "Tab"])
  }

  @Test func r29NeitherTimeNorAGoodbyeConfirmsWhatAHangingProcessWrote() throws {
    #expect(try restore().contains("?Tab"))
    let hanging = try fixture.join("tabs", pid: 4)
    hanging.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    #expect(try isHanded(hanging, "Tab"))
    try hanging.encode(#"["Tab"]"#, #"{"of":"blank"}"#)
    broker.advance(milliseconds: 120_000)
    try hanging.call("completeStateRestoration")
    try hanging.goodbye("restart")
    let next = try fixture.join("tabs", pid: 5)
    #expect(try isHanded(next, "Tab"))
    #expect(try next.state(#"["Tab"]"#) == ["of": "Tab"])
  }

  @Test(arguments: [false, true])
  func r29AStateThatItsProcessCannotReadIsKeptWhenItIsReplaced(_ isWrittenBefore: Bool) throws {
    #expect(try restore().contains("?Tab"))
    let late = try fixture.join("tabs", pid: 4)
    late.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    #expect(try isHanded(late, "Tab"))
    func blank() throws { try late.encode(#"["Tab"]"#, #"{"of":"blank"}"#) }
    if isWrittenBefore { try blank() }
    let call = try #require(late.openCalls("decodeRestorableStateWithCoder").first)
    late.answer(call.id, errorCode: 1, "no")
    if !isWrittenBefore {
      #expect(try main.state(#"["Tab"]"#) == ["of": "Tab"])
      try blank()
    }
    #expect(try late.state(#"["Tab"]"#) == ["of": "blank"])
    let kept = try main.call("listQuarantine", "{}")["objects"]?.array ?? []
    #expect(kept.first?["states"]?.array?.compactMap { $0["state"] } == [["of": "Tab"]])
    broker.inspect()
  }

  @Test func r29WhatIsDueToAProcessOutlivesTheBroker() throws {
    let early = try fixture.join("tabs", pid: 4)
    let token = try #require(broker.application("App")?.sessions.values.first { $0.facts.role == "tabs" }?.token)
    _ = try tell(early, "Tab")
    try early.encode(#"["Tab"]"#, #"{"of":"blank"}"#)
    broker.restart()
    let back = try fixture.join("tabs", pid: 4, session: token)
    let next = try fixture.join("main", pid: 3)
    let id = next.start("restoreApplicationState", #"{"deadlineMilliseconds":1000}"#)
    broker.advance(milliseconds: 1_000)
    #expect(outcome(try next.result(of: id)).contains("+Tab"))
    #expect(fixture.log.contains("tabs decode Tab"))
    #expect(try back.state(#"["Tab"]"#) == ["of": "Tab"])
  }

  @Test func r21AProcessThatHadItsStateBeforeTheBrokerWasKilledIsToldOfTheEndByTheNext() throws {
    let token = try #require(broker.application("App")?.sessions.values.first { $0.facts.role == "main" }?.token)
    _ = main.start("restoreApplicationState", #"{"deadlineMilliseconds":10000}"#)
    // Half of the time `Tab` holds it up.
    broker.advance(milliseconds: 5_000)
    #expect(fixture.log == ["main decode Main"])
    broker.restart()
    let back = try fixture.join("main", pid: 3, session: token)
    let id = back.start("restoreApplicationState", #"{"deadlineMilliseconds":1000}"#)
    broker.advance(milliseconds: 10_000)
    _ = try back.result(of: id)
    #expect(fixture.log == ["main decode Main"])
    #expect(fixture.finished(main) == [] && fixture.finished(back).count == 1)
  }

  @Test func r21AProcessThatComesBackAfterTheEndIsToldOfIt() throws {
    let token = try #require(broker.application("App")?.sessions.values.first { $0.facts.role == "main" }?.token)
    let other = try fixture.join("tabs", pid: 4)
    other.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    _ = try tell(other, "Tab")
    _ = main.start("restoreApplicationState", #"{"deadlineMilliseconds":10000}"#)
    // Half of the time what is below `Tab` holds it up.
    broker.advance(milliseconds: 5_000)
    #expect(fixture.log == ["main decode Main"])
    broker.killUnnoticed(other)
    broker.restart()
    // The end of the other one is noticed first.
    broker.advance(milliseconds: 20_000)
    let back = try fixture.join("main", pid: 3, session: token)
    // It is asked for what nobody has made.
    broker.advance(milliseconds: 20_000)
    #expect(fixture.finished(back).count == 1)
    broker.inspect()
  }

  @Test func r29AProcessThatHasDiedUnnoticedIsSucceededInTheSameWay() throws {
    #expect(try restore().contains("+Main"))
    let worker = try fixture.join("extra", pid: 4)
    try worker.encode("\(try worker.register("New"))", "{}")
    broker.killUnnoticed(worker)
    #expect(try isHanded(try fixture.join("extra", pid: 5), "New"))
  }

  @Test func r29OnlyWhoServesDecodingIsGivenAnything() throws {
    let early = try fixture.join("tabs", pid: 4)
    #expect(try restore() == ["+Main", "?Tab", "?Tab/Text"])
    #expect(try !isHanded(try fixture.join("tabs", pid: 5, serves: []), "Text", below: #"["Tab"]"#))
    #expect(fixture.log == [])
    #expect(try isHanded(early, "Tab"))
    // What it lets go of and keeps is given to it when it takes it up again.
    try early.call("unregisterObject", #"{"object":["Tab"],"keepState":true}"#)
    #expect(try isHanded(early, "Tab") && fixture.log == ["tabs decode Tab", "tabs decode Tab"])
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

  @Test func r21WhoComesBackAndAsksForARestorationAtOnceIsToldOnceOfTheEnd() throws {
    #expect(try restore().contains("?Tab"))
    let late = try fixture.join("tabs", pid: 4)
    broker.holdsCommits = true
    let registration = late.start("registerObjectForStateRestoration", late.registration("Tab"))
    let restoration = late.start("restoreApplicationState", #"{"deadlineMilliseconds":1000}"#)
    broker.holdsCommits = false
    broker.commit()
    broker.advance(milliseconds: 1_000)
    #expect(try late.result(of: registration)["restoration"]?["handing"] == true)
    _ = try late.result(of: restoration)
    #expect(fixture.log == ["tabs decode Tab"])
    #expect(fixture.finished(late).count == 1)
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
    #expect(outcome(try main.result(of: id)) == ["+Tab", "+Tab/Text"])
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

  @Test func r29AnObjectThatIsRegisteredDuringARestorationOfOthersIsGivenItsStateAtOnce() throws {
    let former = try fixture.join("tabs", pid: 9)
    try former.encode("\(try former.register("Side"))", "{}")
    try former.goodbye("restart")
    #expect(try restore().contains("?Side"))
    let slow = try fixture.join("tabs", pid: 4)
    slow.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    #expect(try isHanded(slow, "Tab"))
    let id = main.start("restoreApplicationState", #"{"objects":[["Tab"]],"deadlineMilliseconds":1000}"#)
    #expect(try isHanded(try fixture.join("other", pid: 5), "Side"))
    #expect(fixture.log == ["other decode Side"])
    broker.advance(milliseconds: 1_000)
    #expect(outcome(try main.result(of: id)) == ["-Tab late", "?Tab/Text"])
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

  @Test func r22WhatIsVacantIsMadeByAClassThatIsRegisteredLaterInTheRun() throws {
    let former = try fixture.join("docs", pid: 9)
    try former.encode("\(try former.register("Doc", below: nil, #""restorationClass":"Docs""#))", #"{"n":1}"#)
    try former.goodbye("restart")
    #expect(try restore().contains("?Doc"))
    let docs = try fixture.join("docs", pid: 4)
    try fixture.makes("Docs", docs, "docs")
    #expect(fixture.log == ["docs make Doc", "docs decode Doc"])
    #expect(fixture.finished(docs).count == 1)
    broker.crash(docs)
    fixture.log = []
    try fixture.makes("Docs", try fixture.join("other", pid: 5), "other")
    #expect(fixture.log == ["other make Doc", "other decode Doc"])
    broker.inspect()
  }

  /// A process that crashes of its state may push its blank one first.
  @Test func r31APushThatWasOnTheWayDoesNotClearTheStateThatWasGiven() throws {
    #expect(try restore().contains("?Tab"))
    for pid in 4...5 as ClosedRange<Int64> {
      let worker = try fixture.join("tabs", pid: pid)
      worker.serves["decodeRestorableStateWithCoder"] = { _ in nil }
      #expect(try isHanded(worker, "Tab"))
      try worker.encode(#"["Tab"]"#, #"{"of":"blank"}"#)
      broker.crash(worker)
    }
    let listed = try main.call("listQuarantine", "{}")["objects"]?.array ?? []
    #expect(listed.map { $0["standing"] } == ["quarantined"])
    // A restoration shows it to nobody, so that nothing takes its place.
    _ = try tell(try fixture.join("tabs", pid: 6), "Tab")
    _ = try restore()
    #expect(try main.call("listQuarantine", "{}")["objects"]?.array?.first?["standing"] == "quarantined")
    #expect(try main.state(#"["Tab"]"#) == ["of": "blank"])
    broker.inspect()
  }

  @Test func r29AProcessThatHangsKeepsNothingFromTheOwnersOfWhatIsBelow() throws {
    #expect(try restore().contains("?Tab"))
    let hanging = try fixture.join("tabs", pid: 4)
    hanging.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    #expect(try isHanded(hanging, "Tab"))
    let other = try fixture.join("other", pid: 5)
    #expect(try isHanded(other, "Text", below: #"["Tab"]"#) && fixture.log == ["other decode Tab/Text"])
  }

  @Test func r29ASessionIsNotGivenItsNewObjectWhenItIsBack() throws {
    #expect(try restore().contains("?Tab"))
    let late = try fixture.join("tabs", pid: 4)
    let token = try #require(broker.application("App")?.sessions.values.first { $0.facts.role == "tabs" }?.token)
    #expect(try tell(late, "Tab", below: nil, #""fresh":true"#)["restoration"]?["handing"] != true)
    _ = try late.state(#"["Tab"]"#)
    try late.encode(#"["Tab"]"#, #"{"of":"new"}"#)
    broker.disconnect(late)
    let back = try fixture.join("tabs", pid: 4, session: token)
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
