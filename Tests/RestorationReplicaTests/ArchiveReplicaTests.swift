// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationReplica
internal import TestSupport
internal import Testing

/// What every replica promises to those who hold archives there.
@Suite(.passesTurnstile) struct ArchiveReplicaTests {
  // MARK: Contents

  @Test(arguments: ReplicaEngine.allCases)
  func theFirstClaimMakesAnArchiveWithoutContents(engine: ReplicaEngine) async throws {
    let grant = try await ReplicaFixture(engine).broker(on: "A").acquire()
    #expect(grant.lease.application == ReplicaFixture.application)
    #expect(!grant.history.isEmpty)
    #expect((grant.base, grant.tip) == (0, ReplicaTip()))
    #expect(grant.reigns.isEmpty && grant.former == nil)
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aBatchBeginsWhereTheContentsEnd(engine: ReplicaEngine) async throws {
    let broker = try ReplicaFixture(engine).broker(on: "A")
    let lease = try await broker.acquire().lease
    try await broker.append(0, 2, lease)
    #expect(await refusal { () async throws(ReplicaError) in try await broker.append(3, 4, lease) } == .gap(2))
    #expect(await refusal { () async throws(ReplicaError) in try await broker.append(1, 4, lease) } == .gap(2))
    try await broker.append(2, 3, lease)
    let page = try await broker.load(.batches(after: 0), lease)
    #expect(page.batches == [.one(0, 2), .one(2, 3)])
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aRepeatedBatchIsStoredOnceAndAnotherOneAtItsPlaceIsRefused(engine: ReplicaEngine) async throws {
    let broker = try ReplicaFixture(engine).broker(on: "A")
    let lease = try await broker.acquire().lease
    for _ in 1...2 { try await broker.append(0, 2, lease) }
    try await broker.append(2, 3, lease)
    try await broker.append(0, 2, lease)
    #expect(
      await refusal { () async throws(ReplicaError) in try await broker.append(0, 2, lease, change: 7) } == .gap(3)
    )
    #expect(try await broker.load(.batches(after: 0), lease).batches.count == 2)
  }

  @Test(arguments: ReplicaEngine.allCases)
  func contentsAreReadInPagesAndFromWithinABatch(engine: ReplicaEngine) async throws {
    let broker = try ReplicaFixture(engine).broker(on: "A")
    let lease = try await broker.acquire().lease
    let batches = (0..<40).map { ReplicaBatch.one($0 * 2, $0 * 2 + 2) }
    for batch in batches { try await broker.link.append(batch, lease) }
    #expect(try await broker.load(.batches(after: 0), lease).batches == batches)
    #expect(try await broker.load(.batches(after: 41), lease).batches == Array(batches[20...]))
    #expect(try await broker.load(.batches(after: 80), lease).batches.isEmpty)
  }

  // MARK: Snapshots

  @Test(arguments: ReplicaEngine.allCases)
  func aSnapshotCountsWhenAllOfItsPartsAreThere(engine: ReplicaEngine) async throws {
    let broker = try ReplicaFixture(engine).broker(on: "A")
    let lease = try await broker.acquire().lease
    for (after, upto) in [(0, 2), (2, 3), (3, 5)] as [(Int64, Int64)] { try await broker.append(after, upto, lease) }
    let tip = ReplicaTip(sequence: 3, change: .numbered(3))
    let parts = (0..<3).map { SnapshotPart(tip: tip, reader: 1, number: $0, count: 3, bytes: [UInt8($0)]) }
    for number in [0, 0, 1, 1] { try await broker.link.snapshot(parts[number], lease) }
    #expect(try await broker.load(.batches(after: 0), lease).batches.count == 3)
    for number in [2, 2] { try await broker.link.snapshot(parts[number], lease) }
    let page = try await broker.load(.snapshot(part: 0), lease)
    #expect(page.parts == parts && page.batches == [.one(3, 5)])
    #expect(
      await refusal { () async throws(ReplicaError) in _ = try await broker.load(.batches(after: 2), lease) } == .gap(3)
    )
    try await broker.append(5, 6, lease)
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aSnapshotThatIsBegunAgainHasNoPartOfTheFormerOne(engine: ReplicaEngine) async throws {
    let broker = try ReplicaFixture(engine).broker(on: "A")
    let lease = try await broker.acquire().lease
    for (after, upto) in [(0, 2), (2, 3)] as [(Int64, Int64)] { try await broker.append(after, upto, lease) }
    let tip = ReplicaTip(sequence: 3, change: .numbered(3))
    func parts(_ attempt: UInt8, _ count: Int) -> [SnapshotPart] {
      (0..<count).map { number in
        let bytes = [attempt, UInt8(number)]
        return SnapshotPart(attempt: Int64(attempt), tip: tip, reader: 1, number: number, count: count, bytes: bytes)
      }
    }
    let former = parts(1, 3)
    for part in former.dropLast() { try await broker.link.snapshot(part, lease) }
    let whole = parts(2, 3)
    for part in whole.dropLast() { try await broker.link.snapshot(part, lease) }
    // They were on their way for longer.
    for part in former.dropFirst() {
      #expect(await refusal { () async throws(ReplicaError) in try await broker.link.snapshot(part, lease) } == .gap(3))
    }
    #expect(try await broker.load(.batches(after: 0), lease).batches.count == 2)
    try await broker.link.snapshot(whole[2], lease)
    #expect(try await broker.load(.snapshot(part: 0), lease).parts == whole)
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aSnapshotThatLacksAPartDoesNotCount(engine: ReplicaEngine) async throws {
    let broker = try ReplicaFixture(engine).broker(on: "A")
    let lease = try await broker.acquire().lease
    try await broker.append(0, 3, lease)
    let tip = ReplicaTip(sequence: 3, change: .numbered(3))
    func store(_ number: Int) async throws(ReplicaError) {
      try await broker.link.snapshot(SnapshotPart(tip: tip, reader: 1, number: number, count: 3, bytes: [1]), lease)
    }
    try await store(0)
    #expect(await refusal { () async throws(ReplicaError) in try await store(2) } == .gap(3))
    #expect(try await broker.load(.batches(after: 0), lease).batches == [.one(0, 3)])
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aSnapshotMayBringWhatNoBatchHasBrought(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine)
    let broker = fixture.broker(on: "A")
    let lease = try await broker.acquire().lease
    try await broker.append(0, 2, lease)
    try await broker.snapshot(7, lease)
    #expect(await refusal { () async throws(ReplicaError) in try await broker.append(2, 3, lease) } == .gap(7))
    try await broker.append(7, 8, lease)
    let grant = try await fixture.broker(on: "B").acquire(isForced: true)
    #expect((grant.base, grant.tip.sequence, grant.tip.change) == (7, 8, .numbered(8)))
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aSnapshotDoesNotEndWithinABatch(engine: ReplicaEngine) async throws {
    let broker = try ReplicaFixture(engine).broker(on: "A")
    let lease = try await broker.acquire().lease
    try await broker.append(0, 3, lease)
    #expect(await refusal { () async throws(ReplicaError) in try await broker.snapshot(2, lease) } == .gap(3))
    #expect(try await broker.load(.batches(after: 0), lease).batches.count == 1)
  }

  @Test(arguments: ReplicaEngine.allCases)
  func whoeverCannotReadTheContentsChangesNothing(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine)
    let (a, b) = (fixture.broker(on: "A"), fixture.broker(on: "B"))
    let lease = try await a.acquire(reader: 2).lease
    try await a.snapshot(1, lease, reader: 2)
    #expect(await refusal { () async throws(ReplicaError) in _ = try await b.acquire(isForced: true) } == .tooNew(2))
    try await a.append(1, 2, lease)
  }

  // MARK: Leases

  @Test(arguments: ReplicaEngine.allCases)
  func aHeldArchiveIsRefusedToOthersAndItsHolderIsToldWhoWaits(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine)
    let (a, b) = (fixture.broker(on: "A"), fixture.broker(on: "B"))
    let lease = try await a.acquire().lease
    #expect(try await a.link.renew() == ReplicaRenewal(held: [lease: 0]))
    let kind = await refusal { () async throws(ReplicaError) in _ = try await b.acquire() }
    guard case .elsewhere(let holder) = kind else {
      Issue.record("\(String(describing: kind))")
      return
    }
    #expect(holder.host == "A")
    #expect(try await a.link.renew() == ReplicaRenewal(held: [lease: 0], wanted: [lease: "B"]))
    try await a.append(0, 1, lease)
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aHolderHearsNothingOfWhoOnlyReads(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine)
    let (a, b) = (fixture.broker(on: "A"), fixture.broker(on: "B"))
    let lease = try await a.acquire(wants: false).lease
    let kind = await refusal { () async throws(ReplicaError) in _ = try await b.acquire(wants: false) }
    guard case .elsewhere(let holder) = kind else {
      Issue.record("\(String(describing: kind))")
      return
    }
    #expect(holder.host == "A")
    #expect(try await a.link.renew() == ReplicaRenewal(held: [lease: 0]))
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aTakeoverEndsTheFormerLease(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine)
    let (a, b) = (fixture.broker(on: "A"), fixture.broker(on: "B"))
    let first = try await a.acquire().lease
    try await a.append(0, 1, first)
    let second = try await b.acquire(isForced: true)
    #expect(second.lease.id != first.id)
    #expect(second.former?.host == "A")
    let fenced = ReplicaError.Kind.fenced(host: "B")
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(1, 2, first) } == fenced)
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(0, 1, first) } == fenced)
    #expect(await refusal { () async throws(ReplicaError) in try await a.snapshot(5, first) } == fenced)
    #expect(
      await refusal { () async throws(ReplicaError) in _ = try await a.load(.batches(after: 0), first) } == fenced
    )
    #expect(await refusal { () async throws(ReplicaError) in try await a.link.release(first, .removed) } == fenced)
    #expect(try await a.link.renew().held.isEmpty)
    try await b.append(1, 2, second.lease)
    #expect(try await b.link.renew().held.map(\.key) == [second.lease])
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aReleasedArchiveIsGivenToWhoeverAsksNext(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine)
    let (a, b) = (fixture.broker(on: "A"), fixture.broker(on: "B"))
    let first = try await a.acquire()
    try await a.append(0, 1, first.lease)
    try await a.link.release(first.lease, .left(upto: 1, summary: [7]))
    let second = try await b.acquire()
    #expect(second.history == first.history && second.former == nil)
    #expect(second.tip == ReplicaTip(sequence: 1, change: .numbered(1)))
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aHolderWithMoreThanTheReplicaIsToldSoWhenItRenewsAndWhenItGivesTheLeaseBack(engine: ReplicaEngine) async throws {
    let a = try ReplicaFixture(engine).broker(on: "A")
    let lease = try await a.acquire().lease
    try await a.append(0, 2, lease)
    #expect(try await a.link.renew().held == [lease: 2])
    let release = { (upto: SequenceNumber?) in
      await refusal { () async throws(ReplicaError) in
        try await a.link.release(lease, .left(upto: upto, summary: []))
      }
    }
    #expect(await release(3) == .gap(2))
    #expect(try await a.link.renew().held.map(\.key) == [lease])
    #expect(await release(2) == nil)
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aHostThatComesBackIsToldWhereItsLeaseHasLeftTheContents(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine)
    let (a, b) = (fixture.broker(on: "A"), fixture.broker(on: "B"))
    let first = try await a.acquire()
    try await a.append(0, 2, first.lease)
    let second = try await b.acquire(isForced: true)
    try await b.append(2, 4, second.lease)
    // Also after the batches are gone.
    try await b.snapshot(4, second.lease)
    let third = try await a.acquire(first.standing, isForced: true)
    let ends = [ReplicaReign(first.lease.id, end: 2), ReplicaReign(second.lease.id, end: 4)]
    #expect(third.reigns == ends)
    let fourth = try await b.acquire(second.standing, isForced: true)
    #expect(fourth.reigns == ends, "under the third nothing was written")
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aHostIsToldOfTheNewestLeasesAndOfThoseThatItKnows(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine)
    let (a, b) = (fixture.broker(on: "A"), fixture.broker(on: "B"))
    let first = try await a.acquire()
    try await a.append(0, 1, first.lease)
    var leases: [LeaseID] = []
    for number in 1...ReplicaReign.max {
      let lease = try await b.acquire(isForced: true).lease
      let sequence = SequenceNumber(number)
      try await b.append(sequence, sequence + 1, lease)
      leases.append(lease.id)
    }
    let unknown = try await b.acquire(isForced: true)
    #expect(unknown.reigns.map(\.lease) == leases)
    let known = try await a.acquire(first.standing, isForced: true)
    #expect(known.reigns.map(\.lease) == [first.lease.id] + leases)
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aBrokerThatWasStartedAgainGetsWhatItHadUnlessItHadGivenItBack(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine)
    let first = try await fixture.broker(on: "A").acquire()
    let second = try await fixture.broker(on: "A").acquire(first.standing)
    #expect(second.lease.id != first.lease.id)
    // Of the one before it is not the newest.
    for standing in [first.standing, nil] {
      let broker = fixture.broker(on: "A")
      let kind = await refusal { () async throws(ReplicaError) in _ = try await broker.acquire(standing) }
      guard case .elsewhere = kind else {
        Issue.record("\(String(describing: kind))")
        return
      }
    }
  }

  @Test(arguments: ReplicaEngine.allCases)
  func aHolderThatDoesNotRenewLosesItsLeaseToWhoeverHasSeenThat(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine)
    let (a, b) = (fixture.broker(on: "A"), fixture.broker(on: "B"))
    let lease = try await a.acquire().lease
    let whole = ReplicaFixture.term.milliseconds + 1_000
    func isRefused() async -> Bool {
      await refusal { () async throws(ReplicaError) in _ = try await b.acquire() } != nil
    }
    // How long it was silent before is not known to the one who asks.
    await fixture.pass(whole)
    #expect(await isRefused())
    await fixture.pass(whole - 500)
    #expect(await isRefused())
    _ = try await a.link.renew()
    await fixture.pass(500)
    #expect(await isRefused())
    await fixture.pass(whole)
    #expect(try await b.acquire().lease.id != lease.id)
  }

  @Test(arguments: ReplicaEngine.allCases)
  func archivesHaveNothingToDoWithEachOther(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine)
    let link = fixture.broker(on: "A").link
    let draw = ReplicaBroker(link: link, application: "draw")
    let notes = ReplicaBroker(link: link, application: "notes@2")
    let (first, second) = (try await draw.acquire().lease, try await notes.acquire().lease)
    try await draw.append(0, 2, first)
    #expect(await refusal { () async throws(ReplicaError) in try await notes.append(2, 3, second) } == .gap(0))
    let other = ReplicaBroker(link: fixture.broker(on: "B").link, application: "draw")
    _ = try await other.acquire(isForced: true)
    #expect(try await link.renew().held.map(\.key) == [second])
    try await notes.link.release(second, .left(upto: 0, summary: [1, 2]))
    let list = try await link.list()
    #expect(list.map(\.application) == ["draw", "notes@2"])
    #expect(list.map(\.sequence) == [2, 0] && list.map(\.summary) == [[], [1, 2]])
    #expect(list[0].holder?.host == "B" && list[1].holder == nil)
  }

  @Test(arguments: ReplicaEngine.allCases)
  func archivesAreListedInPages(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine)
    let link = fixture.broker(on: "A").link
    let count = engine == .postgres ? 3 : ReplicaListing.pageMax + 1
    let names = (0..<count).map { "a\(1_000 + $0)" }
    for name in names.shuffled() { _ = try await ReplicaBroker(link: link, application: name).acquire() }
    #expect(try await link.list().map(\.application) == names)
    let rest = try await link.list(after: names[0])
    #expect(rest.archives.map(\.application) == Array(names.dropFirst()) && !rest.hasMore)
    let first = try await link.list(after: nil)
    #expect(first.archives.map(\.application) == Array(names.prefix(ReplicaListing.pageMax)))
    #expect(first.hasMore == (count > ReplicaListing.pageMax))
    for name in [names[0], names[count - 1]] { #expect(try await link.summary(of: name)?.application == name) }
    for name in ["a", "a100", "a10000", "a0999", "b"] { #expect(try await link.summary(of: name) == nil) }
    withExtendedLifetime(fixture) {}
  }

  // MARK: Removal

  @Test(arguments: ReplicaEngine.allCases)
  func aRemovedArchiveHasNoContentsAndAnotherHistory(engine: ReplicaEngine) async throws {
    let fixture = try ReplicaFixture(engine)
    let (a, b) = (fixture.broker(on: "A"), fixture.broker(on: "B"))
    let first = try await a.acquire()
    try await a.append(0, 2, first.lease)
    let second = try await b.acquire(isForced: true)
    try await b.append(2, 3, second.lease)
    try await b.link.release(second.lease, .removed)
    #expect(try await b.link.list().isEmpty)
    #expect(
      await refusal { () async throws(ReplicaError) in try await b.append(3, 4, second.lease) } == .fenced(host: nil)
    )
    let third = try await a.acquire(first.standing)
    #expect(third.history != first.history && third.tip == ReplicaTip() && third.base == 0)
    #expect(third.reigns.allSatisfy { $0.end == 0 }, "nobody has anything of what comes now")
  }
}
