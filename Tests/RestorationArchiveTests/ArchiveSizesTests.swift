// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import Testing

@Suite struct ArchiveSizesTests {
  @Test(arguments: ArchiveEngine.allCases)
  func sizesFollowWhatIsMadeWrittenAndRemoved(engine: ArchiveEngine) async throws {
    let fixture = try ArchiveFixture(engine)
    let sizes = fixture.store.sizes
    #expect(sizes.all == ArchiveSizes.Sum())
    var first = try await fixture.author("Box@1")
    _ = try await fixture.author("Box@2")
    _ = try await fixture.author("Boxes")
    #expect(sizes.all.archives == 3 && sizes.of("Box").archives == 2 && sizes.of("Boxes").archives == 1)
    #expect(sizes.has("Box@1") && !sizes.has("Box"))
    let before = sizes.of("Box").bytes
    try await first.apply(.state(1, String(repeating: "x", count: 100_000)))
    #expect(sizes.of("Box").bytes >= before + 100_000)
    #expect(sizes.all.bytes == sizes.of("Box").bytes + sizes.of("Boxes").bytes)
    await fixture.store.close(first.lease)
    try await fixture.store.remove("Box@1", damaged: false)
    #expect(sizes.of("Box").archives == 1 && sizes.of("Box").bytes <= before && !sizes.has("Box@1"))
  }

  @Test func aStoreKnowsTheFilesThatItFinds() async throws {
    var fixture = try ArchiveFixture(.sqlite)
    var author = try await fixture.author("Box@1")
    try await author.apply(.state(1, String(repeating: "x", count: 100_000)))
    try await fixture.restart(author)
    let listed = try await fixture.store.list().map(\.bytes)
    #expect(fixture.store.sizes.of("Box") == ArchiveSizes.Sum(archives: 1, bytes: listed.reduce(0, +)))
  }
}
