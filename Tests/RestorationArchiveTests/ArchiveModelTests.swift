// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import TestSupport
internal import Testing

/// Random histories, in which each engine must agree with `NaiveArchive`.
@Suite(.passesTurnstile) struct ArchiveModelTests {
  @Test(arguments: ArchiveEngine.allCases, Array(1...5) as [UInt64])
  func anyHistoryReadsAsTheNaiveArchiveSays(engine: ArchiveEngine, seed: UInt64) async throws {
    // Small limits, so that commits delete too and every batch ends in the middle of something.
    let upkeep = ArchiveUpkeep(
      deadBytesMax: 6000,
      deadPerReachable: 1,
      batchRowsMax: 5,
      batchBytesMax: 3000,
      logBytesMax: 60_000,
      freeBytesMax: 8192,
      ballastBytes: 0
    )
    var history = try await History(engine: engine, seed: seed, upkeep: upkeep)
    for step in 1...(Environment.isLong ? 300 : 200) {
      try await history.write()
      if step % 5 == 0 { try await history.tidy() }
      if step % 10 == 0 { try await history.check() }
      if step % 30 == 0 { try await history.restart() }
    }
    try await history.finish()
  }
}

private struct History {
  var fixture: ArchiveFixture
  var author: ArchiveAuthor
  var changes: RandomChanges
  var model = NaiveArchive()
  /// Points at which cursors read.
  var held: [SequenceNumber] = []

  init(engine: ArchiveEngine, seed: UInt64, upkeep: ArchiveUpkeep) async throws {
    fixture = try ArchiveFixture(engine, upkeep: upkeep)
    author = try await fixture.author()
    changes = RandomChanges(seed: seed)
  }

  mutating func write() async throws {
    var transaction = changes.transaction(on: model)
    if changes.chance(5) {
      transaction.append(.seal(0))
      let kind = await failure { [author, transaction, held] () async throws(ArchiveError) in
        var author = author
        try await author.apply(transaction, holding: held)
      }
      #expect(kind == .definite)
      return
    }
    // The store tells which contexts the file names no longer, dead rows included.
    let forgotten = changes.chance(20) ? author.unnamedContexts : []
    #expect(!forgotten.contains(where: model.isNamed))
    if !forgotten.isEmpty { transaction = [.forgetContexts(forgotten + [model.lastContext + 1])] }
    try await author.apply(transaction, holding: held)
    model.apply(transaction)
    #expect(author.sequence == model.sequence)
    #expect(author.reachableBytes == model.reachableBytes)
    if changes.chance(10) { held.append(model.sequence) }
    if held.count > 3 || changes.chance(5) { held = Array(held.dropFirst()) }
  }

  mutating func tidy() async throws {
    for _ in 0..<changes.number(1...6) { _ = try await author.store.maintain(author.lease, holding: held) }
  }

  mutating func restart() async throws {
    held = []
    try await fixture.restart(author)
    author = try await fixture.author()
    let expected = model.reopen(listing: Set(author.opening.contexts.keys))
    #expect(author.opening.contexts == expected.contexts)
    #expect(author.opening.buriedContexts == expected.buriedContexts)
    expected.expectSame(author.opening)
    try await check()
  }

  func check() async throws { try await model.expectSame(author, holding: held) }

  /// Without cursors, upkeep finishes and leaves only reachable rows.
  mutating func finish() async throws {
    held = []
    try await author.maintain()
    #expect(try await author.maintain() == 1)
    try await check()
    try await restart()
    try await author.apply(.removeAll, .pin(generation: nil))
    try await author.apply(model.generations.map { .dropGeneration($0.record.generation) })
    try await author.apply(.release(model.withheld.values.map(\.row)))
    #expect(author.reachableBytes == 0)
    try await author.maintain()
    #expect(try await author.scan().isEmpty)
  }
}
