// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Changes to objects, sessions and the archive while a restoration is under way.
@Suite struct RestoringAdversityTests {
  let fixture = RestoringFixture()
  var broker: MemoryBroker { fixture.broker }
  let worker: Peer
  let other: Peer

  init() throws {
    try fixture.save([("A", nil, "", #"{"n":1}"#), ("B", #"["A"]"#, "", #"{"n":2}"#), ("C", nil, "", #"{"n":3}"#)])
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

  @Test func soManyMayWaitForARestorationAndNotOneMore() throws {
    let (call, id) = try stall()
    let max = broker.limits.parkedMax
    for _ in 1..<max { _ = restore(other) }
    #expect(try other.failure(of: restore(other)).data["limit"] == "parkedMax")
    other.notify("restoreApplicationState", "{}")
    worker.answer(call, "{}")
    #expect(other.hasAnswer(id))
    #expect(other.unanswered.isEmpty)
  }

  @Test func aSessionThatDiesIsNotWaitedFor() throws {
    let (_, id) = try stall()
    broker.crash(worker)
    #expect(outcome(try other.result(of: id)) == ["+A/B", "+C", "-A ended"])
  }

  @Test func anotherProcessThatRegistersTheObjectInTimeGetsTheState() throws {
    try worker.register("A")
    try other.register("C")
    let id = restore(other)
    broker.crash(worker)
    #expect(!other.hasAnswer(id))
    let third = try fixture.join("T", pid: 4)
    try third.register("A")
    try third.register("B", below: #"["A"]"#)
    #expect(fixture.log == ["O decode C", "T decode A A/B"])
    #expect(outcome(try other.result(of: id)) == ["+A", "+A/B", "+C"])
  }

  @Test func aFailedTransactionIsAnErrorOfTheCallAndTheRestorationGoesOn() throws {
    let (call, id) = try stall()
    broker.holdsCommits = true
    let lost = other.start("encodeRestorableState", other.encoding(#"["C"]"#, "{}"))
    broker.failCommit("App")
    #expect(try other.failure(of: id).kind == "storeFailed")
    #expect(try other.failure(of: lost).kind == "storeFailed")
    worker.answer(call, "{}")
    worker.serves["decodeRestorableStateWithCoder"] = { _ in "{}" }
    #expect(fixture.finished(worker).isEmpty)
    broker.holdsCommits = false
    broker.commit()
    #expect(broker.application("App")?.isRestoring == false && !fixture.finished(worker).isEmpty)
    #expect(outcome(try other.call("restoreApplicationState")) == [])
    broker.inspect()
  }

  @Test func anObjectIsHandedOutOnlyWhenItsRegistrationIsAnswered() throws {
    try worker.register("A")
    let id = restore(worker)
    broker.advance(milliseconds: 500)
    broker.holdsCommits = true
    let registration = other.start("registerObjectForStateRestoration", #"{"restorationIdentifier":"C"}"#)
    #expect(fixture.log == ["W decode A"])
    broker.holdsCommits = false
    broker.commit()
    #expect(other.hasAnswer(registration))
    #expect(fixture.log == ["W decode A", "O decode C"])
    broker.advance(milliseconds: 500)
    #expect(outcome(try worker.result(of: id)) == ["+A", "+C", "?A/B"])
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
    broker.crash(other)
    let third = try fixture.join("T", pid: 6)
    try fixture.makes("Pages", third, "T")
    #expect(outcome(try worker.result(of: id)) == ["+A", "+A/B", "+C", "+Page"])
  }

  @Test func r32ADamagedStateIsUnreadableAndTheRestIsRestored() throws {
    broker.restart()
    broker.disk.damage("App", broker.disk.rows(of: 1))
    let (worker, other) = (try fixture.join("W", pid: 4), try fixture.join("O", pid: 5))
    try other.register("A")
    try other.register("B", below: #"["A"]"#)
    try other.register("C")
    #expect(outcome(try worker.call("restoreApplicationState")) == ["+A/B", "+C", "-A unreadable"])
  }
}
