// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import InMemory
internal import NIOCore
internal import NIOPosix
internal import RestorationArchive
internal import RestorationReplica
internal import RestorationTransport
internal import Synchronization
internal import TestSupport

/// A gateway in this process, which serves a replica in memory on a socket of its own. Like a service manager, it holds
/// the socket while no gateway runs.
final class ServedGateway: Sendable {
  /// What is made by the loop's thread alone is as in a gateway's process.
  static let eventLoop: any EventLoop = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()
  private static let clients: any EventLoop = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()

  let memory: MemoryReplica
  private let path: SocketPath
  private let directory: ScratchDirectory
  private let socket: TestSupport.FileDescriptor
  private let settings: GatewayService.Settings
  private let replica: Wrapping
  private let running = Mutex<(listener: UnixListener, service: GatewayService)?>(nil)

  /// The name of the socket.
  var name: String { path.path }

  /// Puts something in front of what a broker calls.
  typealias Wrapping = @Sendable (any ArchiveReplica) -> any ArchiveReplica

  init(
    _ memory: MemoryReplica = MemoryReplica(),
    settings: GatewayService.Settings = GatewayService.Settings(host: "here"),
    wrapping replica: @escaping Wrapping = { $0 }
  ) throws {
    (self.memory, self.settings, self.replica) = (memory, settings, replica)
    directory = try ScratchDirectory()
    path = try SocketPath(directory.file("gateway.sock"))
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    socket = TestSupport.FileDescriptor(owning: Glibc.socket(AF_UNIX, type, 0))
    let isBound = TestSupport.FileDescriptor.withAddress(of: path.path) { bind(socket.number, $0, $1) } == 0
    guard isBound, listen(socket.number, 64) == 0 else { throw TestFailure("listen: \(SystemError.current)") }
  }

  deinit {
    directory.remove()
    running.withLock { running in
      guard let (listener, service) = running else { return }
      Task {
        await listener.stop(keepsName: true)
        await service.stop(milliseconds: 0)
      }
    }
  }

  /// One that starts soon; brokers that come earlier wait in the socket's queue.
  static func starting() throws -> ServedGateway {
    let gateway = try ServedGateway()
    Task { try await gateway.start() }
    return gateway
  }

  func start() async throws {
    let (memory, replica) = (memory, replica)
    let service = GatewayService(
      settings,
      on: Self.eventLoop,
      findUser: { $1("user\($0)") },
      makeReplica: { replica(memory.link(from: $1, term: $2, attention: $3)) }
    )
    let listener = try await UnixListener.start(
      ListeningSocket(inheriting: dup(socket.number)),
      on: Self.eventLoop,
      settings: GatewayService.connectionSettings,
      users: .any,
      confining: { service.admit($0) },
      delegate: service
    )
    running.withLock { $0 = (listener, service) }
  }

  /// `nil` if it does not run.
  func metrics(_ database: GatewayMetrics.Database) async -> String? {
    await running.withLock { $0 }?.service.metricsText(database)
  }

  func stop(milliseconds: Int64 = 5_000) async {
    let running = running.withLock { running in
      defer { running = nil }
      return running
    }
    await running?.listener.stop(keepsName: true)
    await running?.service.stop(milliseconds: milliseconds)
  }

  /// One that is started, and the gates of its brokers, in the order in which they come.
  static func gated() async throws -> (gateway: ServedGateway, gates: AsyncStream<Gate>) {
    let (gates, made) = AsyncStream.makeStream(of: Gate.self)
    let gateway = try ServedGateway { replica in
      let gate = Gate(replica)
      made.yield(gate)
      return gate
    }
    try await gateway.start()
    return (gateway, gates)
  }

  func link(
    from host: String? = "A",
    patience milliseconds: Int64 = 30_000,
    attention: @escaping @Sendable () -> Void = {},
    standingChanged: @escaping @Sendable (ReplicaError?) -> Void = { _ in }
  ) -> GatewayLink {
    var patience = GatewayLink.Patience()
    (patience.milliseconds, patience.briefMilliseconds) = (milliseconds, milliseconds)
    patience.pauseMilliseconds = 0
    return GatewayLink(
      to: path,
      host: host,
      term: ReplicaFixture.term,
      patience: patience,
      on: Self.clients,
      attention: attention,
      standingChanged: standingChanged
    )
  }
}

extension ServedGateway: ReplicaWorld {
  func link(from host: String, term _: LeaseTerm) -> any ArchiveReplica { link(from: host) }
  func advance(by milliseconds: Int64) { memory.advance(by: milliseconds) }
  func failOver(losing transactions: Int) { memory.promote(losing: transactions) }
  func cut(_ host: String) { memory.cut(host) }
  func mend(_ host: String) { memory.mend(host) }
  func loseAnswer(to host: String) { memory.loseAnswer(to: host) }
  func setCovered(_ isCovered: Bool) { memory.setCovered(isCovered) }
}

/// A replica whose calls wait until it is opened.
final class Gate: ArchiveReplica {
  private let base: any ArchiveReplica
  private let waiting = Mutex<(isOpen: Bool, calls: [CheckedContinuation<Void, Never>])>((false, []))
  private let times = Mutex<[ContinuousClock.Instant?]>([])
  let arrivals: AsyncStream<Void>
  private let arrived: AsyncStream<Void>.Continuation

  init(_ base: any ArchiveReplica) {
    self.base = base
    (arrivals, arrived) = AsyncStream.makeStream()
  }

  /// Of what has arrived.
  var deadlines: [ContinuousClock.Instant?] { times.withLock { $0 } }

  func open() {
    let calls = waiting.withLock { waiting in
      waiting.isOpen = true
      defer { waiting.calls = [] }
      return waiting.calls
    }
    for call in calls { call.resume() }
  }

  nonisolated(nonsending) private func pass() async {
    times.withLock { $0.append(ReplicaCall.deadline) }
    arrived.yield()
    await withCheckedContinuation { call in
      let isOpen = waiting.withLock { waiting in
        if !waiting.isOpen { waiting.calls.append(call) }
        return waiting.isOpen
      }
      if isOpen { call.resume() }
    }
  }

  nonisolated(nonsending) func acquire(
    _ application: String,
    as claim: ReplicaClaim
  ) async throws(ReplicaError) -> ReplicaGrant { try await base.acquire(application, as: claim) }

  nonisolated(nonsending) func renew() async throws(ReplicaError) -> ReplicaRenewal { try await base.renew() }

  nonisolated(nonsending) func append(_ batch: ReplicaBatch, _ lease: ReplicaLease) async throws(ReplicaError) {
    await pass()
    try await base.append(batch, lease)
  }

  nonisolated(nonsending) func load(
    _ lease: ReplicaLease,
    from position: ReplicaPosition
  ) async throws(ReplicaError) -> ReplicaPage {
    await pass()
    return try await base.load(lease, from: position)
  }

  nonisolated(nonsending) func snapshot(_ part: SnapshotPart, _ lease: ReplicaLease) async throws(ReplicaError) {
    try await base.snapshot(part, lease)
  }

  nonisolated(nonsending) func release(_ lease: ReplicaLease, _ end: ReplicaEnd) async throws(ReplicaError) {
    try await base.release(lease, end)
  }

  nonisolated(nonsending) func list(after application: String?) async throws(ReplicaError) -> ReplicaListing {
    try await base.list(after: application)
  }
}
