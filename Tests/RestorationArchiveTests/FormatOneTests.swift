// SPDX-License-Identifier: Apache-2.0

internal import CSQLite
internal import Glibc
internal import RestorationArchive
internal import TestSupport
internal import Testing

/// Archives of format 1 are migrated when they are opened, and nothing of them is lost by it (R32).
@Suite(.passesTurnstile) struct FormatOneTests {
  private static let main = "x.sqlite"
  private static let former = "x+format1.sqlite"

  /// The same archive, written in the present format.
  private static func expected(_ kind: FormatOne) async throws -> ArchiveContents {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author("x")
    for changes in FormatOne.transactions.dropLast(kind == .damaged ? 1 : 0) { try await author.apply(changes) }
    await author.store.close(author.lease)
    author = try await fixture.author("x")
    var contents = try await ArchiveContents(of: author)
    if kind == .first { contents.withheld = [] }
    await author.store.close(author.lease)
    return contents
  }

  private static func format(_ fixture: ArchiveFixture, _ name: String) throws -> [String] {
    let format = "SELECT format, (SELECT user_version FROM pragma_user_version) FROM archive"
    return try runSQL(format, in: fixture.directory.file(name))
  }

  @Test(arguments: FormatOne.allCases)
  func anArchiveOfFormatOneReadsAsBefore(kind: FormatOne) async throws {
    let fixture = try kind.fixture()
    let expected = try await Self.expected(kind)
    var author = try await fixture.author("x")
    #expect(author.opening.damage?.contains("it ends before sequence 99") == (kind == .damaged ? true : nil))
    #expect(author.opening.hasFormer)
    for _ in 1...2 {
      #expect(try await ArchiveContents(of: author) == expected)
      await author.store.close(author.lease)
      #expect(try Self.format(fixture, Self.main) == ["2|2"])
      #expect(try Self.format(fixture, Self.former) == ["1|1"])
      #expect(fixture.directory.names == [Self.former, Self.main])
      author = try await fixture.author("x")
    }
    try await author.apply(.node(7, "New", parent: 1), .context(3, text: "{}"))
    await author.store.close(author.lease)
    #expect(try await fixture.author("x").opening.nodes.contains { $0.node.component == "New" })
  }

  @Test func theKeptCopyIsAnArchiveOfItsOwn() async throws {
    let fixture = try FormatOne.killed.fixture()
    let author = try await fixture.author("x")
    let copy = try ArchiveFixture(.sqlite)
    try copy.directory.write(try fixture.directory.read(Self.former), to: Self.main)
    let opened = try await copy.author("x")
    #expect(opened.opening.damage == nil && opened.opening.archive != author.opening.archive)
    #expect(try await ArchiveContents(of: opened) == Self.expected(.killed))
    await author.store.close(author.lease)
  }

  @Test func theCopyGoesWhenABackupTakesItsPlaceOrWithTheArchive() async throws {
    let fixture = try FormatOne.closed.fixture()
    var author = try await fixture.author("x")
    try await author.store.backUp(author.lease, replacingFormer: false)
    #expect(fixture.directory.names.contains(Self.former))
    try await author.store.backUp(author.lease, replacingFormer: true)
    #expect(!fixture.directory.names.contains(Self.former))
    await author.store.close(author.lease)
    author = try await fixture.author("x")
    #expect(!author.opening.hasFormer)
    await author.store.close(author.lease)
    let other = try FormatOne.closed.fixture()
    await other.store.close(try await other.author("x").lease)
    try await other.store.remove("x", damaged: false)
    #expect(other.directory.names.isEmpty)
  }

  @Test func aBackupOfFormatOneIsMigratedToo() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    let backup = try #require(try FormatOne.closed.files[Self.main])
    try fixture.directory.write(backup, to: "x+backup.sqlite")
    try fixture.directory.write(Array("garbage".utf8), to: Self.main)
    let author = try await fixture.author("x")
    #expect(author.opening.damage?.contains("the last good backup replaces it") == true)
    #expect(try await ArchiveContents(of: author) == Self.expected(.closed))
    await author.store.close(author.lease)
    #expect(try Self.format(fixture, Self.main) == ["2|2"])
    #expect(try fixture.directory.read("x+backup.sqlite") == backup)
  }

  @Test func withoutABackupTheCopyTakesThePlaceOfADamagedArchive() async throws {
    let fixture = try FormatOne.closed.fixture()
    await fixture.store.close(try await fixture.author("x").lease)
    let former = try fixture.directory.read(Self.former)
    try fixture.directory.write(Array("garbage".utf8), to: Self.main)
    let author = try await fixture.author("x")
    #expect(author.opening.damage?.contains("the last good copy in format 1 replaces it") == true)
    #expect(try await ArchiveContents(of: author) == Self.expected(.closed))
    #expect(try fixture.directory.read(Self.former) == former)
    await author.store.close(author.lease)
  }

  /// Fails the first, third, fifth … call to the disk, in the long form each, until the migration is done before.
  @Test(arguments: [SQLITE_FULL, SQLITE_IOERR | 4 << 8], [true, false])
  func aDiskThatFailsDuringTheMigrationLosesNothing(code: Int32, isLasting: Bool) async throws {
    let expected = try await Self.expected(.killed)
    for count in stride(from: 0, to: .max, by: Environment.isLong ? 1 : 2) {
      let fixture = try FormatOne.killed.fixture()
      let disk = FaultingDisk(fixture.directory.path)
      let operations: Set<FaultingDisk.Operation> = code == SQLITE_FULL ? [.write] : [.write, .sync, .truncate]
      disk.fail(FaultingDisk.Fault(code: code, operations: operations, after: count, isLasting: isLasting))
      let kind = await failure { () async throws(ArchiveError) in
        await fixture.store.close(try await fixture.store.open("x").lease)
      }
      let hasFailed = disk.heal()
      #expect(kind == nil || kind == .full || kind == .unreadable, "call \(count)")
      try await Self.expect(expected, in: fixture, "call \(count)")
      if !hasFailed {
        #expect(count > 20)
        print("each of \(count) calls to the disk during a migration may fail: nothing is lost")
        return
      }
    }
  }

  @Test func anErrorOfReadingDuringTheMigrationLosesNothing() async throws {
    let expected = try await Self.expected(.killed)
    for count in stride(from: 0, to: .max, by: Environment.isLong ? 1 : 4) {
      let fixture = try FormatOne.killed.fixture { FaultingReads($0) }
      let reads = FaultingReads(fixture.directory.path)
      reads.fail(FaultingReads.Fault(error: [EIO, ERANGE, ENOSPC][count % 3], after: count, isLasting: false))
      _ = await failure { () async throws(ArchiveError) in
        await fixture.store.close(try await fixture.store.open("x").lease)
      }
      let hasFailed = reads.heal()
      try await Self.expect(expected, in: fixture, "read \(count)")
      if !hasFailed {
        #expect(count > 20)
        print("each of \(count) reads during a migration may fail: nothing is lost")
        return
      }
    }
  }

  /// The archive is there, whatever has happened to it, and so is a whole copy of it in format 1.
  private static func expect(
    _ expected: ArchiveContents,
    in fixture: ArchiveFixture,
    _ comment: Comment
  ) async throws {
    let author = try await fixture.author("x")
    #expect(author.opening.damage == nil, comment)
    #expect(try await ArchiveContents(of: author) == expected, comment)
    await author.store.close(author.lease)
    #expect(fixture.directory.names == [former, main], comment)
    #expect(try format(fixture, main) == ["2|2"], comment)
    #expect(try format(fixture, former) == ["1|1"], comment)
    let copy = try ArchiveFixture(.sqlite)
    try copy.directory.write(try fixture.directory.read(former), to: main)
    let opened = try await copy.author("x")
    #expect(opened.opening.damage == nil, comment)
    #expect(try await ArchiveContents(of: opened) == expected, comment)
    await opened.store.close(opened.lease)
  }
}
