// SPDX-License-Identifier: Apache-2.0

internal import CSQLite
internal import Glibc
internal import RestorationArchive
internal import TestSupport
internal import Testing

/// How long the file of a log is: in a burst it is made longer in advance, and an idle archive has an empty one.
@Suite(.passesTurnstile) struct LogFileTests {
  /// A log is lengthened by 50,000 bytes at a time.
  private static let upkeep = ArchiveUpkeep(logBytesMax: 400_000, ballastBytes: 0)

  private static func size(_ fixture: ArchiveFixture) -> Int { Files.size(fixture.directory.file("x.sqlite-wal")) }

  /// Whether the file is longer than what was logged.
  private static func endsInZeros(_ fixture: ArchiveFixture) throws -> Bool {
    try fixture.directory.read("x.sqlite-wal").suffix(24).allSatisfy { $0 == 0 }
  }

  /// Commits one state; returns how long the file is then.
  private static func write(_ author: inout ArchiveAuthor, _ text: String, in fixture: ArchiveFixture) async throws
    -> Int
  {
    try await author.apply(.state(1, text))
    return size(fixture)
  }

  @Test func aBurstWritesOverWhatIsThere() async throws {
    let fixture = try ArchiveFixture(.sqlite, upkeep: Self.upkeep)
    var author = try await fixture.author("x")
    var sizes: [Int] = []
    for number in 1...300 {
      sizes.append(try await Self.write(&author, "\(number)" + String(repeating: "x", count: 900), in: fixture))
    }
    let changes = zip(sizes, sizes.dropFirst()).map { $1 - $0 }
    // Each step follows at most one commit that went beyond the one before.
    #expect(changes.count { $0 > 45_000 } >= 6)
    #expect(changes.drop { $0 <= 45_000 }.count { $0 != 0 } < 18)
    #expect(Set(sizes.suffix(200)).count == 1)
    #expect((400_000...500_032).contains(sizes[299]))
    #expect(try await author.text(of: 1)?.hasPrefix("300x") == true)
    await author.store.close(author.lease)
    #expect(fixture.directory.names == ["x.sqlite"])
  }

  @Test func anIdleArchiveHasAnEmptyLogAndOneThatIsSeldomUsedGetsNoZeros() async throws {
    let fixture = try ArchiveFixture(.sqlite, upkeep: Self.upkeep)
    var author = try await fixture.author("x")
    var size = 0
    repeat {
      size = try await Self.write(&author, String(repeating: "x", count: 9_000), in: fixture)
    } while try size < 300_000 && !Self.endsInZeros(fixture)
    #expect(try Self.endsInZeros(fixture))
    for number in 1...20 {
      try await author.maintain()
      #expect(Self.size(fixture) == 0)
      for _ in 1...3 { #expect(try await Self.write(&author, "\(number)", in: fixture) < 50_000) }
      #expect(try !Self.endsInZeros(fixture))
    }
  }

  @Test func aLargeCommitAloneGetsNoZeros() async throws {
    let fixture = try ArchiveFixture(.sqlite, upkeep: Self.upkeep)
    var author = try await fixture.author("x")
    try await author.apply((1...50).map { .state($0, String(repeating: "x", count: 3_000)) })
    #expect(Self.size(fixture) > 150_000)
    #expect(try !Self.endsInZeros(fixture))
  }

  @Test func whatWasDeletedIsInNoFileWhenTheArchiveIsIdle() async throws {
    let fixture = try ArchiveFixture(.sqlite, upkeep: Self.upkeep)
    var author = try await fixture.author("x")
    let secret = "what was deleted for good"
    for number in 1...60 {
      _ = try await Self.write(&author, "\(number) \(secret)" + String(repeating: "x", count: 9_000), in: fixture)
    }
    func filesWithTheSecret() throws -> [String] {
      try fixture.directory.names.filter { name in
        String(decoding: try fixture.directory.read(name), as: UTF8.self).contains(secret)
      }
    }
    #expect(try filesWithTheSecret() == ["x.sqlite", "x.sqlite-wal"])
    try await author.apply(.removeState(1))
    try await author.maintain()
    #expect(try filesWithTheSecret() == [])
  }

  @Test(
    arguments: [
      FaultingDisk.Fault(code: SQLITE_FULL, systemError: ENOSPC, operations: [.zeros]),
      FaultingDisk.Fault(code: SQLITE_IOERR | 3 << 8, systemError: EDQUOT, operations: [.zeros]),
      FaultingDisk.Fault(code: SQLITE_IOERR | 3 << 8, systemError: EIO, operations: [.zeros]),
    ]
  )
  func zerosThatCannotBeWrittenFailNoCommit(fault: FaultingDisk.Fault) async throws {
    let fixture = try ArchiveFixture(.sqlite, upkeep: Self.upkeep)
    let disk = FaultingDisk(fixture.directory.path)
    var author = try await fixture.author("x")
    disk.fail(fault)
    for number in 1...100 { try await author.apply(.state(1, "\(number)" + String(repeating: "x", count: 9_000))) }
    #expect(try !Self.endsInZeros(fixture))
    #expect(disk.heal())
    try await author.apply(.state(1, "last"))
    try await author.maintain()
    #expect(Self.size(fixture) == 0)
    #expect(try await author.text(of: 1) == "last")
  }

  @Test(.enabled(if: SmallDisk.isPossible, "only root can mount"))
  func aDiskWithLittleRoomIsLeftToCommits() async throws {
    let disk = try SmallDisk(bytes: 4_000_000)
    let fixture = try ArchiveFixture(.sqlite)
    // It would be made longer from 320,000 bytes on, to twice as much, and as much has to be left.
    let store = try SQLiteArchiveStore(
      directory: disk.path,
      upkeep: ArchiveUpkeep(logBytesMax: 2_560_000, ballastBytes: 0)
    )
    var author = ArchiveAuthor(store: store, opening: try await store.open("x"), directory: fixture.directory)
    let log = "\(disk.path)/x.sqlite-wal"
    try await author.apply(.node(1, "n"))
    try await author.maintain()
    // Others take what was free then.
    try Files.write([UInt8](repeating: 0, count: 2_700_000), to: "\(disk.path)/filling")
    for _ in 1...60 where Files.size(log) < 500_000 {
      try await author.apply(.state(1, String(repeating: "x", count: 9_000)))
    }
    #expect(Files.size(log) >= 500_000)
    #expect(try Files.read(log).suffix(24).contains { $0 != 0 })
    await store.close(author.lease)
  }

  @Test func anArchiveThatIsParkedInABurstLeavesNoLongLog() async throws {
    let fixture = try ArchiveFixture(
      .sqlite,
      quota: ArchiveQuota(openArchivesMax: 1),
      upkeep: ArchiveUpkeep(ballastBytes: 0)
    )
    var author = try await fixture.author("x")
    var size = 0
    // To the first commit after a checkpoint: what is logged is short, its file is not.
    for number in 1...120 {
      size = try await Self.write(&author, "\(number)" + String(repeating: "x", count: 40_000), in: fixture)
    }
    #expect(size > 2 << 20)
    _ = try await fixture.author("y")
    await fixture.waitForParking()
    #expect(Self.size(fixture) <= 1 << 20)
    #expect(try await author.text(of: 1)?.hasPrefix("120x") == true)
  }
}
