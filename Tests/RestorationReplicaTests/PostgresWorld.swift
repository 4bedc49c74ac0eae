// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationPostgres
internal import RestorationReplica
internal import Synchronization
internal import TestSupport

/// Archives in a real database: one for all tests, each of which has a user of its own, or a test's own.
final class PostgresWorld: ReplicaWorld {
  private struct Host {
    let way: PostgresWay
    let store: PostgresStore
  }

  private static let users = Atomic<Int>(0)

  let servers: PostgresServers
  let user: String
  private let failsOver: Bool
  private let isCovered = Shared(true)
  private let time = Shared<Int64>(0)
  private let hosts = Mutex<[String: Host]>([:])

  init(failsOver: Bool = false) throws {
    self.failsOver = failsOver
    user = "user \(PostgresWorld.users.wrappingAdd(1, ordering: .relaxed).newValue)"
    servers = failsOver ? try PostgresServers(isCovered: false) : try PostgresServers.shared.get()
  }

  /// As the gateways see it that were started again.
  init(again former: PostgresWorld) throws {
    (failsOver, user) = (former.failsOver, former.user)
    servers = try PostgresServers(former.servers.cluster)
  }

  func link(from host: String, term: LeaseTerm) -> any ArchiveReplica {
    store(of: host).replica(owner: user, host: host, term: term, attention: {})
  }

  /// What a host sees of the database.
  func store(of host: String) -> PostgresStore { self.host(host).store }

  private func host(_ name: String) -> Host {
    hosts.withLock { hosts in
      if let host = hosts[name] { return host }
      let way = PostgresWay { [servers, isCovered] in isCovered.value ? servers.pool : servers.uncovered }
      let store = PostgresStore(on: way, isAloneEnough: failsOver, pageBytes: 2) { [time] in time.value }
      hosts[name] = Host(way: way, store: store)
      return Host(way: way, store: store)
    }
  }

  func advance(by milliseconds: Int64) { time.value += milliseconds }

  func failOver(losing transactions: Int) async throws {
    try servers.cluster.failOver(losing: transactions)
    // As they do once a second.
    for host in hosts.withLock({ Array($0.values) }) { await host.store.poll() }
  }

  func cut(_ host: String) { self.host(host).way.cut(true) }
  func mend(_ host: String) { self.host(host).way.cut(false) }
  func loseAnswer(to host: String) { self.host(host).way.loseAnswer() }
  func setCovered(_ isCovered: Bool) { self.isCovered.value = isCovered }
}

/// A cluster with the schema, and connections to it.
final class PostgresServers: Sendable {
  static let shared = Result { try PostgresServers(isCovered: true) }

  let cluster: PostgresCluster
  let pool: PostgresPool
  /// The same server without another one that would have what is stored.
  let uncovered: PostgresPool

  convenience init(isCovered: Bool) throws {
    // On a busy machine what is to meet takes longer than an append waits for a lock.
    let patience = "ALTER FUNCTION restoration.append_1 SET lock_timeout = '10s';"
    // One host speaks for the users of all tests, and has connections for all of them. Statements of the administrator
    // call functions too.
    let tickets = """
      SELECT restoration.admit('host', 'ada'); ALTER ROLE host CONNECTION LIMIT -1;
      INSERT INTO restoration.ticket SELECT host, 'user ' || number
      FROM unnest('{host,admin}'::name[]) AS host, generate_series(1, 10000) AS number;
      """
    let cluster = try PostgresCluster(PostgresSchema.text + patience + tickets, isCovered: isCovered)
    try self.init(cluster)
  }

  init(_ cluster: PostgresCluster) throws {
    self.cluster = cluster
    var settings = PostgresPool.Settings(conninfo: cluster.conninfo())
    (settings.appendMilliseconds, settings.callMilliseconds) = (10_000, 10_000)
    pool = try PostgresPool(settings)
    settings.conninfo = cluster.conninfo(options: "-c synchronous_commit=local")
    uncovered = try PostgresPool(settings)
  }

  deinit { for pool in [pool, uncovered] { pool.close() } }
}

/// A host's way to the servers.
final class PostgresWay: PostgresServer {
  private struct State {
    var isCut = false
    var losesAnswer = false
  }

  private let state = Mutex(State())
  private let server: @Sendable () -> any PostgresServer

  init(_ server: @escaping @Sendable () -> any PostgresServer) { self.server = server }

  func cut(_ isCut: Bool) { state.withLock { $0.isCut = isCut } }
  func loseAnswer() { state.withLock { $0.losesAnswer = true } }

  nonisolated(nonsending) func run(
    _ call: PostgresCall,
    for user: String
  ) async throws(PostgresFailure) -> [PostgresRow] {
    guard !state.withLock({ $0.isCut }) else { throw .away("the host is cut off") }
    let rows = try await server().run(call, for: user)
    // Of a call of its own that comes first nothing is lost.
    if call.function == .usage { return rows }
    let isLost = state.withLock { state in
      defer { state.losesAnswer = false }
      return state.losesAnswer
    }
    guard !isLost else { throw .unknown("the answer was lost") }
    return rows
  }
}

/// A value that several threads use.
final class Shared<Value: Sendable>: Sendable {
  private let content: Mutex<Value>

  init(_ value: Value) { content = Mutex(value) }

  var value: Value {
    get { content.withLock { $0 } }
    set { content.withLock { $0 = newValue } }
  }
}
