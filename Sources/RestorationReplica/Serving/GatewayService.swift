// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
internal import Logging
package import NIOCore
internal import RestorationArchive
package import RestorationTransport
internal import RestorationWire

/// Serves the archives of a host's users, each to that user's brokers only; the kernel identifies the user.
///
/// A broker that returns within `absenceSeconds` on another connection keeps its replica. Calls of one archive run one
/// after the other in the order of their arrival, and in parallel with those of others. Runs on its listener's event
/// loop, which is its executor.
package actor GatewayService {
  /// Makes a broker's replica. The function is called when another host begins to wait for its lease.
  package typealias MakeReplica =
    @Sendable (
      _ owner: String, _ host: String, _ term: LeaseTerm, _ attention: @escaping @Sendable () -> Void
    ) -> any ArchiveReplica

  /// Returns a user's name, which may take long, on any thread; `nil` if the user is unknown.
  package typealias FindUser =
    @Sendable (_ uid: UInt32, _ answer: @escaping @Sendable (String?) -> Void) -> Void

  package struct Settings: Sendable {
    /// This host's name, for brokers that send none.
    package var host: String
    package var connectionsPerUserMax = 4
    /// How many brokers of a user are remembered; the one absent for the longest time is forgotten first.
    package var brokersPerUserMax = 8
    package var absenceSeconds: Int64 = 60

    package init(host: String) { self.host = host }
  }

  private struct Peer {
    let connection: Connection
    var isAttaching = false
    var broker: BrokerKey?
  }

  /// A broker, as it has introduced itself.
  private struct BrokerKey: Hashable, Sendable {
    let uid: UInt32
    let user: String
    let name: String
    let host: String
    let term: Int64
  }

  private struct Broker {
    let replica: any ArchiveReplica
    var connection: ConnectionID?
    /// Calls that wait for an earlier one of the same archive, by archive; an entry exists while a call is in progress.
    var waiting: [String: [Job]] = [:]
    var calls = 0
    var absentSince = NIODeadline.now()
    var forgetting: Scheduled<Void>?
    /// The last refusal in the log, and how long it is not repeated there.
    var refusal = (message: "", until: NIODeadline.distantPast)
  }

  private struct Job: Sendable {
    let connection: Connection
    let call: Conversation.Call
    let method: any ReplicaMethod
    let arrival: Arrival

    /// The caller waits no longer than this, including the wait for earlier calls.
    var deadline: ContinuousClock.Instant { arrival.time + .milliseconds(type(of: method).milliseconds) }
  }

  private struct Arrival: Sendable {
    /// `nil` if the name is unknown.
    let method: String?
    let bytes: Int
    let time = ContinuousClock.now
  }

  package nonisolated let eventLoop: any EventLoop
  package nonisolated var unownedExecutor: UnownedSerialExecutor { eventLoop.executor.asUnownedSerialExecutor() }

  private let settings: Settings
  private let findUser: FindUser
  private let makeReplica: MakeReplica
  private let logger: Logger
  private var peers: [ConnectionID: Peer] = [:]
  private var brokers: [BrokerKey: Broker] = [:]
  private var metrics = GatewayMetrics()
  /// For entries about users.
  private var quota = LogQuota<String>()
  /// The last reported failure of the database, so that it is logged once.
  private var complaint: String?
  private var isStopping = false
  private var whenIdle: CheckedContinuation<Void, Never>?

  package init(
    _ settings: Settings,
    on eventLoop: any EventLoop,
    findUser: @escaping FindUser,
    makeReplica: @escaping MakeReplica
  ) {
    (self.settings, self.eventLoop, self.findUser, self.makeReplica) = (settings, eventLoop, findUser, makeReplica)
    logger = Logger(label: "restoration-gateway")
  }

  package static var connectionSettings: ConnectionSettings {
    var limits = TransportLimits()
    limits.frame = GatewayProtocol.frame
    limits.connectionsMax = 4_096
    limits.connectionsPerProcessMax = 8
    limits.backlogMax = 4_096
    // With 4 connections a user has 64 calls in progress.
    limits.conversation.inFlightMax = 16
    limits.conversation.batchMax = 16
    // Two of the largest frames. So a user's calls take at most 64 MiB, and incomplete frames 32 MiB.
    limits.waitingBytesPerProcessMax = 16 << 20
    return ConnectionSettings(limits: limits, vocabulary: GatewayProtocol.vocabulary)
  }

  // MARK: Who may come

  /// Whether a peer may connect. On the event loop.
  package nonisolated func admit(_ peer: PeerCredentials) -> Result<String?, ErrorObject> {
    let uid = peer.uid
    if uid == Self.nobody {
      return .failure(Self.forbidden("user \(uid) stands for users that are unknown here", "Use a user's own process."))
    }
    switch PeerOrigin(of: peer) {
    case .host: break
    case .flatpak(let name): return .failure(Self.forbidden("\(name) is in a sandbox", "Ask the user's broker."))
    case .unclear(let doubt): return .failure(Self.forbidden("\(doubt)", "Call from a process outside of sandboxes."))
    }
    return assumeIsolated { service in
      let max = service.settings.connectionsPerUserMax
      let count = service.peers.values.count { $0.connection.peer.uid == uid }
      guard count >= max else { return .success(nil) }
      let hint = "Close a connection of this user: one is enough for a broker."
      return .failure(.limitExceeded("connectionsPerUserMax", max: max, value: count + 1, hint: hint))
    }
  }

  /// The kernel's number for a user that this user namespace does not have.
  private static let nobody: UInt32 = 65_534

  private static func forbidden(_ message: String, _ hint: String) -> ErrorObject {
    .restoration(.forbidden, message, hint: hint)
  }

  // MARK: Brokers

  private func attach(
    _ call: Conversation.Call,
    _ parameters: Parameters,
    _ arrival: Arrival,
    of connection: Connection
  ) {
    do throws(ErrorObject) {
      guard let peer = peers[connection.id], !peer.isAttaching, peer.broker == nil else {
        throw .invalidRequest(hint: "The connection is attached already. Use another connection.")
      }
      try Self.checkVersion(parameters)
      let attach = try Attach(exactly: parameters)
      peers[connection.id]?.isAttaching = true
      findUser(connection.peer.uid) { [weak self] user in
        self?.enter { service in
          let outcome = service.attached(attach, as: user, on: connection)
          service.answer(call, arrival, with: outcome, on: connection)
        }
      }
    } catch {
      answer(call, arrival, with: .error(error), on: connection)
    }
  }

  /// First, because other members of another version are unknown.
  private static func checkVersion(_ parameters: Parameters) throws(ErrorObject) {
    guard case .named(let members) = parameters, let version = members["version"]?.integer(),
      version != GatewayProtocol.version
    else { return }
    throw .restoration(
      .unsupportedProtocolVersion,
      "this gateway does not speak version \(version)",
      hint: "Use version \(GatewayProtocol.version).",
      details: ["supported": [.integer(Int64(GatewayProtocol.version))]]
    )
  }

  private func attached(_ attach: Attach, as user: String?, on connection: Connection) -> Outcome {
    guard peers[connection.id] != nil else { return .result(.emptyObject) }
    peers[connection.id]?.isAttaching = false
    let uid = connection.peer.uid
    guard let user else {
      return .error(Self.forbidden("user \(uid) has no name here", "Add the user to this host, then connect again."))
    }
    let host = attach.host ?? settings.host
    let key = BrokerKey(uid: uid, user: user, name: attach.broker, host: host, term: attach.term)
    if brokers[key] == nil {
      if let error = makeRoom(for: uid) { return .error(error) }
      let replica = makeReplica(user, host, LeaseTerm(milliseconds: attach.term)) { [weak self] in
        self?.enter { $0.attention(to: key) }
      }
      brokers[key] = Broker(replica: replica)
      note("serving a broker", ["user": "\(user)", "host": "\(host)"], of: user)
    }
    brokers[key]?.forgetting?.cancel()
    if let former = brokers[key]?.connection.flatMap({ peers[$0] }) { former.connection.close(afterOutput: false) }
    brokers[key]?.connection = connection.id
    peers[connection.id]?.broker = key
    return .result(
      Attach.Reply().with { ($0.version, $0.user) = (GatewayProtocol.version, user) }.text
    )
  }

  /// Logs a user's action, within a quota: every user of this host may connect as often as it wants.
  private func note(
    _ text: Logger.Message,
    _ metadata: Logger.Metadata,
    of user: String,
    as level: Logger.Level = .info
  ) {
    switch quota.admit(user, at: .now()) {
    case .written: logger.log(level: level, text, metadata: metadata)
    case .leftOut: break
    case .firstLeftOut(let end):
      eventLoop.scheduleTask(deadline: end) { [weak self] in self?.enter { $0.tellLeftOut() } }
    }
  }

  private func tellLeftOut() {
    for (user, count) in quota.takeLeftOut() {
      let text: Logger.Message = "left out: \(count) \(count == 1 ? "entry" : "entries") about brokers"
      logger.notice(text, metadata: ["user": "\(user ?? "several")"])
    }
  }

  /// Forgets this user's broker that has been absent for the longest time, if there are too many.
  private func makeRoom(for uid: UInt32) -> ErrorObject? {
    let own = brokers.filter { $0.key.uid == uid }
    guard own.count >= settings.brokersPerUserMax else { return nil }
    let absent = own.filter { $0.value.connection == nil && $0.value.calls == 0 }
    guard let oldest = absent.min(by: { $0.value.absentSince < $1.value.absentSince }) else {
      let hint = "Wait until the calls of brokers that have ended are over."
      return .limitExceeded(
        "brokersPerUserMax",
        max: settings.brokersPerUserMax,
        value: own.count + 1,
        hint: hint
      )
    }
    forget(oldest.key)
    return nil
  }

  private func left(_ key: BrokerKey, _ connection: ConnectionID) {
    guard brokers[key]?.connection == connection else { return }
    brokers[key]?.connection = nil
    brokers[key]?.absentSince = .now()
    forgetLater(key)
  }

  private func forgetLater(_ key: BrokerKey) {
    brokers[key]?.forgetting = eventLoop.scheduleTask(in: .seconds(settings.absenceSeconds)) { [weak self] in
      self?.enter { $0.forget(key) }
    }
  }

  private func forget(_ key: BrokerKey) {
    guard let broker = brokers[key], broker.connection == nil else { return }
    // A replacement would not wait for the calls of this one.
    guard broker.calls == 0 else { return forgetLater(key) }
    broker.forgetting?.cancel()
    brokers[key] = nil
  }

  /// Runs soon, on the event loop.
  private nonisolated func enter(_ body: @escaping @Sendable (isolated GatewayService) -> Void) {
    eventLoop.execute { self.assumeIsolated { body($0) } }
  }

  /// A broker that comes back checks by itself.
  private func attention(to key: BrokerKey) {
    let peer = brokers[key]?.connection.flatMap { peers[$0] }
    // One notification that waits says as much as several.
    _ = peer?.connection.offer(method: Attention.method, parameters: nil)
  }

  // MARK: Calls

  private func take(_ call: Conversation.Call, _ request: Request, from connection: Connection) {
    let method = GatewayMethods.named(request.method)
    let name = request.method == Attach.method ? request.method : method.map { $0.method }
    let arrival = Arrival(method: name, bytes: request.parameters.bytes)
    do throws(ErrorObject) {
      guard !isStopping else {
        throw .restoration(.shuttingDown, "the gateway is ending", hint: "Connect again in a second.")
      }
      if request.method == Attach.method { return attach(call, request.parameters, arrival, of: connection) }
      guard let method else {
        let names = ([Attach.method] + GatewayMethods.forwarded.map { $0.method }).joined(separator: ", ")
        throw .methodNotFound(request.method, hint: "Call one of \(names).")
      }
      guard let key = peers[connection.id]?.broker, brokers[key] != nil else {
        throw GatewayErrorCode.notAttached.error("\(request.method) was called before attach was answered")
      }
      let parameters = try method.init(exactly: request.parameters)
      begin(Job(connection: connection, call: call, method: parameters, arrival: arrival), of: key)
    } catch {
      answer(call, arrival, with: .error(error), on: connection)
    }
  }

  private func answer(_ call: Conversation.Call, _ arrival: Arrival, with outcome: Outcome, on connection: Connection) {
    let duration = arrival.time.duration(to: .now)
    metrics.note(arrival.method, outcome, bytes: arrival.bytes, duration: duration)
    connection.respond(to: call, with: outcome)
  }

  private func begin(_ job: Job, of key: BrokerKey) {
    guard let replica = brokers[key]?.replica else { return }
    brokers[key]?.calls += 1
    guard let archive = job.method.application else {
      Task { await carryOut(job, on: replica, of: key) }
      return
    }
    if brokers[key]?.waiting[archive]?.append(job) != nil { return }
    brokers[key]?.waiting[archive] = []
    Task {
      var next: Job? = job
      while let job = next {
        await carryOut(job, on: replica, of: key)
        next = nextJob(ofArchive: archive, key)
      }
    }
  }

  private func nextJob(ofArchive archive: String, _ key: BrokerKey) -> Job? {
    guard let waiting = brokers[key]?.waiting[archive], !waiting.isEmpty else {
      brokers[key]?.waiting[archive] = nil
      return nil
    }
    return brokers[key]?.waiting[archive]?.removeFirst()
  }

  private func carryOut(_ job: Job, on replica: any ArchiveReplica, of key: BrokerKey) async {
    // A call whose connection has closed need not begin.
    if job.connection.isOpen {
      let outcome = await ReplicaCall.$deadline.withValue(job.deadline) {
        await self.outcome(of: job.method, on: replica, for: key)
      }
      answer(job.call, job.arrival, with: outcome, on: job.connection)
    }
    brokers[key]?.calls -= 1
    if isStopping, isIdle { resumeStop() }
  }

  private func outcome(
    of method: any ReplicaMethod,
    on replica: any ArchiveReplica,
    for key: BrokerKey
  ) async -> Outcome {
    do throws(ReplicaError) {
      let reply = try await method.carryOut(on: replica)
      complaint = nil
      return .result(reply.text)
    } catch {
      if error.kind == .refused { noteRefusal(error.message, of: key) }
      guard [.away, .uncovered].contains(error.kind) else { return .error(error.object) }
      // A message of libpq may contain a part of the password that was parsed as a host's name.
      if complaint != error.message { logger.warning("\(error.message)") }
      complaint = error.message
      guard error.kind == .away else { return .error(error.object) }
      let text = "the database cannot be reached; the administrator runs restoration-gateway --check, which says why"
      return .error(ReplicaError(.away, text).object)
    }
  }

  private static let refusalPause = TimeAmount.hours(1)

  /// A refusal such as that for want of a ticket needs the administrator, who reads this log.
  private func noteRefusal(_ message: String, of key: BrokerKey) {
    guard let former = brokers[key]?.refusal, former.message != message || former.until <= .now() else { return }
    brokers[key]?.refusal = (message, .now() + Self.refusalPause)
    note("refused: \(message)", ["user": "\(key.user)"], of: key.user, as: .warning)
  }

  /// Calls of a closed connection need not keep their parameters in memory until their turn.
  private func dropWaiting(of connection: ConnectionID, _ key: BrokerKey) {
    for (archive, jobs) in brokers[key]?.waiting ?? [:] {
      let rest = jobs.filter { $0.connection.id != connection }
      brokers[key]?.waiting[archive] = rest
      brokers[key]?.calls -= jobs.count - rest.count
    }
  }

  /// The counters so far, in the format OpenMetrics.
  package func metricsText(_ database: GatewayMetrics.Database) -> String {
    var callers = GatewayMetrics.Callers()
    (callers.connections, callers.brokers) = (peers.count, brokers.count)
    callers.users = Set(brokers.keys.map(\.user)).count
    return metrics.text(callers, database)
  }

  private var isIdle: Bool { brokers.values.allSatisfy { $0.calls == 0 } }

  // MARK: The end

  /// Accepts no further calls. Closes all connections when those in progress are answered, or the time is over.
  package func stop(milliseconds: Int64) async {
    isStopping = true
    if !isIdle {
      let limit = eventLoop.scheduleTask(in: .milliseconds(milliseconds)) { [weak self] in
        self?.enter { $0.resumeStop() }
      }
      await withCheckedContinuation { whenIdle = $0 }
      limit.cancel()
    }
    tellLeftOut()
    for peer in peers.values { peer.connection.close(afterOutput: true) }
    for broker in brokers.values { broker.forgetting?.cancel() }
    brokers = [:]
  }

  private func resumeStop() {
    whenIdle?.resume()
    whenIdle = nil
  }
}

extension GatewayService: ConnectionDelegate {
  package nonisolated func connectionOpened(_ connection: Connection) {
    assumeIsolated { $0.peers[connection.id] = Peer(connection: connection) }
  }

  package nonisolated func received(_ delivery: Conversation.Delivery, from connection: Connection) {
    switch delivery {
    case .request(let call, let request): assumeIsolated { $0.take(call, request, from: connection) }
    // The gateway makes no calls, and no notification has a meaning.
    case .notification, .response, .brokenAnswer, .closeAfterOutput: break
    }
  }

  package nonisolated func callsAbandoned(_: [Int], by _: Connection) {}

  package nonisolated func connectionClosed(_ connection: Connection, reason _: CloseReason) {
    assumeIsolated { service in
      guard let key = service.peers.removeValue(forKey: connection.id)?.broker else { return }
      service.dropWaiting(of: connection.id, key)
      service.left(key, connection.id)
    }
  }
}
