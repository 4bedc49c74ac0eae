// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Who can hold back the end of a restoration (R21, R22); roles that outlive the broker (R9); elements (R28).
@Suite struct BarrierTests {
  let fixture = RestoringFixture()
  var broker: MemoryBroker { fixture.broker }
  let first: Peer
  let second: Peer

  init() throws {
    try fixture.save([("A", nil, "", #"{"n":1}"#), ("B", nil, "", #"{"n":2}"#)])
    first = try fixture.join("F", pid: 2)
    second = try fixture.join("S", pid: 3)
  }

  @Test func r22WhatASessionHoldsEndsWithIt() throws {
    try first.register("A")
    try second.register("B")
    try first.call("extendStateRestoration")
    let id = second.start("restoreApplicationState", #"{"deadlineMilliseconds":60000}"#)
    #expect(!second.hasAnswer(id))
    broker.crash(first)
    #expect(outcome(try second.result(of: id)) == ["+A", "+B"])
  }

  @Test func r21APiecemealExtensionLapsesAfterTenSeconds() throws {
    let a = try first.register("A")
    _ = try first.state("\(a)")
    try second.call("extendStateRestoration")
    try first.call("completeStateRestoration")
    #expect(fixture.finished(first).isEmpty)
    broker.advance(milliseconds: 10_000)
    #expect(fixture.finished(first) == [a])
    #expect(broker.timerCount <= 1)
  }

  @Test func r21AnObjectThatIsFetchedAgainIsAnnouncedOnceForEachRegistration() throws {
    let a = try first.register("A")
    for _ in 1...2 {
      _ = try first.state("\(a)")
      broker.advance(milliseconds: 10_000)
      #expect(fixture.finished(first) == [a])
    }
    try first.call("unregisterObject", #"{"object":\#(a),"keepState":true}"#)
    let again = try first.register("A")
    _ = try first.state("\(again)")
    broker.advance(milliseconds: 10_000)
    #expect(fixture.finished(first) == [a, again])
  }

  @Test func r31AWindowThatNobodyClosesClosesByItself() throws {
    let a = try first.register("A")
    _ = try first.state("\(a)")
    broker.advance(milliseconds: 10_000)
    #expect(fixture.finished(first) == [a])
  }

  @Test func r9AClassThatIsSharedStaysSoAfterTheBrokersDeath() throws {
    let (alone, shared) = (#"{"restorationClass":"Pages"}"#, #"{"restorationClass":"Pages","shared":true}"#)
    try first.call("registerRestorationClass", alone)
    try first.call("registerRestorationClass", shared)
    try second.call("registerRestorationClass", shared)
    broker.restart()
    let other = try fixture.join("T", pid: 4)
    #expect(try other.fail("registerRestorationClass", alone).kind == "alreadyServed")
    try other.call("registerRestorationClass", shared)
  }

  @Test func r9ASessionThatGoesOnAfterTheBrokersDeathStillHasItsRoles() throws {
    let token = try #require(broker.application("App")?.sessions.values.first { $0.facts.role == "F" }?.token)
    try first.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    try first.call("registerDataSource", #"{"view":["A"]}"#)
    broker.restart()
    let other = try fixture.join("T", pid: 4)
    #expect(try other.fail("registerRestorationClass", #"{"restorationClass":"Pages"}"#).kind == "alreadyServed")
    #expect(try other.fail("registerDataSource", #"{"view":["A"]}"#).kind == "alreadyServed")
    let back = try fixture.join("F", pid: 2, session: token)
    #expect(try other.fail("registerRestorationClass", #"{"restorationClass":"Pages"}"#).kind == "alreadyServed")
    broker.forgetWritten()
    try back.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    #expect(broker.written.isEmpty)
    try back.goodbye("restart")
    broker.restart()
    let last = try fixture.join("T", pid: 4)
    try last.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    try last.call("registerDataSource", #"{"view":["A"]}"#)
  }

  @Test func aRoleIsAnsweredWhenItIsOnDisk() throws {
    broker.holdsCommits = true
    let calls = [
      first.start("registerRestorationClass", #"{"restorationClass":"Pages"}"#),
      first.start("registerDataSource", #"{"view":["A"]}"#),
    ]
    #expect(calls.allSatisfy { !first.hasAnswer($0) })
    broker.commit()
    #expect(calls.allSatisfy { first.hasAnswer($0) })
  }

  @Test func aSessionThatTakesTooManyClassesIsToldSo() throws {
    let long = String(repeating: "C", count: 1_000)
    let calls = (1...140).map { number in
      first.start("registerRestorationClass", #"{"restorationClass":"\#(long)\#(number)"}"#)
    }
    #expect(calls.count { first.resultIfAny(of: $0) != nil } > 100)
    #expect(try first.failure(of: try #require(calls.last)).kind == "limitExceeded")
  }

  @Test(arguments: [nil, "true"])
  func r28WhatTheDataSourceDoesNotSayInTimeOrSaysWronglyStaysRaw(_ answer: String?) throws {
    let owner = try fixture.join("V", pid: 6)
    try owner.register("Page", below: nil, #""kind":"viewController""#)
    let view = try owner.register("View", below: #"["Page"]"#, #""kind":"view""#)
    let elements = #"{"role":"selected","indexPath":[0],"identifier":"x"},{"role":"topVisible","indexPath":[1]}"#
    try owner.encode("\(view)", "{}", #""elements":[\#(elements)]"#)
    try second.call("registerDataSource", #"{"view":["Page","View"]}"#)
    let id = owner.start("decodeRestorableState", #"{"object":\#(view)}"#)
    broker.advance(milliseconds: 999)
    #expect(!owner.hasAnswer(id))
    if let answer {
      second.answer(try #require(second.openCalls("indexPathForElementWithModelIdentifier").first).id, answer)
    } else {
      broker.advance(milliseconds: 1)
    }
    #expect(try owner.result(of: id)["elements"]?.array?.map { $0["resolved"] } == [false, false])
    let steps = try owner.call("explainRestoration", #"{"object":\#(view)}"#)["restored"]?.array
    #expect(steps?.map { $0["step"] } == ["elementUnresolved"])
    broker.crash(second)
    #expect(try owner.decode("\(view)")["elements"]?.array?.count == 2)
  }

  /// A view that comes when the restoration no longer waits for objects; its data source comes a moment later.
  @Test(arguments: [999, 1_000]) func r28ADataSourceIsAwaitedAlsoAfterTheHold(_ milliseconds: Int64) throws {
    func registerView(_ peer: Peer) throws -> Int64 {
      try peer.register("List", below: nil, #""kind":"viewController""#)
      return try peer.register("View", below: #"["List"]"#, #""kind":"view""#)
    }
    let view = try registerView(first)
    try second.call("registerDataSource", #"{"view":["List","View"]}"#)
    try first.encode("\(view)", "{}", #""elements":[{"role":"selected","indexPath":[0],"identifier":"x"}]"#)
    broker.crash(first)
    broker.crash(second)
    let third = try fixture.join("T", pid: 4)
    third.serves["decodeRestorableStateWithCoder"] = nil
    try third.register("A")
    let id = third.start("restoreApplicationState", #"{"deadlineMilliseconds":10000}"#)
    broker.advance(milliseconds: 5_000)
    #expect(!third.hasAnswer(id))
    let owner = try fixture.join("F", pid: 5)
    owner.serves["decodeRestorableStateWithCoder"] = nil
    _ = try registerView(owner)
    broker.advance(milliseconds: milliseconds)
    let source = try fixture.join("D", pid: 6)
    source.serves["indexPathForElementWithModelIdentifier"] = { _ in "[7]" }
    try source.call("registerDataSource", #"{"view":["List","View"]}"#)
    let call = try #require(owner.openCalls("decodeRestorableStateWithCoder").first)
    let element = call.parameters["objects"]?.array?.first?["elements"]?.array?.first
    #expect(element?["resolved"]?.bool == (milliseconds < 1_000))
    owner.answer(call.id, "{}")
    third.answer(try #require(third.openCalls("decodeRestorableStateWithCoder").first).id, "{}")
    broker.advance(milliseconds: 10_000)
    #expect(outcome(try third.result(of: id)).contains("+List/View"))
  }
}
