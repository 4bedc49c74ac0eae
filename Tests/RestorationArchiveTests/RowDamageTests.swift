// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import SeededRandom
internal import TestSupport
internal import Testing

/// Rows of nodes and contexts that are not as the store wrote them (R32): none is served, what is sound is, and what the
/// file still has of the others can be found.
@Suite(.passesTurnstile) struct RowDamageTests {
  private static let main = "x.sqlite"
  private static let aside = "x+damaged-1.sqlite"

  /// A closed archive with rows of every kind, and what readers see of it.
  private static func files() async throws -> (bytes: [UInt8], contents: ArchiveContents) {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author("x")
    for changes in FormatOne.transactions { try await author.apply(changes) }
    await author.store.close(author.lease)
    author = try await fixture.author("x")
    let contents = try await ArchiveContents(of: author)
    await author.store.close(author.lease)
    return (try fixture.directory.read(main), contents)
  }

  private static let values = [
    "9223372036854775807", "-9223372036854775808", "-1", "0", "1", "2", "3", "5", "9007199254740993", "1e300", "NULL",
    "''", "'x'", "'3'", "x'ff00fe'", "'Main'", "'{}'",
  ]
  private static let columns = [
    "node": [
      "sequence", "node", "parent", "kind", "keepsForever", "isConfidential", "isRemoved", "successor", "bytes",
      "component", "classes", "restorationClass", "storyboard", "checksum",
    ],
    "context": ["context", "text", "checksum"],
  ]

  /// A change of one column of one row, in SQL.
  private static func change(_ generator: inout SeededGenerator) -> String {
    let table = Int.random(in: 0..<5, using: &generator) == 0 ? "context" : "node"
    let column = columns[table]?.randomElement(using: &generator) ?? ""
    let row = "(SELECT rowid FROM \(table) LIMIT 1 OFFSET \(Int.random(in: 0..<10, using: &generator)))"
    let value =
      switch Int.random(in: 0..<4, using: &generator) {
      case 0: "(SELECT \(column) FROM \(table) LIMIT 1 OFFSET \(Int.random(in: 0..<10, using: &generator)))"
      case 1: "\(column) + 1"
      case 2: "substr(\(column), 2)"
      default: values.randomElement(using: &generator) ?? "0"
      }
    return "UPDATE OR REPLACE \(table) SET \(column) = \(value) WHERE rowid = \(row)"
  }

  @Test func r32NoChangedRowIsServedAndNoStateIsLost() async throws {
    let count = Environment.isLong ? 10_000 : 150
    let (bytes, contents) = try await Self.files()
    var generator = SeededGenerator(seed: 20_261_125)
    var reported = 0
    for number in 0..<count {
      let sql = (0..<Int.random(in: 1...3, using: &generator)).map { _ in Self.change(&generator) }
      let fixture = try ArchiveFixture(.sqlite)
      try fixture.directory.write(bytes, to: Self.main)
      // A change that is refused leaves less damage.
      for change in sql { _ = try? runSQL(change, in: fixture.directory.file(Self.main)) }
      if try await Self.check(fixture, contents, "\(number): \(sql.joined(separator: "; "))") { reported += 1 }
    }
    #expect(reported > count / 2 && reported < count)
    print("\(count) damages of rows: \(reported) mended and reported, the others harmless")
  }

  /// Opens damaged rows: either they are as they were, or the opening reports the damage; returns whether it did.
  private static func check(_ fixture: ArchiveFixture, _ sound: ArchiveContents, _ comment: Comment) async throws
    -> Bool
  {
    let found = try fixture.directory.read(main)
    var author = try await fixture.author("x")
    let contents = try await ArchiveContents(of: author)
    guard let report = author.opening.damage else {
      #expect(contents == sound, comment)
      await author.store.close(author.lease)
      return false
    }
    #expect(try fixture.directory.read(aside) == found, comment)
    #expect(report.contains(aside), comment)
    expectNothingForeign(in: contents, sound, comment)
    // Every state that the head had is there still, under some name.
    #expect(contents.texts[0] == sound.texts[0], comment)
    #expect(Set(contents.nodes[0].map(\.node.node)).isSuperset(of: sound.texts[0].keys), comment)
    try await author.apply(.run(RunRecord(run: 9, restorations: 9, facts: "")))
    await author.store.close(author.lease)
    author = try await fixture.author("x")
    // It has been mended for good.
    #expect(author.opening.damage == nil, comment)
    #expect(try await ArchiveContents(of: author).nodes == contents.nodes, comment)
    #expect(fixture.directory.names.filter { $0.contains("+damaged-") } == [aside], comment)
    await author.store.close(author.lease)
    return true
  }

  /// Every description was once written of its node, or says that it is unknown; the same of contexts.
  private static func expectNothingForeign(in contents: ArchiveContents, _ sound: ArchiveContents, _ comment: Comment) {
    let written = Set(
      FormatOne.transactions.joined().compactMap { if case .node(let record) = $0 { record } else { nil } }
    )
    for record in contents.nodes.joined().map(\.node) where !written.contains(record) {
      #expect(record.component == "damaged-\(record.node)" && record.isConfidential, comment)
    }
    for (context, text) in contents.contexts where text != "{}" { #expect(sound.contexts[context] == text, comment) }
  }

  // MARK: What each finding leads to

  private static func opening(after sql: String...) async throws -> (author: ArchiveAuthor, contents: ArchiveContents) {
    let fixture = try ArchiveFixture(.sqlite)
    try fixture.directory.write(try await files().bytes, to: main)
    for sql in sql { try runSQL(sql, in: fixture.directory.file(main)) }
    let author = try await fixture.author("x")
    return (author, try await ArchiveContents(of: author))
  }

  /// Nothing can be repaired in such an archive, so the files go aside once, and not as copies before that. The sound
  /// rows of the other tables are served.
  @Test(arguments: [true, false])
  func anArchiveThatLacksATableGoesAsideEvenIfRowsAreDamagedToo(isFormer: Bool) async throws {
    let bytes = isFormer ? try #require(try FormatOne.closed.files[Self.main]) : try await Self.files().bytes
    let tables = [
      "archive", "tip", "state", "early", "withheld", "unclosed", "damage", "node", "emptied", "generation", "context",
      "session", "claim", "run",
    ]
    // Opening adds them to the first archives of format 1.
    for table in tables where !isFormer || !["withheld", "unclosed", "damage"].contains(table) {
      let fixture = try ArchiveFixture(.sqlite)
      let path = fixture.directory.file(Self.main)
      try fixture.directory.write(bytes, to: Self.main)
      try runSQL("UPDATE node SET component = 'x' WHERE sequence = (SELECT max(sequence) FROM node)", in: path)
      try runSQL("DROP TABLE \(table)", in: path)
      let found = try fixture.directory.read(Self.main)
      let author = try await fixture.author("x")
      let report = try #require(author.opening.damage, "\(table)")
      #expect(report.contains(table) && report.contains(fixture.directory.file(Self.aside)), "\(report)")
      // The nodes of format 1 are not recognised without their states.
      #expect(author.opening.nodes.isEmpty == (isFormer && table == "state"), "\(table)")
      #expect(try fixture.directory.read(Self.aside) == found, "\(table)")
      #expect(!fixture.directory.names.contains("x+damaged-2.sqlite"), "\(table)")
      await author.store.close(author.lease)
    }
  }

  @Test func anOlderRowOfTheNodeApplies() async throws {
    let (author, contents) = try await Self.opening(after: "UPDATE node SET component = 'Editor' WHERE sequence = 32")
    #expect(author.opening.damage?.contains("node 2): everything else is as it was; the files are kept") == true)
    #expect(contents.nodes[0].first { $0.node.node == 2 }?.node.component == "Éditeur#3")
  }

  @Test func aNewerRowStandsInForGenerationsBeforeIt() async throws {
    let (author, contents) = try await Self.opening(after: "UPDATE node SET parent = 3 WHERE sequence = 7")
    #expect(author.opening.damage != nil)
    for point in [0, 2] {
      #expect(contents.nodes[point].first { $0.node.node == 2 }?.node.component == "Éditeur", "\(point)")
    }
  }

  @Test func anObjectThatHasLostItsPathIsGivenAName() async throws {
    let (author, contents) = try await Self.opening(after: "UPDATE node SET classes = NULL WHERE sequence = 6")
    #expect(author.opening.damage?.contains("that have lost their path are called damaged-1; ") == true)
    let found = contents.nodes[0].map(\.node)
    #expect(found.first { $0.node == 1 }?.component == "damaged-1")
    // What is below it still is.
    #expect(found.first { $0.node == 3 }?.parent == 1)
  }

  @Test(arguments: ["DELETE FROM node WHERE node=1", "UPDATE node SET node=6 WHERE sequence=6"])
  func aNodeWithoutARowIsFoundByItsStateOrItsChildren(sql: String) async throws {
    let (author, contents) = try await Self.opening(after: sql)
    #expect(author.opening.damage?.contains("damaged-1") == true)
    for nodes in [contents.nodes[0], contents.nodes[3]] {
      #expect(nodes.first { $0.node.node == 1 }?.node.component == "damaged-1")
    }
    let alone = try await Self.opening(after: sql, "DELETE FROM state WHERE node = 1")
    #expect(alone.contents.nodes[0].first { $0.node.node == 1 }?.node.component == "damaged-1")
  }

  /// What is mended must not be out of range afterwards.
  @Test func aDamagedContextThatWasNeverGivenOutIsDropped() async throws {
    let (author, contents) = try await Self.opening(
      after: "UPDATE tip SET lastContext = 0",
      "UPDATE context SET checksum = 0"
    )
    #expect(author.opening.damage?.contains("context 1, 2): everything else is as it was") == true)
    #expect(contents.contexts.isEmpty)
  }

  @Test(arguments: ["UPDATE context SET text='{}' WHERE context=2", "DELETE FROM context WHERE context=2"])
  func aDamagedContextCostsOnlyWhatItSays(sql: String) async throws {
    let (author, contents) = try await Self.opening(after: sql)
    #expect(author.opening.damage?.contains("context 2): everything else is as it was") == true)
    #expect(contents.contexts == [1: #"{"class":"Windows"}"#, 2: "{}"])
    #expect(contents.texts == (try await Self.files().contents.texts))
  }
}
