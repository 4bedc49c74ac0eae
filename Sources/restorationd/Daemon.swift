// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import RestorationBroker
internal import RestorationTransport
internal import SystemdSupport

/// The broker's process: reads what it was told, serves until it is asked to end.
@main
struct Daemon: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restorationd",
    abstract: "Keeps and restores the state of applications made of many processes.",
    discussion: """
      Example: restorationd --socket /tmp/r/broker.sock --archives /tmp/r/archives

      Without flags it listens on $RESTORATIOND_SOCKET, else $XDG_RUNTIME_DIR/restorationd/broker.sock, and keeps
      archives in $XDG_STATE_HOME/restorationd. Flags go over the environment, over
      $XDG_CONFIG_HOME/restorationd/config.json, over /etc/restorationd/config.json.
      """,
    version: Broker.version
  )

  @Option(help: ArgumentHelp("The Unix socket to listen on.", valueName: "path"))
  var socket: String?

  @Option(help: ArgumentHelp("The directory to keep archives in.", valueName: "dir"))
  var archives: String?

  @Option(help: ArgumentHelp("The configuration file to read instead of the usual ones.", valueName: "file"))
  var config: String?

  @Flag(help: "Never quarantine or discard anything.")
  var developerMode = false

  @Option(help: ArgumentHelp("trace, debug, info, notice, warning, error or critical.", valueName: "level"))
  var logLevel: String?

  func run() throws {
    var environment = ServiceEnvironment.take()
    let configuration: BrokerConfiguration
    do {
      configuration = try BrokerConfiguration(
        BrokerConfiguration.Flags(
          inheritedSocket: environment.takeDescriptor(named: "restorationd", "restorationd.socket", "unknown"),
          socket: socket,
          archives: archives,
          file: config,
          logLevel: logLevel,
          developerMode: developerMode
        )
      )
    } catch {
      throw ValidationError("\(error)")
    }
    guard let level = Logger.Level(rawValue: configuration.logLevel) else {
      let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
      throw ValidationError("there is no log level \(configuration.logLevel); use one of \(levels)")
    }
    LoggingSystem.bootstrap { StreamLogHandler.standardError(label: $0) }
    var logger = Logger(label: "restorationd")
    logger.logLevel = level
    try serve(configuration, environment, logger)
  }

  private func serve(
    _ configuration: BrokerConfiguration,
    _ environment: ServiceEnvironment,
    _ logger: Logger
  ) throws {
    // Blocked before the first thread starts, so that only the wait below ever takes them.
    let endings = SignalSet([SIGTERM, SIGINT])
    endings.block()
    signal(SIGPIPE, SIG_IGN)
    let notifier = Notifier(socket: environment.notifySocket) { logger.warning("\($0)") }
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let eventLoop = group.next()
    // Where neither is set there is no way to a manager.
    let hasUser = ["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"].contains { (name: String) in getenv(name) != nil }
    let broker: Broker
    do {
      broker = try Broker.startAndWait(
        configuration,
        keepingIn: notifier.isActive ? ManagerDescriptorStore(notifier: notifier) : nil,
        restoring: InheritedConnections(environment.descriptors.map { ($0.name, $0.number) }),
        on: eventLoop,
        manager: hasUser ? UserServiceManager() : nil,
        logger: logger
      ) { reason in
        logger.critical("ending, because \(reason)")
        Glibc.exit(1)
      }
    } catch {
      logger.critical("\(error)")
      throw ExitCode(1)
    }
    notifier.send(.ready)
    endings.wait()
    logger.info("ending")
    notifier.send(.stopping)
    try broker.stopAndWait()
    notifier.barrier()
  }
}
