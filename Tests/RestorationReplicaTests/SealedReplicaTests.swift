// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import RestorationArchive
internal import RestorationReplica
internal import Synchronization
internal import Testing

/// What somebody can do who has the replica's server, and that it is noticed.
@Suite(.enabled(if: Sealing.isTested, Comment(rawValue: Sealing.requirement)))
struct SealedReplicaTests {
  private static func keys(_ keys: [ReplicaKey]) throws -> ReplicaKeys {
    try ReplicaKeys { () throws(ReplicaKeyError) in keys }
  }

  @Test func theReplicaIsToldNothingOfWhatIsStored() async throws {
    let host = try SealedHost()
    let lease = try await host.broker.acquire().lease
    let secret = Array("the user's text".utf8)
    func batch(_ after: SequenceNumber, _ upto: SequenceNumber) -> ReplicaBatch {
      ReplicaBatch(after: after, upto: upto, change: .numbered(upto), body: secret)
    }
    try await host.broker.link.append(batch(0, 3), lease)
    var stored = host.memory.contents(of: ReplicaFixture.application).batches
    try await host.snapshot(3, [secret, secret], lease)
    try await host.broker.link.append(batch(3, 4), lease)
    stored += host.memory.contents(of: ReplicaFixture.application).batches
    let parts = host.memory.contents(of: ReplicaFixture.application).parts
    #expect(stored.count == 2 && parts.count == 2 && parts[0] != parts[1])
    for bytes in parts + stored.map(\.body) { #expect(!bytes.contains(secret)) }
    let page = try await host.broker.load(.snapshot(part: 0), lease)
    #expect(page.parts.map(\.bytes) == [secret, secret])
    #expect(page.batches == [batch(3, 4)])
  }

  /// What is done to a page with three batches.
  enum BatchFault: CaseIterable, Sendable {
    case changed, cut, empty, inTheClear, elsewhere, otherChange, reordered, leftOut, leftOutFirst, repeated, replaced
    case endless

    func change(_ page: ReplicaPage) -> ReplicaPage {
      guard page.batches.count == 3 else { return page }
      var page = page
      switch self {
      case .changed: page.batches[1].body[40] ^= 1
      case .cut: page.batches[1].body.removeLast()
      case .empty: page.batches[1].body = []
      case .inTheClear: page.batches[1] = .one(2, 3)
      case .elsewhere:
        page.batches[1].upto = 4
        page.batches.removeLast()
      case .otherChange: page.batches[1].change = .numbered(77)
      case .reordered: page.batches.swapAt(1, 2)
      case .leftOut: page.batches.remove(at: 1)
      case .leftOutFirst: page.batches.remove(at: 0)
      case .repeated: page.batches.insert(page.batches[0], at: 1)
      case .replaced: page.batches[1].body = page.batches[2].body
      case .endless: page.next = .batches(after: 0)
      }
      return page
    }
  }

  @Test(arguments: BatchFault.allCases)
  func whatIsDoneToBatchesIsRefused(fault: BatchFault) async throws {
    let host = try SealedHost()
    let lease = try await host.broker.acquire().lease
    for batch in [(0, 2), (2, 3), (3, 5)] as [(Int64, Int64)] { try await host.broker.append(batch.0, batch.1, lease) }
    host.server.changePages(fault.change)
    let error = try #require(await host.refusal(lease))
    #expect(error.kind == .refused)
    for word in [ReplicaFixture.application, "nothing was taken", "backup"] { #expect(error.message.contains(word)) }
    host.server.changePages { $0 }
    #expect(try await host.broker.load(.batches(after: 0), lease).batches.count == 3)
  }

  /// What is done to a page with three parts and a batch.
  enum PartFault: CaseIterable, Sendable {
    case changed, swapped, renumbered, reordered, leftOut, leftOutLast, skipped, otherTip, otherReader

    func change(_ page: ReplicaPage) -> ReplicaPage {
      guard page.parts.count == 3 else { return page }
      var page = page
      switch self {
      case .changed: page.parts[1].bytes[60] ^= 0x80
      case .swapped: (page.parts[1].bytes, page.parts[2].bytes) = (page.parts[2].bytes, page.parts[1].bytes)
      case .renumbered: (page.parts[1].number, page.parts[2].number) = (2, 1)
      case .reordered: page.parts.swapAt(1, 2)
      case .leftOut: page.parts.remove(at: 1)
      case .leftOutLast: (page.next, _) = (nil, page.parts.removeLast())
      case .skipped: page.next = .batches(after: 9)
      case .otherTip: page.parts[1].tip.sequence = 3
      case .otherReader: for index in page.parts.indices { page.parts[index].reader = 2 }
      }
      return page
    }
  }

  @Test(arguments: PartFault.allCases)
  func whatIsDoneToASnapshotIsRefused(fault: PartFault) async throws {
    let host = try SealedHost()
    let lease = try await host.broker.acquire().lease
    try await host.snapshot(4, [[1], [2], [3]], lease)
    try await host.broker.append(4, 5, lease)
    host.server.changePages(fault.change)
    #expect(await host.refusal(from: .snapshot(part: 0), lease)?.kind == .refused)
    host.server.changePages { $0 }
    #expect(try await host.broker.load(.snapshot(part: 0), lease).parts.map(\.bytes) == [[1], [2], [3]])
  }

  @Test func partsOfTwoSnapshotsAreNotPutTogetherEvenIfTheyEndAtTheSameChange() async throws {
    let keys = try Self.keys([ReplicaKey()])
    let (memory, other) = (MemoryReplica(pageMax: 1), MemoryReplica(pageMax: 1))
    let (host, twin) = (try SealedHost(on: memory, keys: keys), try SealedHost(on: other, keys: keys))
    let lease = try await host.broker.acquire().lease
    let grant = try await twin.broker.acquire()
    try await host.snapshot(4, [[1], [2]], lease)
    try await twin.snapshot(4, [[1], [2]], grant.lease)
    let foreign = other.contents(of: ReplicaFixture.application).parts[1]
    host.server.changePages { page in
      var page = page
      if page.parts.first?.number == 1 { page.parts[0].bytes = foreign }
      return page
    }
    // The other one is of the same history, so that nothing else tells them apart.
    let error = try #require(await host.refusal(from: .snapshot(part: 0), lease))
    #expect(error.kind == .refused && error.message.contains("another snapshot"))
  }

  @Test func batchesOfTwoBranchesAreNotPutTogether() async throws {
    let keys = try Self.keys([ReplicaKey()])
    let other = MemoryReplica()
    let (host, twin) = (try SealedHost(keys: keys), try SealedHost(on: other, keys: keys))
    let (lease, branch) = (try await host.broker.acquire().lease, try await twin.broker.acquire().lease)
    try await host.broker.append(0, 2, lease)
    try await host.broker.append(2, 3, lease)
    try await twin.broker.append(0, 2, branch, change: 9)
    try await twin.broker.append(2, 3, branch)
    // It is of the same history, and has the same place and the same change.
    let foreign = other.contents(of: ReplicaFixture.application).batches[1]
    host.server.changePages { page in ReplicaPage(batches: page.batches.prefix(1) + [foreign]) }
    let error = try #require(await host.refusal(lease))
    #expect(error.kind == .refused && error.message.contains("follows another change"))
  }

  @Test func whatBelongsToAnotherArchiveIsRefused() async throws {
    let keys = try Self.keys([ReplicaKey()])
    let memory = MemoryReplica()
    let draw = try SealedHost(on: memory, keys: keys)
    let notes = try SealedHost(on: memory, application: "org.example.Notes", keys: keys)
    let (first, second) = (try await draw.broker.acquire().lease, try await notes.broker.acquire().lease)
    try await draw.broker.append(0, 2, first)
    try await notes.broker.append(0, 2, second)
    let foreign = memory.contents(of: "org.example.Notes").batches
    draw.server.changePages { ReplicaPage(batches: foreign, next: $0.next) }
    #expect(await draw.refusal(first)?.kind == .refused)
  }

  @Test func whatBelongsToAnArchiveThatWasRemovedIsRefused() async throws {
    let host = try SealedHost()
    let first = try await host.broker.acquire().lease
    try await host.broker.append(0, 2, first)
    let removed = host.memory.contents(of: ReplicaFixture.application).batches
    try await host.broker.link.release(first, .removed)
    let second = try await host.broker.acquire().lease
    try await host.broker.append(0, 2, second)
    host.server.changePages { ReplicaPage(batches: removed, next: $0.next) }
    #expect(await host.refusal(second)?.kind == .refused)
  }

  @Test func aLeaseThatEndedStoresNothing() async throws {
    let host = try SealedHost()
    let first = try await host.broker.acquire()
    let second = try await host.broker.acquire(first.standing).lease
    func isFenced(_ after: SequenceNumber, _ lease: ReplicaLease) async -> Bool {
      let append = { () async throws(ReplicaError) in try await host.broker.append(after, after + 1, lease) }
      return await refusal(append) == .fenced(host: nil)
    }
    #expect(await isFenced(0, first.lease))
    try await host.broker.append(0, 1, second)
    try await host.broker.link.release(second, .left(upto: nil, summary: []))
    #expect(await isFenced(1, second))
  }

  // MARK: Keys

  @Test func aKeyThatIsMissingIsNamedAndMayComeLater() async throws {
    let (old, new) = (try ReplicaKey(), try ReplicaKey())
    let memory = MemoryReplica()
    let here = Mutex([new])
    let host = try SealedHost(on: memory, keys: try Self.keys([old]))
    let other = try SealedHost(on: memory, keys: try ReplicaKeys { () throws(ReplicaKeyError) in here.withLock { $0 } })
    let first = try await host.broker.acquire().lease
    try await host.broker.append(0, 2, first)
    let second = try await other.broker.acquire(isForced: true).lease
    let error = try #require(await other.refusal(second))
    #expect(error.kind == .key(old.id.description))
    #expect(error.message.contains("changes 1 to 2 of \(ReplicaFixture.application)"))
    here.withLock { $0.append(old) }
    #expect(try await other.broker.load(.batches(after: 0), second).batches == [.one(0, 2)])
    // What is stored from now on is under the current one.
    try await other.broker.append(2, 3, second)
    let stored = memory.contents(of: ReplicaFixture.application).batches.map { SealedBytes($0.body) }
    #expect(stored.map { $0?.keyID } == [old.id, new.id])
    #expect(try await other.broker.load(.batches(after: 0), second).batches == [.one(0, 2), .one(2, 3)])
  }

  @Test func aVersionThatIsUnknownIsNotTakenForDamage() async throws {
    let host = try SealedHost()
    let lease = try await host.broker.acquire().lease
    try await host.broker.append(0, 2, lease)
    host.server.changePages { page in
      var page = page
      page.batches[0].body[0] = 0x82
      return page
    }
    let error = try #require(await host.refusal(lease))
    #expect(error.kind == .refused && error.message.contains("version 2; install"))
  }

  // MARK: Keys

  @Test(arguments: [false, true]) func aHostWithoutTheKeyDrivesNobodyAway(isForced: Bool) async throws {
    let key = try ReplicaKey()
    let host = try SealedHost(keys: try Self.keys([key]))
    let first = try await host.broker.acquire().lease
    try await host.broker.link.release(first, .left(upto: 0, summary: [7]))
    let lease = try await host.broker.acquire().lease
    let keys = Mutex([try ReplicaKey()])
    let others = try ReplicaKeys { () throws(ReplicaKeyError) in keys.withLock { $0 } }
    let server = TamperedReplica(around: host.memory.link(from: "B"))
    let link = SealedReplica(around: server, keys: others)
    let other = ReplicaBroker(link: link, application: ReplicaFixture.application)
    let kind = await refusal { () async throws(ReplicaError) in _ = try await other.acquire(isForced: isForced) }
    guard case .key = kind else {
      Issue.record("\(String(describing: kind))")
      return
    }
    #expect(server.listings == 1)
    #expect(try await host.broker.link.renew() == ReplicaRenewal(held: [lease: 0]))
    // With it, it does.
    keys.withLock { $0.append(key) }
    _ = await refusal { () async throws(ReplicaError) in _ = try await other.acquire(isForced: isForced) }
    #expect(try await host.broker.link.renew() != ReplicaRenewal(held: [lease: 0]))
  }

  // MARK: Summaries

  @Test func aSummaryThatCannotBeOpenedIsEmptyAndReported() async throws {
    let reported = Mutex<[ReplicaError]>([])
    let memory = MemoryReplica()
    let keys = try Self.keys([ReplicaKey()])
    let draw = try SealedHost(on: memory, keys: keys, report: { error in reported.withLock { $0.append(error) } })
    let notes = try SealedHost(on: memory, application: "org.example.Notes", keys: keys)
    for host in [draw, notes] {
      let lease = try await host.broker.acquire().lease
      try await host.broker.link.release(lease, .left(upto: 0, summary: [7]))
    }
    #expect(try await draw.broker.link.list().map(\.summary) == [[7], [7]])
    let foreign = try #require(try await memory.link(from: "B").list().last?.summary)
    #expect(foreign != [7])
    draw.server.changeSummaries { entry in
      var entry = entry
      entry.summary = foreign
      return entry
    }
    #expect(try await draw.broker.link.list().map(\.summary) == [[], [7]])
    #expect(reported.withLock { $0.map(\.kind) } == [.refused])
    #expect(reported.withLock { $0.first?.message.contains("the summary of org.example.Draw") } == true)
  }
}
