// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// The end of a restoration, driven and piecemeal, and who can hold it back (R21, R34); roles (R9); elements (R28).
@Suite struct BarrierTests {
  let fixture = RestoringFixture()
  var driver: CoreDriver { fixture.driver }
  let first: Peer
  let second: Peer

  init() throws {
    try fixture.save([
      ("A", nil, "", #"{"n":1}"#), ("B", nil, "", #"{"n":2}"#),
    ])
    first = try fixture.join("F", pid: 2)
    second = try fixture.join("S", pid: 3)
  }

  // MARK: Driven

  @Test func r21ASessionThatTakesPartHoldsTheEndBack() throws {
    let a = try first.register("A")
    try second.register("B")
    #expect(try first.call("extendStateRestoration") == ["pending": 1])
    try first.call("extendStateRestoration")
    let id = second.start("restoreApplicationState", #"{"deadlineMilliseconds":60000}"#)
    #expect(fixture.log == ["F decode A", "S decode B"])
    driver.advance(milliseconds: 30_000)
    try first.call("completeStateRestoration")
    #expect(!second.hasAnswer(id) && fixture.finished(first).isEmpty)
    try first.call("completeStateRestoration")
    #expect(second.hasAnswer(id))
    #expect(fixture.finished(first) == [a])
    driver.inspect()
  }

  @Test func r21OneThatTakesNoPartDoesNot() throws {
    try second.register("A")
    try second.register("B")
    try first.call("extendStateRestoration")
    #expect(outcome(try second.call("restoreApplicationState")) == ["+A", "+B"])
  }

  @Test func r21TheDeadlineEndsWhatIsHeldBack() throws {
    try first.register("A")
    try first.register("B")
    try first.call("extendStateRestoration")
    let id = first.start("restoreApplicationState", #"{"deadlineMilliseconds":1000}"#)
    driver.advance(milliseconds: 999)
    #expect(!first.hasAnswer(id))
    driver.advance(milliseconds: 1)
    #expect(outcome(try first.result(of: id)) == ["+A", "+B"])
    #expect(try first.call("completeStateRestoration") == ["pending": 0])
  }

  @Test func r34WhatASessionHoldsEndsWithIt() throws {
    try first.register("A")
    try second.register("B")
    try first.call("extendStateRestoration")
    let id = second.start("restoreApplicationState", #"{"deadlineMilliseconds":60000}"#)
    #expect(!second.hasAnswer(id))
    driver.crash(first)
    #expect(outcome(try second.result(of: id)) == ["+A", "+B"])
  }

  @Test func r12NoRoundBeginsByItselfMeanwhileAndOneThatIsAskedForWaits() throws {
    try first.register("A")
    let id = second.start("restoreApplicationState", #"{"deadlineMilliseconds":2000}"#)
    let save = second.start("saveApplicationState")
    #expect(!second.hasAnswer(save))
    driver.advance(milliseconds: 2_000)
    #expect(second.hasAnswer(id) && second.hasAnswer(save))
  }

  // MARK: Piecemeal

  @Test func r21WhoFetchesByItselfIsToldWhenTheLastWindowHasClosed() throws {
    let a = try first.register("A")
    let b = try second.register("B")
    _ = try first.state("\(a)")
    _ = try second.state("\(b)")
    try first.encode("\(a)", "{}")
    #expect(fixture.finished(first).isEmpty)
    try second.call("completeStateRestoration")
    #expect(fixture.finished(first) == [a] && fixture.finished(second) == [b])
    try second.call("completeStateRestoration")
    #expect(fixture.finished(second) == [b])
    driver.inspect()
  }

  @Test func r21APiecemealExtensionLapsesAfterTenSeconds() throws {
    let a = try first.register("A")
    _ = try first.state("\(a)")
    try second.call("extendStateRestoration")
    try first.call("completeStateRestoration")
    #expect(fixture.finished(first).isEmpty)
    driver.advance(milliseconds: 10_000)
    #expect(fixture.finished(first) == [a])
    #expect(driver.timerCount <= 1)
  }

  @Test func r31AWindowThatNobodyClosesClosesByItself() throws {
    let a = try first.register("A")
    _ = try first.state("\(a)")
    driver.advance(milliseconds: 10_000)
    #expect(fixture.finished(first) == [a])
  }

  // MARK: Roles

  @Test func r9AClassHasOneSessionUntilThatEnds() throws {
    try first.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    try first.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    let failure = try second.fail("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    #expect(failure.code == -32019)
    #expect(failure.data["owners"]?.array?.first?["process"] == "F")
    driver.crash(first)
    try second.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
  }

  @Test func r9AViewHasOneDataSourceUntilThatEnds() throws {
    try first.call("registerDataSource", #"{"view":["A"]}"#)
    #expect(try second.fail("registerDataSource", #"{"view":["A"]}"#).kind == "alreadyServed")
    #expect(try second.fail("registerDataSource", #"{"view":["Nobody"]}"#).kind == "unknownObject")
    try first.goodbye("restart")
    try second.call("registerDataSource", #"{"view":["A"]}"#)
  }

  @Test func r9ASessionThatGoesOnAfterTheBrokersDeathStillHasItsRoles() throws {
    let token = try #require(driver.application("App")?.sessions.values.first { $0.facts.role == "F" }?.token)
    try first.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    try first.call("registerDataSource", #"{"view":["A"]}"#)
    driver.restart()
    let other = try fixture.join("T", pid: 4)
    #expect(try other.fail("registerRestorationClass", #"{"restorationClass":"Pages"}"#).kind == "alreadyServed")
    #expect(try other.fail("registerDataSource", #"{"view":["A"]}"#).kind == "alreadyServed")
    let back = try fixture.join("F", pid: 2, session: token)
    #expect(try other.fail("registerRestorationClass", #"{"restorationClass":"Pages"}"#).kind == "alreadyServed")
    driver.forgetWritten()
    try back.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    #expect(driver.written.isEmpty)
    try back.goodbye("restart")
    driver.restart()
    let last = try fixture.join("T", pid: 4)
    try last.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    try last.call("registerDataSource", #"{"view":["A"]}"#)
  }

  @Test func aRoleIsAnsweredWhenItIsOnDisk() throws {
    driver.holdsCommits = true
    let calls = [
      first.start("registerRestorationClass", #"{"restorationClass":"Pages"}"#),
      first.start("registerDataSource", #"{"view":["A"]}"#),
    ]
    #expect(calls.allSatisfy { !first.hasAnswer($0) })
    driver.commit()
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

  @Test func aRoleNeedsASessionThatServesIt() throws {
    let third = try fixture.join("T", pid: 4, serves: [])
    #expect(try third.fail("registerRestorationClass", #"{"restorationClass":"Pages"}"#).code == -32600)
    #expect(try third.fail("registerDataSource", #"{"view":["A"]}"#).code == -32600)
    let fourth = driver.connect(pid: 5)
    let call = #"{"application":"App","restorationClass":"Pages"}"#
    #expect(try fourth.fail("registerRestorationClass", call).kind == "notInitialized")
  }

  // MARK: Elements

  private func saveView() throws -> Peer {
    let owner = try fixture.join("V", pid: 6)
    let view = try owner.register("View", below: nil, #""kind":"view""#)
    let elements =
      #""elements":[{"role":"selected","indexPath":[0,1],"identifier":"x"},{"role":"selected","indexPath":[0,2],"#
      + #""identifier":"gone"},{"role":"topVisible","indexPath":[0,3]}]"#
    try owner.encode("\(view)", #"{"v":1}"#, elements)
    driver.crash(owner)
    return try fixture.join("V", pid: 7)
  }

  private func serveElements(_ peer: Peer) throws {
    peer.serves["indexPathForElementWithModelIdentifier"] = { parameters in
      #expect(parameters["view"] == ["View"])
      return parameters["identifier"] == "x" ? "[0,7]" : "null"
    }
    try peer.call("registerDataSource", #"{"view":["View"]}"#)
  }

  @Test func r28ElementsAreFoundInTheDataOfToday() throws {
    let owner = try saveView()
    try serveElements(second)
    try owner.register("View", below: nil, #""kind":"view""#)
    var elements: JSONValue?
    owner.serves["decodeRestorableStateWithCoder"] = { parameters in
      elements = parameters["objects"]?.array?.first?["elements"]
      return "{}"
    }
    let id = owner.start("restoreApplicationState", #"{"deadlineMilliseconds":100}"#)
    driver.advance(milliseconds: 100)
    #expect(outcome(try owner.result(of: id)).contains("+View"))
    #expect(
      elements == [
        ["role": "selected", "indexPath": [0, 7], "identifier": "x", "resolved": true],
        ["role": "topVisible", "indexPath": [0, 3], "resolved": false],
      ]
    )
  }

  @Test func r28TheSameHoldsWhereTheOwnerFetchesTheState() throws {
    let owner = try saveView()
    try serveElements(second)
    let view = try owner.register("View", below: nil, #""kind":"view""#)
    let answer = try owner.decode("\(view)")
    #expect(answer["state"] == ["v": 1] && answer["elements"]?.array?.count == 2)
    #expect(answer["elements"]?.array?.first?["resolved"] == true)
    #expect(try first.decode(#"["View"]"#)["elements"]?.array?.count == 3)
  }

  @Test func r28WhatTheDataSourceDoesNotSayInTimeStaysRaw() throws {
    let owner = try saveView()
    try serveElements(second)
    second.serves["indexPathForElementWithModelIdentifier"] = nil
    let view = try owner.register("View", below: nil, #""kind":"view""#)
    let id = owner.start("decodeRestorableState", #"{"object":\#(view)}"#)
    driver.advance(milliseconds: 999)
    #expect(!owner.hasAnswer(id))
    driver.advance(milliseconds: 1)
    let elements = try owner.result(of: id)["elements"]?.array
    #expect(elements?.count == 3 && elements?.allSatisfy { $0["resolved"] == false } == true)
    driver.crash(second)
    #expect(try owner.decode("\(view)")["elements"]?.array?.count == 3)
  }
}
