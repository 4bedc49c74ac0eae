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

  func check() async throws(ReplicaError) {
    _ = try await store.replica(owner: "", host: "", term: LeaseTerm(milliseconds: 0), attention: {}).list()
  }

  /// Removes all archives of a user; returns their number.
  func erase(_ user: String) async throws(ReplicaError) -> Int { try await store.erase(owner: user) }
}
