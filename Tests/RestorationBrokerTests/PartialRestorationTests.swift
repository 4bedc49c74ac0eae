// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import Testing

/// Restoring some objects only, and again after a no (R19, R22).
@Suite struct PartialRestorationTests {
  let fixture = RestoringFixture()
  var broker: MemoryBroker { fixture.broker }

  static let page = RestorationConcernTests.page

  /// Two windows with a page each, all made by a class.
  private func saveWindows() throws {
    try fixture.save([
      ("One", nil, Self.page, #"{"n":1}"#), ("Page", #"["One"]"#, Self.page, #"{"n":2}"#),
      ("Two", nil, Self.page, #"{"n":3}"#), ("Page", #"["Two"]"#, Self.page, #"{"n":4}"#),
    ])
  }

  private func hasCompleted() -> Bool {
    for case .run(let run) in broker.written.reversed() { return RunFacts(stored: run.facts).hasCompletedRestoration }
    return false
  }

  @Test func r22ASubtreeIsRestoredAndWhatIsAboveItIsOnlyMade() throws {
    try saveWindows()
    let worker = try fixture.join("W", pid: 1)
    try fixture.makes("Pages", worker, "W")
    let part = try worker.call("restoreApplicationState", #"{"objects":[["Two","Page"]]}"#)
    #expect(outcome(part) == ["+Two/Page"])
    #expect(fixture.log == ["W make Two", "W make Two/Page", "W decode Two/Page"])
    #expect(fixture.finished(worker).count == 1)
    #expect(!hasCompleted())
    // What was above keeps its state for a restoration of all.
    let whole = try worker.call("restoreApplicationState")
    #expect(outcome(whole) == ["+One", "+One/Page", "+Two"])
    #expect(hasCompleted())
  }

  @Test func r22SubtreesWithNothingLeftCompleteNothing() throws {
    try saveWindows()
    let worker = try fixture.join("W", pid: 1)
    try worker.register("New")
    let result = try worker.call("restoreApplicationState", #"{"objects":[["New"]]}"#)
    #expect(outcome(result).isEmpty && result["milliseconds"] == 0 && !hasCompleted())
    #expect(try worker.fail("restoreApplicationState", #"{"objects":[["No"]]}"#).kind == "unknownObject")
    #expect(try worker.fail("restoreApplicationState", #"{"objects":[["A/B"]]}"#).kind == "invalidIdentifier")
  }

  @Test func r22WhatIsAboveASubtreeAndRefusedIsNamed() throws {
    try saveWindows()
    let worker = try fixture.join("W", pid: 1)
    try worker.call("registerRestorationClass", #"{"restorationClass":"Pages"}"#)
    let result = try worker.call("restoreApplicationState", #"{"objects":[["Two","Page"]]}"#)
    #expect(outcome(result) == ["-Two refused", "-Two/Page parentSkipped"])
  }

  @Test func r19AfterANoTheSavedStatesAreHandedOutUnlessTheyWereWrittenSince() throws {
    try fixture.save([("A", nil, "", #"{"n":1}"#), ("B", nil, "", #"{"n":2}"#), ("C", nil, "", #"{"n":3}"#)])
    let worker = try fixture.join("W", pid: 1, delegate: true)
    var given: [String: JSONValue] = [:]
    worker.serves["decodeRestorableStateWithCoder"] = { parameters in
      for object in parameters["objects"]?.array ?? [] { given[object["path"]?.joined ?? ""] = object["state"] }
      return "{}"
    }
    for name in ["A", "B", "C"] { try worker.register(name) }
    // Blank pushes before the delegate is asked.
    for name in ["A", "B"] { try worker.encode(#"["\#(name)"]"#, #"{"blank":true}"#) }
    worker.serves["shouldRestoreApplicationState"] = { _ in "false" }
    #expect(try worker.call("restoreApplicationState")["declined"] == true)
    let reader = broker.connect(pid: 2)
    try reader.initialize()
    #expect(try reader.state(#"["A"]"#) == ["blank": true])
    try worker.encode(#"["B"]"#, #"{"new":true}"#)
    worker.serves["shouldRestoreApplicationState"] = { _ in "true" }
    try worker.call("restoreApplicationState")
    #expect(given == ["A": ["n": 1], "C": ["n": 3]])
    broker.inspect()
  }

  @Test func r19ANoToSomeObjectsConcernsOnlyThose() throws {
    try fixture.save([("One", nil, "", #"{"n":1}"#), ("Two", nil, "", #"{"n":2}"#)])
    let delegate = try fixture.join("main", pid: 8, delegate: true)
    delegate.serves["shouldRestoreApplicationState"] = { _ in "false" }
    for name in ["One", "Two"] { try delegate.encode("\(try delegate.register(name))", "{}") }
    #expect(try delegate.call("restoreApplicationState", #"{"objects":[["Two"]]}"#)["declined"] == true)
    #expect(try delegate.state(#"["One"]"#) == ["n": 1])
    #expect(try delegate.state(#"["Two"]"#) == [:])
    delegate.serves["shouldRestoreApplicationState"] = { _ in "true" }
    _ = try delegate.call("unregisterObject", #"{"object":["Two"],"keepState":true}"#)
    broker.inspect()
  }

  @Test func r22ACallAboutOtherObjectsWaitsForTheRestorationUnderWay() throws {
    try saveWindows()
    let worker = try fixture.join("W", pid: 1)
    try fixture.makes("Pages", worker, "W")
    var held: Int?
    worker.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    let first = worker.start("restoreApplicationState", #"{"objects":[["One"]]}"#)
    let same = worker.start("restoreApplicationState", #"{"objects":[["One"]]}"#)
    let whole = worker.start("restoreApplicationState")
    let gone = worker.start("restoreApplicationState", #"{"objects":[["Two"]]}"#)
    worker.notify("$/cancelRequest", #"{"id":\#(gone)}"#)
    #expect(try worker.failure(of: gone).kind == "requestCancelled")
    while let call = worker.openCalls("decodeRestorableStateWithCoder").first(where: { $0.id != held }) {
      held = call.id
      worker.answer(call.id, "{}")
    }
    #expect(outcome(try worker.result(of: first)) == ["+One", "+One/Page"])
    #expect(outcome(try worker.result(of: same)) == ["+One", "+One/Page"])
    #expect(outcome(try worker.result(of: whole)) == ["+Two", "+Two/Page"])
  }

  @Test func r22ANotificationAboutOtherObjectsRestoresThemAfterwards() throws {
    try saveWindows()
    let worker = try fixture.join("W", pid: 1)
    try fixture.makes("Pages", worker, "W")
    worker.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    let first = worker.start("restoreApplicationState", #"{"objects":[["One","Page"]]}"#)
    worker.notify("restoreApplicationState", #"{"objects":[["Two","Page"]]}"#)
    let held = try #require(worker.openCalls("decodeRestorableStateWithCoder").first)
    worker.answer(held.id, "{}")
    #expect(outcome(try worker.result(of: first)) == ["+One/Page"])
    let next = try #require(worker.openCalls("decodeRestorableStateWithCoder").first { $0.id != held.id })
    #expect(next.parameters["objects"]?.array?.first?["path"] == ["Two", "Page"])
  }

  @Test func r33ACallThatWaitsForARestorationEndsWithTheBroker() throws {
    try saveWindows()
    let worker = try fixture.join("W", pid: 1)
    try fixture.makes("Pages", worker, "W")
    worker.serves["decodeRestorableStateWithCoder"] = { _ in nil }
    let calls = ["One", "Two"].map { worker.start("restoreApplicationState", #"{"objects":[["\#($0)"]]}"#) }
    broker.saveBeforeEnd()
    for call in calls { #expect(try worker.failure(of: call).kind == "shuttingDown") }
    #expect(fixture.log.filter { $0.hasSuffix("make Two") }.isEmpty)
  }

  @Test(arguments: [true, false]) func r19ATakeOverThatEndsTheLastWindowCompletesTheRestoration(_ moves: Bool) throws {
    try fixture.save([("A", nil, "", #"{"n":1}"#)])
    let former = try fixture.join("W", pid: 1, serves: [])
    _ = try former.state("\(try former.register("A"))")
    #expect(!hasCompleted())
    let next = try fixture.join("V", pid: 2, serves: [])
    if moves {
      let other = try next.register("B")
      try next.call(
        "setRestorationIdentifier",
        #"{"object":\#(other),"restorationIdentifier":"A","takeOver":true}"#
      )
    } else {
      try next.register("A", below: nil, #""takeOver":true"#)
    }
    #expect(hasCompleted())
    broker.inspect()
  }
}
