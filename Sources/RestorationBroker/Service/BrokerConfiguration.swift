// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
package import RestorationTransport
package import RestorationWire

/// Where the broker listens, where it stores archives, and its limits (`Protocol/limits.md`).
///
/// Flags override the environment, which overrides the user's file, then the system's file, then defaults.
package struct BrokerConfiguration: Sendable {
  package var socket: Endpoint
  package var archives: String
  /// The directory of the applications' sockets, beside the broker's own; `nil` if that has no absolute path.
  package private(set) var sandboxes: String?
  package var limits = Limits()
  package var restoreAtLogin = LoginPolicies()
  /// The name of a swift-log level, and the place that set it.
  package var logLevel = "info"
  package private(set) var logLevelOrigin = "the default"
  /// The broker itself never quarantines or discards state.
  package var developerMode = false
  /// Seconds without clients and work after which a socket-activated broker ends; 0 for never.
  package var idleExitSeconds = 0
  /// The replica of archives that follow their user; `nil` if they stay on this host.
  package private(set) var replica: ReplicaConfiguration?
  /// By how many milliseconds a test's clock is ahead at the start; `nil` for the computer's clock.
  package var testClock: Int64?
  /// The longest time of the save rounds at the end.
  package var stopRoundMilliseconds: Int { limits.stopRoundMilliseconds }
  package var archiveBytesMax: Int { limits.archiveBytesMax }

  package enum Endpoint: Sendable {
    case path(SocketPath)
    /// A descriptor that listens already.
    case inherited(Int32)
  }

  /// Settings from the command line and from the starting process; `nil` for each that is not given.
  package struct Flags: Sendable {
    /// A descriptor that listens already; overrides every other socket.
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

  /// An invalid setting in a file or variable. The message says where, and what to do.
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
    replica = try settings.replica { Host.keyDirectory(variable) }
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

  /// - Parameter said: overrides the files.
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

  /// A broker that is started again as soon as it ends must stay below the manager's limit, usually 5 starts in 10
  /// seconds: beyond it the manager gives up the service and its socket.
  private static let idleExitRange = 3...86_400

  /// The files to read, in ascending order of precedence.
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

  /// Opens the socket; at most `backlog` connections wait for it.
  func listen(backlog: Int) throws(TransportError) -> ListeningSocket {
    switch self {
    case .path(let path): try ListeningSocket(binding: path, backlog: backlog)
    case .inherited(let descriptor): try ListeningSocket(inheriting: descriptor)
    }
  }
}
