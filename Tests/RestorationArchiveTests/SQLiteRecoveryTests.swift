// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import SeededRandom
internal import TestSupport
internal import Testing

/// Archives whose files are not as the store left them (R32).
@Suite(.passesTurnstile) struct SQLiteRecoveryTests {
  private static let application = "org.example.Notes"
  private static let main = "org.example.Notes.sqlite"
  private static let log = "org.example.Notes.sqlite-wal"
  private static let backup = "org.example.Notes+backup.sqlite"

  /// An archive of 40 nodes, backed up when the states said "kept", and closed when they said "later".
  private static func damagedFixture(backedUp: Bool) async throws -> ArchiveFixture {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author(application)
    try await author.apply((1...40).map { .node($0, "n\($0)") })
    try await author.apply((1...40).map { .state($0, "kept" + String(repeating: "x", count: 2000)) })
    if backedUp { try await author.store.backUp(author.lease, replacingFormer: false) }
    try await author.apply((1...40).map { .state($0, "later" + String(repeating: "x", count: 2000)) })
    await author.store.close(author.lease)
    return fixture
  }

  enum Damage: CaseIterable, Sendable {
    case garbage, truncatedInTheMiddle, truncatedToAPage, truncatedToABit, emptied, pageOverwritten, missing

    /// Whether pages are left that hold rows.
    var leavesRows: Bool { self == .truncatedInTheMiddle || self == .pageOverwritten }

    func strike(_ directory: ArchiveFolder, _ name: String) throws {
      var bytes = try directory.read(name)
      switch self {
      case .garbage:
        var generator = SeededGenerator(seed: 7)
        bytes = (0..<50_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
      case .truncatedInTheMiddle: bytes.removeLast(bytes.count / 2)
      case .truncatedToAPage: bytes.removeLast(bytes.count - 4096)
      case .truncatedToABit: bytes.removeLast(bytes.count - 77)
      case .emptied: bytes = []
      case .pageOverwritten: for index in 4096 * 14..<4096 * 16 { bytes[index] = 0xa5 }
      case .missing:
        directory.remove(name)
        return
      }
      try directory.write(bytes, to: name)
    }
  }

  @Test(arguments: Damage.allCases)
  func aDamagedArchiveGivesWayToItsBackup(damage: Damage) async throws {
    let fixture = try await Self.damagedFixture(backedUp: true)
    let backup = try fixture.directory.read(Self.backup)
    try damage.strike(fixture.directory, Self.main)
    let damaged = try? fixture.directory.read(Self.main)
    let author = try await fixture.author(Self.application)
    let report = try #require(author.opening.damage)
    #expect(report.contains("backup"))
    #expect(author.opening.nodes.count == 40)
    if !damage.leavesRows {
      #expect(try await author.text(of: 40)?.hasPrefix("kept") == true)
      #expect(author.opening.sequence == 80)
    }
    await author.store.close(author.lease)
    #expect(try fixture.directory.read(Self.backup) == backup)
    if damage != .missing {
      let aside = "org.example.Notes+damaged-1.sqlite"
      #expect(try fixture.directory.read(aside) == damaged)
      #expect(report.contains(aside))
    }
    // It is reported until the run is known to be written.
    var again = try await fixture.author(Self.application)
    #expect(again.opening.damage == report)
    try await again.apply(.run(RunRecord(run: 1, restorations: 0, facts: "")))
    await again.store.close(again.lease)
    #expect(try await fixture.author(Self.application).opening.damage == nil)
  }

  /// What a killed broker leaves of an archive with one state.
  private static func killed() async throws -> ArchiveFixture {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author(application)
    try await author.apply(.node(1, "a"), .state(1, "kept"))
    let killed = try ArchiveFixture(.sqlite)
    for name in fixture.directory.names where name.hasPrefix(application) {
      try killed.directory.write(try fixture.directory.read(name), to: name)
    }
    await author.store.close(author.lease)
    return killed
  }

  /// A kill may have come between a write and its sync, and a power cut would take what was read meanwhile.
  @Test func theLogOfAKilledBrokerIsSyncedBeforeItIsRead() async throws {
    let killed = try await Self.killed()
    let disk = FaultingReads(killed.directory.path)
    let store = try SQLiteArchiveStore(directory: killed.directory.path, of: disk)
    let opening = try await store.open(Self.application)
    #expect(disk.synced == [killed.directory.file(Self.log), killed.directory.path])
    #expect(opening.nodes.count == 1)
    await store.close(opening.lease)
    // What was closed needs no sync.
    await store.close(try await store.open(Self.application).lease)
    #expect(disk.synced.count == 2)
  }

  /// The second sync would succeed, and the log might still not be on disk.
  @Test func aSyncOfThatLogThatFailsIsNotTriedAgain() async throws {
    let killed = try await Self.killed()
    let disk = FaultingReads(killed.directory.path)
    let store = try SQLiteArchiveStore(directory: killed.directory.path, of: disk)
    disk.failSync(5)
    for _ in 0..<2 {
      let error = await #expect(throws: ArchiveError.self) { try await store.open(Self.application) }
      #expect(error?.kind == .unreadable)
      #expect(error?.message.contains("started again") == true, "\(error?.message ?? "")")
    }
    #expect(disk.synced.isEmpty)
    let next = try await killed.author(Self.application)
    #expect(next.opening.nodes.count == 1 && next.opening.damage == nil)
    await next.store.close(next.lease)
  }

  @Test(arguments: Damage.allCases.filter { $0 != .missing })
  func withoutABackupAnEmptyArchiveTakesItsPlace(damage: Damage) async throws {
    let fixture = try await Self.damagedFixture(backedUp: false)
    for number in 1...2 {
      try damage.strike(fixture.directory, Self.main)
      let damaged = try fixture.directory.read(Self.main)
      var author = try await fixture.author(Self.application)
      #expect(author.opening.damage?.contains("no backup") == true)
      #expect(author.opening.nodes.isEmpty != damage.leavesRows)
      try await author.apply((1...40).map { .state($0, String(repeating: "y", count: 2000)) })
      await author.store.close(author.lease)
      #expect(try fixture.directory.read("org.example.Notes+damaged-\(number).sqlite") == damaged)
    }
    #expect(try await fixture.store.list().map(\.application) == [Self.application])
  }

  @Test func aDamagedBackupIsNotUsed() async throws {
    let fixture = try await Self.damagedFixture(backedUp: true)
    try Damage.pageOverwritten.strike(fixture.directory, Self.backup)
    try Damage.garbage.strike(fixture.directory, Self.main)
    let author = try await fixture.author(Self.application)
    #expect(author.opening.damage?.contains("backup is damaged too") == true)
    #expect(author.opening.nodes.isEmpty)
    #expect(fixture.directory.names.contains(Self.backup))
  }

  @Test func anArchiveMadeFromItsBackupHasANewName() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author(Self.application)
    try await author.apply(.node(1, "a"))
    try await author.store.backUp(author.lease, replacingFormer: false)
    await author.store.close(author.lease)
    try Damage.garbage.strike(fixture.directory, Self.main)
    let restored = try await fixture.author(Self.application).opening
    #expect(restored.archive != author.opening.archive)
    #expect(restored.nodes.map(\.node.component) == ["a"])
  }

  @Test func theLogGoesAsideWithItsFile() async throws {
    let original = try ArchiveFixture(.sqlite)
    var author = try await original.author(Self.application)
    try await author.apply((1...40).map { .state($0, String(repeating: "x", count: 2000)) })
    let log = try original.directory.read(Self.log)
    let copy = try ArchiveFixture(.sqlite)
    try copy.directory.write(Array("garbage".utf8), to: Self.main)
    try copy.directory.write(log, to: Self.log)
    let opening = try await copy.author(Self.application).opening
    #expect(opening.damage != nil)
    #expect(opening.nodes.isEmpty)
    #expect(try copy.directory.read("org.example.Notes+damaged-1.sqlite-wal") == log)
  }

  @Test func aLogWithoutItsFileFinishesAnInterruptedMove() async throws {
    let fixture = try await Self.damagedFixture(backedUp: true)
    try fixture.directory.rename(Self.main, to: "org.example.Notes+damaged-1.sqlite")
    try fixture.directory.write([1, 2, 3], to: Self.log)
    let author = try await fixture.author(Self.application)
    #expect(author.opening.damage != nil)
    #expect(try await author.text(of: 1)?.hasPrefix("kept") == true)
    #expect(try fixture.directory.read("org.example.Notes+damaged-1.sqlite-wal") == [1, 2, 3])
  }

  @Test(arguments: [true, false])
  func aLogWithoutItsFileIsKeptWhereTheOpeningSays(isMoveInterrupted: Bool) async throws {
    let fixture = try await Self.damagedFixture(backedUp: true)
    if isMoveInterrupted {
      try fixture.directory.rename(Self.main, to: "org.example.Notes+damaged-1.sqlite")
    } else {
      fixture.directory.remove(Self.main)
    }
    try fixture.directory.write([1, 2, 3], to: Self.log)
    let report = try #require(try await fixture.author(Self.application).opening.damage)
    let place = try #require(report.split(separator: " ").last).dropFirst(fixture.directory.path.utf8.count + 1)
    #expect(fixture.directory.names.contains(String(place)), "\(report)")
    #expect(try fixture.directory.read(String(place)) == [1, 2, 3])
  }

  @Test func whatWasCommittedIsThereAfterACrash() async throws {
    let original = try ArchiveFixture(.sqlite)
    var author = try await original.author(Self.application)
    for number in 1...50 {
      try await author.apply(.node(1, "a"), .state(1, "\(number)" + String(repeating: "x", count: 3000)))
      if number == 25 { try await author.maintain() }
    }
    let copy = try ArchiveFixture(.sqlite)
    for name in [Self.main, Self.log] { try copy.directory.write(try original.directory.read(name), to: name) }
    let recovered = try await copy.author(Self.application)
    #expect(recovered.opening.damage == nil)
    #expect(recovered.opening.sequence == 100)
    #expect(recovered.opening.archive == author.opening.archive)
    #expect(try await recovered.text(of: 1)?.hasPrefix("50x") == true)
  }

  @Test func aCommitCutShortIsNotThereAfterACrash() async throws {
    let original = try ArchiveFixture(.sqlite)
    var author = try await original.author(Self.application)
    try await author.apply(.node(1, "a"), .state(1, "first"))
    let before = try original.directory.read(Self.log).count
    try await author.apply((1...20).map { .state(1, "second \($0)") })
    let main = try original.directory.read(Self.main)
    let log = try original.directory.read(Self.log)
    for length in stride(from: before, to: log.count, by: 997) {
      let copy = try ArchiveFixture(.sqlite)
      try copy.directory.write(main, to: Self.main)
      try copy.directory.write(Array(log[..<length]), to: Self.log)
      let recovered = try await copy.author(Self.application)
      #expect(recovered.sequence == 2, "cut at \(length) of \(log.count)")
      #expect(try await recovered.text(of: 1) == "first")
    }
  }

  // MARK: One bad row

  @Test(
    arguments: [
      "text = 'x' || substr(text, 2)", "text = text || ' '", "checksum = checksum + 1", "written = 1", "links = ''",
      "node = 1, bytes = 9", "context = 9", "revision = 5, session = 1", "text = NULL", "elements = '[]', links = NULL",
    ]
  )
  func aBadRowMakesThatStateAloneUnreadable(change: String) async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author(Self.application)
    try await author.apply(.node(1, "a"), .state(1, "one"), .node(2, "b"), .state(2, "two"), .seal(1))
    try await author.apply(.state(1, "three"))
    await author.store.close(author.lease)
    try runSQL("UPDATE state SET \(change) WHERE sequence = 6", in: fixture.directory.file(Self.main))
    author = try await fixture.author(Self.application)
    #expect(author.opening.damage == nil)
    let reading = try await author.store.read([1], at: .head, lease: author.lease)[0]
    #expect(reading == .unreadable(sequence: 6))
    #expect(try await author.text(of: 1, at: .sequence(5)) == "one")
    #expect(try await author.text(of: 2) == "two")
    try await author.apply(.state(1, "four"))
    #expect(try await author.text(of: 1) == "four")
  }

  // MARK: Not ours to touch

  @Test(
    arguments: [
      "PRAGMA user_version = 3", "PRAGMA application_id = 1", "UPDATE archive SET keyId = 'k'",
      "PRAGMA user_version = 0",
    ]
  )
  func whatIsNotUnderstoodIsLeftAlone(change: String) async throws {
    let fixture = try await Self.damagedFixture(backedUp: true)
    try runSQL(change, in: fixture.directory.file(Self.main))
    let names = fixture.directory.names
    let bytes = try fixture.directory.read(Self.main)
    for _ in 0..<2 {
      let kind = await failure { () async throws(ArchiveError) in _ = try await fixture.store.open(Self.application) }
      #expect(kind == .unreadable)
      _ = try await fixture.store.list()
      #expect(fixture.directory.names.filter { $0 != Self.log } == names)
      #expect(try fixture.directory.read(Self.main) == bytes)
    }
  }

  @Test func aNewerArchiveThatWasNotClosedIsLeftAlone() async throws {
    let original = try ArchiveFixture(.sqlite)
    var author = try await original.author(Self.application)
    try await author.apply((1...40).map { .state($0, String(repeating: "x", count: 2000)) })
    let copy = try ArchiveFixture(.sqlite)
    try copy.directory.write(try original.directory.read(Self.main), to: Self.main)
    let log = try original.directory.read(Self.log)
    try copy.directory.write(log, to: Self.log)
    // Leaving the log as it is takes a connection that does not clean up when it closes.
    try runSQL("PRAGMA user_version = 3", in: copy.directory.file(Self.main), keepingLog: true)
    let files = [try copy.directory.read(Self.main), try copy.directory.read(Self.log)]
    #expect(files[1].count > log.count)
    let kind = await failure { () async throws(ArchiveError) in _ = try await copy.store.open(Self.application) }
    #expect(kind == .unreadable)
    _ = try await copy.store.list()
    #expect([try copy.directory.read(Self.main), try copy.directory.read(Self.log)] == files)
  }

  @Test func aFileThatIsNoArchiveIsNotListedAsAvailable() async throws {
    let fixture = try await Self.damagedFixture(backedUp: false)
    try fixture.directory.write(Array("garbage, and more of it".utf8), to: Self.main)
    try fixture.directory.write([], to: "readme+.sqlite")
    try fixture.directory.write([], to: "a b.sqlite")
    let list = try await fixture.store.list()
    #expect(list.map(\.application) == [Self.application])
    guard case .unreadable = list[0].state else {
      Issue.record("\(list[0].state)")
      return
    }
    #expect(try fixture.directory.read(Self.main).count == 23)
  }

  @Test func aSymbolicLinkIsNotFollowed() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    try fixture.directory.write([1], to: "elsewhere")
    fixture.directory.link("elsewhere", from: Self.main)
    let kind = await failure { () async throws(ArchiveError) in _ = try await fixture.store.open(Self.application) }
    #expect(kind == .unreadable)
    #expect(try fixture.directory.read("elsewhere") == [1])
  }

  @Test func aSecondStoreIsRefusedAndTheFirstContinues() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author(Self.application)
    try await author.apply(.node(1, "a"), .state(1, "one"))
    let second = try SQLiteArchiveStore(directory: fixture.directory.path)
    let kind = await failure { () async throws(ArchiveError) in _ = try await second.open(Self.application) }
    #expect(kind == .unreadable)
    let list = try await second.list()
    #expect(list.map(\.application) == [Self.application])
    try await author.apply(.state(1, "two"))
    #expect(try await author.text(of: 1) == "two")
    await author.store.close(author.lease)
    let taken = try await second.open(Self.application)
    #expect(taken.sequence == 3)
  }

  // MARK: Files

  @Test func onlyTheOwnerCanReadAnyFile() async throws {
    let fixture = try ArchiveFixture(.sqlite, upkeep: ArchiveUpkeep(ballastBytes: 4096))
    fixture.directory.setMode(0o755)
    let store = try SQLiteArchiveStore(directory: fixture.directory.path + "/new/archives")
    _ = try await store.open("x")
    #expect(fixture.directory.mode("new/archives") == 0o700)
    #expect(fixture.directory.mode("new/archives/x.sqlite") == 0o600)
    #expect(fixture.directory.mode("new/archives/x.sqlite-wal") == 0o600)
    #expect(fixture.directory.mode("new/archives/+ballast") == 0o600)
    var author = try await fixture.author("y")
    try await author.apply(.node(1, "a"))
    try await author.store.backUp(author.lease, replacingFormer: false)
    #expect(fixture.directory.mode("y+backup.sqlite") == 0o600)
    #expect(fixture.directory.mode("+ballast") == 0o600)
    _ = try SQLiteArchiveStore(directory: fixture.directory.path)
    #expect(fixture.directory.mode() == 0o700)
  }

  @Test func aClosedArchiveIsOneFile() async throws {
    let fixture = try await Self.damagedFixture(backedUp: false)
    #expect(fixture.directory.names == [Self.main])
  }

  @Test func upkeepLeavesOnlyRowsThatSomebodyNeeds() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author(Self.application)
    try await author.apply((1...9).map { .node($0, "n\($0)") })
    try await author.apply((1...9).map { .claim(ClaimRecord(node: $0, session: 1, handle: $0)) })
    try await author.apply((1...9).map { .state($0, "one", early: $0 > 3) })
    try await author.apply(.context(1, text: "{}"), .seal(1), .pin(generation: 1), .removeAll)
    try await author.apply(.node(1, "again"), .state(1, "two", early: true), .state(1, "three", early: true))
    await author.store.close(author.lease)
    let counts = """
      SELECT (SELECT count(*) FROM state), (SELECT count(*) FROM early), (SELECT count(*) FROM node),
      (SELECT count(*) FROM emptied), (SELECT count(*) FROM context), (SELECT count(*) FROM claim),
      (SELECT count(*) FROM generation), (SELECT ifnull(pinned, 'none') FROM tip)
      """
    let path = fixture.directory.file(Self.main)
    #expect(try runSQL(counts, in: path) == ["11|8|10|1|1|9|1|1"])
    author = try await fixture.author(Self.application)
    try await author.maintain()
    await author.store.close(author.lease)
    #expect(try runSQL(counts, in: path) == ["10|7|10|1|0|9|1|1"])
    author = try await fixture.author(Self.application)
    try await author.apply(.dropGeneration(1))
    try await author.maintain()
    await author.store.close(author.lease)
    #expect(try runSQL(counts, in: path) == ["1|1|1|0|0|1|0|none"])
  }

  @Test func anArchiveThatIsNeverIdleStaysSmall() async throws {
    let fixture = try ArchiveFixture(.sqlite, upkeep: ArchiveUpkeep(deadBytesMax: 100_000, ballastBytes: 0))
    var author = try await fixture.author(Self.application)
    for _ in 0..<1000 { try await author.apply(.state(1, "{}")) }
    for _ in 0..<60 { try await author.apply(.state(2, String(repeating: "x", count: 20_000))) }
    for _ in 0..<100 { try await author.apply(.state(3, String(repeating: "x", count: 300))) }
    await author.store.close(author.lease)
    let path = fixture.directory.file(Self.main)
    #expect(try runSQL("SELECT sum(bytes) < 160000, count(*) < 400 FROM state", in: path) == ["1|1"])
  }

  @Test func upkeepGivesSpaceBack() async throws {
    let fixture = try ArchiveFixture(.sqlite, upkeep: ArchiveUpkeep(freeBytesMax: 65_536, ballastBytes: 0))
    var author = try await fixture.author(Self.application)
    try await author.apply((1...64).map { .state($0, String(repeating: "x", count: 65_536)) })
    try await author.apply(.removeAll)
    try await author.maintain()
    #expect(try await fixture.store.list()[0].bytes < 300_000)
  }

  @Test func movingASubtreeWritesOneRow() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author(Self.application)
    try await author.apply([.node(1, "from"), .node(2, "to"), .node(3, "moved", parent: 1)])
    try await author.apply((4...10_003).map { .node($0, "n\($0)", parent: $0 % 2 == 0 ? 3 : $0 - 1) })
    try await author.apply((4...10_003).map { .state($0, "{}") })
    await author.store.close(author.lease)
    let path = fixture.directory.file(Self.main)
    let rows = "SELECT (SELECT count(*) FROM node), (SELECT count(*) FROM state)"
    #expect(try runSQL(rows, in: path) == ["10003|10000"])
    author = try await fixture.author(Self.application)
    try await author.apply(.node(3, "moved", parent: 2))
    await author.store.close(author.lease)
    #expect(try runSQL(rows, in: path) == ["10004|10000"])
    author = try await fixture.author(Self.application)
    #expect(author.opening.nodes.count == 10_003)
    #expect(author.opening.nodes[2].node.parent == 2)
  }

  // MARK: Removing

  @Test func aRemovedArchiveLeavesNoFile() async throws {
    let fixture = try await Self.damagedFixture(backedUp: true)
    try await fixture.store.remove(Self.application, damaged: false)
    #expect(!fixture.directory.names.contains { $0.hasPrefix(Self.application) })
    await #expect(throws: ArchiveError.self) { _ = try await fixture.store.open(Self.application, for: .reading) }
    #expect(try await fixture.author(Self.application).opening.damage == nil)
  }

  @Test func whatWasSetAsideStaysWhenTheArchiveIsRemoved() async throws {
    let fixture = try await Self.damagedFixture(backedUp: true)
    try Damage.garbage.strike(fixture.directory, Self.main)
    await fixture.store.close(try await fixture.author(Self.application).lease)
    try await fixture.store.remove(Self.application, damaged: false)
    #expect(fixture.directory.names.filter { $0.hasSuffix(".sqlite") } == ["org.example.Notes+damaged-1.sqlite"])
    // A new archive of the name is no recovery.
    var author = try await fixture.author(Self.application)
    #expect(author.opening.damage == nil && author.opening.nodes.isEmpty)
    try await author.apply(.node(1, "n"))
    await author.store.close(author.lease)
    // The loss of the new one is a recovery.
    try Damage.missing.strike(fixture.directory, Self.main)
    let next = try await fixture.author(Self.application)
    #expect(next.opening.damage != nil)
    await next.store.close(next.lease)
    try await fixture.store.remove(Self.application, damaged: true)
    #expect(!fixture.directory.names.contains { $0.hasPrefix(Self.application) })
  }

  @Test func anOpenArchiveIsNotRemoved() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    let author = try await fixture.author(Self.application)
    await #expect(throws: ArchiveError.self) { try await author.store.remove(Self.application, damaged: false) }
    #expect(try await author.store.list().count == 1)
  }
}
