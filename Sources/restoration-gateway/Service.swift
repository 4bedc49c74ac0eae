// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import RestorationArchive
internal import RestorationReplica
internal import RestorationTransport
internal import Synchronization
internal import SystemdSupport

enum Endpoint: Sendable {
  case path(SocketPath)
  /// A descriptor that listens already.
  case inherited(Int32)

  init(_ path: String?, inherited: Int32?) throws(TransportError) {
    if let inherited {
      self = .inherited(inherited)
    } else {
      self = .path(try SocketPath(path ?? SocketPath.gateway))
    }
  }

  func listen() throws(TransportError) -> ListeningSocket {
    switch self {
    // Every user's broker may connect; its user decides what it may do.
    case .path(let path): try ListeningSocket(binding: path, backlog: 4_096, mode: 0o666)
    case .inherited(let descriptor): try ListeningSocket(inheriting: descriptor)
    }
  }
}

/// Serves until the process is asked to end. Reports its state to the service manager, if there is one.
struct Service {
  private let output: LogOutput
  private let logger = Logger(label: "restoration-gateway")
  private let notifier: Notifier
  private let signals = SignalSet([SIGTERM, SIGINT])
  private let loss = Loss()

  /// Whether the process ends because brokers can no longer connect.
  private final class Loss: Sendable {
    let reason = Mutex<String?>(nil)
  }

  init(environment: ServiceEnvironment, output: LogOutput) {
    self.output = output
    notifier = Notifier(socket: environment.notifySocket) { [logger] in logger.warning("\($0)") }
  }

  /// How long calls in progress have at the end.
  private static let stopMilliseconds: Int64 = 5_000

  /// - Parameter metricsFile: `nil` for none.
  func run(
    _ configuration: GatewayConfiguration,
    _ database: GatewayDatabase,
    on endpoint: Endpoint,
    metricsFile: String?
  ) throws {
    // Blocked in all threads, so that only the wait below ever takes them.
    signals.block()
    signal(SIGPIPE, SIG_IGN)
    // Each connection takes a socket and a pidfd.
    Host.raiseDescriptorLimit(to: 2 * GatewayService.connectionSettings.limits.connectionsMax + 512)
    let eventLoop = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()
    let users = Users()
    let service = GatewayService(
      GatewayService.Settings(host: configuration.host ?? Self.hostName),
      on: eventLoop,
      findUser: { uid, answer in Task { answer(await users.name(of: uid)) } },
      makeReplica: { database.replica(owner: $0, host: $1, term: $2, attention: $3) }
    )
    let listener = try eventLoop.makeFutureWithTask { [loss] in
      try await UnixListener.start(
        try endpoint.listen(),
        on: eventLoop,
        settings: GatewayService.connectionSettings,
        users: .any,
        confining: { service.admit($0) },
        whenLost: { reason in
          loss.reason.withLock { $0 = reason }
          kill(getpid(), SIGTERM)
        },
        delegate: service
      )
    }.wait()
    logger.info("serving", metadata: ["host": "\(configuration.host ?? Self.hostName)"])
    database.watch(on: eventLoop)
    if let metricsFile {
      MetricsFile(metricsFile, logger).keep(on: eventLoop) { await service.metricsText(database.load) }
    }
    notifier.send(.ready)
    _ = signals.wait()
    logger.info("ending")
    notifier.send(.stopping)
    try eventLoop.makeFutureWithTask {
      await listener.stop()
      await service.stop(milliseconds: Self.stopMilliseconds)
    }.wait()
    notifier.barrier()
    output.flush()
    if let reason = loss.reason.withLock({ $0 }) { throw TransportError(.closed, "the socket has closed: \(reason)") }
  }

  /// Logs why the process is about to end.
  func report(_ error: any Error) {
    logger.critical("\(error)")
    notifier.send(.status("\(error)"))
    notifier.barrier(milliseconds: 1_000)
    output.flush()
  }

  private static var hostName: String {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "localhost" }
    return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
