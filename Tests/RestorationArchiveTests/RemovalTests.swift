// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import TestSupport
internal import Testing

/// A broker ends while it removes an archive: what is left is the archive as it was, or nothing (R32).
@Suite(.passesTurnstile) struct RemovalTests {
  /// The files of an archive that was never closed, with all that may stand beside it.
  private static func remains(damaged: Bool) async throws -> [String: [UInt8]] {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author("x")
    try await author.apply(.node(1, "a"), .state(1, "kept"))
    try await author.store.backUp(author.lease, replacingFormer: false)
    try await author.apply(.state(1, "later"))
    var files: [String: [UInt8]] = [:]
    for name in fixture.directory.names where name.hasPrefix("x") { files[name] = try fixture.directory.read(name) }
    try #require(files.count == 4, "main file, log, mark and backup")
    if damaged { files["x+damaged-1.sqlite"] = Array("garbage".utf8) }
    await author.store.close(author.lease)
    return files
  }

  /// - Parameter asideToo: whether damaged files are to be removed as well; `nil` if there are none.
  @Test(arguments: [nil, false, true] as [Bool?])
  func anInterruptedRemovalIsNoDamage(asideToo: Bool?) async throws {
    let remains = try await Self.remains(damaged: asideToo != nil)
    func remove(with cut: EndingFiles.Cut) async throws -> (fixture: ArchiveFixture, steps: [EndingFiles.Step]) {
      let fixture = try ArchiveFixture(.sqlite)
      for (name, bytes) in remains { try fixture.directory.write(bytes, to: name) }
      let files = EndingFiles(cut)
      let store = try SQLiteArchiveStore(directory: fixture.directory.path, of: files)
      files.begin()
      try? await store.remove("x", damaged: asideToo == true)
      return (fixture, files.steps)
    }
    let all = try await remove(with: EndingFiles.Cut(end: .max, lost: [])).steps
    var wholes = 0
    var points = 0
    for end in 0...all.count {
      // The power cut loses any of those that were not synced.
      let durable = all[..<end].lastIndex(of: .sync) ?? 0
      let open = (durable..<end).filter { all[$0] == .change }
      for choice in 0..<(1 << open.count) {
        let lost = Set(open.indices.filter { choice >> $0 & 1 == 1 }.map { open[$0] })
        let fixture = try await remove(with: EndingFiles.Cut(end: end, lost: lost)).fixture
        let author = try await fixture.author("x")
        let what = "ended at \(end) of \(all), lost \(lost.sorted())"
        #expect(author.opening.damage == nil, "\(what)")
        if author.opening.nodes.isEmpty {
          #expect(end > 0, "\(what)")
        } else {
          #expect(try await author.text(of: 1) == "later", "\(what)")
          wholes += 1
        }
        let isEmpty = author.opening.nodes.isEmpty
        await author.store.close(author.lease)
        let aside = fixture.directory.names.filter { $0.hasPrefix("x+damaged") }
        let others = fixture.directory.names.filter { $0.hasPrefix("x") && !aside.contains($0) }
        #expect(others == (isEmpty ? ["x.sqlite"] : ["x+backup.sqlite", "x.sqlite"]), "\(what)")
        #expect(asideToo != false || aside.count == 1, "\(what)")
        points += 1
      }
    }
    #expect(wholes > 0 && wholes < points)
    print("\(points) ends of a removal")
  }

  /// What it would be a note about is gone with the main file.
  @Test func anArchiveThatStandsAloneGoesWithOneFile() async throws {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author("x")
    try await author.apply(.node(1, "a"))
    await author.store.close(author.lease)
    let files = EndingFiles(EndingFiles.Cut(end: .max, lost: []))
    let store = try SQLiteArchiveStore(directory: fixture.directory.path, of: files)
    files.begin()
    try await store.remove("x", damaged: false)
    #expect(files.steps == [.change, .sync])
    #expect(fixture.directory.names.filter { $0.hasPrefix("x") }.isEmpty)
  }
}
