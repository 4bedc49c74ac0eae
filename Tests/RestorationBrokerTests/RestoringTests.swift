// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Restorations that the broker drives: order, lookups, handed-out states (R21 – R25, R34).
@Suite struct RestoringTests {
  let fixture = RestoringFixture()
  var driver: CoreDriver { fixture.driver }

  static let controller = #""kind":"viewController""#
  static let made = #""kind":"viewController","restorationClass":"Pages""#

  @Test func r21OrderIsDelegateLocateDecodeDelegateFinished() throws {
    try fixture.save([
      ("Main", nil, Self.made, #"{"a":1}"#),
      ("Page", #"["Main"]"#, Self.made, #"{"b":2}"#),
      ("Tool", nil, "", #"{"c":3}"#),
    ])
    let delegate = try fixture.join("D", pid: 1, delegate: true)
    let worker = try fixture.join("W", pid: 2)
    try fixture.makes("Pages", worker, "W")
    let tool = try delegate.register("Tool")
    let result = try delegate.call("restoreApplicationState")
    #expect(outcome(result) == ["+Main", "+Main/Page", "+Tool"])
    #expect(
      fixture.log == [
        "D shouldRestoreApplicationState", "W make Main", "W make Main/Page", "D decode Tool",
        "W decode Main Main/Page", "D didDecodeRestorableState",
      ]
    )
    #expect(fixture.finished(delegate) == [tool])
    #expect(fixture.finished(worker).count == 2)
    #expect(driver.application("App")?.sessions.values.allSatisfy { $0.windows.isEmpty } == true)
    driver.inspect()
  }

  @Test func r21TheDelegateDeclinesAndNothingIsTouched() throws {
    try fixture.save([("Tool", nil, "", "{}")])
    let delegate = try fixture.join("D", pid: 1, delegate: true)
    delegate.serves["shouldRestoreApplicationState"] = { _ in "false" }
    try delegate.register("Tool")
    let result = try delegate.call("restoreApplicationState")
    #expect(outcome(result).isEmpty)
    #expect(result["declined"] == true)
    #expect(fixture.log.isEmpty && fixture.finished(delegate).isEmpty)
    #expect(try delegate.state(#"["Tool"]"#) == [:])
  }

  @Test func r21ADelegateThatDoesNotAnswerIsTakenToAgree() throws {
    try fixture.save([("Tool", nil, "", "{}")])
    let delegate = try fixture.join("D", pid: 1, delegate: true)
    delegate.serves["shouldRestoreApplicationState"] = nil
    try delegate.register("Tool")
    let id = delegate.start("restoreApplicationState", #"{"deadlineMilliseconds":1000}"#)
    driver.advance(milliseconds: 249)
    #expect(!delegate.hasAnswer(id))
    driver.advance(milliseconds: 1)
    #expect(outcome(try delegate.result(of: id)) == ["+Tool"])
  }

  @Test func r21NothingToRestoreIsAnsweredAtOnceAndNobodyIsAsked() throws {
    let delegate = try fixture.join("D", pid: 1, delegate: true)
    try delegate.register("Tool")
    try delegate.encode(#"["Tool"]"#, #"{"a":1}"#)
    #expect(outcome(try delegate.call("restoreApplicationState")).isEmpty)
    #expect(fixture.log.isEmpty)
  }

  @Test func r22AClassThatSaysNullEndsTheSearchAndSkipsWhatIsBelow() throws {
    try fixture.save([
      ("Main", nil, Self.made, #"{"a":1}"#), ("Page", #"["Main"]"#, Self.controller, #"{"b":2}"#),
      ("Deep", #"["Main","Page"]"#, "", "{}"),
    ])
    let worker = try fixture.join("W", pid: 2)
    try worker.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    try worker.register("Main", below: nil, Self.made)
    let result = try worker.call("restoreApplicationState")
    #expect(outcome(result) == ["-Main refused", "-Main/Page parentSkipped", "-Main/Page/Deep parentSkipped"])
  }

  @Test func r22WithoutAClassTheDelegateIsAskedAndNullGoesOnToWhatIsThere() throws {
    try fixture.save([("Main", nil, Self.controller, "{}"), ("Other", nil, Self.controller, "{}")])
    let delegate = try fixture.join("D", pid: 1, delegate: true)
    delegate.serves["viewControllerWithRestorationIdentifierPath"] = { parameters in
      guard parameters["identifierPath"]?.joined == "Other" else { return "null" }
      return (try? delegate.register("Other", below: nil, Self.controller)).map { #"{"object":\#($0)}"# }
    }
    try delegate.register("Main", below: nil, Self.controller)
    let result = outcome(try delegate.call("restoreApplicationState"))
    #expect(result == ["+Main", "+Other"])
  }

  @Test func r22AStoryboardsUnitIsStartedAndThePathAwaited() throws {
    try fixture.save([("Main", nil, #""kind":"viewController","storyboard":{"unit":"a.service"}"#, "{}")])
    let worker = try fixture.join("W", pid: 2)
    let id = worker.start("restoreApplicationState", #"{"deadlineMilliseconds":1000}"#)
    #expect(driver.startedUnits == ["a.service"])
    try worker.register("Main", below: nil, Self.controller)
    #expect(outcome(try worker.result(of: id)) == ["+Main"])
  }

  @Test func r23WhatNobodyRegistersIsAbsentAtTheDeadlineAndOthersDoNotWaitForIt() throws {
    try fixture.save([
      ("Main", nil, Self.made, "{}"), ("Tool", nil, "", "{}"), ("Gone", nil, "", "{}"), ("Late", nil, "", "{}"),
    ])
    let worker = try fixture.join("W", pid: 2)
    try worker.register("Tool")
    let id = worker.start("restoreApplicationState", #"{"deadlineMilliseconds":1000}"#)
    driver.advance(milliseconds: 499)
    #expect(fixture.log.isEmpty)
    driver.advance(milliseconds: 1)
    #expect(fixture.log == ["W decode Tool"])
    try worker.register("Late")
    #expect(fixture.log == ["W decode Tool", "W decode Late"])
    try fixture.makes("Pages", worker, "W")
    #expect(fixture.log.suffix(2) == ["W make Main", "W decode Main"])
    #expect(!worker.hasAnswer(id))
    driver.advance(milliseconds: 500)
    let result = try worker.result(of: id)
    #expect(outcome(result) == ["+Main", "+Tool", "+Late", "?Gone"])
    #expect(result["milliseconds"] == 1_000)
    #expect(fixture.finished(worker).count == 3)
  }

  @Test func r23WhatWasMissingBeforeIsNotWaitedForAndRestoredIfItComes() throws {
    try fixture.save([("Here", nil, "", "{}"), ("Gone", nil, "", "{}")])
    let first = try fixture.join("W", pid: 2)
    try first.register("Here")
    let id = first.start("restoreApplicationState")
    #expect(fixture.log.isEmpty)
    driver.advance(milliseconds: 10_000)
    #expect(outcome(try first.result(of: id)) == ["+Here", "?Gone"])
    driver.crash(first)
    let second = try fixture.join("V", pid: 3)
    try second.register("Here")
    #expect(outcome(try second.call("restoreApplicationState")) == ["+Here", "?Gone"])
    driver.crash(second)
    let third = try fixture.join("U", pid: 4)
    third.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    try third.register("Here")
    let last = third.start("restoreApplicationState")
    try third.register("Gone")
    for _ in 1...2 { third.answer(try #require(third.openCalls("decodeRestorableStateWithCoder").first).id, "{}") }
    #expect(outcome(try third.result(of: last)) == ["+Here", "+Gone"])
  }

  @Test func r23WhatNobodyEverRegisteredIsNotWaitedFor() throws {
    try driver.connect(pid: 1).encode(#"["Script"]"#, "{}", #""application":"App""#)
    let worker = try fixture.join("W", pid: 2)
    #expect(outcome(try worker.call("restoreApplicationState")) == ["?Script"])
  }

  @Test func r24TheFactoryGetsPathAndStateAndMayReturnAnotherObject() throws {
    try fixture.save([("Main", nil, Self.made + #","objectClass":"Page""#, #"{"a":0.10}"#)])
    let worker = try fixture.join("W", pid: 2)
    var asked: JSONValue?
    let other = try worker.register("Elsewhere", below: nil, Self.controller)
    worker.serves["objectWithRestorationIdentifierPath"] = { parameters in
      asked = parameters
      return #"{"object":\#(other)}"#
    }
    try worker.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    let result = try worker.call("restoreApplicationState")
    #expect(asked?["restorationClass"] == "Pages")
    #expect(asked?["identifierPath"] == ["Main"])
    #expect(asked?["kind"] == "viewController")
    #expect(asked?["objectClass"] == "Page")
    #expect(asked?["state"]?["a"]?.real == 0.1)
    #expect(asked?["coder"]?["UIApplicationStateRestorationTimestampKey"]?.string != nil)
    #expect(outcome(result).contains("+Main"))
    #expect(fixture.log == ["W decode Elsewhere"])
    #expect(fixture.finished(worker) == [other])
  }

  @Test func r24AnObjectThatIsNotTheFactorysIsAFailure() throws {
    try fixture.save([("Main", nil, Self.made, "{}"), ("Page", #"["Main"]"#, "", "{}")])
    let worker = try fixture.join("W", pid: 2)
    let other = try fixture.join("O", pid: 3)
    let foreign = try other.register("Foreign")
    worker.serves["objectWithRestorationIdentifierPath"] = { _ in #"{"object":\#(foreign)}"# }
    try worker.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    let result = try worker.call("restoreApplicationState")
    #expect(outcome(result) == ["-Main failed", "-Main/Page parentSkipped"])
  }

  @Test func r25AnObjectOfAnotherClassStaysInUseWithoutItsState() throws {
    try fixture.save([("Main", nil, #""objectClass":"Old""#, "{}")])
    let worker = try fixture.join("W", pid: 2)
    try worker.register("Main", below: nil, #""objectClass":["New","Base"]"#)
    #expect(outcome(try worker.call("restoreApplicationState")) == ["-Main classMismatch"])
    #expect(fixture.log.isEmpty && fixture.finished(worker).isEmpty)
    #expect(outcome(try worker.call("restoreApplicationState")).isEmpty)
  }

  @Test func r27AReferenceLeadsToAnObjectThatMayNotHaveItsState() throws {
    try fixture.save([
      ("A", nil, "", "{}"), ("B", nil, "", #"{"to":{"$restorable":["A"]}}"#),
    ])
    let first = try fixture.join("F", pid: 1)
    let second = try fixture.join("S", pid: 2)
    let target = try second.register("A")
    try first.register("B")
    var state: JSONValue?
    first.serves["decodeRestorableStateWithCoder"] = { parameters in
      state = parameters["objects"]?.array?.first?["state"]
      return "{}"
    }
    try first.call("restoreApplicationState")
    #expect(state == ["to": ["$restorable": ["A"], "object": .integer(target)]])
  }

  @Test func r34WhatWasRestoredOrWrittenByItsOwnerIsLeftAlone() throws {
    try fixture.save([("A", nil, "", #"{"n":1}"#), ("B", nil, "", "{}")])
    let first = try fixture.join("F", pid: 1)
    try first.register("A")
    try first.register("New")
    try first.encode(#"["New"]"#, #"{"mine":1}"#)
    let b = try first.register("B")
    #expect(outcome(try first.call("restoreApplicationState")) == ["+A", "+B"])
    try first.call("unregisterObject", #"{"object":\#(b),"keepState":true}"#)
    let second = try fixture.join("S", pid: 2)
    let handle = try second.register("B")
    #expect(outcome(try second.call("restoreApplicationState")) == ["+B"])
    #expect(fixture.log == ["F decode A B", "S decode B"])
    #expect(fixture.finished(first).count == 2)
    #expect(fixture.finished(second) == [handle])
  }

  @Test func aSessionThatServesNoDecodingIsNotHandedAnything() throws {
    try fixture.save([("A", nil, "", "{}"), ("C", nil, Self.controller, nil)])
    let worker = try fixture.join("W", pid: 2, serves: [])
    try worker.register("A")
    try worker.register("C", below: nil, Self.controller)
    #expect(outcome(try worker.call("restoreApplicationState")) == ["+C", "-A notServed"])
    #expect(try worker.state(#"["A"]"#) == [:])
  }

  @Test func aSecondCallJoinsAndProgressIsTold() throws {
    try fixture.save([("A", nil, "", "{}"), ("B", nil, "", "{}")])
    let worker = try fixture.join("W", pid: 2)
    try worker.register("A")
    let first = worker.start("restoreApplicationState", #"{"deadlineMilliseconds":1000,"progressToken":"t"}"#)
    let second = worker.start("restoreApplicationState", #"{"deadlineMilliseconds":5}"#)
    driver.advance(milliseconds: 600)
    #expect(!worker.hasAnswer(second))
    try worker.register("B")
    #expect(try worker.result(of: first) == worker.result(of: second))
    #expect(worker.takeNotifications("progress").last?["done"] == 2)
    driver.inspect()
  }
}
