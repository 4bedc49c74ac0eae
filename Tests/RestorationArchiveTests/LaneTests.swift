// SPDX-License-Identifier: Apache-2.0

internal import CSQLite
internal import Glibc
internal import RestorationArchive
internal import TestSupport
internal import Testing

/// Archives of several applications at a time: none waits for another one's disk.
@Suite(.passesTurnstile, .timeLimit(.minutes(2))) struct LaneTests {
  /// All that an application may do with its archive.
  private static func use(_ name: String, of fixture: ArchiveFixture) async throws {
    var author = try await fixture.author(name)
    try await author.apply(.node(1, "x"), .state(1, name), .seal(1))
    #expect(try await author.text(of: 1) == name)
    #expect(try await author.scan().count == 1)
    try await author.maintain()
    #expect(try await author.store.verify(author.lease, from: nil).faults.isEmpty)
    #expect(try await author.store.backUp(author.lease, replacingFormer: false) > 0)
    #expect(try await author.store.list().map(\.application) == ["a", name])
    await author.store.close(author.lease)
    #expect(try await fixture.author(name).opening.damage == nil)
    await author.store.close(author.lease)
  }

  /// The author does not count it.
  private static func write(_ text: String, by author: ArchiveAuthor) async throws -> ArchiveReceipt {
    try await author.store.apply(
      [.state(1, text)],
      lease: author.lease,
      expecting: author.sequence,
      changeID: .random()
    )
  }

  @Test func whileACommitOfOneArchiveIsHeldOthersAreServed() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    let disk = FaultingDisk(fixture.directory.path + "/a.")
    var author = try await fixture.author("a")
    try await author.apply(.node(1, "x"), .state(1, "one"))
    let gate = disk.hold([.sync])
    defer { gate.open() }
    let writer = author
    let write = Task { try await Self.write("two", by: writer) }
    try gate.waitForCall()
    try await Self.use("b", of: fixture)
    gate.open()
    #expect(try await write.value.sequence == 3)
    #expect(try await author.text(of: 1) == "two")
  }

  @Test func whileOneArchiveIsBeingOpenedOthersAreServed() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author("a")
    try await author.apply(.node(1, "x"), .state(1, "one"))
    await fixture.store.close(author.lease)
    let disk = FaultingDisk(fixture.directory.path + "/a.")
    let gate = disk.hold([.read])
    defer { gate.open() }
    let opening = Task { try await fixture.author("a") }
    try gate.waitForCall()
    try await Self.use("b", of: fixture)
    gate.open()
    #expect(try await opening.value.text(of: 1) == "one")
  }

  @Test func whatIsComputedForOneArchiveHoldsOnlyThat() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author("a")
    try await author.apply(.node(1, "x"), .state(1, "one"))
    let (gate, reader) = (FaultingDisk.Gate(), author)
    defer { gate.open() }
    let computation = Task {
      await reader.store.compute(for: "a") {
        gate.pass()
        return "done"
      }
    }
    try gate.waitForCall()
    let read = Task { try await reader.text(of: 1) }
    try await Self.use("b", of: fixture)
    gate.open()
    #expect(await computation.value == "done")
    #expect(try await read.value == "one")
  }

  /// One that is parked only to make room for others keeps nobody waiting, however long that takes.
  @Test func anArchiveThatIsHeldIsParkedWhenItIsFree() async throws {
    let fixture = try ArchiveFixture(.sqlite, quota: ArchiveQuota(openArchivesMax: 1))
    let disk = FaultingDisk(fixture.directory.path + "/a.")
    var author = try await fixture.author("a")
    try await author.apply(.node(1, "x"), .state(1, "one"))
    // What the first commit leaves to do is done, so that the gate holds the next one.
    #expect(try await author.text(of: 1) == "one")
    let gate = disk.hold([.sync])
    defer { gate.open() }
    let writer = author
    let write = Task { try await Self.write("two", by: writer) }
    try gate.waitForCall()
    for name in ["b", "c", "d"] {
      var other = try await fixture.author(name)
      try await other.apply(.state(1, name))
    }
    gate.open()
    #expect(try await write.value.sequence == 3)
    await fixture.waitForParking()
    let open = Files.list("/proc/self/fd").map { Files.target("/proc/self/fd/\($0)") }
      .filter { $0.hasPrefix(fixture.directory.path + "/") && $0.hasSuffix(".sqlite") }
    #expect(open == [fixture.directory.file("d.sqlite")])
    #expect(try await author.text(of: 1) == "two")
  }

  @Test func callsForOneArchiveTakeEffectInTheirOrder() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    let disk = FaultingDisk(fixture.directory.path + "/a.")
    var author = try await fixture.author("a")
    try await author.apply(.node(1, "x"), .state(1, "one"))
    let gate = disk.hold([.sync])
    defer { gate.open() }
    let (store, lease, sequence) = (fixture.store, author.lease, author.sequence)
    // Each call is made before the next one, and none has come back.
    let write = Task.immediate {
      try await store.apply(
        ArchiveBatch([.state(1, "two")]),
        lease: lease,
        expecting: sequence,
        changeID: .random(),
        holding: []
      )
    }
    let refused = Task.immediate { try await store.remove("a", damaged: false) }
    let close = Task.immediate { await store.close(lease) }
    let open = Task.immediate { try await store.open("a", for: .reading) }
    let closed = Task.immediate { try await store.close(open.value.lease) }
    try gate.waitForCall()
    gate.open()
    #expect(try await write.value.sequence == 3)
    await #expect(throws: ArchiveError(.definite, "the archive of a is open")) { try await refused.value }
    await close.value
    #expect(try await open.value.sequence == 3)
    try await closed.value
    let remove = Task.immediate { try await store.remove("a", damaged: false) }
    let fresh = Task.immediate { try await store.open("a", for: .writing) }
    try await remove.value
    #expect(try await fresh.value.sequence == 0)
    let late = await failure { () async throws(ArchiveError) in
      _ = try await store.apply([.state(1, "three")], lease: lease, expecting: 3, changeID: .random())
    }
    #expect(late == .fenced)
  }

  /// More archives than threads, with few open files: whatever two threads did at a time would be noticed as a commit
  /// out of order, or as damage.
  @Test func manyArchivesAreWrittenAtATime() async throws {
    let fixture = try ArchiveFixture(.sqlite, quota: ArchiveQuota(openArchivesMax: 3))
    let names = (10..<30).map { "a\($0)" }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for name in names {
        group.addTask {
          var author = try await fixture.author(name)
          for round in 1...20 {
            let text = String(repeating: "\(name) \(round) ", count: 500)
            try await author.apply(.node(NodeID(round), "\(round)"), .state(NodeID(round), text), .state(1, text))
            #expect(try await author.text(of: 1) == text)
            if round % 5 == 0 { try await author.maintain() }
            if round % 7 == 0 { _ = try await author.store.list() }
            guard round == 10 else { continue }
            await author.store.close(author.lease)
            author = try await fixture.author(name)
            #expect(author.opening.damage == nil)
            #expect(author.sequence == 30)
          }
        }
      }
      try await group.waitForAll()
    }
    await fixture.waitForParking()
    let list = try await fixture.store.list()
    #expect(list.map(\.application) == names)
    #expect(list.allSatisfy { $0.state == .available && $0.objects == 20 })
    for name in names {
      let author = try await fixture.author(name)
      #expect(author.sequence == 60)
      #expect(author.opening.damage == nil)
      #expect(try await author.store.verify(author.lease, from: .structure).faults.isEmpty)
    }
  }

  /// Each archive has the next job waiting when one is done, so that none ever leaves the queue.
  @Test func filesOfFewArchivesAreOpenHoweverManyAreInUseAtATime() async throws {
    let fixture = try ArchiveFixture(.sqlite, quota: ArchiveQuota(openArchivesMax: 3))
    var authors: [ArchiveAuthor] = []
    for number in 100..<160 {
      authors.append(try await fixture.author("a\(number)"))
      try await authors[authors.count - 1].apply(.node(1, "x"), .state(1, "\(number)"))
    }
    let directory = fixture.directory.path
    let counts = try await withThrowingTaskGroup(of: Int.self) { group in
      for author in authors {
        for _ in 1...2 {
          group.addTask {
            var most = 0
            for _ in 1...20 {
              let states = try await author.store.read([1], at: .head, lease: author.lease)
              #expect(states.count == 1)
              let open = Files.list("/proc/self/fd").map { Files.target("/proc/self/fd/\($0)") }
              most = max(most, open.count { $0.hasPrefix(directory) && $0.hasSuffix(".sqlite") })
            }
            return most
          }
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    // Each thread may have opened one, and may be about to close another.
    let most = counts.max() ?? 0
    #expect((3...3 + 16).contains(most), "\(most) were open")
  }

  @Test func archivesThatAreCreatedAtATimeKeepTheQuota() async throws {
    let fixture = try ArchiveFixture(.sqlite, quota: ArchiveQuota(applicationsMax: 4))
    let store = fixture.store
    let openings = (1...12).map { number in Task { try await store.open("a\(number)", for: .writing) } }
    var refusals = 0
    for opening in openings {
      guard case .failure(let error) = await opening.result else { continue }
      guard let error = error as? ArchiveError, case .limit(name: "applicationsMax", max: 4, value: 5...) = error.kind
      else { throw error }
      refusals += 1
    }
    #expect(refusals == 8)
    #expect(try await store.list().count == 4)
  }
}
