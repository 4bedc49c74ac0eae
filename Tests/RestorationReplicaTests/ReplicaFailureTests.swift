// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import TestSupport
internal import Testing

/// What every replica promises when servers and networks fail.
@Suite(.passesTurnstile) struct ReplicaFailureTests {
  @Test(arguments: ReplicaEngine.allCases)
  func anotherTimelineVoidsAllLeases(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine, failsOver: true)
    let a = fixture.broker(on: "A")
    let first = try await a.acquire()
    try await a.append(0, 1, first.lease)
    try await fixture.failOver()
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(1, 2, first.lease) } == .voided)
    #expect(await refusal { () async throws(ReplicaError) in try await a.snapshot(3, first.lease) } == .voided)
    #expect(await refusal { () async throws(ReplicaError) in _ = try await a.link.renew() } == .voided)
    let second = try await a.acquire(first.standing)
    #expect(second.lease.epoch > first.lease.epoch)
    #expect(second.lease.epoch.timeline > first.lease.epoch.timeline)
    try await a.append(1, 2, second.lease)
    #expect(try await a.link.renew().held == [second.lease])
  }

  @Test(arguments: ReplicaEngine.allCases)
  func epochsOfTwoTimelinesAreNeverEqual(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine, failsOver: true)
    let (a, b) = (fixture.broker(on: "A"), fixture.broker(on: "B"))
    let first = try await a.acquire()
    try await a.append(0, 1, first.lease)
    let lost = try await a.acquire(first.standing)
    try await a.append(1, 2, lost.lease)
    // The server that takes over has neither of these two.
    try await fixture.failOver(losing: 2)
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(2, 3, lost.lease) } == .voided)
    let other = try await b.acquire(isForced: true)
    #expect(other.tip.sequence == 1)
    #expect(other.lease.epoch.number == lost.lease.epoch.number)
    #expect(other.lease.epoch > lost.lease.epoch)
    try await b.append(1, 2, other.lease)
    let back = try await a.acquire(lost.standing, isForced: true)
    #expect(back.tipEpoch > lost.lease.epoch)
    #expect(back.reign == ReplicaTip(sequence: 1, change: .numbered(1)))
  }

  @Test(arguments: ReplicaEngine.allCases)
  func afterAFailoverTheHolderComesFirstAndOthersWait(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine, failsOver: true)
    let (a, b) = (fixture.broker(on: "A"), fixture.broker(on: "B"))
    let first = try await a.acquire()
    try await fixture.failOver()
    #expect(await refusal { () async throws(ReplicaError) in _ = try await b.acquire() } != nil)
    let second = try await a.acquire(first.standing)
    try await fixture.failOver()
    await fixture.pass(ReplicaFixture.term.milliseconds)
    #expect(try await b.acquire().lease.epoch > second.lease.epoch)
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aLeaseThatTheNewServerHasLostIsAClaimUnlessItWasGivenBack(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine, failsOver: true)
    let (a, b) = (fixture.broker(on: "A"), fixture.broker(on: "B"))
    let first = try await a.acquire()
    try await a.link.release(first.lease, .left(isFlushed: true, summary: []))
    let lost = try await b.acquire()
    try await fixture.failOver(losing: 1)
    // The row says released, but somebody may have taken it.
    var released = first.standing
    released.phase = .released
    #expect(await refusal { () async throws(ReplicaError) in _ = try await a.acquire(released) } != nil)
    // It is not told that the former one has the archive, and so claims it.
    #expect(await refusal { () async throws(ReplicaError) in try await b.append(0, 1, lost.lease) } == .voided)
    #expect(await refusal { () async throws(ReplicaError) in try await b.snapshot(1, lost.lease) } == .voided)
    #expect(try await b.acquire(lost.standing).lease.epoch > lost.lease.epoch)
  }

  @Test(arguments: ReplicaEngine.allCases)
  func anArchiveThatTheNewServerHasLostComesBackBeforeOthersMayBeginIt(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine, failsOver: true)
    let (a, b) = (fixture.broker(on: "A"), fixture.broker(on: "B"))
    // The server cannot tell the lost application from one that never began.
    let other = ReplicaBroker(link: b.link, application: "org.example.Other")
    let lost = try await a.acquire()
    try await fixture.failOver(losing: 1)
    for asking in [b, other] {
      #expect(await refusal { () async throws(ReplicaError) in _ = try await asking.acquire() } == .voided)
    }
    let back = try await a.acquire(lost.standing)
    #expect(back.history == lost.history)
    #expect(back.lease.epoch > lost.lease.epoch)
    await fixture.pass(30_000)
    #expect(try await other.acquire().tip.sequence == 0)
  }

  @Test(arguments: ReplicaEngine.allCases)
  func whatOnlyOneServerWouldHaveIsNotStored(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine)
    let a = fixture.broker(on: "A")
    let lease = try await a.acquire().lease
    await fixture.setCovered(false)
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(0, 1, lease) } == .uncovered)
    #expect(await refusal { () async throws(ReplicaError) in try await a.snapshot(1, lease) } == .uncovered)
    #expect(await refusal { () async throws(ReplicaError) in _ = try await a.link.renew() } == .uncovered)
    let b = fixture.broker(on: "B")
    #expect(await refusal { () async throws(ReplicaError) in _ = try await b.acquire(isForced: true) } == .uncovered)
    await fixture.setCovered(true)
    try await a.append(0, 1, lease)
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aHostThatIsCutOffHasStoredNothing(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine)
    let (a, b) = (fixture.broker(on: "A"), fixture.broker(on: "B"))
    let lease = try await a.acquire().lease
    await fixture.cut("A")
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(0, 1, lease) } == .away)
    let taken = try await b.acquire(isForced: true)
    #expect(taken.tip.sequence == 0)
    await fixture.mend("A")
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(0, 1, lease) } == .fenced(host: "B"))
  }

  @Test(arguments: ReplicaEngine.allCases)
  func anAnswerThatIsLostLeavesTheOutcomeToARepetition(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine)
    let a = fixture.broker(on: "A")
    let lease = try await a.acquire().lease
    await fixture.loseAnswer(to: "A")
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(0, 1, lease) } == .unknown)
    try await a.append(0, 1, lease)
    try await a.append(1, 2, lease)
    #expect(try await a.load(.batches(after: 0), lease).batches == [.one(0, 1), .one(1, 2)])
  }
}
