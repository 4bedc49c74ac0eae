// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import Logging
internal import RestorationBroker
internal import SystemdSupport

/// The broker's process: reads its options, and serves until it is asked to end.
@main
struct Daemon: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restorationd",
    abstract: "Keeps and restores the state of applications made of many processes.",
    discussion: """
      Example: restorationd --socket /tmp/r/broker.sock --archives /tmp/r/archives

      Without flags it listens on $RESTORATIOND_SOCKET or $XDG_RUNTIME_DIR/restorationd/broker.sock, and keeps archives
      in $XDG_STATE_HOME/restorationd. Flags override the environment, which overrides
      $XDG_CONFIG_HOME/restorationd/config.json, which overrides /etc/restorationd/config.json.
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

  @Option(help: ArgumentHelp("End after this many idle seconds; only with a socket unit.", valueName: "seconds"))
  var idleExit: Int?

  @Option(help: ArgumentHelp("Forget applications unused for this many days on which a broker ran.", valueName: "days"))
  var unusedDays: Int?

  func run() throws {
    // Done first, so that nothing else uses the variables for this process.
    var environment = ServiceEnvironment.take()
    var flags = BrokerConfiguration.Flags()
    flags.inheritedSocket = environment.takeDescriptor(named: "restorationd", "restorationd.socket", "unknown")
    (flags.socket, flags.archives, flags.file) = (socket, archives, config)
    (flags.logLevel, flags.developerMode, flags.idleExitSeconds) = (logLevel, developerMode, idleExit)
    flags.unusedDays = unusedDays
    let configuration: BrokerConfiguration
    let level: Logger.Level
    do {
      configuration = try BrokerConfiguration(flags)
      level = try Self.level(of: configuration)
    } catch {
      if let listener = flags.inheritedSocket { Self.turnAway(listener) }
      throw Self.refusal("\(error)", environment)
    }
    let output = LogOutput(level: level, toJournal: environment.logsToJournal)
    output.bootstrap()
    let service = Service(flags: flags, environment: environment, output: output, logger: Logger(label: "restorationd"))
    do {
      try service.run(configuration)
    } catch {
      // It has been logged.
      throw ExitCode(1)
    }
  }

  /// Reports why the broker does not start to the manager and the journal; the rest is thrown.
  private static func refusal(_ reason: String, _ environment: ServiceEnvironment) -> any Error {
    let output = LogOutput(level: .info, toJournal: environment.logsToJournal)
    output.bootstrap()
    let logger = Logger(label: "restorationd")
    let notifier = Notifier(socket: environment.notifySocket) { logger.warning("\($0)") }
    notifier.send(.status(reason))
    notifier.barrier(milliseconds: 1_000)
    guard environment.logsToJournal else { return ValidationError(reason) }
    // Standard error ends in the same journal: once is enough.
    logger.critical("\(reason)")
    output.flush()
    return ExitCode.validationFailure
  }

  /// Closes the connections that wait: for each of them the manager would start the broker again, as often as it may.
  private static func turnAway(_ listener: Int32) {
    var waiting = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
    while poll(&waiting, 1, 0) > 0, case let client = accept(listener, nil, nil), client >= 0 { close(client) }
  }

  static func level(of configuration: BrokerConfiguration) throws -> Logger.Level {
    guard let level = Logger.Level(rawValue: configuration.logLevel) else {
      let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
      throw ValidationError(
        "\(configuration.logLevelOrigin): unknown log level \(configuration.logLevel); use one of \(levels)"
      )
    }
    return level
  }
}
