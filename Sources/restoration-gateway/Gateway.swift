// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import RestorationArchive
internal import RestorationReplica
internal import RestorationTransport
internal import SystemdSupport

/// The gateway's process: reads its options, and serves until it is asked to end.
@main
enum Gateway {
  static func main() {
    do throws(Ending) {
      try carryOut(Options.read(CommandLine.arguments.dropFirst()))
    } catch {
      error.end()
    }
  }

  private static func carryOut(_ options: Options) throws(Ending) {
    switch options.action {
    case .serve: try serve(options)
    case .printSchema: throw .answered(GatewayDatabase.schema)
    case .check:
      try check(options)
      throw .answered("\(options.configuration) is valid, and the database stores what it is given.")
    }
  }

  /// Blocks until the database has answered.
  private static func check(_ options: Options) throws(Ending) {
    let (_, database) = try configuration(options)
    try mustBeReadable(options.configuration)
    do {
      let eventLoop = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()
      try eventLoop.makeFutureWithTask { try await database.check() }.wait()
    } catch let error as ReplicaError {
      throw .failed(error.message)
    } catch {
      throw .failed("\(error)")
    }
  }

  private static func configuration(_ options: Options) throws(Ending) -> (GatewayConfiguration, GatewayDatabase) {
    try mustBePrivate(options.configuration)
    do {
      guard let text = try Host.readFile(options.configuration) else {
        let remedy = "write \(GatewayConfiguration.example) to it"
        throw Ending.refused("\(options.configuration) does not exist; \(remedy)")
      }
      var configuration = try GatewayConfiguration(text, of: options.configuration)
      configuration.logLevel = options.logLevel ?? configuration.logLevel
      guard Logger.Level(rawValue: configuration.logLevel) != nil else {
        let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
        throw Ending.refused("unknown log level \(configuration.logLevel); use one of \(levels)")
      }
      return (configuration, try GatewayDatabase(configuration))
    } catch let ending as Ending {
      throw ending
    } catch {
      throw .refused("\(error)")
    }
  }

  /// The file may contain the password, with which a user could use the database as any other user of this host.
  private static func mustBePrivate(_ path: String) throws(Ending) {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & 0o007 != 0 else { return }
    let mode = String(status.st_mode & 0o777, radix: 8)
    let remedy = "chgrp restoration-gateway \(path) && chmod 640 \(path)"
    throw .refused("\(path) may hold a password, and its mode \(mode) lets every user in; run \(remedy)")
  }

  /// The unit's user has to read what root has written. Without that user there is no unit, and it reads no other file.
  private static func mustBeReadable(_ path: String) throws(Ending) {
    let name = "restoration-gateway"
    guard path == Options().configuration, geteuid() == 0, let user = getpwnam(name)?.pointee else { return }
    guard initgroups(name, user.pw_gid) == 0, setegid(user.pw_gid) == 0, seteuid(user.pw_uid) == 0 else { return }
    let isReadable = faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0
    guard seteuid(0) == 0, setegid(0) == 0 else { throw .failed("root's rights are lost") }
    guard !isReadable else { return }
    let remedy = "chgrp \(name) \(path) && chmod 640 \(path)"
    throw .refused("the service, which runs as \(name), cannot read \(path); run \(remedy)")
  }

  private static func serve(_ options: Options) throws(Ending) {
    // First, so that no other code uses the variables for this process.
    var environment = ServiceEnvironment.take()
    if let fault = environment.fault { throw .failed(fault) }
    let inherited = environment.takeDescriptor(named: "restoration-gateway", "restoration-gateway.socket", "unknown")
    let (configuration, database) = try configuration(options)
    let output = LogOutput(
      level: Logger.Level(rawValue: configuration.logLevel) ?? .info,
      toJournal: environment.logsToJournal
    )
    output.bootstrap()
    let service = Service(environment: environment, output: output)
    do {
      let endpoint = try Endpoint(options.socket, inherited: inherited)
      try service.run(configuration, database, on: endpoint, metricsFile: options.metricsFile)
    } catch {
      service.report(error)
      throw .logged
    }
  }
}

enum Ending: Error {
  /// A question on the command line was answered.
  case answered(String)
  case refused(String)
  case failed(String)
  /// The cause is in the log.
  case logged

  func end() -> Never {
    switch self {
    case .answered(let text):
      print(text)
      exit(EXIT_SUCCESS)
    case .refused(let reason): Self.complain("\(reason)\nUsage: \(Options.usage)", EX_USAGE)
    case .failed(let reason): Self.complain(reason, EXIT_FAILURE)
    case .logged: exit(EXIT_FAILURE)
    }
  }

  private static func complain(_ text: String, _ status: Int32) -> Never {
    let text = "Error: \(text)\n"
    _ = write(STDERR_FILENO, text, text.utf8.count)
    exit(status)
  }
}
