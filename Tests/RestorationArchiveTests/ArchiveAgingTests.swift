// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import Testing

/// When files of archives were written, and the list of days beside them.
@Suite struct ArchiveAgingTests {
  private let fixture: ArchiveFixture
  private let store: any ArchiveAging

  init() throws {
    fixture = try ArchiveFixture(.sqlite)
    store = try #require(fixture.store as? any ArchiveAging)
  }

  /// All of them, one after the other.
  private func unwritten(since time: Int64) async throws -> [String] {
    var names: [String] = []
    while let next = try await store.unwritten(since: time, after: names.last ?? "") { names.append(next.application) }
    return names
  }

  private func make(_ names: String...) async throws {
    for name in names {
      var author = try await fixture.author(name)
      try await author.apply(.node(1, "a"))
      await author.store.close(author.lease)
    }
  }

  @Test func archivesThatWereNotWrittenSinceATimeAreNamedInOrder() async throws {
    try await make("a", "b@2", "c")
    try fixture.directory.write([1], to: "a+damaged-1.sqlite")
    #expect(try await unwritten(since: 1).isEmpty)
    #expect(try await unwritten(since: .max) == ["a", "b@2", "c"])
    fixture.directory.setOld("b@2.sqlite")
    #expect(try await unwritten(since: 1) == ["b@2"])
  }

  @Test func anArchiveWhoseLogWasWrittenSinceIsNotNamed() async throws {
    try await make("a", "b")
    for name in ["a", "b"] { fixture.directory.setOld("\(name).sqlite") }
    try fixture.directory.write([1], to: "a.sqlite-wal")
    #expect(try await unwritten(since: 1) == ["b"])
    fixture.directory.link("elsewhere", from: "b.sqlite-wal")
    #expect(try await unwritten(since: .max) == ["a"])
  }

  @Test func theDaysAreOneFileThatIsReplacedWhole() async throws {
    #expect(try await store.days() == nil)
    for text in ["2026-11-22\n", "2026-11-22\n2026-11-23\n"] {
      try await store.keepDays(text)
      #expect(try await store.days() == text)
      #expect(try fixture.directory.read("days") == Array(text.utf8))
    }
    #expect(fixture.directory.names == ["days"] && fixture.directory.mode("days") == 0o600)
    try fixture.directory.write([UInt8](repeating: 50, count: 70_000), to: "days")
    #expect(try await store.days() == "")
  }
}
