// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import SeededRandom
internal import TestSupport
internal import Testing

/// `Protocol/archive-format.md` is correct: its example runs as written.
@Suite(.passesTurnstile) struct ArchiveFormatTests {
  private static var page: String {
    get throws {
      let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
      return try Files.text("/\(root)/Protocol/archive-format.md")
    }
  }

  private static func blocks(of kind: String) throws -> [String] {
    try page.split(separator: "```\(kind)\n").dropFirst().map { rest in
      String(rest.prefix(upTo: rest.firstRange(of: "```")?.lowerBound ?? rest.endIndex))
    }
  }

  private static func example() async throws -> ArchiveFixture {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author("org.example.Notes")
    let state = { (text: String, early: Bool, session: SessionID) -> ArchiveChange in
      .state(
        StateRecord(
          node: 2,
          context: 1,
          session: session,
          revision: 3,
          isEarly: early,
          written: 1_795_000_000_000,
          text: Array(text.utf8)[...],
          references: early ? nil : "[[0,1,1]]"
        )
      )
    }
    let sealed = GenerationRecord(generation: 1, kind: "startup", committed: 0, objects: 1, bytes: 10)
    try await author.apply(.node(1, "Main"), .node(2, "Editor", parent: 1), .context(1, text: "{}"))
    try await author.apply(state(#"{"line":1}"#, false, 1), .seal(sealed), .pin(generation: 1))
    try await author.apply(state(#"{"line":2}"#, false, 2), state("{}", true, -3), .node(2, "Editor"))
    await author.store.close(author.lease)
    return fixture
  }

  @Test func theExampleIsWhatTheShellShows() async throws {
    let fixture = try await Self.example()
    let commands = try Self.blocks(of: "console").flatMap { $0.split(separator: "$ ").map(String.init) }
    #expect(commands.count == 6)
    for command in commands {
      let end = try #require(command.firstIndex(of: "\n"))
      let line = String(command[..<end])
      let expected = String(command[command.index(after: end)...])
      let result = try ChildProcess.run(["sh", "-c", line], directory: fixture.directory.path)
      #expect(result.output == expected, "\(line): \(result.errors)")
    }
  }

  @Test func anybodyCanVerifyTheChecksums() async throws {
    let fixture = try await Self.example()
    let program = try #require(try Self.blocks(of: "python").first)
    let result = try ChildProcess.run(["python3", "-c", program], directory: fixture.directory.path)
    let rows = ["state 4", "state 7", "state 8", "node 1", "node 2", "node 9", "context 1"]
    #expect(result.output == rows.map { "\($0) True\n" }.joined(), "\(result.errors)")
  }

  @Test func everyTableAndColumnIsDescribed() async throws {
    let fixture = try await Self.example()
    let path = fixture.directory.file("org.example.Notes.sqlite")
    let columns = try runSQL(
      "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'",
      in: path
    )
    #expect(columns.count > 60)
    let page = try Self.page
    for column in columns {
      let parts = column.split(separator: "|").map(String.init)
      let table = try #require(page.split(separator: "\n").first { $0.hasPrefix("| `\(parts[0])` |") }, "\(column)")
      #expect(parts[1] == "id" || table.contains("`\(parts[1])`"), "\(column)")
    }
  }

  @Test func theChecksumIsThatOfZlib() {
    #expect(Self.checksum([]) == 0)
    #expect(Self.checksum(Array("123456789".utf8)) == 0xcbf4_3926)
    #expect(Self.checksum(Array("The quick brown fox jumps over the lazy dog".utf8)) == 0x414f_a339)
    // Python: zlib.crc32(bytes(i * 7 % 256 for i in range(1000)))
    #expect(Self.checksum((0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 7) }) == 0x114a_d5ff)
  }

  @Test func theChecksumIsTheSameByBothWaysHoweverTheBytesCome() {
    var random = SeededGenerator(seed: 0xC2C)
    for _ in 0..<2_000 {
      let bytes = (0..<Int.random(in: 0...700, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      let splits = (0..<Int.random(in: 0...3, using: &random)).map { _ in
        Int.random(in: 0...bytes.count, using: &random)
      }
      var checksum = Checksum()
      for (start, end) in zip([0] + splits.sorted(), splits.sorted() + [bytes.count]) {
        bytes[start..<end].withUnsafeBytes { checksum.update($0) }
      }
      #expect(checksum.value == Self.checksum(bytes, byTables: true), "\(bytes.count) bytes, split at \(splits)")
    }
  }

  private static func checksum(_ bytes: [UInt8], byTables: Bool = false) -> UInt32 {
    var checksum = Checksum(byTables: byTables)
    bytes.withUnsafeBytes { checksum.update($0) }
    return checksum.value
  }
}
