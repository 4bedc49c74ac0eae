// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import RestorationBroker
internal import RestorationTransport
internal import Synchronization
internal import SystemdSupport

/// Serves until the process is asked to end. Reports its state to the service manager, if there is one.
struct Service {
  let flags: BrokerConfiguration.Flags
  let environment: ServiceEnvironment
  let output: LogOutput
  let logger: Logger
  let notifier: Notifier
  private let status: StatusLine
  private let loss = Loss()

  /// Whether the process ends because clients can no longer connect.
  private final class Loss: Sendable, Error {
    let hasHappened = Atomic(false)
  }

  init(flags: BrokerConfiguration.Flags, environment: ServiceEnvironment, output: LogOutput, logger: Logger) {
    (self.flags, self.environment, self.output, self.logger) = (flags, environment, output, logger)
    notifier = Notifier(socket: environment.notifySocket) { logger.warning("\($0)") }
    status = StatusLine(notifier)
  }

  /// Without a manager, SIGHUP from a closed terminal ends the process as usual.
  private var signals: SignalSet { SignalSet(notifier.isActive ? [SIGTERM, SIGINT, SIGHUP] : [SIGTERM, SIGINT]) }

  func run(_ configuration: BrokerConfiguration) throws {
    var configuration = configuration
    // Blocked in all threads, so that only the wait below ever takes them.
    signals.block()
    signal(SIGPIPE, SIG_IGN)
    // A write beyond the limit of file sizes fails with an error instead.
    signal(SIGXFSZ, SIG_IGN)
    let meter = LoopMeter()
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1, metricsDelegate: meter)
    let broker = try start(configuration, on: group.next(), meter)
    let watchdog = try environment.watchdogMicroseconds.map { interval in
      // Three beats an interval: the manager kills us only if the broker makes no progress for two thirds of it.
      try broker.beat(everyMicroseconds: interval / 3) { [notifier] in notifier.send(.watchdog) }
    }
    notifier.send(.ready)
    if notifier.isActive { broker.reportActivity { [status] in status.report("\($0)") } }
    setIdleExit(configuration, broker)
    if let clock = broker.clock { ClockControl(broker: broker, clock: clock, logger: logger).begin() }
    while signals.wait() == SIGHUP { configuration = try reload(configuration, broker) }
    try end(broker, configuration)
    watchdog?.cancel()
    notifier.barrier()
    output.flush()
    if loss.hasHappened.load(ordering: .relaxed) { throw loss }
  }

  private func start(
    _ configuration: BrokerConfiguration,
    on eventLoop: any EventLoop,
    _ meter: LoopMeter
  ) throws -> Broker {
    // If neither is set, no manager can be reached.
    let variables: [String] = ["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"]
    let hasUser = variables.contains { getenv($0) != nil }
    do {
      return try Broker(
        configuration,
        handingOverTo: notifier.isActive ? ManagerDescriptorStore(notifier: notifier) : nil,
        adopting: InheritedConnections(environment.descriptors.map { ($0.name, $0.number) }),
        on: eventLoop,
        meter: meter,
        manager: hasUser ? UserServiceManager() : nil,
        replica: try Replication.source(configuration, logger),
        logger: logger,
        whenLost: { [loss, logger] reason in
          // The archives are intact, and clients still have the states they have not saved.
          logger.report(.brokerFailed, .critical, "ending, because \(reason)")
          loss.hasHappened.store(true, ordering: .relaxed)
          kill(getpid(), SIGTERM)
        }
      ) { reason in
        fail("ending, because \(reason)")
        Glibc.exit(1)
      }
    } catch {
      fail("\(error)")
      throw error
    }
  }

  /// Reports why the process is about to end with an error.
  private func fail(_ reason: String) {
    logger.report(.brokerFailed, .critical, reason)
    notifier.send(.status(reason))
    notifier.barrier(milliseconds: 1_000)
    output.flush()
  }

  private func setIdleExit(_ configuration: BrokerConfiguration, _ broker: Broker) {
    var seconds = configuration.idleExitSeconds
    if seconds > 0, flags.inheritedSocket == nil {
      logger.notice("not ending although idle: no service manager holds the socket; use idle exit with a socket unit")
      seconds = 0
    }
    broker.endWhenIdle(seconds: seconds) { [logger] in
      logger.info("ending, because the broker is idle")
      kill(getpid(), SIGTERM)
    }
  }

  /// Reads the configuration again; an invalid one changes nothing.
  private func reload(_ former: BrokerConfiguration, _ broker: Broker) throws -> BrokerConfiguration {
    notifier.send(.reloading)
    defer { notifier.send(.ready) }
    do {
      let configuration = try BrokerConfiguration(flags)
      let level = try Daemon.level(of: configuration)
      let rest = try broker.reload(configuration, from: former)
      output.currentLevel = level
      setIdleExit(configuration, broker)
      logger.info("the configuration was read again")
      status.complain(nil)
      if !rest.isEmpty { logger.notice("these settings change at the next start: \(rest.joined(separator: ", "))") }
      return former.reloaded(configuration)
    } catch {
      logger.report(.configurationInvalid, .error, "the configuration is unchanged: \(error)")
      status.complain("the configuration is unchanged: \(error)")
      return former
    }
  }

  private func end(_ broker: Broker, _ configuration: BrokerConfiguration) throws {
    logger.info("ending")
    notifier.send(.stopping)
    // The time for the save rounds, plus half a minute for the disk.
    let limit = Int64(configuration.stopRoundMilliseconds) + 30_000
    guard notifier.isActive else { return _ = try broker.stopAndWait(milliseconds: limit) }
    notifier.send(.status("saving before the end"))
    // Each beat extends the timeout by several beats, up to a limit: progress does not guarantee an end.
    let latest = Host.monotonicMilliseconds + limit
    let beats = try broker.beat(everyMicroseconds: 2_000_000) { [notifier] in
      let remaining = latest - Host.monotonicMilliseconds
      guard remaining > 0 else { return }
      notifier.send(.extendTimeout(microseconds: UInt64(min(10_000, remaining)) * 1_000))
    }
    let unsent = try broker.stopAndWait(milliseconds: limit)
    if unsent > 0 { notifier.send(.status("not all was sent to the fleet's store, of \(unsent) applications")) }
    beats.cancel()
  }
}
