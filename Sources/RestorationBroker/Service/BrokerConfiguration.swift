// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
package import RestorationTransport
package import RestorationWire

/// Where the broker listens and keeps archives, and what it allows (`Protocol/limits.md`).
///
/// Flags go over the environment, over the user's file, over the system's file, over defaults.
package struct BrokerConfiguration: Sendable {
  package var socket: Endpoint
  package var archives: String
  /// Holds the sockets that lead to one application each: beside the broker's own. Nil if that has no absolute path.
  package private(set) var sandboxes: String?
  package var limits = Limits()
  /// Whom to bring back when the user logs in.
  package var restoreAtLogin = LoginPolicies()
  /// A level of swift-log, by name, and where it was said.
  package var logLevel = "info"
  package private(set) var logLevelOrigin = "the default"
  /// Nothing is ever quarantined or discarded by the broker itself.
  package var developerMode = false
  /// Seconds without clients and work after which a broker ends that can be started by its socket; 0 for never.
  package var idleExitSeconds = 0
  /// Where archives go that follow their user; nil if they stay on this host.
  package private(set) var replica: ReplicaConfiguration?
  /// By how many milliseconds a clock that can be moved is ahead at the start; nil if the clock is the computer's.
  package var testClock: Int64?
  /// What the save rounds before the end may take.
  package var stopRoundMilliseconds: Int { limits.stopRoundMilliseconds }

  /// Where clients connect.
  package enum Endpoint: Sendable {
    case path(SocketPath)
    /// A descriptor that listens already.
    case inherited(Int32)
  }

  /// What was said on the command line, and by whoever started us; nil where nothing was.
  package struct Flags: Sendable {
    /// A descriptor that listens already; it goes over every other socket.
    package var inheritedSocket: Int32?
    package var socket: String?
    package var archives: String?
    package var file: String?
    package var logLevel: String?
    package var developerMode = false
    package var idleExitSeconds: Int?
    package var testClock: Int?

    package init() {}
  }

  /// A file or variable says something that cannot be used; the message says where and what to do.
  package struct Fault: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
  }

  package init(
    _ flags: Flags,
    environment: (String) -> String? = Host.environment,
    readFile: (String) throws -> String? = { try Host.readFile($0) }
  ) throws {
    func variable(_ name: String) -> String? { environment(name).flatMap { $0.isEmpty ? nil : $0 } }
    var settings = Settings()
    for path in Self.files(flags, variable) {
      guard let text = try readFile(path) else {
        if path == flags.file {
          throw Fault(description: "the file \(path) does not exist; name an existing one with --config")
        }
        continue
      }
      try settings.merge(text, of: path)
    }
    if let descriptor = flags.inheritedSocket {
      self.socket = .inherited(descriptor)
    } else {
      let said = flags.socket ?? variable("RESTORATIOND_SOCKET")
      self.socket = .path(try Self.socketPath(said, settings, environment))
    }
    let beside: SocketPath? =
      switch socket {
      case .path(let path): path
      case .inherited: try? SocketPath.resolve(flag: nil, environment: environment)
      }
    sandboxes = beside.flatMap { $0.path.hasPrefix("/") ? "\($0.directory)/sandbox" : nil }
    archives =
      try flags.archives ?? variable("RESTORATIOND_ARCHIVES") ?? settings["archives"]?.string
      ?? Self.defaultArchives(variable)
    testClock = try Self.testClock(flags)
    developerMode = flags.developerMode || settings["developerMode"]?.bool ?? false
    takeLogLevel(flags, variable("RESTORATIOND_LOG_LEVEL"), settings)
    idleExitSeconds = try settings.seconds(
      "idleExitSeconds",
      or: flags.idleExitSeconds,
      "--idle-exit",
      Self.idleExitRange
    )
    restoreAtLogin = try settings.policies()
    replica = try settings.replica { Host.configurationDirectory(variable).map { ReplicaSettings.keys(in: $0) } }
    limits = try settings.limits()
  }

  private static func testClock(_ flags: Flags) throws -> Int64? {
    guard let offset = flags.testClock.map({ Int64($0) }) else { return nil }
    if flags.inheritedSocket != nil {
      throw Fault(description: "--test-clock: a service must keep the computer's time; leave the option out")
    }
    guard TestClock.offsets.contains(offset) else {
      let range = "from 0 to \(TestClock.offsets.upperBound)"
      throw Fault(description: "--test-clock: \(offset) is not a number of milliseconds \(range)")
    }
    return offset
  }

  /// - Parameter said: what goes over the files.
  private static func socketPath(
    _ said: String?,
    _ settings: Settings,
    _ environment: (String) -> String?
  ) throws -> SocketPath {
    guard said == nil, let socket = settings["socket"]?.string else {
      return try SocketPath.resolve(flag: said, environment: environment)
    }
    do {
      return try SocketPath.resolve(flag: socket, environment: environment)
    } catch {
      throw Fault(description: "\(settings.place(of: "socket")): \(error)")
    }
  }

  private mutating func takeLogLevel(_ flags: Flags, _ variable: String?, _ settings: Settings) {
    if let level = flags.logLevel {
      (logLevel, logLevelOrigin) = (level, "--log-level")
    } else if let variable {
      (logLevel, logLevelOrigin) = (variable, "RESTORATIOND_LOG_LEVEL")
    } else if let level = settings["logLevel"]?.string {
      (logLevel, logLevelOrigin) = (level, settings.place(of: "logLevel"))
    }
  }

  /// Started again as often as somebody asks, the broker stays below the manager's limit, also below its usual one of 5
  /// starts in 10 seconds: beyond that the manager gives up the service and its socket.
  private static let idleExitRange = 3...86_400

  /// The files to read, the weakest first.
  private static func files(_ flags: Flags, _ variable: (String) -> String?) -> [String] {
    if let file = flags.file { return [file] }
    var files = ["/etc/restorationd/config.json"]
    if let directory = Host.configurationDirectory(variable) { files.append("\(directory)/config.json") }
    return files
  }

  private static func defaultArchives(_ variable: (String) -> String?) throws -> String {
    if let home = variable("XDG_STATE_HOME"), home.hasPrefix("/") { return "\(home)/restorationd" }
    guard let home = variable("HOME") else {
      throw Fault(
        description: "neither XDG_STATE_HOME nor HOME is set; give the directory of the archives with --archives DIR"
      )
    }
    return "\(home)/.local/state/restorationd"
  }
}

extension BrokerConfiguration.Endpoint: CustomStringConvertible {
  package var description: String {
    switch self {
    case .path(let path): path.path
    case .inherited(let descriptor): "inherited descriptor \(descriptor)"
    }
  }

  /// Takes the socket, for at most `backlog` connections that wait.
  func listen(backlog: Int) throws(TransportError) -> ListeningSocket {
    switch self {
    case .path(let path): try ListeningSocket(binding: path, backlog: backlog)
    case .inherited(let descriptor): try ListeningSocket(inheriting: descriptor)
    }
  }
}
