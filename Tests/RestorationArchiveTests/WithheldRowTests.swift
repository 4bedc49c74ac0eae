// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import TestSupport
internal import Testing

/// Rows that are kept until they are released (R35).
@Suite(.passesTurnstile) struct WithheldRowTests {
  private static func row(_ sequence: SequenceNumber) -> StateRow { StateRow(node: 1, sequence: sequence) }

  @Test(arguments: ArchiveEngine.allCases)
  func r35AWithheldRowOutlastsWhatTakesItsPlace(engine: ArchiveEngine) async throws {
    var fixture = try ArchiveFixture(engine)
    var author = try await fixture.author()
    try await author.apply(.node(1, "a"), .state(1, "bad"), .withhold([Self.row(2)], since: 77))
    try await author.apply(.state(1, "newer"), .state(1, "newest"))
    #expect(author.reachableBytes == 1 + 9)
    try await author.maintain()
    try await fixture.restart(author)
    author = try await fixture.author()
    #expect(author.reachableBytes == 1 + 9)
    #expect(author.opening.withheld == [WithheldRow(row: Self.row(2), since: 77, bytes: 3)])
    #expect(try await author.text(of: 1) == "newest")
    #expect(try await author.text(of: 1, at: .sequence(2)) == "bad")
    try await author.apply(.removeAll)
    try await author.maintain()
    #expect(try await author.text(of: 1, at: .sequence(2)) == "bad")
    try await author.apply(.release([Self.row(2)]))
    #expect(author.reachableBytes == 0)
    try await author.maintain()
    try await fixture.restart(author)
    author = try await fixture.author()
    #expect(author.opening.withheld.isEmpty)
    #expect(try await author.text(of: 1, at: .sequence(2)) == nil)
  }

  @Test(arguments: ArchiveEngine.allCases)
  func whatIsReleasedAndStillTheNewestStays(engine: ArchiveEngine) async throws {
    var author = try await ArchiveFixture(engine).author()
    try await author.apply(.node(1, "a"), .state(1, "good"), .state(1, "early", early: true))
    try await author.apply(.withhold([Self.row(2), Self.row(3)], since: 1))
    try await author.apply(.release([Self.row(2), Self.row(3)]))
    try await author.maintain()
    #expect(try await author.text(of: 1) == "early")
    #expect(try await author.text(of: 1, at: .beforeClaim) == "good")
  }

  @Test(arguments: ArchiveEngine.allCases)
  func whatNobodyCanReachIsNotWithheld(engine: ArchiveEngine) async throws {
    var fixture = try ArchiveFixture(engine)
    var author = try await fixture.author()
    try await author.apply(.node(1, "a"), .state(1, "old"), .state(1, "new"), .removeState(1))
    let rows = [1, 2, 3, 4, 9].map { Self.row($0) } + [StateRow(node: 2, sequence: 3)]
    try await author.apply(.withhold(rows, since: 1), .release(rows))
    try await author.apply(.withhold(rows, since: 1))
    #expect(author.reachableBytes == 1)
    try await fixture.restart(author)
    author = try await fixture.author()
    #expect(author.opening.withheld.isEmpty)
  }
}
