// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import TestSupport
internal import Testing

/// Archives on a disk that is mounted read-only; only root can make one.
@Suite(.passesTurnstile, .enabled(if: SmallDisk.isPossible, "only root can mount")) struct ReadOnlyTests {
  private let disk: SmallDisk
  private let folder: ArchiveFolder

  init() throws { (disk, folder) = (try SmallDisk(bytes: 4 << 20), try ArchiveFolder()) }

  private func files() throws -> [String: [UInt8]] {
    Dictionary(uniqueKeysWithValues: try Files.list(disk.path).map { ($0, try Files.read("\(disk.path)/\($0)")) })
  }

  private func author(_ store: SQLiteArchiveStore, _ application: String = "x") async throws -> ArchiveAuthor {
    ArchiveAuthor(store: store, opening: try await store.open(application), directory: folder)
  }

  /// Writes an archive of two states, the second after a backup.
  ///
  /// - Parameter isKilled: whether its log is left, as by a broker that was killed.
  private func write(isKilled: Bool) async throws {
    let store = try SQLiteArchiveStore(directory: disk.path, upkeep: ArchiveUpkeep(ballastBytes: 0))
    var author = try await author(store)
    try await author.apply(.node(1, "a"), .state(1, "one"))
    try await author.store.backUp(author.lease, replacingFormer: false)
    try await author.apply(.node(2, "b"), .state(2, "two"))
    let open = try files()
    await store.close(author.lease)
    if isKilled { for (name, bytes) in open { try Files.write(bytes, to: "\(disk.path)/\(name)") } }
  }

  @Test(arguments: [true, false]) func anArchiveIsReadAndNoFileIsTouched(isKilled: Bool) async throws {
    try await write(isKilled: isKilled)
    try disk.makeReadOnly()
    let before = try files()
    let store = try SQLiteArchiveStore(directory: disk.path)
    #expect(store.isReadOnly)
    let summary = try #require(try await store.list().first)
    #expect(summary.state == .available && summary.objects == 2)
    for _ in 1...2 {
      var author = try await author(store)
      #expect(author.opening.readOnly != nil && author.opening.damage == nil)
      #expect(author.opening.nodes.map(\.node.component) == ["a", "b"])
      #expect(try await author.text(of: 2) == "two")
      // Sessions are served; their writes are lost when the archive is closed.
      try await author.apply(.node(3, "c"))
      try await author.maintain()
      #expect(try await author.scan().count == 3)
      let lease = author.lease
      let kind = await failure { () async throws(ArchiveError) in
        _ = try await store.backUp(lease, replacingFormer: false)
      }
      #expect(kind == .definite)
      await store.close(lease)
    }
    let kind = await failure { () async throws(ArchiveError) in try await store.remove("x", damaged: true) }
    #expect(kind == .definite)
    #expect(try files() == before)
  }

  @Test func anApplicationWithoutAnArchiveIsServed() async throws {
    try disk.makeReadOnly()
    let store = try SQLiteArchiveStore(directory: disk.path)
    let kind = await failure { () async throws(ArchiveError) in _ = try await store.open("new", for: .reading) }
    #expect(kind == .absent)
    var author = try await author(store, "new")
    try await author.apply(.node(1, "a"))
    #expect(author.opening.nodes.isEmpty && author.opening.readOnly != nil)
    await store.close(author.lease)
    try await store.remove("new", damaged: false)
    #expect(try await store.list().isEmpty && files().isEmpty)
  }

  @Test func r32WhatIsSoundOfADamagedArchiveIsServedBesideTheBackup() async throws {
    try await write(isKilled: false)
    let path = "\(disk.path)/x.sqlite"
    var bytes = try Files.read(path)
    bytes.replaceSubrange(4096..<8192, with: repeatElement(0xa5, count: 4096))
    try Files.write(bytes, to: path)
    try disk.makeReadOnly()
    let before = try files()
    let store = try SQLiteArchiveStore(directory: disk.path)
    let author = try await author(store)
    #expect(author.opening.damage?.contains("read-only") == true)
    #expect(try await author.text(of: 1) == "one")
    #expect(try await author.text(of: 2) == "two")
    #expect(try files() == before)
  }

  @Test(arguments: FormatOne.allCases) func anArchiveOfFormatOneIsRead(_ format: FormatOne) async throws {
    for (name, bytes) in try format.files { try Files.write(bytes, to: "\(disk.path)/\(name)") }
    try disk.makeReadOnly()
    let opening = try await SQLiteArchiveStore(directory: disk.path).open(FormatOne.application)
    let migrated = try await format.fixture().author(FormatOne.application).opening
    #expect(opening.nodes == migrated.nodes && opening.generations == migrated.generations)
  }

  /// Somebody has made it writable again.
  @Test func theNextOpeningStoresAgain() async throws {
    try await write(isKilled: true)
    try disk.makeReadOnly()
    let store = try SQLiteArchiveStore(directory: disk.path)
    await store.close(try await store.open("x").lease)
    try disk.grow(to: 8 << 20)
    for count in 2...3 {
      var author = try await author(store)
      #expect(author.opening.readOnly == nil && author.opening.damage == nil)
      #expect(author.opening.nodes.count == count)
      try await author.apply(.node(3, "c"))
      await store.close(author.lease)
    }
  }
}
