// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import TestSupport
internal import Testing

/// A main file with a damaged page: what is on the others is served beside the backup (R32).
@Suite(.passesTurnstile) struct SalvageTests {
  private static let main = "org.example.Notes.sqlite"
  private static let backup = "org.example.Notes+backup.sqlite"
  private static let objects: ClosedRange<NodeID> = 1...150
  /// Those that were removed after the backup.
  private static let removed: ClosedRange<NodeID> = 141...150
  private static let pageBytes = 4096

  /// Wherever a page holds a part of it, the page names the object.
  private static func text(_ word: String, _ node: NodeID) -> String {
    String(repeating: "\(word) \(node);", count: node % 10 == 0 ? 800 : 20)
  }

  /// The objects that a page names behind a word.
  private static func objects(_ word: String, on page: ArraySlice<UInt8>) -> Set<NodeID> {
    let parts = page.split(separator: UInt8(ascii: ";")).compactMap { part -> NodeID? in
      let words = part.split(separator: UInt8(ascii: " "))
      guard words.count > 1, words[words.count - 2].reversed().starts(with: word.utf8.reversed()) else { return nil }
      return words.last.flatMap { NodeID(String(decoding: $0, as: UTF8.self)) }
    }
    return Set(parts)
  }

  /// Objects whose states said "kept" when the archive was backed up and said "later" when it was closed.
  private static func files() async throws -> (main: [UInt8], backup: [UInt8]) {
    let fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author()
    try await author.apply(objects.map { .node($0, "object \($0);") })
    try await author.apply(objects.map { .state($0, text("kept", $0)) })
    try await author.store.backUp(author.lease, replacingFormer: false)
    try await author.apply(objects.map { .state($0, text("later", $0)) })
    try await author.apply(removed.map { .removed($0) })
    try await author.maintain()
    await author.store.close(author.lease)
    return (try fixture.directory.read(main), try fixture.directory.read(backup))
  }

  /// Opens an archive of such files.
  private static func open(_ main: [UInt8], _ backup: [UInt8]?) async throws -> ArchiveAuthor {
    let fixture = try ArchiveFixture(.sqlite)
    try fixture.directory.write(main, to: Self.main)
    if let backup { try fixture.directory.write(backup, to: Self.backup) }
    return try await fixture.author()
  }

  @Test(arguments: [true, false], [0, 0xa5] as [UInt8])
  func r32WhateverPageIsDamagedNothingReadableIsLostAndNothingOlderReplacesNewer(
    isBackedUp: Bool,
    byte: UInt8
  ) async throws {
    let (main, backup) = try await Self.files()
    var kinds: Set<UInt8> = []
    for number in 0..<main.count / Self.pageBytes {
      let place = number * Self.pageBytes..<(number + 1) * Self.pageBytes
      let page = main[place]
      if let kind = page.first { kinds.insert(kind) }
      var damaged = main
      damaged.replaceSubrange(place, with: repeatElement(byte, count: Self.pageBytes))
      var author = try await Self.open(damaged, isBackedUp ? backup : nil)
      let isFound = author.opening.damage != nil
      let (texts, names) = (Self.objects("later", on: page), Self.objects("object", on: page))
      for node in Self.objects where !Self.removed.contains(node) {
        let found = try await author.text(of: node)
        let former = isBackedUp ? Self.text("kept", node) : nil
        let expected = texts.contains(node) ? (isFound ? former : Optional("unreadable")) : Self.text("later", node)
        #expect(found == expected, "object \(node), page \(number)")
      }
      let components = Dictionary(
        uniqueKeysWithValues: author.opening.nodes.map { ($0.node.node, $0.node.component ?? "") }
      )
      for node in Self.objects where !Self.removed.contains(node) {
        let isNamed = !names.contains(node) || isBackedUp
        // Without its name and its state nothing is left of an object.
        let expected: String? = isNamed ? "object \(node);" : texts.contains(node) ? nil : "damaged-\(node)"
        #expect(components[node] == expected, "object \(node), page \(number)")
      }
      // Only the table of objects tells what was removed, and the first page and inner ones lead to it.
      if number > 0, page.first != 5, names.isEmpty {
        #expect(Self.removed.allSatisfy { components[$0] == nil }, "page \(number)")
      }
      try await author.apply(.state(1, "next"))
      #expect(try await author.text(of: 1) == "next")
      await author.store.close(author.lease)
    }
    // The first page, inner pages and leaves of tables, and pages of which the first byte says nothing.
    #expect(kinds.isSuperset(of: [UInt8(ascii: "S"), 5, 13, 0]), "\(kinds)")
  }

  /// A person has put files of another time beside the archive.
  @Test func r32ABackupOfAnotherHistoryIsNotMixedWithWhatIsSound() async throws {
    let main = try await Self.files().main
    let other = try ArchiveFixture(.sqlite)
    var author = try await other.author()
    try await author.apply(.node(7, "another"), .state(7, "other"))
    try await author.store.backUp(author.lease, replacingFormer: false)
    await author.store.close(author.lease)
    var damaged = main
    let page = Self.pageBytes..<2 * Self.pageBytes
    damaged.replaceSubrange(page, with: repeatElement(0xa5, count: page.count))
    let opening = try await Self.open(damaged, try other.directory.read(Self.backup)).opening
    #expect(opening.nodes.map(\.node.component) == ["another"])
    #expect(opening.damage?.contains("backup") == true)
  }
}
