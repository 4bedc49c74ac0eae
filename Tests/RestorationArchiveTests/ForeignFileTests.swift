// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RestorationArchive
internal import TestSupport
internal import Testing

/// Entries in the place of an archive's files that no store made, and numbers that no archive counts up to.
@Suite struct ForeignFileTests {
  enum Kind: CaseIterable, Sendable {
    case fifo, link, folder

    func make(_ name: String, in directory: ArchiveFolder) throws {
      let path = directory.file(name)
      switch self {
      case .fifo: #expect(mkfifo(path, 0o600) == 0)
      case .link:
        try directory.write([1], to: "elsewhere")
        directory.link("elsewhere", from: name)
      case .folder: #expect(mkdir(path, 0o700) == 0)
      }
    }
  }

  /// Neither opening nor listing waits for the other end of a FIFO, follows a link or removes anything.
  @Test(arguments: Kind.allCases, ["x.sqlite", "x.sqlite-wal", "x.sqlite-journal", "x+mark"])
  func whatIsNoRegularFileIsRefusedByName(kind: Kind, name: String) async throws {
    var fixture = try ArchiveFixture(.sqlite)
    for application in name == "x.sqlite" ? ["y"] : ["x", "y"] {
      var author = try await fixture.author(application)
      try await author.apply(.node(1, "a"))
      try await fixture.restart(author)
    }
    try kind.make(name, in: fixture.directory)
    let names = fixture.directory.names
    let store = fixture.store
    let error = await #expect(throws: ArchiveError.self) { _ = try await store.open("x") }
    #expect(error?.kind == .unreadable)
    #expect(error?.message.contains(fixture.directory.file(name)) == true)
    let list = try await fixture.store.list()
    #expect(list.map(\.application) == ["x", "y"])
    guard case .unreadable(let text) = list[0].state else {
      Issue.record("\(list[0].state)")
      return
    }
    #expect(text.contains(name))
    #expect(list[1].state == .available)
    #expect(fixture.directory.names == names)
    if kind == .link { #expect(try fixture.directory.read("elsewhere") == [1]) }
  }

  /// The directory is moved elsewhere, and a link in its place leads there: the next broker would refuse it.
  @Test(arguments: [false, true]) func aLinkInThePlaceOfTheDirectoryIsNotFollowed(isParked: Bool) async throws {
    let parent = try ScratchDirectory()
    defer { parent.remove() }
    let path = parent.file("archives")
    let store = try SQLiteArchiveStore(directory: path, quota: ArchiveQuota(openArchivesMax: 1))
    for application in ["x", "y"] { _ = try await store.open(application, for: .writing) }
    if !isParked { for lease in try await [store.open("x"), store.open("y")] { await store.close(lease.lease) } }
    try Files.rename(path, to: parent.file("elsewhere"))
    #expect(symlink("elsewhere", path) == 0)
    for application in ["x", "z"] {
      let error = await #expect(throws: ArchiveError.self) { _ = try await store.open(application, for: .writing) }
      #expect(error?.kind == .unreadable && error?.message.contains("\(path) is no longer a directory") == true)
    }
    #expect(!Files.list(parent.file("elsewhere")).contains { $0.hasPrefix("z") })
    await #expect(throws: ArchiveError.self) { _ = try await store.list() }
    Files.remove(path)
    try Files.rename(parent.file("elsewhere"), to: path)
    _ = try await store.open("x", for: .writing)
  }

  /// What stands in the place of the backup does not hinder a sound archive; a damaged one is left as it is.
  @Test(arguments: Kind.allCases)
  func whatStandsInThePlaceOfABackupIsNotTakenForOne(kind: Kind) async throws {
    let fixture = try ArchiveFixture(.sqlite)
    let name = "x+backup.sqlite"
    for _ in 1...2 {
      var author = try await fixture.author("x")
      #expect(author.opening.damage == nil)
      try await author.apply(.node(1, "a"))
      await author.store.close(author.lease)
      if !fixture.directory.names.contains(name) { try kind.make(name, in: fixture.directory) }
    }
    #expect(try await fixture.store.list().map(\.state) == [.available])
    try fixture.directory.write(Array("garbage".utf8), to: "x.sqlite")
    let names = fixture.directory.names
    let store = fixture.store
    let error = await #expect(throws: ArchiveError.self) { _ = try await store.open("x") }
    #expect(error?.kind == .unreadable)
    #expect(error?.message.contains(fixture.directory.file(name)) == true)
    #expect(fixture.directory.names == names)
    #expect(try fixture.directory.read("x.sqlite") == Array("garbage".utf8))
  }

  /// Notes without content, which the store only looks for and removes: what they are a link to stays as it is.
  @Test(arguments: Kind.allCases, ["x+removed", "+ballast"])
  func whatStandsInThePlaceOfANoteIsNotOpened(kind: Kind, name: String) async throws {
    let upkeep = ArchiveUpkeep(ballastBytes: 4096)
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author("x")
    try await author.apply(.node(1, "a"))
    await author.store.close(author.lease)
    try kind.make(name, in: fixture.directory)
    let store = try SQLiteArchiveStore(directory: fixture.directory.path, upkeep: upkeep)
    #expect(try await store.list().map(\.state) == [.available])
    var message = ""
    do throws(ArchiveError) {
      let opening = try await store.open("x")
      #expect(opening.sequence == 1)
      while try await store.maintain(opening.lease, holding: []) {}
      await store.close(opening.lease)
    } catch {
      message = error.message
    }
    // A folder cannot be removed like a file.
    #expect(message.contains(fixture.directory.file(name)) == (kind == .folder && name == "x+removed"))
    #expect(fixture.directory.names.contains(name) == (kind == .folder || name == "+ballast"))
    if kind == .link { #expect(try fixture.directory.read("elsewhere") == [1]) }
  }

  /// A rollback journal beside an archive is never its own: SQLite would play it back.
  @Test func aRollbackJournalIsNotPlayedBack() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author("x")
    try await author.apply(.node(1, "a"))
    await author.store.close(author.lease)
    let archive = try fixture.directory.read("x.sqlite")
    try fixture.directory.write([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7], to: "x.sqlite-journal")
    #expect(await failure { () async throws(ArchiveError) in _ = try await fixture.store.open("x") } == .unreadable)
    #expect(try fixture.directory.read("x.sqlite") == archive)
    fixture.directory.remove("x.sqlite-journal")
    #expect(try await fixture.author("x").sequence == 1)
  }

  @Test(arguments: ["9223372036854775807", "99999999999999999999", "18446744073709551615", "-1", ""])
  func aDamagedFileWithAnImpossibleNumberIsPassedOver(number: String) async throws {
    let fixture = try ArchiveFixture(.sqlite)
    let name = "x+damaged-\(number).sqlite"
    try fixture.directory.write([7], to: name)
    try fixture.directory.write(Array("garbage".utf8), to: "x.sqlite")
    #expect(try await fixture.author("x").opening.damage != nil)
    #expect(try fixture.directory.read(name) == [7])
    #expect(try fixture.directory.read("x+damaged-1.sqlite") == Array("garbage".utf8))
  }

  /// If a page of the file is older than the others, or its numbers are out of range, later rows would collide with
  /// existing ones.
  @Test(
    arguments: [
      "UPDATE tip SET sequence = 3", "UPDATE tip SET lastNode = 1", "UPDATE tip SET lastContext = 0",
      "UPDATE tip SET lastSession = 0", "UPDATE tip SET lastGeneration = 0", "UPDATE tip SET sequence = -1",
      "UPDATE tip SET lastNode = 9223372036854775807", "UPDATE tip SET lastSession = 9223372036854775807",
      "UPDATE tip SET lastContext = -9223372036854775808", "UPDATE state SET sequence = 9223372036854775807",
      "UPDATE node SET sequence = -5 WHERE sequence = 1", "UPDATE state SET node = 77", "UPDATE claim SET node = -1",
      "UPDATE session SET session = 9223372036854775807", "UPDATE generation SET sequence = 500",
      "UPDATE generation SET generation = 9", "UPDATE context SET context = -3", "INSERT INTO early VALUES (4000)",
      "INSERT INTO emptied VALUES (9223372036854775807)", "DELETE FROM tip",
    ]
  )
  func aTipThatDoesNotFitTheTablesIsDamage(change: String) async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author("x")
    try await author.apply(.node(1, "a"), .node(2, "b"), .context(1, text: "{}"), .state(2, "one"), .seal(1))
    try await author.apply(.session(SessionRecord(session: 1, token: "t", facts: "{}")))
    try await author.apply(.claim(ClaimRecord(node: 2, session: 1, handle: 5)))
    await author.store.close(author.lease)
    try runSQL(change, in: fixture.directory.file("x.sqlite"))
    let changed = try fixture.directory.read("x.sqlite")
    author = try await fixture.author("x")
    #expect(author.opening.damage?.contains("x+damaged-1.sqlite") == true)
    #expect(try fixture.directory.read("x+damaged-1.sqlite") == changed)
    try await author.apply(.node(1, "a"), .state(1, "two"))
    #expect(try await author.text(of: 1) == "two")
  }

  /// Numbers that are only reported or compared are clamped to their range, and their rows are used.
  @Test(
    arguments: [
      "UPDATE session SET ended = -9223372036854775808, restorationsAtEnd = 9223372036854775807",
      "UPDATE claim SET handle = -9223372036854775808, released = 9223372036854775807, restorationsAtRelease = -1",
      "UPDATE run SET run = 9223372036854775807, restorations = -9223372036854775808",
      "UPDATE generation SET committed = -9223372036854775808, objects = 9223372036854775807, bytes = -1",
      "UPDATE tip SET written = 9223372036854775807",
    ]
  )
  func numbersOutOfRangeAreBroughtIntoIt(change: String) async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author("x")
    try await author.apply(.node(1, "a"), .state(1, "one"), .seal(1))
    try await author.apply(.session(SessionRecord(session: 1, token: "t", facts: "{}")))
    try await author.apply(.claim(ClaimRecord(node: 1, session: 1, handle: 5)))
    try await author.apply(.run(RunRecord(run: 1, restorations: 1, facts: "{}")))
    await author.store.close(author.lease)
    try runSQL(change, in: fixture.directory.file("x.sqlite"))
    author = try await fixture.author("x")
    #expect(author.opening.damage == nil)
    let range = 0...Int64(1) << 53
    for session in author.opening.sessions { #expect(range.contains(session.ended)) }
    for claim in author.opening.claims { #expect(range.contains(claim.handle) && range.contains(claim.released)) }
    #expect(author.opening.run.map { range.contains($0.run) && range.contains($0.restorations) } == true)
    for generation in author.opening.generations { #expect(range.contains(generation.record.committed)) }
    #expect(try await author.text(of: 1) == "one")
  }
}
