// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationPostgres
internal import RestorationReplica
internal import TestSupport
internal import Testing

/// What root on one host can do to users for whom the host has no ticket. It may say at the database whatever it likes.
@Suite(.passesTurnstile, .enabled(if: PostgresCluster.isUsable)) struct PostgresTicketTests {
  /// Another host.
  private struct Intruder {
    let name: String
    let pool: PostgresPool

    /// With a ticket for this user.
    init(at world: PostgresWorld, for user: String) throws {
      let cluster = world.servers.cluster
      name = "intruder_\(world.user.split(separator: " ").last ?? "")"
      try cluster.admit(user, as: name)
      var settings = PostgresPool.Settings(conninfo: cluster.conninfo(user: name))
      (settings.appendMilliseconds, settings.callMilliseconds) = (10_000, 10_000)
      pool = try PostgresPool(settings)
    }

    func broker(of user: String) -> ReplicaBroker {
      let store = PostgresStore(on: pool) { 0 }
      let link = store.replica(owner: user, host: "I", term: ReplicaFixture.term, attention: {})
      return ReplicaBroker(link: link, application: ReplicaFixture.application)
    }
  }

  private func broker(_ world: PostgresWorld, on host: String) -> ReplicaBroker {
    ReplicaBroker(
      link: world.link(from: host, term: ReplicaFixture.term),
      application: ReplicaFixture.application
    )
  }

  /// How each call about a user's archive fails.
  private func refusals(of broker: ReplicaBroker, _ lease: ReplicaLease) async -> [ReplicaError.Kind?] {
    await [
      refusal { () async throws(ReplicaError) in try await broker.append(1, 2, lease) },
      refusal { () async throws(ReplicaError) in try await broker.snapshot(2, lease) },
      refusal { () async throws(ReplicaError) in _ = try await broker.load(.batches(after: 0), lease) },
      refusal { () async throws(ReplicaError) in try await broker.link.release(lease, .removed) },
      refusal { () async throws(ReplicaError) in _ = try await broker.link.renew() },
      refusal { () async throws(ReplicaError) in _ = try await broker.acquire(isForced: true) },
      refusal { () async throws(ReplicaError) in _ = try await broker.link.list() },
    ]
  }

  @Test func aHostWithoutATicketReachesNothingOfAUser() async throws {
    let world = try PostgresWorld()
    let a = broker(world, on: "A")
    let lease = try await a.acquire().lease
    try await a.append(0, 1, lease)
    let intruder = try Intruder(at: world, for: "eve")
    defer { intruder.pool.close() }
    let asUser = await refusals(of: intruder.broker(of: world.user), lease)
    #expect(asUser == [ReplicaError.Kind?](repeating: .refused, count: 7))
    let asSelf = await refusals(of: intruder.broker(of: "eve"), lease)
    #expect(asSelf.prefix(5) == [.voided, .voided, .voided, .voided, .voided])

    // What a gateway asks besides.
    let other = broker(world, on: "B")
    _ = await refusal { () async throws(ReplicaError) in _ = try await other.acquire() }
    let holder = try world.servers.cluster.query("SELECT holder FROM restoration.holder WHERE owner = '\(world.user)'")
    #expect(try await intruder.pool.run(PostgresCall(.wanted, [.text(holder)]), for: "").isEmpty)
    for (function, values) in [
      (.usage, []), (.want, [.integer(lease.archive), .uuid(lease.id.uuid), .text("I")]),
    ] as [(PostgresFunction, [PostgresValue])] {
      let call = PostgresCall(function, [.text(world.user)] + values)
      let error = await #expect(throws: PostgresFailure.self) { try await intruder.pool.run(call, for: "") }
      guard case .refused(state: "28000", let why) = error else {
        Issue.record("\(function): \(String(describing: error))")
        continue
      }
      #expect(why.contains("SELECT restoration.admit('\(intruder.name)', '\(world.user)')"))
    }
    #expect(try await a.load(.batches(after: 0), lease).batches == [.one(0, 1)])
    try await a.append(1, 2, lease)
  }

  @Test func aHostMakesNobodyAnAdministratorNotEvenItself() async throws {
    let world = try PostgresWorld()
    let intruder = try Intruder(at: world, for: "eve")
    intruder.pool.close()
    let name = intruder.name
    let statements = [
      "SELECT restoration.admit('\(name)', '\(world.user)')", "SELECT restoration.erase('\(world.user)')",
      "INSERT INTO restoration.ticket VALUES ('\(name)', '\(world.user)')", "SELECT * FROM restoration.ticket",
      "SET SESSION AUTHORIZATION host", "SET ROLE host", "ALTER ROLE \(name) CREATEROLE",
      "GRANT restoration_gateway TO \(name) WITH ADMIN OPTION",
      "CREATE FUNCTION restoration.is_covered(_alone int) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
      // Its own tables come last wherever names are looked up.
      """
      SET ROLE restoration_gateway; RESET ROLE; SET search_path = pg_temp, restoration;
      CREATE TEMP TABLE ticket AS SELECT session_user AS host, '\(world.user)'::text AS owner;
      SELECT * FROM restoration.list_1('\(world.user)', NULL, 10)
      """,
    ]
    for statement in statements {
      let error = #expect(throws: TestFailure.self) {
        try world.servers.cluster.query(statement, as: name)
      }
      let words = ["permission denied", "has no ticket", "must have admin option"]
      #expect(error.map { error in words.contains { error.description.contains($0) } } == true, "\(statement)")
    }
  }

  @Test func aTicketIsForAHostAndAUserThatHaveNames() throws {
    let world = try PostgresWorld()
    for names in ["'', 'ada'", "'desk', ''", "NULL, 'ada'", "'desk', NULL"] {
      let error = #expect(throws: TestFailure.self) {
        try world.servers.cluster.query("SELECT restoration.admit(\(names))")
      }
      #expect(error?.description.contains("a ticket needs the name of a host and that of a user") == true, "\(names)")
    }
  }

  @Test func aHostThatHasLostItsTicketDeniesAnArchiveForATermAtMost() async throws {
    let world = try PostgresWorld()
    let intruder = try Intruder(at: world, for: world.user)
    defer { intruder.pool.close() }
    let i = intruder.broker(of: world.user)
    let lease = try await i.acquire().lease
    try await i.append(0, 1, lease)
    try world.servers.cluster.query("DELETE FROM restoration.ticket WHERE host = '\(intruder.name)'")
    #expect(await refusals(of: i, lease) == [ReplicaError.Kind?](repeating: .refused, count: 7))
    let a = broker(world, on: "A")
    let held = await refusal { () async throws(ReplicaError) in _ = try await a.acquire() }
    if case .elsewhere(let holder) = held { #expect(holder.host == "I") } else { Issue.record("\(held as Any)") }
    world.advance(by: ReplicaFixture.term.milliseconds + 1_000)
    let grant = try await a.acquire()
    #expect(try await a.load(.batches(after: 0), grant.lease).batches == [.one(0, 1)])
  }
}
