// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import RestorationArchive
internal import RestorationPostgres
internal import RestorationReplica
internal import RestorationTransport

struct GatewayDatabase: Sendable {
  static let schema = PostgresSchema.text

  private let pool: PostgresPool
  private let store: PostgresStore
  private let connectionsMax: Int

  /// Makes no connection yet.
  init(_ configuration: GatewayConfiguration) throws(GatewayConfiguration.Fault) {
    var settings = PostgresPool.Settings(conninfo: configuration.conninfo)
    settings.connectionsMax = configuration.pool
    do throws(PostgresFailure) {
      pool = try PostgresPool(settings)
      connectionsMax = settings.connectionsMax
      store = PostgresStore(
        on: pool,
        isAloneEnough: !configuration.synchronous,
        userBytesMax: Int64(configuration.userBytesMax),
        // Counts sleep: a suspended host has not watched the others meanwhile.
        clock: { Host.bootMilliseconds }
      )
    } catch .away(let why) {
      throw GatewayConfiguration.Fault("conninfo cannot be used: \(why)")
    } catch {
      throw GatewayConfiguration.Fault("conninfo cannot be used: \(ReplicaError(error).message)")
    }
  }

  func replica(
    owner: String,
    host: String,
    term: LeaseTerm,
    attention: @escaping @Sendable () -> Void
  ) -> any ArchiveReplica { store.replica(owner: owner, host: host, term: term, attention: attention) }

  /// Checks once a second which leases other hosts wait for.
  func watch(on eventLoop: any EventLoop) {
    eventLoop.scheduleRepeatedAsyncTask(initialDelay: .seconds(1), delay: .seconds(1)) { [store] _ in
      eventLoop.makeFutureWithTask { await store.poll() }
    }
  }

  var load: GatewayMetrics.Database {
    let (busy, waiting) = pool.load
    return GatewayMetrics.Database(
      connections: pool.connections,
      connectionsMax: connectionsMax,
      busy: busy,
      waiting: waiting
    )
  }

  /// Stores something as a broker does, of a user without a name, and removes it again.
  func check() async throws(ReplicaError) {
    let replica = store.replica(owner: "", host: "", term: LeaseTerm(milliseconds: 15_000), attention: {})
    do throws(ReplicaError) {
      // The lease of a check that was ended may still hold.
      let lease = try await replica.acquire("check", as: ReplicaClaim(reader: 1, isForced: true)).lease
      try await replica.append(ReplicaBatch(after: 0, upto: 1, change: .random(), body: [0]), lease)
      try await replica.release(lease, .removed)
    } catch {
      guard error.kind == .unknown else { throw error }
      let look = "compare SHOW synchronous_standby_names with SELECT application_name FROM pg_stat_replication"
      throw ReplicaError(.unknown, "the database has not confirmed a write in time. Is a standby missing? \(look)")
    }
  }
}
