// SPDX-License-Identifier: Apache-2.0

internal import CSQLite
internal import RestorationArchive
internal import SeededRandom
internal import TestSupport
internal import Testing

private let headerBytes = 32
private let frameBytes = 24 + 4096

/// The log of an archive whose broker was killed is damaged, cut, missing, or an older one: its content is served
/// completely, or the opening reports the loss; and no byte of it is destroyed (R20, R32).
@Suite struct LogDamageTests {
  private static let application = "x"
  private static let log = "x.sqlite-wal"
  private static let files = ["x.sqlite", log, "x+mark"]

  /// The files of an archive that was never closed, as a kill leaves them.
  private struct Remains {
    var files: [String: [UInt8]]
    let archive: String
    let sequence: SequenceNumber

    /// - Parameter directory: if the archive is open.
    init(of directory: ArchiveFolder, _ author: ArchiveAuthor) throws {
      files = [:]
      for name in LogDamageTests.files { files[name] = try directory.read(name) }
      archive = author.opening.archive
      sequence = author.sequence
    }

    var log: [UInt8] { files[LogDamageTests.log] ?? [] }

    func with(log: [UInt8]?) -> Remains {
      var remains = self
      remains.files[LogDamageTests.log] = log
      return remains
    }

    /// A log with one bit flipped.
    func flipping(_ bit: Int) -> Remains {
      var bytes = log
      bytes[bit / 8] ^= 1 << (bit % 8)
      return with(log: bytes)
    }

    /// A new directory with these files.
    func fixture() throws -> ArchiveFixture {
      let fixture = try ArchiveFixture(.sqlite)
      for (name, bytes) in files { try fixture.directory.write(bytes, to: name) }
      return fixture
    }
  }

  /// Commits of one change each: every one changes the same states, so that an older archive shows older texts. A text
  /// begins with the sequence of its change.
  private static func write(_ author: inout ArchiveAuthor, _ count: Int) async throws {
    if author.sequence == 0 { try await author.apply((1...5).map { .node($0, "n\($0)") }) }
    for _ in 0..<count {
      let number = author.sequence + 1
      let text = "\(number) " + String(repeating: "x", count: Int(number % 4) * 900)
      try await author.apply(.state(number % 5 + 1, text))
    }
  }

  /// Opens the remains: either everything is there, or the opening reports damage and the files are kept.
  private static func check(_ remains: Remains, of whole: Remains, _ comment: Comment) async throws -> Bool {
    let fixture = try remains.fixture()
    var author = try await fixture.author(application)
    let report = author.opening.damage
    #expect(report != nil || author.sequence == whole.sequence, comment)
    // Sequences that are known from after this point hold for another archive.
    #expect((author.opening.archive == whole.archive) == (report == nil), comment)
    let number = author.sequence
    if report == nil { #expect(try await author.text(of: number % 5 + 1)?.hasPrefix("\(number) ") == true, comment) }
    // Whatever is written from here on, the bytes that were found are kept.
    try await write(&author, 5)
    try await author.maintain()
    await author.store.close(author.lease)
    if let report, let log = remains.files[log], let main = remains.files["x.sqlite"] {
      let kept = try fixture.directory.names.filter { $0.contains("+damaged-") }.map { try fixture.directory.read($0) }
      #expect(kept.contains(log) && kept.contains(main), "\(comment.rawValue): \(report)")
    }
    var again = try await fixture.author(application)
    #expect(again.opening.damage == report, comment)
    try await again.apply(.run(RunRecord(run: 1, restorations: 0, facts: "")))
    await again.store.close(again.lease)
    let last = try await fixture.author(application)
    #expect(last.opening.damage == nil, comment)
    await last.store.close(last.lease)
    return report != nil
  }

  /// A log of many commits, and a log restarted in a file that still has frames of an earlier one.
  private static func remains(begunAnew: Bool) async throws -> Remains {
    let logBytesMax = begunAnew ? 100_000 : 1 << 30
    let fixture = try ArchiveFixture(.sqlite, upkeep: ArchiveUpkeep(logBytesMax: logBytesMax, ballastBytes: 0))
    var author = try await fixture.author(application)
    try await write(&author, 26)
    let remains = try Remains(of: fixture.directory, author)
    await author.store.close(author.lease)
    return remains
  }

  enum Damage {
    case flip(bit: Int), cut(at: Int), delete(frame: Int), swap(frame: Int), duplicate(frame: Int), missing

    func applied(to log: [UInt8]) -> [UInt8]? {
      func frame(_ number: Int) -> ArraySlice<UInt8> {
        log.dropFirst(headerBytes + number * frameBytes).prefix(frameBytes)
      }
      func replacing(_ number: Int, _ count: Int, with frames: [ArraySlice<UInt8>]) -> [UInt8] {
        let start = headerBytes + number * frameBytes
        return Array(log[..<start]) + frames.joined() + log.dropFirst(start + count * frameBytes)
      }
      switch self {
      case .flip(let bit):
        var bytes = log
        bytes[bit / 8] ^= 1 << (bit % 8)
        return bytes
      case .cut(let byte): return Array(log[..<byte])
      case .delete(let number): return replacing(number, 1, with: [])
      case .swap(let number): return replacing(number, 2, with: [frame(number + 1), frame(number)])
      case .duplicate(let number): return replacing(number, 1, with: [frame(number), frame(number)])
      case .missing: return nil
      }
    }

    /// Damages of every byte of the header and of every frame; the short form does one thing to each frame.
    static func all(of log: [UInt8], _ generator: inout SeededGenerator) -> [Damage] {
      var damages = [Damage.missing] + [0, 1, 31, 32, 33, log.count - 1].map { .cut(at: $0) }
      damages += (0..<headerBytes).map { .flip(bit: $0 * 8 + Int.random(in: 0..<8, using: &generator)) }
      for number in 0..<(log.count - headerBytes) / frameBytes {
        let start = headerBytes + number * frameBytes
        let flips = (0..<16).map { index in
          let byte = start + Int.random(in: index < 8 ? 0..<24 : 24..<frameBytes, using: &generator)
          return Damage.flip(bit: byte * 8 + Int.random(in: 0..<8, using: &generator))
        }
        let inside = start + Int.random(in: 1..<frameBytes, using: &generator)
        let moves = [
          Damage.cut(at: start), .cut(at: inside), .delete(frame: number), .swap(frame: number),
          .duplicate(frame: number),
        ]
        damages += Environment.isLong ? flips + moves : [([flips[0], flips[8]] + moves)[number % 7]]
      }
      return damages
    }
  }

  @Test(arguments: [false, true])
  func everyDamageOfALogIsServedWholeOrReported(begunAnew: Bool) async throws {
    let whole = try await Self.remains(begunAnew: begunAnew)
    var generator = SeededGenerator(seed: begunAnew ? 2 : 1)
    #expect(whole.log.count > 20 * frameBytes)
    #expect(try await !Self.check(whole, of: whole, "not damaged"))
    let damages = Damage.all(of: whole.log, &generator)
    var reported = 0
    for damage in damages {
      let remains = whole.with(log: damage.applied(to: whole.log))
      if try await Self.check(remains, of: whole, "\(damage)") { reported += 1 }
    }
    // The header, the cuts in it, and a missing log alone.
    #expect(reported >= headerBytes + 6)
    if Environment.isLong, !begunAnew { #expect(damages.count >= 1_000) }
    print("\(damages.count) damages of a log: \(reported) reported, none silent, no byte destroyed")
  }

  /// Without the mark, as after a power cut, the files themselves show all damage but that at the end.
  @Test func withoutAMarkDamageBeforeTheLastCommitIsReported() async throws {
    var whole = try await Self.remains(begunAnew: false)
    whole.files["x+mark"] = nil
    let frames = (whole.log.count - headerBytes) / frameBytes
    for frame in stride(from: 0, to: frames - 8, by: 2) {
      let remains = whole.flipping((headerBytes + frame * frameBytes + 1_000) * 8)
      #expect(try await Self.check(remains, of: whole, "frame \(frame)"))
    }
    #expect(try await Self.check(whole.flipping(100), of: whole, "header"))
    #expect(try await Self.check(whole.with(log: nil), of: whole, "missing"))
  }

  /// The commit being written when the power failed was never acknowledged.
  @Test func theEndOfALogCutShortInItsLastCommitIsNoDamage() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author(Self.application)
    try await Self.write(&author, 20)
    let before = try Remains(of: fixture.directory, author)
    try await author.apply((26...35).map { .state($0 % 5 + 1, "\($0) " + String(repeating: "y", count: 3_000)) })
    let after = try Remains(of: fixture.directory, author)
    for cut in stride(from: before.log.count, to: after.log.count, by: 1_777) {
      // The mark is from before: the last commit was not acknowledged.
      let remains = before.with(log: Array(after.log[..<cut]))
      #expect(try await !Self.check(remains, of: before, "cut at \(cut)"))
      var torn = after.log
      for index in cut..<min(cut + 512, torn.count) { torn[index] ^= 0xff }
      let opened = try await before.with(log: torn).fixture().author(Self.application)
      #expect(opened.opening.damage == nil)
      #expect(opened.sequence == before.sequence)
    }
    await author.store.close(author.lease)
  }

  /// Zeros that lengthen the log, and the commit that is written over them, become durable together. Of both any part
  /// may be there, in any order.
  @Test func aPowerCutWhileALogIsLengthenedIsNoDamage() async throws {
    let upkeep = ArchiveUpkeep(logBytesMax: 400_000, ballastBytes: 0)
    let fixture = try ArchiveFixture(.sqlite, upkeep: upkeep)
    var author = try await fixture.author(Self.application)
    var generator = SeededGenerator(seed: 3)
    try await Self.write(&author, 1)
    var (lengthened, cuts) = (0, 0)
    for _ in 1...60 where lengthened < 3 {
      let before = try Remains(of: fixture.directory, author)
      try await Self.write(&author, 1)
      let after = try Remains(of: fixture.directory, author)
      let zeros = after.log.reversed().prefix { $0 == 0 }.count
      guard after.log.count > before.log.count, zeros > frameBytes else { continue }
      lengthened += 1
      for share in [0, 1]
        + (0..<(Environment.isLong ? 200 : 10)).map({ _ in Double.random(in: 0...1, using: &generator) })
      {
        let end = share == 1 ? after.log.count : Int.random(in: before.log.count...after.log.count, using: &generator)
        var log = before.log + [UInt8](repeating: 0, count: end - before.log.count)
        for sector in stride(from: before.log.count, to: end, by: 512)
        where Double.random(in: 0..<1, using: &generator) < share {
          let bytes = sector..<min(sector + 512, end)
          log.replaceSubrange(bytes, with: after.log[bytes])
        }
        let isThere = log.starts(with: after.log.dropLast(zeros))
        let comment: Comment = "\(share) of \(end) bytes"
        #expect(try await !Self.check(before.with(log: log), of: isThere ? after : before, comment))
        cuts += 1
      }
      // The power is cut, or the broker killed, between the zeros and the commit.
      let log = before.log + [UInt8](repeating: 0, count: after.log.count - before.log.count)
      #expect(try await !Self.check(before.with(log: log), of: before, "zeros alone"))
    }
    await author.store.close(author.lease)
    #expect(lengthened == 3)
    print("\(cuts) cuts of the power while a log was lengthened: none is damage")
  }

  /// An older log beside a newer archive, from before and after a checkpoint.
  @Test(arguments: [false, true])
  func anOlderLogIsNotTakenForTheNewOne(checkpointed: Bool) async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author(Self.application)
    for round in 0..<8 {
      try await Self.write(&author, 10)
      let older = try Remains(of: fixture.directory, author)
      try await Self.write(&author, 5)
      if checkpointed { try await author.maintain() }
      try await Self.write(&author, 5)
      let newer = try Remains(of: fixture.directory, author)
      #expect(try await Self.check(newer.with(log: older.log), of: newer, "round \(round)"))
    }
    await author.store.close(author.lease)
  }

  /// The log had been moved into the main file and not restarted: replaying a part of it would undo newer changes.
  @Test func aDamagedLogDoesNotHideWhatTheMainFileHas() async throws {
    let fixture = try ArchiveFixture(.sqlite, upkeep: ArchiveUpkeep(logBytesMax: 1 << 30, ballastBytes: 0))
    var author = try await fixture.author(Self.application)
    try await Self.write(&author, 26)
    try await author.store.backUp(author.lease, replacingFormer: false)
    let whole = try Remains(of: fixture.directory, author)
    await author.store.close(author.lease)
    let frames = (whole.log.count - headerBytes) / frameBytes
    for frame in stride(from: 0, to: frames, by: 3) {
      let remains = whole.flipping((headerBytes + frame * frameBytes + 100) * 8)
      #expect(try await Self.check(remains, of: whole, "frame \(frame)"))
      let opened = try await remains.fixture().author(Self.application)
      #expect(opened.sequence == whole.sequence, "frame \(frame)")
    }
  }

  /// The frames of a failed commit belong to no commit: a later one must not look damaged because of them.
  @Test func framesOfACommitThatFailedDoNotStayInTheLog() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    let disk = FaultingDisk(fixture.directory.path)
    var author = try await fixture.author(Self.application)
    try await Self.write(&author, 9)
    disk.fail(FaultingDisk.Fault(code: SQLITE_FULL, operations: [.write], after: 400))
    let changes = (11...611).map { ArchiveChange.state($0, String(repeating: "x", count: 8_000)) }
    await #expect(throws: ArchiveError.self) { try await author.apply(changes) }
    disk.heal()
    let remains = try Remains(of: fixture.directory, author)
    #expect(remains.log.count > 100 * frameBytes)
    let opened = try remains.fixture()
    let again = try await opened.author(Self.application)
    #expect(again.opening.damage == nil)
    #expect(again.sequence == 14)
    #expect(try opened.directory.read(Self.log).isEmpty)
    await again.store.close(again.lease)
    await author.store.close(author.lease)
  }

  /// Nor must the commit that is written over them, if the broker is killed meanwhile.
  @Test func aCommitCutShortOverOneThatFailedIsNoDamage() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    let disk = FaultingDisk(fixture.directory.path)
    var author = try await fixture.author(Self.application)
    try await Self.write(&author, 9)
    let before = try Remains(of: fixture.directory, author)
    disk.fail(FaultingDisk.Fault(code: SQLITE_FULL, operations: [.write], after: 31))
    let changes = (11...61).map { ArchiveChange.state($0, String(repeating: "x", count: 8_000)) }
    await #expect(throws: ArchiveError.self) { try await author.apply(changes) }
    disk.heal()
    let failed = try Remains(of: fixture.directory, author)
    try await Self.write(&author, 1)
    let after = try Remains(of: fixture.directory, author)
    let changed = after.log.indices.filter { $0 >= failed.log.count || after.log[$0] != failed.log[$0] }
    let (first, last) = (try #require(changed.first), try #require(changed.last))
    #expect(first >= before.log.count && last < failed.log.count - 2 * frameBytes)
    for cut in stride(from: first, through: last, by: Environment.isLong ? 24 : 173) {
      let remains = before.with(log: Array(after.log[..<cut] + failed.log[cut...]))
      #expect(try await !Self.check(remains, of: before, "cut at \(cut)"))
    }
    await author.store.close(author.lease)
  }

  /// Each call tries again; the copies are made once.
  @Test func anArchiveThatCannotBeOpenedIsCopiedAsideOnce() async throws {
    let remains = try await Self.remains(begunAnew: false).flipping(100)
    let fixture = try remains.fixture()
    let disk = FaultingDisk(fixture.directory.path)
    disk.fail(FaultingDisk.Fault(code: SQLITE_IOERR, operations: [.read]))
    for _ in 0..<3 {
      await #expect(throws: ArchiveError.self) { try await fixture.store.open(Self.application, for: .writing) }
    }
    disk.heal()
    #expect(try await fixture.author(Self.application).opening.damage?.contains("+damaged-1.sqlite") == true)
    let copies = fixture.directory.names.filter { $0.contains("+damaged-") }
    #expect(copies == ["x+damaged-1.sqlite", "x+damaged-1.sqlite-wal"])
  }

  /// The finding is in the archive before the log that shows it is removed: the next opening still reports it.
  @Test(arguments: [true, false])
  func aDiskThatFailsWhileALossIsNotedDoesNotHideIt(isLasting: Bool) async throws {
    let frame = headerBytes + 9 * frameBytes
    let remains = try await Self.remains(begunAnew: false).flipping((frame + 1_000) * 8)
    for count in 0... {
      let fixture = try remains.fixture()
      let disk = FaultingDisk(fixture.directory.path)
      disk.fail(
        FaultingDisk.Fault(
          code: SQLITE_IOERR | 4 << 8,
          operations: [.write, .sync, .truncate],
          after: count,
          isLasting: isLasting
        )
      )
      _ = await failure { () async throws(ArchiveError) in
        let opening = try await fixture.store.open(Self.application)
        await fixture.store.close(opening.lease)
      }
      let hasFailed = disk.heal()
      let report = try await fixture.author(Self.application).opening.damage ?? "nothing"
      // An attempt that failed may have written over the frames that are not replayed.
      #expect(report.contains("was damaged (frame") && report.contains("x+damaged-"), "call \(count): \(report)")
      #expect(try fixture.directory.read("x+damaged-1.sqlite-wal") == remains.log, "call \(count)")
      if !hasFailed {
        #expect(count > 3)
        return
      }
    }
  }

  @Test func anArchiveThatIsListedBeforeItIsOpenedIsNotCalledAvailable() async throws {
    let whole = try await Self.remains(begunAnew: false)
    for remains in [whole.with(log: nil), whole.flipping(100)] {
      let fixture = try remains.fixture()
      let state = try await fixture.store.list()[0].state
      guard case .unreadable(let text) = state else {
        Issue.record("\(state)")
        continue
      }
      #expect(text.contains("log"))
      #expect(try await fixture.author(Self.application).opening.damage != nil)
    }
  }

  @Test func anArchiveThatWasClosedNeedsNeitherLogNorMark() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author(Self.application)
    try await Self.write(&author, 20)
    await author.store.close(author.lease)
    #expect(fixture.directory.names == ["x.sqlite"])
    author = try await fixture.author(Self.application)
    #expect(author.opening.damage == nil)
    #expect(author.sequence == 25)
  }

  /// Copies are archives of their own: nothing is missing from them.
  @Test func aBackupInThePlaceOfAnArchiveIsNotDamaged() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author(Self.application)
    try await Self.write(&author, 20)
    try await author.store.backUp(author.lease, replacingFormer: false)
    try await Self.write(&author, 10)
    await author.store.close(author.lease)
    try fixture.directory.rename("x+backup.sqlite", to: "x.sqlite")
    author = try await fixture.author(Self.application)
    #expect(author.opening.damage == nil)
    #expect(author.sequence == 25)
  }
}
