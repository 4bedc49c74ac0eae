// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Logging
internal import RestorationBroker
internal import SystemdSupport

/// The broker's process: reads its options, and serves until it is asked to end.
@main
enum Daemon {
  static func main() {
    do throws(Ending) {
      try serve(Options.read())
    } catch {
      error.end()
    }
  }

  private static func serve(_ options: Options.Flags) throws(Ending) {
    // First, so that no other code uses the variables for this process.
    var environment = ServiceEnvironment.take()
    // Without its sockets and its watchdog a service would do harm.
    if let fault = environment.fault { throw refusal(fault, .brokerFailed, environment) }
    var flags = options
    flags.inheritedSocket = environment.takeDescriptor(named: "restorationd", "restorationd.socket", "unknown")
    let configuration: BrokerConfiguration
    let level: Logger.Level
    do {
      configuration = try BrokerConfiguration(flags)
      level = try Self.level(of: configuration)
    } catch {
      if let listener = flags.inheritedSocket { turnAway(listener) }
      throw refusal("\(error)", .configurationInvalid, environment)
    }
    let output = LogOutput(level, environment)
    output.bootstrap()
    let logger = Logger(label: "restorationd")
    let service = Service(flags: flags, environment: environment, output: output, logger: logger)
    do {
      try service.run(configuration)
    } catch {
      throw .logged(EXIT_FAILURE)
    }
  }

  /// Reports to the manager and the journal why the broker does not start. Other errors are thrown.
  private static func refusal(_ reason: String, _ incident: Incident, _ environment: ServiceEnvironment) -> Ending {
    let output = LogOutput(.info, environment)
    output.bootstrap()
    let logger = Logger(label: "restorationd")
    let notifier = Notifier(socket: environment.notifySocket) { logger.warning("\($0)") }
    notifier.send(.status(reason))
    notifier.barrier(milliseconds: 1_000)
    guard environment.logsToJournal else { return .refused(reason) }
    // Standard error ends in the same journal: once is enough.
    logger.report(incident, .critical, reason)
    output.flush()
    return .logged(EX_USAGE)
  }

  /// Closes waiting connections: for each of them the manager would start the broker again, as often as it may.
  private static func turnAway(_ listener: Int32) {
    var waiting = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
    while poll(&waiting, 1, 0) > 0, case let client = accept(listener, nil, nil), client >= 0 { close(client) }
  }

  static func level(of configuration: BrokerConfiguration) throws -> Logger.Level {
    guard let level = Logger.Level(rawValue: configuration.logLevel) else {
      let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
      let problem = "unknown log level \(configuration.logLevel); use one of \(levels)"
      throw BrokerConfiguration.Fault(description: "\(configuration.logLevelOrigin): \(problem)")
    }
    return level
  }
}

extension LogOutput {
  fileprivate convenience init(_ level: Logger.Level, _ environment: ServiceEnvironment) {
    let incidents: Incidents = (Incident.key, { Incident(named: $0)?.rawValue })
    self.init(level: level, toJournal: environment.logsToJournal, incidents: incidents)
  }
}
