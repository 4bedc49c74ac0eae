// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Changes to objects, sessions and the archive while a restoration is under way.
@Suite struct RestoringAdversityTests {
  let fixture = RestoringFixture()
  var driver: CoreDriver { fixture.driver }
  let worker: Peer
  let other: Peer

  init() throws {
    try fixture.save([
      ("A", nil, "", #"{"n":1}"#), ("B", #"["A"]"#, "", #"{"n":2}"#), ("C", nil, "", #"{"n":3}"#),
    ])
    worker = try fixture.join("W", pid: 2)
    other = try fixture.join("O", pid: 3)
  }

  private func restore(_ peer: Peer, deadline: Int = 1_000) -> Int {
    peer.start("restoreApplicationState", #"{"deadlineMilliseconds":\#(deadline)}"#)
  }

  /// All are registered, and the worker does not answer when it is handed A.
  private func stall() throws -> (call: Int, id: Int) {
    worker.serves["decodeRestorableStateWithCoder"] = nil
    try worker.register("A")
    try other.register("B", below: #"["A"]"#)
    try other.register("C")
    let id = restore(other)
    let call = try #require(worker.openCalls("decodeRestorableStateWithCoder").first)
    #expect(fixture.log == ["O decode C"])
    return (call.id, id)
  }

  @Test func r21AParentInAnotherProcessIsDecodedFirst() throws {
    let (call, id) = try stall()
    worker.answer(call, "{}")
    #expect(fixture.log == ["O decode C", "O decode A/B"])
    #expect(outcome(try other.result(of: id)) == ["+A", "+A/B", "+C"])
    driver.inspect()
  }

  @Test func whoDoesNotAnswerIsLateAndTheOthersAreTold() throws {
    let (call, id) = try stall()
    driver.advance(milliseconds: 1_000)
    #expect(outcome(try other.result(of: id)) == ["+C", "-A late", "-A/B late"])
    #expect(fixture.finished(other).count == 1 && fixture.finished(worker).isEmpty)
    #expect(worker.openCalls("decodeRestorableStateWithCoder").isEmpty)
    worker.answer(call, "{}")
  }

  @Test func aSessionThatMovesToANewConnectionIsHandedItsStatesThere() throws {
    let first = driver.connect(pid: 4)
    let served = #""serves":["decodeRestorableStateWithCoder"]"#
    let token = try #require(try first.initialize("App", served)["session"]?.string)
    try first.register("A")
    try other.register("B", below: #"["A"]"#)
    try other.register("C")
    let id = restore(other)
    #expect(first.openCalls("decodeRestorableStateWithCoder").count == 1)
    let second = driver.connect(pid: 4)
    second.serves["decodeRestorableStateWithCoder"] = { _ in "{}" }
    try second.initialize("App", #""session":"\#(token)","# + served)
    #expect(second.calls.count == 1)
    #expect(outcome(try other.result(of: id)) == ["+A", "+A/B", "+C"])
  }

  @Test func soManyMayWaitForARestorationAndNotOneMore() throws {
    let (call, id) = try stall()
    let max = driver.limits.parkedMax
    for _ in 1..<max { _ = restore(other) }
    #expect(try other.failure(of: restore(other)).data["limit"] == "parkedMax")
    other.notify("restoreApplicationState", "{}")
    worker.answer(call, "{}")
    #expect(other.hasAnswer(id))
    #expect(other.unanswered.isEmpty)
  }

  @Test func anErrorIsAFailureOfThatBatchAlone() throws {
    let (call, id) = try stall()
    worker.answer(call, errorCode: -32000, "no")
    #expect(outcome(try other.result(of: id)) == ["+A/B", "+C", "-A failed"])
  }

  @Test func aSessionThatDiesIsNotWaitedFor() throws {
    let (_, id) = try stall()
    driver.crash(worker)
    #expect(outcome(try other.result(of: id)) == ["+A/B", "+C", "-A ended"])
  }

  @Test func aSessionThatSaysGoodbyeIsNotWaitedFor() throws {
    let (_, id) = try stall()
    try worker.goodbye("restart")
    #expect(outcome(try other.result(of: id)) == ["+A/B", "+C", "-A ended"])
    #expect(worker.openCalls("decodeRestorableStateWithCoder").isEmpty)
  }

  @Test func anotherProcessThatRegistersTheObjectInTimeGetsTheState() throws {
    try worker.register("A")
    try other.register("C")
    let id = restore(other)
    driver.crash(worker)
    #expect(!other.hasAnswer(id))
    let third = try fixture.join("T", pid: 4)
    try third.register("A")
    try third.register("B", below: #"["A"]"#)
    #expect(fixture.log == ["O decode C", "T decode A A/B"])
    #expect(outcome(try other.result(of: id)) == ["+A", "+A/B", "+C"])
  }

  @Test func aSessionThatComesBackIsHandedItsStatesAgain() throws {
    let (_, id) = try stall()
    let token = try #require(driver.application("App")?.sessions.values.first { $0.facts.role == "W" }?.token)
    driver.disconnect(worker)
    driver.advance(milliseconds: 100)
    #expect(!other.hasAnswer(id))
    let again = driver.connect(pid: 2)
    let serves = #""process":"W","serves":["decodeRestorableStateWithCoder","applicationFinishedRestoringState"]"#
    fixture.answer(again, "W")
    try again.initialize("App", #""session":"\#(token)","# + serves)
    #expect(fixture.log == ["O decode C", "W decode A", "O decode A/B"])
    #expect(outcome(try other.result(of: id)) == ["+A", "+A/B", "+C"])
    #expect(fixture.finished(again).count == 1)
  }

  @Test func anObjectThatIsTakenOverIsHandedToItsNewOwner() throws {
    let (call, id) = try stall()
    try other.register("A", below: nil, #""takeOver":true"#)
    worker.answer(call, "{}")
    #expect(fixture.log == ["O decode C", "O decode A A/B"])
    #expect(outcome(try other.result(of: id)) == ["+A", "+A/B", "+C"])
    #expect(fixture.finished(worker).isEmpty)
  }

  @Test func anObjectThatIsUnregisteredIsAbsentAndHoldsNobodyUp() throws {
    let (call, id) = try stall()
    try worker.call("unregisterObject", #"{"object":["A"]}"#)
    worker.answer(call, "{}")
    #expect(outcome(try other.result(of: id)) == ["+A/B", "+C", "?A"])
  }

  @Test func anObjectThatMovesIsListedUnderItsNewPath() throws {
    let (call, id) = try stall()
    try worker.call("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"Z"}"#)
    worker.answer(call, "{}")
    #expect(fixture.log == ["O decode C", "O decode Z/B"])
    #expect(outcome(try other.result(of: id)) == ["+Z", "+Z/B", "+C"])
  }

  @Test func aDiscardEndsIt() throws {
    let (_, id) = try stall()
    try other.call("discardApplicationState", #"{"force":true}"#)
    #expect(outcome(try other.result(of: id)) == ["+C", "-A discarded", "-A/B discarded"])
    #expect(fixture.finished(other).count == 1)
    driver.inspect()
  }

  @Test func r30AUserQuitEndsIt() throws {
    let (_, id) = try stall()
    let delegate = try fixture.join("D", pid: 9, delegate: true)
    try delegate.goodbye("userQuit")
    #expect(outcome(try other.result(of: id)).contains("-A discarded"))
  }

  @Test func aFailedTransactionEndsItWithAnError() throws {
    let (call, id) = try stall()
    driver.holdsCommits = true
    let lost = other.start("encodeRestorableState", other.encoding(#"["C"]"#, "{}"))
    driver.failCommit("App")
    #expect(try other.failure(of: id).kind == "storeFailed")
    #expect(try other.failure(of: lost).kind == "storeFailed")
    worker.answer(call, "{}")
    driver.holdsCommits = false
    driver.commit()
    #expect(driver.application("App")?.isRestoring == false)
    worker.serves["decodeRestorableStateWithCoder"] = { _ in "{}" }
    #expect(outcome(try other.call("restoreApplicationState")).isEmpty == false)
    driver.inspect()
  }

  @Test func theCallerMayLeaveAndItGoesOn() throws {
    let (call, _) = try stall()
    let third = try fixture.join("T", pid: 5)
    _ = restore(third)
    driver.disconnect(third)
    worker.answer(call, "{}")
    #expect(fixture.log == ["O decode C", "O decode A/B"])
  }

  @Test func anObjectIsHandedOutOnlyWhenItsRegistrationIsAnswered() throws {
    try worker.register("A")
    let id = restore(worker)
    driver.advance(milliseconds: 500)
    driver.holdsCommits = true
    let registration = other.start("registerObjectForStateRestoration", #"{"restorationIdentifier":"C"}"#)
    #expect(fixture.log == ["W decode A"])
    driver.holdsCommits = false
    driver.commit()
    #expect(other.hasAnswer(registration))
    #expect(fixture.log == ["W decode A", "O decode C"])
    driver.advance(milliseconds: 500)
    #expect(outcome(try worker.result(of: id)) == ["+A", "+C", "?A/B"])
  }

  @Test func anObjectThatFetchesItsStateByItselfIsNotHandedItAgain() throws {
    try worker.register("A")
    let id = restore(worker)
    let c = try other.register("C")
    #expect(try other.state("\(c)") == ["n": 3])
    driver.advance(milliseconds: 1_000)
    #expect(fixture.log == ["W decode A"])
    #expect(outcome(try worker.result(of: id)) == ["+A", "+C", "?A/B"])
    #expect(fixture.finished(other) == [c])
  }

  @Test func r19APushBeforeTheStateIsHandedOutHidesNothing() throws {
    try other.register("A")
    let id = restore(worker)
    try other.encode(#"["A"]"#, #"{"blank":true}"#)
    var state: JSONValue?
    other.serves["decodeRestorableStateWithCoder"] = { parameters in
      state = parameters["objects"]?.array?.first?["state"]
      return "{}"
    }
    driver.advance(milliseconds: 1_000)
    #expect(state == ["n": 1])
    #expect(outcome(try worker.result(of: id)).first == "+A")
  }

  @Test func aFactoryOfAnEndedSessionIsFollowedByTheNextOne() throws {
    try fixture.save([("Page", nil, RestoringTests.made, "{}")])
    try worker.register("A")
    try worker.register("B", below: #"["A"]"#)
    try worker.register("C")
    try other.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    other.serves["objectWithRestorationIdentifierPath"] = { _ in nil }
    let id = restore(worker)
    #expect(other.openCalls("objectWithRestorationIdentifierPath").count == 1)
    driver.crash(other)
    let third = try fixture.join("T", pid: 6)
    try fixture.makes("Pages", third, "T")
    #expect(outcome(try worker.result(of: id)) == ["+A", "+A/B", "+C", "+Page"])
  }

  @Test func r32ADamagedStateIsUnreadableAndTheRestIsRestored() throws {
    try other.register("A")
    try other.register("B", below: #"["A"]"#)
    try other.register("C")
    let damaged = try #require(driver.application("App")?.tree.node(at: ["A"])?.state?.sequence)
    driver.tamper("App") { $0.damaged.insert(damaged) }
    #expect(outcome(try worker.call("restoreApplicationState")) == ["+A/B", "+C", "-A unreadable"])
  }
}
