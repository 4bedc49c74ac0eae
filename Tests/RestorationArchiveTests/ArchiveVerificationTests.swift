// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import RestorationArchive
internal import TestSupport
internal import Testing

/// Checking stored states, piece by piece, and copying archives to files.
@Suite(.passesTurnstile) struct ArchiveVerificationTests {
  private struct Outcome {
    var rows: [VerificationPiece.Row] = []
    var faults: [VerificationPiece.Fault] = []
    var pieces = 0
  }

  private static func verify(_ author: ArchiveAuthor) async throws(ArchiveError) -> Outcome {
    var outcome = Outcome()
    var position: VerificationPosition?
    var done = 0
    repeat {
      let piece = try await author.store.verify(author.lease, from: position)
      #expect(piece.done >= done && piece.done <= piece.total)
      done = piece.done
      outcome.rows += piece.rows
      outcome.faults += piece.faults
      outcome.pieces += 1
      position = piece.next
    } while position != nil
    return outcome
  }

  @Test(arguments: ArchiveEngine.allCases)
  func everyReachableStateIsHandedOverOnceWithWhatShowsIt(engine: ArchiveEngine) async throws {
    var author = try await ArchiveFixture(engine).author()
    try await author.apply(
      .node(1, "a"),
      .node(2, "b"),
      .state(1, "1"),
      .state(1, "2"),
      .seal(1),
      .state(1, "3"),
      .state(2, "4"),
      .seal(2),
      .state(2, "5", early: true),
      .node(3, "c")
    )
    let outcome = try await Self.verify(author)
    let texts = outcome.rows.map { row -> String in
      guard case .state(let record, _) = row.reading else { return "unreadable" }
      return
        "\(row.node) \(String(decoding: record.text, as: UTF8.self)) \(row.shown.isCurrent) \(row.shown.generations)"
    }
    #expect(texts == ["1 2 false [1]", "1 3 true [2]", "2 4 true [2]", "2 5 true []"])
    #expect(outcome.faults.isEmpty)
    #expect(outcome.rows.allSatisfy { $0.fault == nil })
  }

  @Test(arguments: ArchiveEngine.allCases)
  func anEmptyArchiveIsCheckedToo(engine: ArchiveEngine) async throws {
    let outcome = try await Self.verify(try await ArchiveFixture(engine).author())
    #expect(outcome.rows.isEmpty && outcome.faults.isEmpty)
    #expect(outcome.pieces == 2)
  }

  @Test(arguments: ArchiveEngine.allCases)
  func piecesAreBoundedAndOthersWriteBetweenThem(engine: ArchiveEngine) async throws {
    var author = try await ArchiveFixture(engine).author()
    let large = String(repeating: "x", count: 300_000)
    try await author.apply((1...1_000).map { .node($0, "n\($0)") } + (1...1_000).map { .state($0, "{}") })
    try await author.apply((1...8).map { .state($0, large) })
    var position: VerificationPosition?
    var nodes: Set<NodeID> = []
    var pieces = 0
    repeat {
      let piece = try await author.store.verify(author.lease, from: position)
      #expect(piece.rows.count <= 257)
      let bytes = piece.rows.reduce(0) { sum, row in
        if case .state(let record, _) = row.reading { sum + record.bytes } else { sum }
      }
      #expect(bytes <= 1 << 20 + 300_000)
      nodes.formUnion(piece.rows.map(\.node))
      try await author.apply(.state(1_000, "{}"), .node(NodeID(2_000 + pieces), "late"), .removed(900 - NodeID(pieces)))
      pieces += 1
      position = piece.next
    } while position != nil
    #expect(pieces > 5)
    #expect(nodes.isSuperset(of: 1...500))
  }

  @Test(arguments: ArchiveEngine.allCases)
  func aFencedLeaseChecksNothing(engine: ArchiveEngine) async throws {
    let fixture = try ArchiveFixture(engine)
    let author = try await fixture.author()
    _ = try await fixture.author()
    let kind = await failure { () async throws(ArchiveError) in _ = try await Self.verify(author) }
    #expect(kind == .fenced)
  }

  // MARK: Damage

  private static let application = "org.example.Notes"

  @Test(
    arguments: [
      ("UPDATE state SET text = '{\"a\":2}' WHERE sequence = 3", 1, [3]),
      ("UPDATE state SET checksum = checksum + 1 WHERE sequence = 4", 2, [4]),
      ("UPDATE state SET elements = '[]' WHERE sequence = 5", 3, [5]),
      ("UPDATE state SET written = 7 WHERE sequence IN (3, 5)", 1, [3, 5]),
    ] as [(String, NodeID, [SequenceNumber])]
  )
  func aDamagedRowIsFound(_ sql: String, _ node: NodeID, _ sequences: [SequenceNumber]) async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author(Self.application)
    try await author.apply(.node(1, "a"), .node(2, "b"), .state(1, #"{"a":1}"#), .state(2, "{}"), .state(3, "{}"))
    await author.store.close(author.lease)
    try runSQL(sql, in: "\(fixture.directory.path)/\(Self.application).sqlite")
    let outcome = try await Self.verify(try await fixture.author(Self.application))
    let bad = outcome.rows.filter { $0.fault != nil }
    #expect(bad.map(\.reading) == sequences.map { .unreadable(sequence: $0) })
    #expect(bad.first?.node == node)
    #expect(outcome.faults.isEmpty)
  }

  /// The file is changed while the store has it open: cached pages do not hide it.
  @Test func aByteThatFlipsWhileTheArchiveIsOpenIsFound() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author(Self.application)
    let text = #"{"needle":"\#(String(repeating: "y", count: 9_000))"}"#
    try await author.apply(.node(1, "a"), .state(1, text), .node(2, "b"), .state(2, "{}"))
    while try await author.store.maintain(author.lease, holding: []) {}
    #expect(try await author.text(of: 1) == text)
    try Self.flip(String(repeating: "y", count: 64), in: fixture)
    let outcome = try await Self.verify(author)
    #expect(outcome.rows.filter { $0.fault != nil }.map(\.node) == [1])
  }

  /// Changes the first byte of a text in the file.
  private static func flip(_ text: String, in fixture: ArchiveFixture) throws {
    let file = try #require(FileHandle(forUpdatingAtPath: "\(fixture.directory.path)/\(application).sqlite"))
    let bytes = try #require(try file.readToEnd())
    try file.seek(toOffset: UInt64(try #require(bytes.firstRange(of: Data(text.utf8))).lowerBound))
    try file.write(contentsOf: Data([UInt8(ascii: "_")]))
    try file.close()
  }

  @Test(arguments: [("needle", "wrong", 1), ("thread", "context 1", nil)] as [(String, String, NodeID?)])
  func aDescriptionThatFlipsWhileTheArchiveIsOpenIsFound(text: String, finding: String, node: NodeID?) async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author(Self.application)
    try await author.apply(.node(1, "needle"), .context(1, text: "thread"), .node(2, "b"), .state(2, "{}"))
    while try await author.store.maintain(author.lease, holding: []) {}
    #expect(try await Self.verify(author).faults.isEmpty)
    try Self.flip(text, in: fixture)
    let faults = try await Self.verify(author).faults
    #expect(faults.map(\.node) == [node] && faults[0].message.contains(finding), "\(faults)")
    guard node != nil else { return }
    // It is not served either.
    await #expect(throws: ArchiveError.self) { try await author.scan() }
  }

  /// A changed page of the table: rows on it cannot be read, and the file is found damaged.
  @Test func aDamagedPageIsFoundAndEndsNothing() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author(Self.application)
    try await author.apply((1...400).flatMap { [.node($0, "n\($0)"), .state($0, String(repeating: "x", count: 200))] })
    while try await author.store.maintain(author.lease, holding: []) {}
    let path = "\(fixture.directory.path)/\(Self.application).sqlite"
    let file = try #require(FileHandle(forUpdatingAtPath: path))
    let size = try file.seekToEnd()
    try file.seek(toOffset: size / 4_096 / 2 * 4_096)
    try file.write(contentsOf: Data(repeating: 0xa5, count: 4_096))
    try file.close()
    let outcome = try await Self.verify(author)
    #expect(!outcome.faults.isEmpty || outcome.rows.contains { $0.fault != nil })
    #expect(
      outcome.faults.contains { $0.node == nil && $0.message.contains("damaged") || $0.message.contains("cannot") }
    )
  }

  // MARK: Copies

  @Test func aCopyToAFileIsAWholeArchiveOfItsOwn() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author(Self.application)
    try await author.apply(.node(1, "a"), .state(1, #"{"a":0.1}"#))
    let store = try #require(author.store as? any ArchiveCopying)
    let folder = try ArchiveFolder()
    let path = "\(folder.path)/copy.sqlite"
    let bytes = try await store.copy(author.lease, to: path)
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect(attributes[.size] as? Int == bytes)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    #expect(folder.names == ["copy.sqlite"])
    let other = try ArchiveFixture(.sqlite)
    try FileManager.default.copyItem(atPath: path, toPath: "\(other.directory.path)/\(Self.application).sqlite")
    let opened = try await other.author(Self.application)
    #expect(try await opened.text(of: 1) == #"{"a":0.1}"#)
    #expect(opened.opening.sequence == author.sequence)
    #expect(opened.opening.archive != author.opening.archive)
    #expect(try await author.text(of: 1) == #"{"a":0.1}"#)
  }

  @Test(arguments: ["taken", "none/copy", "folder"])
  func aCopyThatCannotBeMadeLeavesNothing(_ name: String) async throws {
    let fixture = try ArchiveFixture(.sqlite)
    let author = try await fixture.author(Self.application)
    let store = try #require(author.store as? any ArchiveCopying)
    let folder = try ArchiveFolder()
    try Data("mine".utf8).write(to: URL(fileURLWithPath: "\(folder.path)/taken"))
    try FileManager.default.createDirectory(atPath: "\(folder.path)/folder", withIntermediateDirectories: false)
    await #expect(throws: ArchiveCopyError.self) { try await store.copy(author.lease, to: "\(folder.path)/\(name)") }
    #expect(Set(folder.names) == ["taken", "folder"])
    #expect(try Data(contentsOf: URL(fileURLWithPath: "\(folder.path)/taken")) == Data("mine".utf8))
  }

  @Test func aCopyIsNotMadeAmongTheArchives() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    let author = try await fixture.author(Self.application)
    let store = try #require(author.store as? any ArchiveCopying)
    let folder = try ArchiveFolder()
    let link = "\(folder.path)/link"
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: fixture.directory.path)
    for path in [fixture.directory.path, link] {
      let file = "\(path)/org.example.Other.sqlite"
      let refusal = ArchiveCopyError.target("\(file) is in the directory of the archives; choose another one")
      await #expect(throws: refusal) { try await store.copy(author.lease, to: file) }
      #expect(!FileManager.default.fileExists(atPath: file))
    }
  }

  @Test(arguments: ArchiveEngine.allCases)
  func aBackupSaysHowLargeItIs(engine: ArchiveEngine) async throws {
    var author = try await ArchiveFixture(engine).author()
    try await author.apply(.node(1, "a"), .state(1, "{}"))
    #expect(try await author.store.backUp(author.lease, replacingFormer: false) > 0)
  }
}
