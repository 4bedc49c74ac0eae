// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationPostgres
internal import RestorationReplica
internal import TestSupport
internal import Testing

/// What a database does when two calls meet, and what its role may not do.
@Suite(.passesTurnstile, .enabled(if: PostgresCluster.isUsable)) struct PostgresRaceTests {
  private static let application = ReplicaFixture.application

  private func broker(_ world: PostgresWorld, on host: String) -> ReplicaBroker {
    ReplicaBroker(link: world.link(from: host, term: ReplicaFixture.term), application: Self.application)
  }

  /// The text of an append of one transaction, as another program would run it.
  private func append(_ world: PostgresWorld, _ after: Int64, _ lease: ReplicaLease) -> String {
    let batch = ReplicaBatch.one(after, after + 1)
    func hexadecimal(_ bytes: [UInt8]) -> String {
      bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
    return """
      SELECT outcome FROM restoration.append_1('\(world.user)', \(lease.archive), '\(lease.id.text)', \(after),
        \(after + 1), '\(batch.change.text)', '', '\\x\(hexadecimal(batch.body))', false);

      """
  }

  /// Makes a call while another program has a transaction of this statement open; that ends when the call waits for it.
  private func meet<Value: Sendable>(
    _ statement: String,
    in world: PostgresWorld,
    _ call: @escaping @Sendable () async -> Value
  ) async throws -> Value {
    let session = try world.servers.cluster.session()
    try session.write("SELECT pg_backend_pid();\n")
    let process = try session.output?.next() ?? ""
    try session.write("BEGIN; \(statement) SELECT 'done';\n")
    while try session.output?.next() != "done" {}
    // This thread waits below.
    let answer = Task.detached(executorPreference: BlockingExecutor()) { await call() }
    try world.servers.cluster.waitUntil(aCallWaitsFor: process)
    try session.write("COMMIT;\n")
    return await answer.value
  }

  // MARK: Meetings

  @Test func aTakeoverWaitsForAnAppendAndFindsWhatItHasStored() async throws {
    let world = try PostgresWorld()
    let (a, b) = (broker(world, on: "A"), broker(world, on: "B"))
    let lease = try await a.acquire().lease
    let taken = try await meet(append(world, 0, lease), in: world) { try? await b.acquire(isForced: true) }
    #expect(taken?.tip == ReplicaTip(sequence: 1, change: .numbered(1)))
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(1, 2, lease) } == .fenced(host: "B"))
  }

  @Test func anAppendWaitsForATakeoverAndIsRefused() async throws {
    let world = try PostgresWorld()
    let a = broker(world, on: "A")
    let lease = try await a.acquire().lease
    let takeover = "UPDATE restoration.archive SET number = number + 1, lease = gen_random_uuid(), host = 'B'"
    let known = "INSERT INTO restoration.reign VALUES (\(lease.archive), 1, '\(lease.id.text)', 0);"
    let kind = try await meet("\(known) \(takeover) WHERE archive = \(lease.archive);", in: world) {
      await refusal { () async throws(ReplicaError) in try await a.append(0, 1, lease) }
    }
    #expect(kind == .fenced(host: "B"))
  }

  @Test(arguments: [true, false])
  func ofTwoAppendsAtOnePlaceTheSecondIsStoredOnceOrRefused(isSame: Bool) async throws {
    let world = try PostgresWorld()
    let a = broker(world, on: "A")
    let lease = try await a.acquire().lease
    let kind = try await meet(append(world, 0, lease), in: world) {
      await refusal { () async throws(ReplicaError) in try await a.append(0, 1, lease, change: isSame ? nil : 7) }
    }
    #expect(kind == (isSame ? nil : .gap(1)))
    #expect(try await a.load(.batches(after: 0), lease).batches == [.one(0, 1)])
  }

  @Test func aHolderThatRenewsAtTheLastMomentKeepsItsLease() async throws {
    let world = try PostgresWorld()
    let (a, b) = (broker(world, on: "A"), broker(world, on: "B"))
    let lease = try await a.acquire().lease
    #expect(await refusal { () async throws(ReplicaError) in _ = try await b.acquire() } != nil)
    world.advance(by: ReplicaFixture.term.milliseconds + 1_000)
    let renewal = "UPDATE restoration.holder SET renewal = gen_random_uuid() WHERE owner = '\(world.user)';"
    let kind = try await meet(renewal, in: world) {
      await refusal { () async throws(ReplicaError) in _ = try await b.acquire() }
    }
    guard case .elsewhere = kind else {
      Issue.record("\(String(describing: kind))")
      return
    }
    try await a.append(0, 1, lease)
  }

  // MARK: Rights

  @Test func theRoleOfTheGatewayMayCallFunctionsAndNothingElse() throws {
    let cluster = try PostgresServers.shared.get().cluster
    for table in ["ticket", "holder", "archive", "reign", "batch", "part"] {
      let rights = try cluster.query(
        """
        SELECT count(*) FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER'])
        AS kind WHERE has_table_privilege('host', 'restoration.\(table)', kind)
        """
      )
      #expect(rights == "0", "\(table)")
    }
    let open = try cluster.query(
      """
      SELECT string_agg(proname, ' ' ORDER BY proname) FROM pg_proc WHERE pronamespace = 'restoration'::regnamespace
      AND has_function_privilege('host', oid, 'EXECUTE')
      AND (proname !~ '_1$' OR proconfig IS NULL OR NOT prosecdef AND proname <> 'server_1')
      """
    )
    #expect(open == "", "each has a version and a fixed search path, and the rights of its owner, but for one")
  }

  @Test func aUserReachesNothingOfAnother() async throws {
    let (world, other) = (try PostgresWorld(), try PostgresWorld())
    let a = broker(world, on: "A")
    let lease = try await a.acquire().lease
    try await a.append(0, 1, lease)
    let eve = broker(other, on: "A")
    #expect(await refusal { () async throws(ReplicaError) in try await eve.append(1, 2, lease) } == .voided)
    #expect(await refusal { () async throws(ReplicaError) in try await eve.snapshot(2, lease) } == .voided)
    #expect(
      await refusal { () async throws(ReplicaError) in _ = try await eve.load(.batches(after: 0), lease) } == .voided
    )
    #expect(
      await refusal { () async throws(ReplicaError) in try await eve.link.release(lease, .removed) } == .voided
    )
    #expect(try await eve.link.list().isEmpty)
    #expect(try await eve.acquire().lease.archive != lease.archive)
    let erase = "SELECT restoration.erase"
    #expect(try world.servers.cluster.query("\(erase)('\(other.user)')") == "1")
    #expect(try await a.load(.batches(after: 0), lease).batches == [.one(0, 1)])
    #expect(try world.servers.cluster.query("\(erase)('\(world.user)')") == "1")
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(1, 2, lease) } == .refused)
    try world.servers.cluster.admit(world.user)
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(1, 2, lease) } == .voided)
  }

  @Test func textIsAValueAndNeverAStatement() async throws {
    let world = try PostgresWorld()
    let name = "x'); DROP SCHEMA restoration CASCADE; --\u{1F600}"
    let link = world.link(from: name, term: ReplicaFixture.term)
    let broker = ReplicaBroker(link: link, application: name)
    try await broker.link.release(try await broker.acquire().lease, .left(upto: 0, summary: [0, 255]))
    let list = try await link.list()
    #expect(list.map(\.application) == [name] && list.map(\.summary) == [[0, 255]])
    // The database has no zero in texts.
    let zero = ReplicaBroker(link: link, application: "a\0b")
    #expect(await refusal { () async throws(ReplicaError) in _ = try await zero.acquire() } == .refused)
  }

  @Test func aUserHasNoMoreRoomThanAllowedAndASnapshotMakesRoom() async throws {
    let world = try PostgresWorld()
    let way = world.servers.pool
    func batch(_ after: SequenceNumber) -> ReplicaBatch {
      let body = [UInt8](repeating: 7, count: 30)
      return ReplicaBatch(after: after, upto: after + 1, change: .numbered(after + 1), body: body)
    }
    let store = PostgresStore(on: way, userBytesMax: 80) { 0 }
    let link = store.replica(owner: world.user, host: "A", term: ReplicaFixture.term, attention: {})
    let a = ReplicaBroker(link: link, application: Self.application)
    let lease = try await a.acquire().lease
    for after in 0...1 as ClosedRange<SequenceNumber> { try await link.append(batch(after), lease) }
    let quota = ReplicaError.Kind.quota(max: 80, value: 90)
    #expect(await refusal { () async throws(ReplicaError) in try await link.append(batch(2), lease) } == quota)
    let large = SnapshotPart(
      tip: ReplicaTip(sequence: 2),
      reader: 1,
      number: 0,
      count: 2,
      bytes: [UInt8](repeating: 0, count: 51)
    )
    #expect(
      await refusal { () async throws(ReplicaError) in try await link.snapshot(large, lease) }
        == .quota(max: 80, value: 102)
    )
    for (number, count) in [(1, 1), (-1, 1), (0, 0), (0, -1)] {
      let part = SnapshotPart(tip: large.tip, reader: 1, number: number, count: count, bytes: [])
      #expect(await refusal { () async throws(ReplicaError) in try await link.snapshot(part, lease) } == .refused)
    }
    try await a.snapshot(2, lease)
    try await link.append(batch(2), lease)
    let other = PostgresStore(on: way, userBytesMax: 50) { 0 }
    let again = other.replica(owner: world.user, host: "A", term: ReplicaFixture.term, attention: {})
    let kind = await refusal { () async throws(ReplicaError) in try await again.append(batch(3), lease) }
    #expect(kind == .quota(max: 50, value: 61), "what others have added counts")
  }

  @Test func snapshotsThatAreNotCompleteDoNotAddUpWithoutLimit() async throws {
    let world = try PostgresWorld()
    let store = PostgresStore(on: world.servers.pool, userBytesMax: 100) { 0 }
    let link = store.replica(owner: world.user, host: "A", term: ReplicaFixture.term, attention: {})
    func begin(_ application: String, _ numbers: Range<Int>) async throws(ReplicaError) {
      let lease = try await ReplicaBroker(link: link, application: application).acquire().lease
      for number in numbers {
        let bytes = [UInt8](repeating: 0, count: 20)
        let part = SnapshotPart(tip: ReplicaTip(sequence: 2), reader: 1, number: number, count: 5, bytes: bytes)
        try await link.snapshot(part, lease)
      }
    }
    try await begin("a", 0..<4)
    try await begin("b", 0..<4)
    #expect(
      await refusal { () async throws(ReplicaError) in try await begin("c", 0..<4) } == .quota(max: 100, value: 220)
    )
    // Of an attempt that was given up nothing counts.
    try await begin("c", 0..<2)
  }

  @Test func aUserHasNoMoreArchivesThanAllowed() async throws {
    let world = try PostgresWorld()
    let link = world.link(from: "A", term: ReplicaFixture.term)
    _ = try await ReplicaBroker(link: link, application: "first").acquire()
    try world.servers.cluster.query(
      """
      INSERT INTO restoration.archive (owner, application, history, lease)
      SELECT '\(world.user)', number::text, 'h', gen_random_uuid() FROM generate_series(2, 1000) AS number
      """
    )
    let broker = ReplicaBroker(link: link, application: "1001")
    let quota = ReplicaError.Kind.quota(max: 1_000, value: 1_001)
    #expect(await refusal { () async throws(ReplicaError) in _ = try await broker.acquire() } == quota)
    _ = try await ReplicaBroker(link: link, application: "1000").acquire(isForced: true)
    #expect(try await link.list().map(\.application) == ((2...1_000).map { "\($0)" } + ["first"]).sorted())
  }

  // MARK: Upkeep

  @Test func whatWasRemovedIsForgottenAfter90Days() async throws {
    let world = try PostgresWorld()
    let link = world.link(from: "A", term: ReplicaFixture.term)
    for name in ["earlier", "lately"] {
      let removed = ReplicaBroker(link: link, application: name)
      let lease = try await removed.acquire().lease
      try await removed.append(0, 1, lease)
      try await link.release(lease, .removed)
    }
    let earlier = "UPDATE restoration.archive SET removed = removed - interval '91 days'"
    try world.servers.cluster.query("\(earlier) WHERE owner = '\(world.user)' AND application = 'earlier'")
    _ = try await ReplicaBroker(link: link, application: Self.application).acquire()
    func value(_ query: String) throws -> String { try world.servers.cluster.query(query) }
    let left = "SELECT string_agg(application, ' ' ORDER BY application) FROM restoration.archive"
    #expect(try value("\(left) WHERE owner = '\(world.user)'") == "lately \(Self.application)")
    let known = "EXISTS (SELECT FROM restoration.archive a WHERE a.archive = r.archive)"
    #expect(try value("SELECT count(*) FROM restoration.reign r WHERE NOT \(known)") == "0")
    // A copy that comes back all the same begins it anew.
    let reigns = [ReplicaReign(.numbered(40), end: ReplicaReign.everything)]
    let standing = ReplicaStanding(history: "h", reigns: reigns, phase: .released, archive: "copy")
    let back = try await ReplicaBroker(link: link, application: "earlier").acquire(standing)
    #expect(back.history == "h" && back.reigns.isEmpty)
  }

  @Test func theEndsOfTheLast10000LeasesAreKnown() async throws {
    let world = try PostgresWorld()
    let (a, b) = (broker(world, on: "A"), broker(world, on: "B"))
    let first = try await a.acquire()
    let archives = "archive IN (SELECT archive FROM restoration.archive WHERE owner = '\(world.user)')"
    try world.servers.cluster.query("UPDATE restoration.archive SET number = 10000 WHERE \(archives)")
    let second = try await b.acquire(isForced: true)
    #expect(second.reigns.map(\.lease) == [first.lease.id])
    try await b.append(0, 1, second.lease)
    try world.servers.cluster.query("UPDATE restoration.archive SET number = 20001 WHERE \(archives)")
    let third = try await a.acquire(first.standing, isForced: true)
    #expect(third.reigns.map(\.lease) == [second.lease.id])
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(0, 1, first.lease) } == .voided)
  }

  @Test(arguments: Environment.isLong ? PostgresCluster.Move.allCases : [.dump])
  func archivesContinueInAnotherDatabaseSystem(_ way: PostgresCluster.Move) async throws {
    let former = try PostgresWorld(failsOver: true)
    var a = broker(former, on: "A")
    let first = try await a.acquire()
    try await a.append(0, 1, first.lease)
    try await former.failOver(losing: 0)
    let second = try await a.acquire(first.standing)
    try await a.append(1, 2, second.lease)
    try former.servers.cluster.move(by: way)
    let world = try PostgresWorld(again: former)
    a = broker(world, on: "A")
    // Another broker, which knows no more than the former one has noted.
    let other = await refusal { () async throws(ReplicaError) in _ = try await broker(world, on: "B").acquire() }
    if case .elsewhere(let holder) = other { #expect(holder.host == "A") } else { Issue.record("B got it") }
    try await a.append(2, 3, second.lease)
    let third = try await a.acquire(second.standing)
    #expect((third.history, third.tip.sequence) == (first.history, 3))
    #expect(try await a.link.renew().held.map(\.key) == [third.lease])
    #expect(try await a.load(.batches(after: 0), third.lease).batches.map(\.upto) == [1, 2, 3])
  }

  private static let tables = ["holder", "archive", "reign", "batch", "part"]

  private static let backUp =
    "CREATE SCHEMA backup;" + tables.map { "CREATE TABLE backup.\($0) AS TABLE restoration.\($0);" }.joined()

  private static let putBack =
    "TRUNCATE \(tables.map { "restoration.\($0)" }.joined(separator: ", "));"
    + tables.map { "INSERT INTO restoration.\($0) OVERRIDING SYSTEM VALUE TABLE backup.\($0);" }.joined()

  /// As a backup that is started as it is, or a disk's snapshot, which begin no timeline.
  @Test func aDatabaseThatIsPutBackTellsForgottenLeasesApart() async throws {
    let world = try PostgresWorld(failsOver: true)
    let cluster = world.servers.cluster
    let (a, b) = (broker(world, on: "A"), broker(world, on: "B"))
    let first = try await a.acquire()
    try await a.append(0, 2, first.lease)
    try await a.link.release(first.lease, .left(upto: 2, summary: []))
    try cluster.query(Self.backUp)
    let second = try await b.acquire()
    try await b.append(2, 3, second.lease)
    try cluster.query(Self.putBack)

    let third = try await a.acquire(first.standing)
    #expect(third.tip.sequence == 2)
    try await a.append(2, 3, third.lease, change: 7)
    #expect(await refusal { () async throws(ReplicaError) in try await b.append(3, 4, second.lease) } == .voided)
    let other = await refusal { () async throws(ReplicaError) in _ = try await b.acquire(second.standing) }
    if case .elsewhere(let holder) = other { #expect(holder.host == "A") } else { Issue.record("B got it") }
    try await a.link.release(third.lease, .left(upto: 3, summary: []))
    let fourth = try await b.acquire(second.standing)
    let copy = CarriedCopy(archive: "copy", tip: ReplicaTip(sequence: 3, change: .numbered(3)))
    let catching = CatchingUp(copy, second.standing, fourth)
    #expect(catching.step == .install && catching.isConflict)
    // One that has nothing of its own is only behind.
    let former = CarriedCopy(archive: "copy", tip: ReplicaTip(sequence: 2, change: .numbered(2)))
    let behind = CatchingUp(former, first.standing, fourth)
    #expect(behind.step == .apply(after: 2) && !behind.isConflict)
  }

  // MARK: Who waits

  /// Also counts how often it is told that another host waits.
  private func listener(_ world: PostgresWorld) -> (broker: ReplicaBroker, count: Shared<Int>) {
    let count = Shared(0)
    let store = world.store(of: "A")
    let link = store.replica(owner: world.user, host: "A", term: ReplicaFixture.term) { count.value += 1 }
    return (ReplicaBroker(link: link, application: Self.application), count)
  }

  @Test func aBrokerIsToldOnceThatAnotherHostWaits() async throws {
    let world = try PostgresWorld()
    let store = world.store(of: "A")
    let (a, count) = listener(world)
    let lease = try await a.acquire().lease
    await store.poll()
    #expect(count.value == 0)
    _ = await refusal { () async throws(ReplicaError) in _ = try await broker(world, on: "B").acquire() }
    for _ in 1...2 { await store.poll() }
    #expect(count.value == 1)
    #expect(try await a.link.renew().wanted == [lease: "B"])
  }

  /// Between two looks of its gateway.
  @Test func aBrokerThatGotTheArchiveBackIsToldAnew() async throws {
    let world = try PostgresWorld()
    let store = world.store(of: "A")
    let (a, count) = listener(world)
    for turn in 1...2 {
      let lease = try await a.acquire().lease
      _ = await refusal { () async throws(ReplicaError) in _ = try await broker(world, on: "B").acquire() }
      await store.poll()
      #expect(count.value == turn)
      try await a.link.release(lease, .left(upto: 0, summary: []))
    }
  }
}
