// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RestorationArchive
internal import RestorationPostgres
internal import RestorationReplica
internal import TestSupport
internal import Testing

/// What becomes of calls when connections and servers fail.
@Suite(.passesTurnstile, .enabled(if: PostgresCluster.isUsable)) struct PostgresConnectionTests {
  private func broker(_ pool: PostgresPool, isAloneEnough: Bool = false) -> ReplicaBroker {
    let store = PostgresStore(on: pool, isAloneEnough: isAloneEnough) { 0 }
    let link = store.replica(owner: "ada", host: "A", term: ReplicaFixture.term, attention: {})
    return ReplicaBroker(link: link, application: ReplicaFixture.application)
  }

  /// Repeats an append until it is stored, as a broker does: on a busy machine an answer may come too late.
  private func store(by broker: ReplicaBroker, _ lease: ReplicaLease) async throws {
    let deadline = Deadline()
    while true {
      do throws(ReplicaError) {
        return try await broker.append(0, 1, lease)
      } catch {
        guard [.away, .unknown].contains(error.kind), !deadline.isOver else { throw error }
      }
    }
  }

  /// What becomes of an append that is sent: on a busy machine it may be too late for that, and is put again.
  private func append(by broker: ReplicaBroker, _ lease: ReplicaLease) async -> ReplicaError.Kind? {
    var outcome: ReplicaError.Kind?
    repeat {
      outcome = await refusal { () async throws(ReplicaError) in try await broker.append(0, 1, lease) }
    } while outcome == .away
    return outcome
  }

  @Test func aCommitWhoseWaitIsCancelledIsUnknownAndItsRepetitionIsStoredOnce() async throws {
    let servers = try PostgresServers(isCovered: true)
    let a = broker(servers.pool)
    let lease = try await a.acquire().lease
    servers.cluster.freeze()
    // This thread waits below.
    let cut = Task.detached(executorPreference: BlockingExecutor()) {
      await refusal { () async throws(ReplicaError) in try await a.append(0, 1, lease) }
    }
    try servers.cluster.waitForCommit()
    try servers.cluster.query("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
    #expect(await cut.value == .unknown, "the server itself calls that a success")
    let again = Task.detached(executorPreference: BlockingExecutor()) { try await a.append(0, 1, lease) }
    try servers.cluster.waitForCommit()
    servers.cluster.resume()
    try await again.value
    #expect(try await a.load(.batches(after: 0), lease).batches == [.one(0, 1)])
  }

  @Test func aCommitThatIsNotConfirmedInTimeIsUnknown() async throws {
    let servers = try PostgresServers(isCovered: true)
    var settings = PostgresPool.Settings(conninfo: servers.cluster.conninfo())
    settings.appendMilliseconds = 100
    let pool = try PostgresPool(settings)
    defer { pool.close() }
    let (hasty, a) = (broker(pool), broker(servers.pool))
    let lease = try await hasty.acquire().lease
    servers.cluster.freeze()
    #expect(await append(by: hasty, lease) == .unknown)
    servers.cluster.resume()
    try await store(by: a, lease)
    #expect(try await a.load(.batches(after: 0), lease).batches == [.one(0, 1)])
    try servers.cluster.query("ALTER SYSTEM SET synchronous_standby_names = ''; SELECT pg_reload_conf()")
    try Wait.until("the server has read its settings") {
      try servers.cluster.query("SHOW synchronous_standby_names").isEmpty
    }
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(1, 2, lease) } == .uncovered)
  }

  @Test func whileTheServerIsNotToWarnNothingIsStored() async throws {
    let cluster = try PostgresServers.shared.get().cluster
    let options = "-c client_min_messages=error"
    let pool = try PostgresPool(.init(conninfo: cluster.conninfo(options: options)))
    defer { pool.close() }
    let a = broker(pool)
    #expect(await refusal { () async throws(ReplicaError) in _ = try await a.acquire() } == .uncovered)
  }

  @Test func whileCommitsAreStuckNoConnectionIsMadeAndNothingIsStored() async throws {
    let servers = try PostgresServers(isCovered: true)
    var settings = PostgresPool.Settings(conninfo: servers.cluster.conninfo())
    (settings.appendMilliseconds, settings.stuckMax) = (100, 1)
    let pool = try PostgresPool(settings)
    defer { pool.close() }
    let a = broker(pool)
    let lease = try await a.acquire().lease
    servers.cluster.freeze()
    #expect(await append(by: a, lease) == .unknown)
    try Wait.until("the commit has waited for longer than an append may take") {
      try servers.cluster.query(
        """
        SELECT max(clock_timestamp() - query_start) > interval '0.1 s' FROM pg_stat_activity
        WHERE wait_event = 'SyncRep'
        """
      ) == "t"
    }
    for _ in 1...2 {
      #expect(await refusal { () async throws(ReplicaError) in try await a.append(0, 1, lease) } == .away)
    }
    servers.cluster.resume()
    try Wait.until("no commit waits") {
      try servers.cluster.query("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == "0"
    }
    try await store(by: a, lease)
    #expect(try await a.load(.batches(after: 0), lease).batches == [.one(0, 1)])
  }

  @Test func aServerThatWasReplacedIsNotWrittenTo() async throws {
    let (former, present) = (try PostgresServers(isCovered: false), try PostgresServers(isCovered: false))
    try present.cluster.failOver()
    let hosts = [present, former].map { $0.cluster.directory }.joined(separator: ",")
    let pool = try PostgresPool(.init(conninfo: "host=\(hosts) user=host dbname=postgres"))
    defer { pool.close() }
    let a = broker(pool, isAloneEnough: true)
    let lease = try await a.acquire(isForced: true).lease
    try present.cluster.stop()
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(0, 1, lease) } == .away)
    try present.cluster.launch()
    try await store(by: a, lease)
  }

  @Test func afterAServerThatHangsTheNextCallAsksTheNextOne() async throws {
    let cluster = try PostgresServers.shared.get().cluster
    let directory = try ScratchDirectory()
    defer { directory.remove() }
    // It takes connections, and says nothing.
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    let silent = TestSupport.FileDescriptor(owning: socket(AF_UNIX, type, 0))
    let isBound = TestSupport.FileDescriptor.withAddress(of: directory.file(".s.PGSQL.5432")) {
      bind(silent.number, $0, $1) == 0
    }
    try #require(isBound && listen(silent.number, 8) == 0)
    let hosts = "\(directory.path),\(cluster.directory)"
    var settings = PostgresPool.Settings(conninfo: "host=\(hosts) user=host dbname=postgres")
    settings.callMilliseconds = 1_000
    let pool = try PostgresPool(settings)
    defer { pool.close() }
    let call = PostgresCall(.server, [.integer(1_000)])
    await #expect(throws: PostgresFailure.self) { try await pool.run(call, for: "ada") }
    #expect(try await pool.run(call, for: "ada").count == 1)
  }

  @Test func connectionsStartOnDemandAndEndWithoutWork() async throws {
    let cluster = try PostgresServers.shared.get().cluster
    var settings = PostgresPool.Settings(conninfo: cluster.conninfo())
    (settings.connectionsMax, settings.idleMilliseconds) = (2, 50)
    let pool = try PostgresPool(settings)
    #expect(pool.connections == 0)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<20 {
        group.addTask { _ = try? await pool.run(PostgresCall(.server, [.integer(1_000)]), for: "\(number)") }
      }
    }
    #expect((1...2).contains(pool.connections))
    try Wait.until("the connections are closed") { pool.connections == 0 }
    #expect(try await pool.run(PostgresCall(.server, [.integer(1_000)]), for: "ada").count == 1)
    pool.close()
    await #expect(throws: PostgresFailure.self) {
      try await pool.run(PostgresCall(.server, [.integer(1_000)]), for: "ada")
    }
  }

  /// - Parameter isOneRefused: Whether the database refuses a statement among those that wait.
  @Test(arguments: [false, true]) func appendsThatWaitAreStoredTogetherButARefusedOneAlone(isOneRefused: Bool)
    async throws
  {
    let world = try PostgresWorld()
    var settings = PostgresPool.Settings(conninfo: world.servers.cluster.conninfo())
    (settings.connectionsMax, settings.appendMilliseconds) = (1, 10_000)
    let pool = try PostgresPool(settings)
    defer { pool.close() }
    let link = PostgresStore(on: pool, isAloneEnough: false) { 0 }
      .replica(owner: world.user, host: "A", term: ReplicaFixture.term, attention: {})
    let archives = (0..<7).map { ReplicaBroker(link: link, application: "org.example.\($0)") }
    var leases: [ReplicaLease] = []
    for archive in archives { leases.append(try await archive.acquire().lease) }
    let session = try world.servers.cluster.session()
    try session.write("SELECT pg_backend_pid();\n")
    let process = try session.output?.next() ?? ""
    let first = "SELECT FROM restoration.archive WHERE archive = \(leases[0].archive) FOR UPDATE"
    try session.write("BEGIN; \(first); SELECT 'done';\n")
    while try session.output?.next() != "done" {}
    // This thread waits below.
    var appends: [Task<Void, any Error>] = []
    for (archive, lease) in zip(archives, leases).dropLast() {
      appends.append(Task.detached(executorPreference: BlockingExecutor()) { try await archive.append(0, 1, lease) })
      if appends.count == 1 { try world.servers.cluster.waitUntil(aCallWaitsFor: process) }
    }
    let values: [PostgresValue] = [
      .text(world.user), .integer(leases[6].archive), .uuid(leases[6].id.uuid), .integer(0), .integer(0),
      .uuid(.numbered(1)), .bytes([]), .bytes([1]), .truth(false),
    ]
    let refused = Task.detached(executorPreference: BlockingExecutor()) {
      if isOneRefused { _ = try await pool.run(PostgresCall(.append, values), for: world.user) }
    }
    try Wait.until("the others wait") { pool.load.waiting == (isOneRefused ? 6 : 5) }
    try session.write("COMMIT;\n")
    for append in appends { try await append.value }
    let outcome = await refused.result
    let transactions = try world.servers.cluster.query(
      """
      SELECT count(DISTINCT batch.xmin::text) FROM restoration.batch JOIN restoration.archive USING (archive)
      WHERE owner = '\(world.user)'
      """
    )
    if isOneRefused {
      #expect(throws: PostgresFailure.self) { try outcome.get() }
      #expect(["3", "4"].contains(transactions))
    } else {
      #expect(transactions == "2")
    }
  }

  @Test func anAppendWaitsForALockOnlyBriefly() async throws {
    let servers = try PostgresServers(isCovered: false)
    try servers.cluster.query("ALTER FUNCTION restoration.append_1 SET lock_timeout = '20ms'")
    let a = broker(servers.pool, isAloneEnough: true)
    let lease = try await a.acquire().lease
    let session = try servers.cluster.session()
    try session.write("BEGIN; SELECT 'locked' FROM restoration.archive FOR UPDATE;\n")
    while try session.output?.next() != "locked" {}
    #expect(await refusal { () async throws(ReplicaError) in try await a.append(0, 1, lease) } == .away)
    try session.write("COMMIT; SELECT 'free';\n")
    while try session.output?.next() != "free" {}
    try await store(by: a, lease)
  }

  @Test func aCallWhoseCallerNoLongerWaitsIsNotCarriedOut() async throws {
    let pool = try PostgresServers.shared.get().pool
    let call = PostgresCall(.server, [.integer(1_000)])
    func isAnswered() async -> Bool { (try? await pool.run(call, for: "ada")) != nil }
    let isLate = await ReplicaCall.$deadline.withValue(.now) { await !isAnswered() }
    let isInTime = await ReplicaCall.$deadline.withValue(.now + .seconds(10)) { await isAnswered() }
    #expect(isLate && isInTime)
  }

  @Test func aConnectionThatTheServerHasEndedIsMadeAnew() async throws {
    let servers = try PostgresServers(isCovered: false)
    let a = broker(servers.pool, isAloneEnough: true)
    let lease = try await a.acquire().lease
    let ended = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE usename <> 'admin'"
    // A pool makes another one while the first one is busy.
    #expect(["1", "2"].contains(try servers.cluster.query(ended)))
    try await store(by: a, lease)
  }
}
