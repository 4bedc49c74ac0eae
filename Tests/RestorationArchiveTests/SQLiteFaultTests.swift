// SPDX-License-Identifier: Apache-2.0

internal import CSQLite
internal import Glibc
internal import RestorationArchive
internal import TestSupport
internal import Testing

/// Disks that fail or write wrongly.
@Suite(.passesTurnstile) struct SQLiteFaultTests {
  private static func changes(_ round: Int) -> [ArchiveChange] {
    (1...10).flatMap { [.node($0, "n\($0)"), .state($0, "\(round) " + String(repeating: "x", count: 300))] }
  }

  @Test(
    arguments: [
      FaultingDisk.Fault(code: SQLITE_IOERR | 4 << 8, operations: [.sync]),
      FaultingDisk.Fault(code: SQLITE_IOERR | 4 << 8, systemError: ENOSPC, operations: [.sync]),
      FaultingDisk.Fault(code: SQLITE_IOERR | 3 << 8, operations: [.write]),
    ]
  )
  func aFailedCommitIsIndeterminateForEver(fault: FaultingDisk.Fault) async throws {
    let fixture = try ArchiveFixture(.sqlite)
    let disk = FaultingDisk(fixture.directory.path)
    var author = try await fixture.author("x")
    try await author.apply(Self.changes(1))
    disk.fail(fault)
    let lease = author.lease
    let sequence = author.sequence
    let store = fixture.store
    for healed in [false, true] {
      if healed { disk.heal() }
      let commit = await failure { () async throws(ArchiveError) in
        _ = try await store.apply(Self.changes(2), lease: lease, expecting: sequence, changeID: .random())
      }
      #expect(commit == .indeterminate)
    }
    let reading = await failure { () async throws(ArchiveError) in
      _ = try await store.read([1], at: .head, lease: lease)
    }
    #expect(reading == .indeterminate)
    let upkeep = await failure { () async throws(ArchiveError) in _ = try await store.maintain(lease, holding: []) }
    #expect(upkeep == .indeterminate)
    await store.close(lease)
    author = try await fixture.author("x")
    #expect(author.opening.damage == nil)
    #expect(author.sequence == 20 || author.sequence == 40)
    #expect(try await author.text(of: 10)?.hasPrefix("\(author.sequence / 20) ") == true)
  }

  @Test(arguments: ["x.sqlite", "x.sqlite-wal"])
  func whatIsWrittenToFilesThatWereRemovedIsRefused(name: String) async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author("x")
    try await author.apply(Self.changes(1))
    try #require(unlink("\(fixture.directory.path)/\(name)") == 0)
    // Another's file, which closing must not remove.
    let foreign = "\(fixture.directory.path)/x.sqlite-wal"
    if name == "x.sqlite" {
      try #require(unlink(foreign) == 0)
      try Files.write(Array("mine".utf8), to: foreign)
    }
    let (lease, sequence, store) = (author.lease, author.sequence, fixture.store)
    let commit = await failure { () async throws(ArchiveError) in
      _ = try await store.apply(Self.changes(2), lease: lease, expecting: sequence, changeID: .random())
    }
    #expect(commit == .definite)
    await store.close(lease)
    if name == "x.sqlite" { #expect(try Files.text(foreign) == "mine") }
  }

  @Test(
    arguments: [
      FaultingDisk.Fault(code: SQLITE_FULL, operations: [.write]),
      FaultingDisk.Fault(code: SQLITE_IOERR | 3 << 8, systemError: EDQUOT, operations: [.write]),
      FaultingDisk.Fault(code: SQLITE_IOERR | 3 << 8, systemError: ENOSPC, operations: [.write], after: 3),
    ]
  )
  func aFullDiskRefusesWritesAndServesReads(fault: FaultingDisk.Fault) async throws {
    let fixture = try ArchiveFixture(.sqlite)
    let disk = FaultingDisk(fixture.directory.path)
    var author = try await fixture.author("x")
    try await author.apply([.node(1, "a"), .state(1, "one"), .seal(1), .state(1, "early", early: true)])
    disk.fail(fault)
    for _ in 0..<2 {
      let kind = await failure { [author] () async throws(ArchiveError) in
        var author = author
        try await author.apply(Self.changes(2) + [.settle([1]), .dropGeneration(1), .removeAll])
      }
      #expect(kind == .full)
      #expect(try await author.text(of: 1) == "early")
      #expect(try await author.text(of: 1, at: .beforeClaim) == "one")
      #expect(try await author.scan().count == 1)
    }
    #expect(disk.heal())
    try await author.apply(.state(1, "two"))
    #expect(author.sequence == 5)
    #expect(author.reachableBytes == 1 + 6)
    #expect(try await author.text(of: 1) == "two")
    await author.store.close(author.lease)
    author = try await fixture.author("x")
    #expect(author.opening.reachableBytes == 1 + 6)
    #expect(author.opening.generations.count == 1)
  }

  /// Fails the first, second, third … call of a piece of work, until the work is done before it would fail.
  @Test(arguments: [SQLITE_FULL, SQLITE_IOERR | 4 << 8], [true, false])
  func noFailureAnywhereLosesOrTearsACommit(code: Int32, isLasting: Bool) async throws {
    let upkeep = ArchiveUpkeep(deadBytesMax: 5000, logBytesMax: 30_000, freeBytesMax: 0, ballastBytes: 0)
    for count in 0... {
      let fixture = try ArchiveFixture(.sqlite, upkeep: upkeep)
      let disk = FaultingDisk(fixture.directory.path)
      var author = try await fixture.author("x")
      try await author.apply(Self.changes(1))
      disk.fail(
        FaultingDisk.Fault(
          code: code,
          operations: code == SQLITE_FULL ? [.write] : [.write, .sync, .truncate],
          after: count,
          isLasting: isLasting
        )
      )
      var acknowledged = 1
      var isCertain = true
      do throws(ArchiveError) {
        for round in 2...3 {
          isCertain = false
          try await author.apply(Self.changes(round))
          isCertain = true
          acknowledged = round
          while try await author.store.maintain(author.lease, holding: []) {}
        }
      } catch {
        #expect(error.kind == (code == SQLITE_FULL ? .full : .indeterminate))
        isCertain = isCertain || error.kind == .full
      }
      await author.store.close(author.lease)
      let hasFailed = disk.heal()
      author = try await fixture.author("x")
      #expect(author.opening.damage == nil)
      let round = Int(author.sequence) / 20
      #expect(isCertain ? round == acknowledged : round == acknowledged || round == acknowledged + 1, "call \(count)")
      for node in [1, 10] as [NodeID] { #expect(try await author.text(of: node)?.hasPrefix("\(round) ") == true) }
      if !hasFailed { return }
    }
  }

  @Test func aDiskThatFailsWhileAnArchiveIsMadeLeavesNoHalfOne() async throws {
    for count in 0... {
      let fixture = try ArchiveFixture(.sqlite)
      let disk = FaultingDisk(fixture.directory.path)
      disk.fail(FaultingDisk.Fault(code: SQLITE_IOERR | 4 << 8, operations: [.write, .sync, .truncate], after: count))
      let kind = await failure { () async throws(ArchiveError) in _ = try await fixture.store.open("x") }
      let hasFailed = disk.heal()
      var author = try await fixture.author("x")
      #expect(author.opening.damage == nil, "call \(count)")
      try await author.apply(.node(1, "a"))
      guard hasFailed else {
        #expect(kind == nil)
        return
      }
      #expect(kind == .unreadable || kind == nil)
    }
  }

  @Test func aDiskThatFailsDuringRecoveryLosesNothing() async throws {
    for count in 0... {
      let fixture = try ArchiveFixture(.sqlite)
      var author = try await fixture.author("x")
      try await author.apply(.node(1, "a"), .state(1, "good"))
      try await author.store.backUp(author.lease, replacingFormer: false)
      await author.store.close(author.lease)
      let garbage = Array("garbage".utf8)
      try fixture.directory.write(garbage, to: "x.sqlite")
      let disk = FaultingDisk(fixture.directory.path)
      disk.fail(FaultingDisk.Fault(code: SQLITE_IOERR | 4 << 8, operations: [.write, .sync, .truncate], after: count))
      _ = await failure { () async throws(ArchiveError) in _ = try await fixture.store.open("x") }
      let hasFailed = disk.heal()
      author = try await fixture.author("x")
      #expect(try await author.text(of: 1) == "good", "call \(count)")
      #expect(try fixture.directory.read("x+damaged-1.sqlite") == garbage)
      if !hasFailed { return }
    }
  }

  @Test func aBackupThatFailsLeavesTheEarlierOne() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    // Before the archive is opened: a copy is written through the same layer as the archive.
    let disk = FaultingDisk(fixture.directory.path + "/x+newbackup")
    var author = try await fixture.author("x")
    try await author.apply(.node(1, "a"))
    try await author.store.backUp(author.lease, replacingFormer: false)
    let backup = try fixture.directory.read("x+backup.sqlite")
    try await author.apply(Self.changes(1))
    disk.fail(FaultingDisk.Fault(code: SQLITE_FULL, operations: [.write]))
    let kind = await failure { [author] () async throws(ArchiveError) in
      try await author.store.backUp(author.lease, replacingFormer: false)
    }
    #expect(kind == .full)
    disk.heal()
    #expect(try fixture.directory.read("x+backup.sqlite") == backup)
    #expect(!fixture.directory.names.contains { $0.contains("newbackup") })
    try await author.apply(Self.changes(2))
    try await author.store.backUp(author.lease, replacingFormer: false)
    #expect(try fixture.directory.read("x+backup.sqlite") != backup)
  }
}
