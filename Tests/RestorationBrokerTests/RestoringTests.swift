// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Restorations that the broker drives, as far as time and units are concerned (R22, R23); vectors have the rest.
@Suite struct RestoringTests {
  let fixture = RestoringFixture()
  var broker: MemoryBroker { fixture.broker }

  static let controller = #""kind":"viewController""#
  static let made = #""kind":"viewController","restorationClass":"Pages""#

  @Test func r22AStoryboardsUnitIsStartedAndThePathAwaited() throws {
    try fixture.save([("Main", nil, #""kind":"viewController","storyboard":{"unit":"a.service"}"#, "{}")])
    broker.unitFiles["a.service"] = ["[X-Restoration]\nApplication=App\n"]
    let worker = try fixture.join("W", pid: 2)
    let id = worker.start("restoreApplicationState", #"{"deadlineMilliseconds":1000}"#)
    #expect(broker.startedUnits == ["a.service"])
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
    broker.advance(milliseconds: 499)
    #expect(fixture.log.isEmpty)
    broker.advance(milliseconds: 1)
    #expect(fixture.log == ["W decode Tool"])
    try worker.register("Late")
    #expect(fixture.log == ["W decode Tool", "W decode Late"])
    try fixture.makes("Pages", worker, "W")
    #expect(fixture.log.suffix(2) == ["W make Main", "W decode Main"])
    #expect(!worker.hasAnswer(id))
    broker.advance(milliseconds: 500)
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
    broker.advance(milliseconds: 10_000)
    #expect(outcome(try first.result(of: id)) == ["+Here", "?Gone"])
    broker.crash(first)
    let second = try fixture.join("V", pid: 3)
    try second.register("Here")
    #expect(outcome(try second.call("restoreApplicationState")) == ["+Here", "?Gone"])
    broker.crash(second)
    let third = try fixture.join("U", pid: 4)
    third.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    try third.register("Here")
    let last = third.start("restoreApplicationState")
    try third.register("Gone")
    for _ in 1...2 { third.answer(try #require(third.openCalls("decodeRestorableStateWithCoder").first).id, "{}") }
    #expect(outcome(try third.result(of: last)) == ["+Here", "+Gone"])
  }

  @Test func aSecondCallJoinsAndProgressIsTold() throws {
    try fixture.save([("A", nil, "", "{}"), ("B", nil, "", "{}")])
    let worker = try fixture.join("W", pid: 2)
    try worker.register("A")
    let first = worker.start("restoreApplicationState", #"{"deadlineMilliseconds":1000,"progressToken":"t"}"#)
    let second = worker.start("restoreApplicationState", #"{"deadlineMilliseconds":5}"#)
    broker.advance(milliseconds: 600)
    #expect(!worker.hasAnswer(second))
    try worker.register("B")
    #expect(try worker.result(of: first) == worker.result(of: second))
    #expect(worker.takeNotifications("progress").last?["done"] == 2)
    broker.inspect()
  }
}
