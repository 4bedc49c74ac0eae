// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import RestorationArchive
internal import RestorationReplica
internal import Synchronization
internal import Testing

/// A replica that lies to a host: whatever it says, what the host has stays on its disk, and where is told.
@Suite struct TamperedReplicaTests {
  private let fleet = ReplicaFleet()
  private let disk = CarriedDisk("A")
  private let other = CarriedDisk("B")

  private func tampered() throws -> (FleetBroker, TamperedReplica) {
    var tampered: TamperedReplica?
    let broker = try fleet.broker(on: disk) { link in
      let replica = TamperedReplica(around: link)
      tampered = replica
      return replica
    }
    return (broker, try #require(tampered))
  }

  /// This host writes three times, and leaves with everything stored.
  private func write() throws {
    let a = try fleet.broker(on: disk)
    a.open()
    for text in ["1", "2", "3"] { _ = a.write(text) }
    _ = a.close()
    #expect(fleet.batches == ["1", "2", "3"])
  }

  // MARK: What is granted

  /// What it says of an archive with three changes.
  enum Lie: CaseIterable, Sendable {
    case removed, begunAnew, setBack, setBackUnderALaterLease, otherChange, snapshotAhead, ahead, forgotten

    func change(_ grant: ReplicaGrant) -> ReplicaGrant {
      var lie = grant
      // "Your copy ends where your lease has left it."
      lie.reigns = grant.reigns.map { ReplicaReign($0.lease, end: 3) }
      func end(_ sequence: SequenceNumber) {
        lie.tip = ReplicaTip(sequence: sequence, change: ChangeID(high: 7, low: 7))
      }
      switch self {
      case .removed: (lie.history, lie.tip) = ("another", ReplicaTip())
      case .begunAnew:
        lie.history = "another"
        end(1)
      case .setBack: end(1)
      case .setBackUnderALaterLease:
        lie.reigns = grant.reigns.map { ReplicaReign($0.lease, end: 1) }
        end(2)
      case .otherChange: end(3)
      case .snapshotAhead:
        end(9)
        lie.base = 9
      case .ahead: end(9)
      case .forgotten:
        lie.reigns = []
        end(3)
      }
      return lie
    }
  }

  @Test(arguments: Lie.allCases, [false, true])
  func whateverIsGrantedTheCopyOfThisHostStaysOnItsDisk(_ lie: Lie, hasContents: Bool) throws {
    try write()
    // Another lease has ended since.
    let b = try fleet.broker(on: other)
    b.open()
    _ = b.close()
    let (a, replica) = try tampered()
    replica.changeGrants(lie.change)
    if hasContents { replica.load { Self.page(from: $0, base: lie == .snapshotAhead ? 9 : 0) } }
    for _ in 1...2 {
      a.open()
      fleet.pass(6_000)
      _ = a.close()
    }
    let (kept, setAside) = (disk.texts, disk.textsSetAside)
    if !kept.starts(with: ["1", "2", "3"]) {
      #expect(setAside.contains(["1", "2", "3"]), "\(kept) in its place")
    }
    let told = a.events.compactMap { event -> String? in
      if case .conflict(_, let conflict) = event { conflict.file } else { nil }
    }
    #expect(told.sorted() == disk.state.withLock { $0.conflicts.keys.sorted() }, "each that is set aside is told, once")
  }

  /// Contents of one change, or an empty snapshot.
  private static func page(from position: ReplicaPosition, base: SequenceNumber) -> ReplicaPage {
    guard case .batches(let after) = position, after < 9 else { return ReplicaPage(next: .batches(after: base)) }
    let change = ChangeID(high: 7, low: 7)
    let body = ChangeBatch(after: after, [ChangeBatch.Transaction(change, [.removeAll])]).encoded { $0 }
    return ReplicaPage(batches: [ReplicaBatch(after: after, upto: after + 1, change: change, body: body)])
  }

  @Test func aSnapshotThatDoesNotEndWhereItIsSaidToEndReplacesNothing() throws {
    try write()
    let b = try fleet.broker(on: other)
    b.open()
    _ = b.write("4")
    _ = b.close()
    let migration = b.call { store in await store.migrate(ReplicaFleet.application, milliseconds: 1_000) }
    fleet.pass(1_000)
    try #require(migration.value).get()
    let (a, replica) = try tampered()
    replica.changePages { page in
      var page = page
      page.parts = page.parts.map { part in
        var part = part
        part.bytes = ChangeBatch(after: 0, []).encoded { $0 }
        return part
      }
      return page
    }
    #expect(a.open() == nil)
    #expect(disk.texts == ["1", "2", "3"])
    #expect(a.events.isEmpty)
    replica.changePages { $0 }
    #expect(a.open()?.sequence == 5)
  }

  // MARK: What has no end

  /// Pages that go on and on.
  enum Endless: CaseIterable, Sendable {
    case samePosition, parts, partsOfOne, longParts, batches, emptyBatches

    var isSnapshot: Bool { self != .batches && self != .emptyBatches }

    func page(from position: ReplicaPosition) -> ReplicaPage {
      let change = ChangeID(high: 7, low: 7)
      func part(_ number: Int, of count: Int, bytes: Int = 1) -> SnapshotPart {
        let tip = ReplicaTip(sequence: 1 << 40, change: change)
        return SnapshotPart(tip: tip, reader: 1, number: number, count: count, bytes: Array(repeating: 0, count: bytes))
      }
      switch (self, position) {
      case (.samePosition, _): return ReplicaPage(next: position)
      case (.emptyBatches, .batches(let after)): return ReplicaPage(next: .batches(after: after + 1))
      case (.batches, .batches(let after)):
        let body = ChangeBatch(after: after, [ChangeBatch.Transaction(change, [.removeAll])]).encoded { $0 }
        let batch = ReplicaBatch(after: after, upto: after + 1, change: change, body: body)
        return ReplicaPage(batches: [batch], next: .batches(after: after + 1))
      case (.parts, .snapshot(let number)):
        return ReplicaPage(parts: [part(number, of: number + 2)], next: .snapshot(part: number + 1))
      case (.longParts, .snapshot(let number)):
        return ReplicaPage(parts: [part(number, of: 1 << 16, bytes: 1 << 20)], next: .snapshot(part: number + 1))
      case (_, .snapshot): return ReplicaPage(parts: [part(0, of: 2)], next: .snapshot(part: 0))
      case (_, .batches): return ReplicaPage(next: position)
      }
    }
  }

  private static let end = ReplicaTip(sequence: 1 << 40, change: ChangeID(high: 7, low: 7))

  @Test(arguments: Endless.allCases.filter(\.isSnapshot))
  func aSnapshotWithoutAnEndIsRefusedAndLeavesNothing(_ endless: Endless) throws {
    let (a, replica) = try tampered()
    replica.changeGrants { grant in
      var grant = grant
      (grant.tip, grant.base) = (Self.end, Self.end.sequence)
      return grant
    }
    replica.load(endless.page)
    #expect(a.open() == nil)
    #expect(replica.loads <= 17, "what an archive of 16 MiB has, in pages of 1 MiB")
    #expect(disk.state.withLock { !$0.isReceiving })
  }

  /// Each of the batches is one that there might be.
  @Test(arguments: Endless.allCases.filter { !$0.isSnapshot })
  func batchesWithoutAnEndAreNotFetchedWhenNobodyWaitsForThem(_ endless: Endless) throws {
    try write()
    let b = try fleet.broker(on: other)
    b.open()
    _ = b.close()
    let (a, replica) = try tampered()
    replica.changeGrants { grant in
      var grant = grant
      grant.tip = Self.end
      return grant
    }
    let store = a.store
    let opening = fleet.loop.call { () async throws(ArchiveError) in
      try await store.open(ReplicaFleet.application, for: .writing).sequence
    }
    replica.load { position in
      if replica.loads == 50 { opening.cancel() }
      return endless.page(from: position)
    }
    fleet.pass()
    #expect(opening.failure == (endless == .batches ? .definite : .refused))
    #expect(replica.loads == (endless == .batches ? 50 : 1))
  }

  @Test func aBrokerThatEndsFetchesNothingMore() throws {
    let (a, replica) = try tampered()
    replica.changeGrants { grant in
      var grant = grant
      grant.tip = ReplicaTip(sequence: 1 << 40, change: ChangeID(high: 7, low: 7))
      return grant
    }
    let store = a.store
    replica.load { position in
      if case .snapshot = position { return ReplicaPage(next: .batches(after: 0)) }
      store.drain()
      return Endless.batches.page(from: position)
    }
    #expect(a.open() == nil)
    #expect(replica.loads == 2)
  }

  @Test func aListWithoutAnEndIsRefusedAtTheNumberOfArchivesThatAUserMayHave() throws {
    let (a, replica) = try tampered()
    replica.list { _, after in
      let first = (after.flatMap { Int($0) } ?? 1_000_000) + 1
      let archives = (first..<first + 100).map { number in
        ReplicaSummary(application: "\(number)", holder: nil, sequence: 0, summary: [])
      }
      return ReplicaListing(archives: archives, hasMore: true)
    }
    let others = a.call { store in await store.others(within: nil).archives.count }
    #expect(others.value == 0)
    #expect(replica.listings == 10)
  }

  @Test func numbersOfAListThatNoArchiveHasAreNotBelieved() throws {
    let (a, replica) = try tampered()
    let numbers = ["0", "-1", "9223372036854775807", "9223372036854775808", "9007199254740992", "9007199254740993", ""]
    for (number, place) in numbers.flatMap({ number in (0..<6).map { (number, $0) } }) {
      var words = ["1", "2", "3", "4", "5", "6"]
      words[place] = number
      let lines = [
        "restorationd summary 1", words[..<4].joined(separator: "\t"), words[4...].joined(separator: "\t") + "\t{}",
      ]
      let text = Array(lines.map { $0 + "\n" }.joined().utf8)
      replica.list { _, _ in
        let summary = ReplicaSummary(application: "a", holder: nil, sequence: 0, summary: text)
        return ReplicaListing(archives: [summary])
      }
      let others = a.call { store in await store.others(within: nil).archives }
      let other = try #require(others.value?.first)
      let all = [Int64(other.objects), other.generation, Int64(other.bytes), other.modified, other.run?.run ?? 0]
      for value in all { #expect(value >= 0 && value <= 1 << 53) }
    }
  }
}
