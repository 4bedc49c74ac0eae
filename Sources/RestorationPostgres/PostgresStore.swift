// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
package import RestorationReplica
internal import Synchronization

/// One process's view of a database with all users' archives: makes the replicas of its brokers, remembers observations
/// of other brokers, and notifies its own when another one waits.
package final class PostgresStore: Sendable {
  private struct Watch {
    let attention: @Sendable () -> Void
    /// Archives for which the broker was notified since its last grant; under a new lease it must be notified again.
    var told: Set<Int64> = []
    var leases = 0
  }

  private struct Books {
    var judge = LeaseJudge()
    var usage = UsageBook()
    /// Brokers with leases, by the holder's id.
    var watches: [String: Watch] = [:]
  }

  /// Archives of a user, including removed ones; `take_1` counts them.
  static let archivesMax = ReplicaListing.archivesMax

  let server: any PostgresServer
  /// Whether data may be stored on one server only.
  let isAloneEnough: Bool
  /// Bytes of a page, unless one piece is larger.
  let pageBytes: Int64
  /// Bytes of contents that a user may have. A snapshot may exceed them until it has replaced the contents.
  private let userBytesMax: Int64
  private let clock: @Sendable () -> Int64
  private let state = Mutex(Books())

  /// - Parameter clock: milliseconds; counts sleep and never goes back.
  package init(
    on server: any PostgresServer,
    isAloneEnough: Bool = false,
    userBytesMax: Int64 = 256 << 20,
    pageBytes: Int64 = 512 << 10,
    clock: @escaping @Sendable () -> Int64
  ) {
    (self.server, self.isAloneEnough, self.userBytesMax) = (server, isAloneEnough, userBytesMax)
    (self.pageBytes, self.clock) = (pageBytes, clock)
  }

  /// The replica of a broker that has just started.
  ///
  /// - Parameters:
  ///   - owner: the user, identified by the caller.
  ///   - attention: called when another host has begun to wait for one of the broker's leases.
  package func replica(
    owner: String,
    host: String,
    term: LeaseTerm,
    attention: @escaping @Sendable () -> Void
  ) -> PostgresReplica { PostgresReplica(self, owner: owner, host: host, term: term, attention: attention) }

  /// Checks which leases of these brokers others wait for. Call it once a second; after a failure the renewals will
  /// tell.
  nonisolated(nonsending) package func poll() async {
    let leases = state.withLock { $0.watches.mapValues(\.leases) }
    let call = PostgresCall(.wanted, [.text(leases.keys.joined(separator: ","))])
    // Takes its own turn among the users, which have names.
    guard let rows = try? await server.run(call, for: "") else { return }
    var wanted: [String: Set<Int64>] = [:]
    for row in rows {
      guard let holder = row.text(0), let archive = row.integer(1) else { continue }
      wanted[holder, default: []].insert(archive)
    }
    let attentions = state.withLock { state in
      state.watches.keys.compactMap { holder -> (@Sendable () -> Void)? in
        guard var watch = state.watches[holder] else { return nil }
        let (archives, told) = (wanted[holder] ?? [], watch.told)
        // The answer may concern a lease that has ended meanwhile.
        watch.told = watch.leases == leases[holder] ? archives : []
        state.watches[holder] = watch
        return archives.isSubset(of: told) ? nil : watch.attention
      }
    }
    for attention in attentions { attention() }
  }

  // MARK: For the replicas

  /// Fails as `quota` if the user has no space for `bytes` more.
  nonisolated(nonsending) func reserve(_ bytes: Int, for user: String) async throws(ReplicaError) {
    let used = try await usage(of: user)
    guard used + Int64(bytes) <= userBytesMax else { throw quota(used + Int64(bytes), user) }
    state.withLock { $0.usage.add(bytes, to: user) }
  }

  /// Fails as `quota` if a snapshot is larger than the user's quota, or if with this part the user's contents and
  /// incomplete snapshots exceed twice the quota.
  ///
  /// - Parameter isFirst: a first part may replace an earlier attempt, so it is not counted.
  nonisolated(nonsending) func allow(
    _ part: Int,
    ofSnapshot bytes: Int,
    isFirst: Bool,
    for user: String
  ) async throws(ReplicaError) {
    guard bytes <= userBytesMax else { throw quota(Int64(bytes), user) }
    guard !isFirst else { return }
    let used = try await usage(of: user)
    guard used - userBytesMax + Int64(part) <= userBytesMax else { throw quota(used + Int64(part), user) }
    state.withLock { $0.usage.add(part, to: user) }
  }

  func forgetUsage(of user: String) { state.withLock { $0.usage.forget(user) } }

  private nonisolated(nonsending) func usage(of user: String) async throws(ReplicaError) -> Int64 {
    if let known = state.withLock({ $0.usage.bytes(of: user, at: clock()) }) { return known }
    do throws(PostgresFailure) {
      let bytes = try await server.run(PostgresCall(.usage, [.text(user)]), for: user).first?.integer(0) ?? 0
      state.withLock { $0.usage.learn(bytes, of: user, at: clock()) }
      return bytes
    } catch { throw ReplicaError(error) }
  }

  private func quota(_ value: Int64, _ user: String) -> ReplicaError {
    let text = "\(user) would have \(value) bytes at the database, above the \(userBytesMax) allowed"
    return ReplicaError(
      .quota(max: Int(userBytesMax), value: Int(value)),
      "\(text); forget applications, or allow more"
    )
  }

  /// Call when the holder was granted a lease.
  func watch(_ holder: String, _ attention: @escaping @Sendable () -> Void) {
    state.withLock { state in
      state.watches[holder, default: Watch(attention: attention)].leases += 1
      state.watches[holder]?.told = []
    }
  }

  func unwatch(_ holder: String) { state.withLock { $0.watches[holder] = nil } }

  func judge(_ archive: LeaseJudge.Archive, _ claim: ReplicaClaim, from broker: String) -> LeaseJudge.Verdict {
    state.withLock { $0.judge.judge(archive, claim, from: broker, at: clock()) }
  }
}

extension ReplicaError {
  /// For a call that may have changed something.
  package init(_ failure: PostgresFailure) {
    switch failure {
    case .away: self.init(.away, "the database cannot be reached: \(failure.text)")
    case .unknown: self.init(.unknown, "\(failure.text); ask again, and it is done once")
    case .refused(let state, _):
      // Temporary: a conflict with another call, no free connection, a server that stops or is a standby.
      let isTemporary = ["25", "40", "53", "55", "57", "58"].contains(state.prefix(2))
      self.init(isTemporary ? .away : .refused, "the database says: \(failure.text)")
    }
  }
}
