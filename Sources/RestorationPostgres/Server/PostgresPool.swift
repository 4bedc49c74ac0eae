// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationReplica
internal import RestorationTransport
internal import Synchronization
internal import SystemdSupport

/// Connections to the primary server, each with a thread. They start when calls wait, and end when they have been idle
/// for a while.
///
/// Of several servers, the one with the highest timeline ever seen counts: a replaced server does not know that it was
/// replaced, and would accept writes.
package final class PostgresPool: PostgresServer {
  package struct Settings: Sendable {
    /// In libpq's form; it may name several hosts.
    package var conninfo: String
    /// 1 … 16.
    package var connectionsMax = 4
    /// No connection is made while this many commits of this host are unfinished and awaited by no call: each occupies
    /// one of the server's connections.
    package var stuckMax: Int64 = 4
    /// A connection idle for this long is closed.
    package var idleMilliseconds: Int32 = 30_000
    /// The time of an append, including its wait for a connection.
    package var appendMilliseconds = GatewayProtocol.briefMilliseconds
    package var callMilliseconds = GatewayProtocol.callMilliseconds

    package init(conninfo: String) { self.conninfo = conninfo }
  }

  private struct Request {
    let call: PostgresCall
    let deadline: Int64
    let continuation: CheckedContinuation<Result<[PostgresRow], PostgresFailure>, Never>
  }

  private struct Books {
    var queue = FairQueue<Request>(max: PostgresPool.waitingMax)
    /// Sleeping threads; the last one is woken first.
    var idle: [WakeUp] = []
    var threads = 0
    var isClosed = false
    var preferred = 0
    /// The highest timeline seen, and its system.
    var timeline: Int64 = 0
    var system: Int64?
  }

  private enum Next {
    case requests([Request])
    case sleep
    case end
  }

  package static let connectionsMax = 16
  /// Calls of one user that may wait.
  package static let waitingMax = 64
  /// Appends that share a transaction. A commit waits for the disks of two servers, whatever its size.
  private static let togetherMax = 32
  /// A transaction of this size takes no further append.
  private static let togetherBytes = 1 << 18
  /// How much longer an append may take for the others in its transaction.
  private static let togetherMilliseconds: Int64 = 800

  private let settings: Settings
  private let endpoints: [PostgresEndpoint]
  private let lookup: HostLookup
  private let state = Mutex(Books())

  package init(_ settings: Settings, lookup: HostLookup = HostLookup()) throws(PostgresFailure) {
    (self.settings, self.lookup) = (settings, lookup)
    endpoints = try PostgresEndpoint.all(of: settings.conninfo)
  }

  nonisolated(nonsending) package func run(
    _ call: PostgresCall,
    for user: String
  ) async throws(PostgresFailure) -> [PostgresRow] {
    let limit = call.function == .append ? settings.appendMilliseconds : settings.callMilliseconds
    let rest = ReplicaCall.deadline.map { Int64(ContinuousClock.now.duration(to: $0) / .milliseconds(1)) }
    let deadline = Host.monotonicMilliseconds + min(limit, rest ?? limit)
    return try await withCheckedContinuation { continuation in
      submit(Request(call: call, deadline: deadline, continuation: continuation), for: user)
    }.get()
  }

  /// Connections end after their present calls. Waiting and later calls fail.
  package func close() {
    let (idle, waiting) = state.withLock { state in
      state.isClosed = true
      var waiting: [Request] = []
      while let request = state.queue.popFirst() { waiting.append(request) }
      defer { state.idle = [] }
      return (state.idle, waiting)
    }
    for wakeUp in idle { wakeUp.signal() }
    for request in waiting { refuse(request, "the connections are being closed") }
  }

  /// Number of connections, including those being made.
  package var connections: Int { state.withLock { $0.threads } }

  /// Number of connections with a call in progress, and of calls that wait for one.
  package var load: (busy: Int, waiting: Int) { state.withLock { ($0.threads - $0.idle.count, $0.queue.count) } }

  private func refuse(_ request: Request, _ why: String) {
    request.continuation.resume(returning: .failure(.away(why)))
  }

  private func submit(_ request: Request, for user: String) {
    enum Step {
      case nothing, start
      case wake(WakeUp)
      case refuse(String)
    }
    let step = state.withLock { state -> Step in
      guard !state.isClosed else { return .refuse("the connections are closed") }
      guard state.queue.append(request, for: user) else {
        return .refuse("\(Self.waitingMax) calls of \(user) wait already; ask again later")
      }
      if let wakeUp = state.idle.popLast() { return .wake(wakeUp) }
      guard state.threads < min(settings.connectionsMax, Self.connectionsMax) else { return .nothing }
      state.threads += 1
      return .start
    }
    switch step {
    case .nothing: break
    case .wake(let wakeUp): wakeUp.signal()
    case .start: startThread()
    case .refuse(let why): refuse(request, why)
    }
  }

  private func startThread() {
    if let wakeUp = WakeUp(), BackgroundThread.start("postgres", { self.work(wakeUp) }) { return }
    let stranded = state.withLock { state -> [Request] in
      state.threads -= 1
      var stranded: [Request] = []
      while state.threads == 0, let request = state.queue.popFirst() { stranded.append(request) }
      return stranded
    }
    for request in stranded { refuse(request, "the system has no thread left") }
  }

  // MARK: A thread

  private func work(_ wakeUp: WakeUp) {
    var connection: PostgresConnection?
    while true {
      switch next(wakeUp) {
      case .requests(let requests): carryOut(requests, &connection)
      case .sleep: if !wakeUp.wait(milliseconds: settings.idleMilliseconds), retire(wakeUp) { return }
      case .end: return
      }
    }
  }

  private func next(_ wakeUp: WakeUp) -> Next {
    state.withLock { state in
      state.idle.removeAll { $0 === wakeUp }
      if let request = state.queue.popFirst() {
        return .requests(Self.together(with: request, from: &state.queue))
      }
      if state.isClosed {
        state.threads -= 1
        return .end
      }
      state.idle.append(wakeUp)
      return .sleep
    }
  }

  /// False if it was given work meanwhile.
  private func retire(_ wakeUp: WakeUp) -> Bool {
    state.withLock { state in
      guard let place = state.idle.firstIndex(where: { $0 === wakeUp }) else { return false }
      state.idle.remove(at: place)
      state.threads -= 1
      return true
    }
  }

  private static func together(with first: Request, from queue: inout FairQueue<Request>) -> [Request] {
    var requests = [first]
    guard first.call.function == .append else { return requests }
    var bytes = first.call.bytes
    while requests.count < togetherMax, bytes < togetherBytes,
      let next = queue.popFirst(if: { $0.call.function == .append })
    {
      requests.append(next)
      bytes += next.call.bytes
    }
    return requests
  }

  private func carryOut(_ requests: [Request], _ connection: inout PostgresConnection?) {
    let now = Host.monotonicMilliseconds
    for request in requests where request.deadline <= now {
      refuse(request, "no connection was free in time; allow for more of them")
    }
    let requests = requests.filter { $0.deadline > now }
    guard let earliest = requests.map(\.deadline).min(), let latest = requests.map(\.deadline).max() else { return }
    // A late append need not fail at another's deadline; its caller waits a second longer than that.
    let deadline = min(latest, earliest + Self.togetherMilliseconds)
    do throws(PostgresFailure) {
      let answers = try run(requests.map(\.call), until: deadline, &connection)
      for (request, rows) in zip(requests, answers) { request.continuation.resume(returning: .success(rows)) }
    } catch {
      // One append was refused, and with it the whole transaction.
      if case .refused = error, requests.count > 1 {
        let middle = requests.count / 2
        carryOut(Array(requests[..<middle]), &connection)
        carryOut(Array(requests[middle...]), &connection)
      } else {
        for request in requests { request.continuation.resume(returning: .failure(error)) }
      }
    }
  }

  private func run(
    _ calls: [PostgresCall],
    until deadline: Int64,
    _ connection: inout PostgresConnection?
  ) throws(PostgresFailure) -> [[PostgresRow]] {
    do throws(PostgresFailure) {
      let newest = state.withLock { $0.timeline }
      if let present = connection, present.timeline < newest || !present.isAlive { connection = nil }
      let present: PostgresConnection
      if let connection { present = connection } else { present = try connect(until: deadline) }
      connection = present
      return try present.run(calls, until: deadline)
    } catch {
      if let present = connection, !present.isUsable {
        connection = nil
        // Another server may be the right one.
        turn(from: present.place)
      }
      throw error
    }
  }

  /// Prefers the next server, unless another thread has left this one already.
  private func turn(from place: Int) {
    state.withLock { if $0.preferred == place { $0.preferred = (place + 1) % endpoints.count } }
  }

  /// Begins with the server that answered last.
  private func connect(until deadline: Int64) throws(PostgresFailure) -> PostgresConnection {
    var failures: [String] = []
    for _ in endpoints {
      // The next server is tried by the next call. With so little time left, it would seem silent as well.
      guard failures.isEmpty || Host.monotonicMilliseconds < deadline else { break }
      let index = state.withLock { $0.preferred }
      do throws(PostgresFailure) {
        var endpoint = endpoints[index]
        if let name = endpoint.nameToLookUp { endpoint.addresses = try lookup.addresses(of: name, until: deadline) }
        let connection = try PostgresConnection(to: endpoint, at: index, until: deadline)
        try admit(connection, endpoint.name, until: deadline)
        return connection
      } catch {
        turn(from: index)
        failures.append(error.text)
      }
    }
    throw .away("no server can be written to: \(failures.joined(separator: "; "))")
  }

  /// Checks which server it is, and whether another one has replaced it.
  private func admit(
    _ connection: PostgresConnection,
    _ name: String,
    until deadline: Int64
  ) throws(PostgresFailure) {
    let call = PostgresCall(.server, [.integer(settings.appendMilliseconds)])
    let row = try connection.run([call], until: deadline).first?.first
    guard let system = row?.integer(0), let timeline = row?.integer(1), let stuck = row?.integer(2) else {
      throw .away("\(name) does not say which server it is; \(PostgresFailure.schemaRemedy)")
    }
    let schema = row?.integer(3) ?? 1
    guard schema == PostgresSchema.version else {
      let versions = "version \(schema) of the schema, and this gateway needs \(PostgresSchema.version)"
      throw .away("\(name) has \(versions); \(PostgresFailure.schemaRemedy)")
    }
    let newest = state.withLock { state -> (system: Int64, timeline: Int64) in
      if state.system == nil { state.system = system }
      if state.system == system { state.timeline = max(state.timeline, timeline) }
      return (state.system ?? system, state.timeline)
    }
    guard newest.system == system else {
      throw .away("\(name) is another database system; restart the gateway if it is meant to have replaced the former")
    }
    guard newest.timeline == timeline else {
      throw .away("\(name) has timeline \(timeline); the server that took over from it has \(newest.timeline): stop it")
    }
    guard stuck < settings.stuckMax else {
      throw .away("\(stuck) commits at \(name) wait for another server, which does not answer; bring it back")
    }
    connection.timeline = timeline
  }
}
