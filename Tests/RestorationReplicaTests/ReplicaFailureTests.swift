// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationReplica
internal import TestSupport
internal import Testing

/// What every replica promises when servers and networks fail.
@Suite(.passesTurnstile) struct ReplicaFailureTests {
  @Test(arguments: ReplicaEngine.allCases)
  func aLeaseGoesOnAtAServerThatTakesOverWithEverything(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine, failsOver: true)
    let (a, b) = (fixture.broker(on: "A"), fixture.broker(on: "B"))
    let first = try await a.acquire()
    try await a.append(0, 1, first.lease)
    try await fixture.failOver()
    #expect(try await a.link.renew().held.map(\.key) == [first.lease])
    try await a.append(1, 2, first.lease)
    #expect(await refusal { () async throws(ReplicaError) in _ = try await b.acquire() } != nil)
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aLeaseThatTheServerHasLostIsUnknownAndNeverAnotherOnes(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine, failsOver: true)
    let (a, b) = (fixture.broker(on: "A"), fixture.broker(on: "B"))
    let first = try await a.acquire()
    try await a.append(0, 1, first.lease)
    let lost = try await a.acquire(first.standing)
    try await a.append(1, 2, lost.lease)
    // The server that takes over has neither of these two.
    try await fixture.failOver(losing: 2)
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(2, 3, lost.lease) } == .voided)
    #expect(await refusal { () async throws(ReplicaError) in try await a.snapshot(3, lost.lease) } == .voided)
    #expect(
      await refusal { () async throws(ReplicaError) in _ = try await a.load(.batches(after: 0), lost.lease) } == .voided
    )
    #expect(
      await refusal { () async throws(ReplicaError) in
        try await a.link.release(lost.lease, .left(upto: nil, summary: []))
      } == .voided
    )
    #expect(try await a.link.renew().held[lost.lease] == nil)
    // As many leases as before.
    let other = try await b.acquire(isForced: true)
    #expect(other.tip.sequence == 1 && other.lease.id != lost.lease.id)
    try await b.append(1, 2, other.lease, change: 7)
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(2, 3, lost.lease) } == .voided)
    let back = try await a.acquire(lost.standing, isForced: true)
    let copy = CarriedCopy(archive: "copy", tip: ReplicaTip(sequence: 2, change: .numbered(2)))
    let catching = CatchingUp(copy, lost.standing, back)
    #expect(catching.step == .install && catching.isConflict)
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aBrokerGetsBackWhatAFormerOneOfItsHostHasAtAServerThatLacksTheNewestLease(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine, failsOver: true)
    let first = try await fixture.broker(on: "A").acquire()
    let lost = try await fixture.broker(on: "A").acquire(first.standing)
    try await fixture.failOver(losing: 1)
    let b = fixture.broker(on: "B")
    #expect(await refusal { () async throws(ReplicaError) in _ = try await b.acquire() } != nil)
    #expect(try await fixture.broker(on: "A").acquire(lost.standing).history == first.history)
  }

  @Test(arguments: ReplicaEngine.allCases)
  func anArchiveThatTheServerHasLostComesBackWithItsHistory(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine, failsOver: true)
    let a = fixture.broker(on: "A")
    let lost = try await a.acquire()
    try await fixture.failOver(losing: 1)
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(0, 1, lost.lease) } == .voided)
    let back = try await a.acquire(lost.standing)
    #expect(back.history == lost.history && back.tip.sequence == 0 && back.lease.id != lost.lease.id)
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
