// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import NIOCore
internal import RestorationArchive
internal import RestorationReplica
internal import SeededRandom

/// The ways of several hosts to one replica, whose calls and answers take time, come late, or are lost.
///
/// Not in `MemoryReplica`, where a call takes no time. It has a loop of its own: what is on its way arrives although
/// the host that has sent it is frozen, or its broker has been killed. Used from one thread.
final class SimulatedNetwork: @unchecked Sendable {
  /// What befalls one host.
  struct Weather {
    var losesCalls = false
    var losesAnswers = false
    /// How many milliseconds longer than others the next call, or the next answer, is on its way.
    var delay: Int64 = 0
  }

  /// After so many milliseconds a call has failed, whatever becomes of it.
  private static let patience: Int64 = 6_000

  let loop = TestEventLoop()
  let replica = MemoryReplica(pageMax: 2)
  /// How many milliseconds a call, or an answer, is on its way at most.
  var slownessMilliseconds: Int64 = 5
  /// How often an archive was taken by force.
  private(set) var forcedClaims = 0
  /// Hosts that were given an archive, and those of them from which it was taken by force since, or whose takeover was
  /// lost.
  private var granted: Set<String> = []
  private(set) var deposed: Set<String> = []
  /// Hosts that have not been told at their last question what they still have.
  private(set) var unanswered: Set<String> = []
  /// Who has the archive since it was taken from a host that had not given it back, and how many transactions there were
  /// then.
  private var takeover: (host: String, written: Int)?
  private var weather: [String: Weather] = [:]
  private var chance: SeededGenerator
  /// Answers that wait until another server has what they promise.
  private var uncovered: [(send: () -> Void, lose: () -> Void)] = []

  init(seed: UInt64) { chance = SeededGenerator(seed: seed) }

  func change(_ host: String, _ body: (inout Weather) -> Void) { body(&weather[host, default: Weather()]) }

  var nowMilliseconds: Int64 { Int64(loop.now.uptimeNanoseconds / 1_000_000) }

  func advance(to end: NIODeadline) {
    repeat {
      let next = max(loop.now, min(end, loop.nextDeadline ?? end))
      replica.advance(by: (next - loop.now).nanoseconds / 1_000_000)
      loop.advance(to: next)
      loop.run()
    } while loop.now < end
  }

  // MARK: The servers

  /// Whether another server gets what is stored from now on. Until it does, answers wait.
  func setFollowed(_ isFollowed: Bool) {
    replica.setFollowed(isFollowed)
    guard isFollowed else { return }
    let waiting = uncovered
    uncovered = []
    for answer in waiting { answer.send() }
  }

  /// Whoever waits for another server is told that it is unknown whether anything was stored.
  func endWaiting() {
    let waiting = uncovered
    uncovered = []
    for answer in waiting { answer.lose() }
  }

  /// Another server takes over. It lacks what it was never promised to have, and so many transactions more. If it lacks
  /// a takeover, the host from which the archive was taken may have it back.
  func promote(losing transactions: Int) {
    endWaiting()
    let cover = replica.cover
    if let takeover, takeover.written > cover.covered - transactions { deposed.insert(takeover.host) }
    replica.promote(losing: cover.written - cover.covered + transactions)
  }

  /// Who holds the archives, for whoever checks.
  var holders: [String] {
    let (link, holders) = (replica.link(from: "nobody"), NIOLoopBoundBox<[String]>([], eventLoop: loop))
    _ = Task(executorPreference: loop) {
      holders.value = ((try? await link.list()) ?? []).compactMap(\.holder?.host)
    }
    loop.run()
    return holders.value
  }

  // MARK: On the way

  /// The way of a broker that has just been started; what it sends when it is no longer alive goes nowhere.
  func way(
    from host: String,
    term: LeaseTerm,
    isAlive: @escaping @Sendable () -> Bool,
    attention: @escaping @Sendable () -> Void
  ) -> SimulatedWay {
    let link = replica.link(from: host, term: term) { [weak self] in
      self?.pass(to: host) { if isAlive() { attention() } }
    }
    return SimulatedWay(link, self, host, isAlive)
  }

  private func after(_ milliseconds: Int64, _ body: @escaping @Sendable () -> Void) -> Scheduled<Void> {
    loop.scheduleTask(in: .milliseconds(milliseconds), body)
  }

  private func duration(of host: String) -> Int64 {
    var duration = Int64.random(in: 1...slownessMilliseconds, using: &chance)
    guard let delay = weather[host]?.delay, delay > 0, Bool.random(using: &chance) else { return duration }
    duration += delay
    weather[host]?.delay = 0
    return duration
  }

  private func pass(to host: String, _ body: @escaping @Sendable () -> Void) {
    _ = after(duration(of: host)) { [self] in if weather[host]?.losesAnswers != true { body() } }
  }

  fileprivate func send<Value>(
    from host: String,
    _ exchange: Exchange<Value>,
    _ body: @escaping @Sendable () async throws(ReplicaError) -> Value
  ) {
    let silence = ReplicaError(exchange.lost, "no answer; ask again")
    exchange.limit = after(Self.patience) { exchange.end(.failure(silence)) }
    _ = after(duration(of: host)) { [self] in
      guard weather[host]?.losesCalls != true else { return }
      _ = Task(executorPreference: loop) { [self] in
        do throws(ReplicaError) {
          answer(.success(try await body()), to: host, exchange)
        } catch {
          answer(.failure(error), to: host, exchange)
        }
      }
    }
  }

  private func answer<Value>(_ result: Result<Value, ReplicaError>, to host: String, _ exchange: Exchange<Value>) {
    let send = { [self] in pass(to: host) { exchange.end(result) } }
    let cover = replica.cover
    guard case .success = result, cover.due > cover.covered else { return send() }
    let loss = ReplicaError(exchange.lost, "the server has ended the call; ask again")
    uncovered.append((send, { [self] in pass(to: host) { exchange.end(.failure(loss)) } }))
  }

  fileprivate func noteForcedClaim() { forcedClaims += 1 }

  fileprivate func noteRenewal(of host: String, isAnswered: Bool) {
    if isAnswered { unanswered.remove(host) } else { unanswered.insert(host) }
  }

  fileprivate func noteGrant(_ grant: ReplicaGrant, to host: String, byForce: Bool) {
    if byForce { deposed = granted }
    deposed.remove(host)
    granted.insert(host)
    if let former = grant.former, former.host != host {
      takeover = (host, replica.cover.written)
    } else if let takeover {
      // If it is lost, so is this.
      self.takeover = (host, takeover.written)
    }
  }
}

/// A call, and what its caller has been told.
private final class Exchange<Value: Sendable>: @unchecked Sendable {
  let held: HeldCall<Void>
  /// What it means if no answer comes.
  let lost: ReplicaError.Kind
  private(set) var result: Result<Value, ReplicaError>?
  var limit: Scheduled<Void>?

  private let isAlive: @Sendable () -> Bool

  init(on loop: TestEventLoop, lost: ReplicaError.Kind, _ isAlive: @escaping @Sendable () -> Bool) {
    (held, self.lost, self.isAlive) = (HeldCall(on: loop), lost, isAlive)
  }

  /// Only the first end counts. What was killed waits for ever.
  func end(_ result: Result<Value, ReplicaError>) {
    guard isAlive(), case nil = self.result else { return }
    self.result = result
    limit?.cancel()
    held.letGo()
  }
}

/// A broker's way to the replica.
struct SimulatedWay: ArchiveReplica {
  private let link: MemoryReplicaLink
  private let network: SimulatedNetwork
  private let host: String
  private let isAlive: @Sendable () -> Bool

  fileprivate init(
    _ link: MemoryReplicaLink,
    _ network: SimulatedNetwork,
    _ host: String,
    _ isAlive: @escaping @Sendable () -> Bool
  ) { (self.link, self.network, self.host, self.isAlive) = (link, network, host, isAlive) }

  nonisolated(nonsending) private func call<Value: Sendable>(
    lost: ReplicaError.Kind = .unknown,
    _ body: @escaping @Sendable () async throws(ReplicaError) -> Value
  ) async throws(ReplicaError) -> Value {
    let exchange = Exchange<Value>(on: network.loop, lost: lost, isAlive)
    if isAlive() { network.send(from: host, exchange, body) }
    _ = await exchange.held.wait()
    return try (exchange.result ?? .failure(ReplicaError(lost, "it was never sent"))).get()
  }

  nonisolated(nonsending) func acquire(
    _ application: String,
    as claim: ReplicaClaim
  ) async throws(ReplicaError) -> ReplicaGrant {
    try await call { [link, network, host] () async throws(ReplicaError) in
      // The answer may be lost.
      if claim.isForced { network.noteForcedClaim() }
      let grant = try await link.acquire(application, as: claim)
      network.noteGrant(grant, to: host, byForce: claim.isForced)
      return grant
    }
  }

  nonisolated(nonsending) func renew() async throws(ReplicaError) -> ReplicaRenewal {
    do throws(ReplicaError) {
      let renewal = try await call(lost: .away) { [link] () async throws(ReplicaError) in try await link.renew() }
      network.noteRenewal(of: host, isAnswered: true)
      return renewal
    } catch {
      network.noteRenewal(of: host, isAnswered: false)
      throw error
    }
  }

  nonisolated(nonsending) func append(_ batch: ReplicaBatch, _ lease: ReplicaLease) async throws(ReplicaError) {
    try await call { [link] () async throws(ReplicaError) in try await link.append(batch, lease) }
  }

  nonisolated(nonsending) func load(
    _ lease: ReplicaLease,
    from position: ReplicaPosition
  ) async throws(ReplicaError) -> ReplicaPage {
    try await call(lost: .away) { [link] () async throws(ReplicaError) in try await link.load(lease, from: position) }
  }

  nonisolated(nonsending) func snapshot(_ part: SnapshotPart, _ lease: ReplicaLease) async throws(ReplicaError) {
    try await call { [link] () async throws(ReplicaError) in try await link.snapshot(part, lease) }
  }

  nonisolated(nonsending) func release(_ lease: ReplicaLease, _ end: ReplicaEnd) async throws(ReplicaError) {
    try await call { [link] () async throws(ReplicaError) in try await link.release(lease, end) }
  }

  nonisolated(nonsending) func list(after application: String?) async throws(ReplicaError) -> ReplicaListing {
    try await call(lost: .away) { [link] () async throws(ReplicaError) in try await link.list(after: application) }
  }
}
