// SPDX-License-Identifier: Apache-2.0

internal import CSQLite
internal import Glibc
internal import RestorationArchive
internal import TestSupport
internal import Testing

/// Archives whose files are closed while they are in use, because more are in use than may be open.
@Suite(.passesTurnstile) struct ParkingTests {
  private static func fixture(openArchivesMax max: Int = 1) throws -> ArchiveFixture {
    try ArchiveFixture(.sqlite, quota: ArchiveQuota(openArchivesMax: max))
  }

  /// The names of the archives that this process has open.
  private static func open(in directory: ArchiveFolder) -> [String] {
    Files.list("/proc/self/fd").map { Files.target("/proc/self/fd/\($0)") }
      .filter { $0.hasPrefix(directory.path + "/") && $0.hasSuffix(".sqlite") }
      .map { String($0.dropFirst(directory.path.count + 1).dropLast(".sqlite".count)) }
      .sorted()
  }

  @Test func moreArchivesAreUsedThanAreOpen() async throws {
    let fixture = try Self.fixture(openArchivesMax: 2)
    let names = ["a", "b", "c", "d", "e"]
    var authors: [ArchiveAuthor] = []
    for name in names { authors.append(try await fixture.author(name)) }
    for round in 1...4 {
      for index in authors.indices {
        try await authors[index].apply(.node(1, "x"), .state(1, "\(names[index]) \(round)"), .seal(Int64(round)))
        await fixture.waitForParking()
        #expect(Self.open(in: fixture.directory).count == 2)
      }
      for index in authors.indices {
        #expect(try await authors[index].text(of: 1) == "\(names[index]) \(round)")
        #expect(try await authors[index].scan().count == 1)
      }
    }
    await fixture.waitForParking()
    #expect(Self.open(in: fixture.directory) == ["d", "e"])
    for author in authors {
      try await author.maintain()
      #expect(try await author.store.verify(author.lease, from: nil).faults.isEmpty)
      #expect(try await author.store.backUp(author.lease, replacingFormer: false) > 0)
      await fixture.waitForParking()
      #expect(Self.open(in: fixture.directory).count == 2)
    }
    let list = try await fixture.store.list()
    #expect(list.map(\.application) == names)
    #expect(list.allSatisfy { $0.state == .available && $0.objects == 1 })
    #expect(Self.open(in: fixture.directory) == ["d", "e"])
    for author in authors { await author.store.close(author.lease) }
    #expect(!fixture.directory.names.contains { $0.hasSuffix("-wal") || $0.hasSuffix("+mark") })
    for name in names {
      let author = try await fixture.author(name)
      #expect(author.opening.damage == nil)
      #expect(author.sequence == 12)
      #expect(try await author.text(of: 1) == "\(name) 4")
    }
  }

  @Test func aLowerNumberClosesFilesAtOnce() async throws {
    let fixture = try Self.fixture(openArchivesMax: 3)
    for name in ["a", "b", "c"] { _ = try await fixture.author(name) }
    #expect(Self.open(in: fixture.directory) == ["a", "b", "c"])
    await fixture.store.setOpenArchivesMax(1)
    #expect(Self.open(in: fixture.directory) == ["c"])
  }

  /// While it is parked, its log is not moved into the main file when the store is idle.
  @Test func theLogOfAnArchiveThatIsParkedAgainAndAgainStaysSmall() async throws {
    let fixture = try Self.fixture()
    var authors = [try await fixture.author("a"), try await fixture.author("b")]
    let text = String(repeating: "x", count: 40_000)
    for round in 1...60 {
      for index in authors.indices { try await authors[index].apply(.state(1, "\(round)" + text)) }
      for name in ["a", "b"] { #expect(Files.size(fixture.directory.file("\(name).sqlite-wal")) < 2 << 20) }
    }
    #expect(try await authors[0].text(of: 1) == "60" + text)
  }

  @Test(arguments: [1, 2, 30])
  func aBrokerThatIsKilledWhileAnArchiveIsParkedLosesNothing(commits: Int) async throws {
    let fixture = try Self.fixture()
    var author = try await fixture.author("a")
    for number in 1...commits {
      try await author.apply(.node(1, "n"), .state(1, "\(number)"))
      // Every other one is the first since the files were opened again.
      if number % 2 == 0 { _ = try await fixture.author("b") }
      await fixture.waitForParking()
    }
    _ = try await fixture.author("b")
    await fixture.waitForParking()
    #expect(Self.open(in: fixture.directory) == ["b"])
    let copy = try Self.fixture()
    for name in ["a.sqlite", "a.sqlite-wal", "a+mark"] {
      try copy.directory.write(try fixture.directory.read(name), to: name)
    }
    let found = try await copy.author("a")
    #expect(found.opening.damage == nil)
    #expect(found.opening.archive == author.opening.archive)
    #expect(found.sequence == SequenceNumber(2 * commits))
    #expect(try await found.text(of: 1) == "\(commits)")
    await found.store.close(found.lease)
    // What is missing is noticed, as after every kill.
    let loss = try Self.fixture()
    for name in ["a.sqlite", "a+mark"] { try loss.directory.write(try fixture.directory.read(name), to: name) }
    #expect(try await loss.author("a").opening.damage?.contains("log is missing") == true)
  }

  // MARK: What others do meanwhile

  enum Change: CaseIterable, Sendable {
    case rewritten, copied, older, ofAnother, withoutLog, withoutMain, gone

    /// - Parameter older: bytes that the main file and its log once had.
    func make(in directory: ArchiveFolder, older: [[UInt8]]) async throws {
      let (main, log) = ("a.sqlite", "a.sqlite-wal")
      switch self {
      case .rewritten:
        try directory.write(try directory.read(main), to: main)
        directory.setOld(main)
      case .copied:
        try Self.keepingTime(of: main, in: directory) {
          try directory.write(try directory.read(main), to: "copy")
          try directory.rename("copy", to: main)
        }
      case .older:
        for (bytes, name) in zip(older, [main, log]) { try directory.write(bytes, to: name) }
      case .ofAnother:
        let other = try ArchiveFixture(.sqlite)
        var author = try await other.author("a")
        try await author.apply(.node(1, "x"), .state(1, "six"))
        await author.store.close(author.lease)
        let bytes = try other.directory.read(main)
        #expect(bytes.count == Files.size(directory.file(main)))
        try Self.keepingTime(of: main, in: directory) { try directory.write(bytes, to: main) }
      case .withoutLog: directory.remove(log)
      case .withoutMain: directory.remove(main)
      case .gone: for name in [main, log, "a+mark"] { directory.remove(name) }
      }
    }

    /// So that it looks as if nothing had been written.
    private static func keepingTime(
      of name: String,
      in directory: ArchiveFolder,
      _ body: () throws -> Void
    ) throws {
      var status = stat()
      try #require(lstat(directory.file(name), &status) == 0)
      try body()
      try #require(utimensat(AT_FDCWD, directory.file(name), [status.st_atim, status.st_mtim], 0) == 0)
    }
  }

  @Test(arguments: Change.allCases, [true, false])
  func filesThatOthersChangedMeanwhileAreDamage(change: Change, byRead: Bool) async throws {
    let fixture = try Self.fixture()
    var author = try await fixture.author("a")
    try await author.apply(.node(1, "x"), .state(1, "one"))
    let other = try await fixture.author("b")
    await fixture.waitForParking()
    let older = try ["a.sqlite", "a.sqlite-wal"].map { try fixture.directory.read($0) }
    if change == .older {
      try await author.apply(.state(1, "two"))
      _ = try await other.text(of: 1)
      await fixture.waitForParking()
    }
    try await change.make(in: fixture.directory, older: older)
    let (store, lease, sequence) = (fixture.store, author.lease, author.sequence)
    // Each call says so until the archive is opened anew, even if the files are back.
    for _ in 0..<2 {
      let reading = await failure { () async throws(ArchiveError) in
        if byRead { _ = try await store.read([1], at: .head, lease: lease) }
        _ = try await store.apply([.state(1, "three")], lease: lease, expecting: sequence, changeID: .random())
      }
      #expect(reading == .changed)
    }
    var again = try await fixture.author("a")
    let report = try #require(again.opening.damage)
    if change != .ofAnother { #expect(report.contains("changed while the broker"), "\(report)") }
    #expect(again.opening.archive != author.opening.archive)
    if change == .rewritten || change == .copied || change == .older {
      #expect(try await again.text(of: 1) == "one")
      #expect(fixture.directory.names.contains("a+damaged-1.sqlite"))
    }
    // From here on it is parked and woken like any other.
    try await again.apply(.node(2, "y"), .state(2, "new"))
    _ = try await other.text(of: 1)
    #expect(try await again.text(of: 2) == "new")
    try await again.apply(.run(RunRecord(run: 1, restorations: 0, facts: "")))
    await store.close(again.lease)
    #expect(try await fixture.author("a").opening.damage == nil)
  }

  @Test func aChangeThatIsFoundWhenAnArchiveIsClosedIsReportedByTheNextOpening() async throws {
    let fixture = try Self.fixture()
    var author = try await fixture.author("a")
    try await author.apply(.node(1, "x"), .state(1, "one"))
    _ = try await fixture.author("b")
    await fixture.waitForParking()
    try fixture.directory.write(try fixture.directory.read("a.sqlite"), to: "copy")
    try fixture.directory.rename("copy", to: "a.sqlite")
    await author.store.close(author.lease)
    let again = try await fixture.author("a")
    #expect(again.opening.damage?.contains("changed while the broker") == true)
    #expect(try await again.text(of: 1) == "one")
  }

  @Test func aFileOfAnotherKindInItsPlaceIsLeftThere() async throws {
    let fixture = try Self.fixture()
    var author = try await fixture.author("a")
    try await author.apply(.node(1, "x"), .state(1, "one"))
    _ = try await fixture.author("b")
    await fixture.waitForParking()
    // SQLite would play it back.
    try fixture.directory.write([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7], to: "a.sqlite-journal")
    let kind = await failure { [author] () async throws(ArchiveError) in _ = try await author.text(of: 1) }
    #expect(kind == .unreadable)
    fixture.directory.remove("a.sqlite-journal")
    #expect(try await author.text(of: 1) == "one")
  }

  @Test func aDiskThatCannotBeReadForAWhileIsNoDamage() async throws {
    let fixture = try Self.fixture()
    let disk = FaultingDisk(fixture.directory.path + "/a.")
    var author = try await fixture.author("a")
    try await author.apply(.node(1, "x"), .state(1, "one"))
    _ = try await fixture.author("b")
    await fixture.waitForParking()
    disk.fail(FaultingDisk.Fault(code: SQLITE_IOERR | 1 << 8, systemError: EIO, operations: [.read]))
    for _ in 0..<2 {
      let kind = await failure { [author] () async throws(ArchiveError) in _ = try await author.text(of: 1) }
      #expect(kind == .unreadable)
    }
    #expect(disk.heal())
    try await author.apply(.state(1, "two"))
    await author.store.close(author.lease)
    let again = try await fixture.author("a")
    #expect(again.opening.damage == nil)
    #expect(try await again.text(of: 1) == "two")
  }
}
