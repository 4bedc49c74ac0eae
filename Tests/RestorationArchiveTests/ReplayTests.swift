// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationReplica
internal import TestSupport
internal import Testing

/// An archive that is written on one host after the other, each with a store of its own, which gets only what others
/// have shipped: encoded batches, without the states that later ones replace. When each of them tidies is its own
/// affair, and never shows.
/// `RESTORATIOND_SEEDS=17-20` plays those histories.
@Suite(.passesTurnstile) struct ReplayTests {
  private static let seeds: ClosedRange<UInt64> = {
    let bounds = (Environment.variable("RESTORATIOND_SEEDS") ?? "").split(separator: "-").compactMap { UInt64($0) }
    return bounds.count == 2 ? bounds[0]...bounds[1] : 1...(Environment.isLong ? 1_000 : 2)
  }()

  @Test(arguments: Array(seeds))
  func whatOneHostWritesReadsTheSameOnEachOther(seed: UInt64) async throws {
    let engine = ArchiveEngine.allCases[Int(seed % 2)]
    var fleet = try await Fleet(of: [engine, .memory, .sqlite], following: engine, seed: seed)
    for _ in 1...8 { try await fleet.stay() }
    try await fleet.finish()
  }

  /// One host has deleted the rows of a context, and the context; another one still has them, and goes on writing.
  @Test(arguments: ArchiveEngine.allCases)
  func whatAHostMayNameEachOtherHostHas(engine: ArchiveEngine) async throws {
    var (tidy, other) = (try ArchiveFixture(engine), try ArchiveFixture(engine))
    func state(_ context: ContextID) -> ArchiveChange {
      .state(StateRecord(node: 1, context: context, written: 0, text: Array("{}".utf8)[...]))
    }
    let contexts: [ArchiveChange] = [.context(1, text: "one"), .context(2, text: "two")]
    var shipped: [ChangeBatch.Transaction] = []
    func write(_ changes: [ArchiveChange], as author: inout ArchiveAuthor) async throws {
      let change = ChangeID(high: 1, low: UInt64(author.sequence))
      try await author.apply(changes, changeID: change)
      shipped.append(.init(change, changes))
    }
    var author = try await tidy.author()
    try await write([.node(1, "a")] + contexts + [state(1), state(2)], as: &author)
    for _ in 1...2 {
      try await author.maintain()
      try await tidy.restart(author)
      author = try await tidy.author()
    }
    #expect(author.opening.contexts == [2: "two"])
    var writer = try await other.author()
    try await writer.catchUp(with: [ChangeBatch(after: 0, shipped).encoded { $0 }])
    try await other.restart(writer)
    writer = try await other.author()
    #expect(writer.opening.contexts == [1: "one", 2: "two"])
    let after = writer.sequence
    shipped = []
    for context in writer.opening.usableContexts.sorted(by: >) { try await write([state(context)], as: &writer) }
    try await author.catchUp(with: [ChangeBatch(after: after, shipped).encoded { $0 }])
    #expect(author.reachableBytes == writer.reachableBytes)
    author = try await tidy.author()
    #expect(author.opening.contexts == [2: "two"])
  }
}

extension ArchiveOpening {
  /// What states may name.
  fileprivate var usableContexts: Set<ContextID> { Set(contexts.keys).subtracting(buriedContexts) }
}

private struct Fleet {
  /// Small limits, so that commits delete too and every batch ends in the middle of something.
  private static let upkeep = ArchiveUpkeep(
    deadBytesMax: 2_000,
    deadPerReachable: 1,
    batchRowsMax: 5,
    batchBytesMax: 1_500,
    logBytesMax: 60_000,
    freeBytesMax: 8_192,
    ballastBytes: 0
  )

  private var changes: RandomChanges
  private var model = NaiveArchive()
  private var hosts: [ArchiveFixture]
  /// It is never closed, and lags behind.
  private var follower: ArchiveAuthor
  private var shipped: [[UInt8]] = []
  /// Committed, but not shipped yet.
  private var waiting = CommittedTransactions(
    ReplicaSettings(host: "A", term: LeaseTerm(milliseconds: 1), promise: .disk)
  )

  init(of engines: [ArchiveEngine], following engine: ArchiveEngine, seed: UInt64) async throws {
    changes = RandomChanges(seed: seed)
    hosts = try engines.map { try ArchiveFixture($0, upkeep: Self.upkeep) }
    follower = try await ArchiveFixture(engine, upkeep: Self.upkeep).author()
  }

  /// Some host opens the archive, catches up, writes and closes it.
  mutating func stay() async throws {
    let host = changes.number(0...hosts.count - 1)
    var author = try await hosts[host].author()
    try await author.catchUp(with: shipped)
    author = try await hosts[host].author()
    try await check(author)
    var held: [SequenceNumber] = []
    for _ in 1...changes.number(5...15) {
      try await write(as: &author, holding: held)
      if changes.chance(20) { held.append(model.sequence) }
      if changes.chance(30) { try await tidy(author, holding: held) }
      if changes.chance(40) { ship() }
      if changes.chance(20) { try await follower.catchUp(with: shipped) }
      if changes.chance(30) { try await tidy(follower, holding: []) }
    }
    try await model.expectSame(author, holding: held)
    ship()
    try await hosts[host].restart(author)
    try await follower.catchUp(with: shipped)
    try await model.expectSame(follower)
  }

  /// Hosts that have followed everything, something and nothing read the same.
  mutating func finish() async throws {
    let newcomers = try ArchiveEngine.allCases.map { try ArchiveFixture($0, upkeep: Self.upkeep) }
    for fixture in hosts + newcomers {
      var author = try await fixture.author()
      try await author.catchUp(with: shipped)
      try await check(try await fixture.author())
    }
    try await follower.maintain()
    try await model.expectSame(follower)
  }

  private mutating func write(as author: inout ArchiveAuthor, holding held: [SequenceNumber]) async throws {
    var transaction = changes.transaction(on: model)
    // Often, so that many are in use one after the other.
    if changes.chance(20) { transaction = [.context(model.lastContext + 1, text: "{}")] }
    let forgotten = changes.chance(20) ? author.unnamedContexts.filter { model.contexts[$0] != nil } : []
    if !forgotten.isEmpty { transaction = [.forgetContexts(forgotten)] }
    let changeID = ChangeID(high: 0, low: UInt64(model.sequence))
    try await author.apply(transaction, changeID: changeID, holding: held)
    model.apply(transaction)
    let committed = CommittedTransaction(upto: model.sequence, change: changeID, changes: transaction)
    _ = waiting.add(committed, at: 0)
    #expect(author.sequence == model.sequence)
    #expect(author.reachableBytes == model.reachableBytes)
  }

  private mutating func ship() {
    let transactions = waiting.take(at: 0)
    guard let first = transactions.first else { return }
    shipped.append(ChangeBatch(after: first.after, transactions.map { .init($0.change, $0.changes) }).encoded { $0 })
  }

  private mutating func tidy(_ author: ArchiveAuthor, holding held: [SequenceNumber]) async throws {
    for _ in 0..<changes.number(1...6) { _ = try await author.store.maintain(author.lease, holding: held) }
  }

  /// From here on only contexts are used that every host has: rows name them that all show. The opening says which.
  private mutating func check(_ author: ArchiveAuthor) async throws {
    let expected = model.reopen(listing: [])
    #expect(author.opening.usableContexts == Set(expected.contexts.keys))
    expected.expectSame(author.opening)
    #expect(author.opening.damage == nil)
    for (context, text) in expected.contexts { #expect(author.opening.contexts[context] == text) }
    try await model.expectSame(author)
  }
}

extension ArchiveAuthor {
  /// Nothing is tidied in between: what no row names yet may be named by what is to come.
  fileprivate mutating func catchUp(with shipped: [[UInt8]]) async throws {
    for bytes in shipped {
      let batch = try ChangeBatch(decoding: bytes)
      guard batch.upto > sequence else { continue }
      #expect(batch.after == sequence)
      for transaction in batch.transactions { try await apply(transaction.changes, changeID: transaction.changeID) }
    }
  }
}
