// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationTransport
package import RestorationWire

/// Where the broker listens and keeps archives, and what it allows (`Protocol/limits.md`).
///
/// Flags go over the environment, over the user's file, over the system's file, over defaults.
package struct BrokerConfiguration: Sendable {
  package var socket: Endpoint
  package var archives: String
  package var limits = Limits()
  /// Whom to bring back when the user logs in.
  package var restoreAtLogin = LoginPolicies()
  /// A level of swift-log, by name.
  package var logLevel = "info"
  /// Nothing is ever quarantined or discarded by the broker itself.
  package var developerMode = false
  /// Seconds without clients and work after which a broker ends that can be started by its socket; 0 for never.
  package var idleExitSeconds = 0
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

    package init(
      inheritedSocket: Int32? = nil,
      socket: String? = nil,
      archives: String? = nil,
      file: String? = nil,
      logLevel: String? = nil,
      developerMode: Bool = false,
      idleExitSeconds: Int? = nil
    ) {
      self.inheritedSocket = inheritedSocket
      self.socket = socket
      self.archives = archives
      self.file = file
      self.logLevel = logLevel
      self.developerMode = developerMode
      self.idleExitSeconds = idleExitSeconds
    }
  }

  /// A file or variable says something that cannot be used; the message says where and what to do.
  package struct Fault: Error, CustomStringConvertible {
    package let description: String
  }

  package init(
    _ flags: Flags,
    environment: (String) -> String? = Host.environment,
    readFile: (String) throws -> String? = { try Host.readFile($0) }
  ) throws {
    func variable(_ name: String) -> String? {
      environment(name).flatMap { $0.isEmpty ? nil : $0 }
    }
    var settings = JSONObject()
    for path in Self.files(flags, variable) {
      guard let text = try readFile(path) else {
        if path == flags.file {
          throw Fault(description: "there is no file \(path); name an existing one with --config")
        }
        continue
      }
      try Self.merge(text, of: path, into: &settings)
    }
    func text(_ flag: String?, _ name: String?, _ member: String) -> String? {
      flag ?? name.flatMap(variable) ?? settings[member]?.string
    }
    if let descriptor = flags.inheritedSocket {
      self.socket = .inherited(descriptor)
    } else {
      let socket = flags.socket ?? variable("RESTORATIOND_SOCKET") ?? settings["socket"]?.string
      self.socket = .path(try SocketPath.resolve(flag: socket, environment: environment))
    }
    self.archives = try text(flags.archives, "RESTORATIOND_ARCHIVES", "archives") ?? Self.defaultArchives(variable)
    self.logLevel = text(flags.logLevel, "RESTORATIOND_LOG_LEVEL", "logLevel") ?? "info"
    self.developerMode = flags.developerMode || settings["developerMode"]?.bool ?? false
    let seconds = flags.idleExitSeconds ?? settings["idleExitSeconds"]?.integer.flatMap { Int(exactly: $0) } ?? 0
    guard seconds == 0 || Self.idleExitRange.contains(seconds) else {
      let (least, most) = (Self.idleExitRange.lowerBound, Self.idleExitRange.upperBound)
      throw Fault(
        description: "the seconds of idle exit are \(seconds); choose from \(least) to \(most), or 0 for never"
      )
    }
    idleExitSeconds = seconds
    if let policies = settings["restoreAtLogin"]?.object { self.restoreAtLogin = try LoginPolicies(policies) }
    if let limits = settings["limits"]?.object { self.limits = try Limits(overriding: limits) }
  }

  /// Started again as often as somebody asks, the broker stays below the manager's limit, also below its usual one of 5
  /// starts in 10 seconds: beyond that the manager gives up the service and its socket.
  private static let idleExitRange = 3...86_400

  /// The files to read, the weakest first.
  private static func files(_ flags: Flags, _ variable: (String) -> String?) -> [String] {
    if let file = flags.file { return [file] }
    var files = ["/etc/restorationd/config.json"]
    // Relative values of the XDG variables are to be ignored.
    if let home = variable("XDG_CONFIG_HOME"), home.hasPrefix("/") {
      files.append("\(home)/restorationd/config.json")
    } else if let home = variable("HOME") {
      files.append("\(home)/.config/restorationd/config.json")
    }
    return files
  }

  private static func defaultArchives(_ variable: (String) -> String?) throws -> String {
    if let home = variable("XDG_STATE_HOME"), home.hasPrefix("/") { return "\(home)/restorationd" }
    guard let home = variable("HOME") else {
      throw Fault(
        description: "neither XDG_STATE_HOME nor HOME is set; say with --archives DIR where archives are to be kept"
      )
    }
    return "\(home)/.local/state/restorationd"
  }

  private static let types: [(name: String, kind: String, isRight: @Sendable (JSONValue) -> Bool)] = [
    ("socket", "a string", { $0.string != nil }),
    ("archives", "a string", { $0.string != nil }),
    ("logLevel", "a string", { $0.string != nil }),
    ("developerMode", "true or false", { $0.bool != nil }),
    ("idleExitSeconds", "a whole number", { $0.integer != nil }),
    ("limits", "an object", { $0.object != nil }),
    ("restoreAtLogin", "an object", { $0.object != nil }),
  ]

  private static func merge(_ text: String, of path: String, into settings: inout JSONObject) throws {
    let value: JSONValue
    do {
      value = try JSONCodec.parse(Array(text.utf8))
    } catch {
      throw Fault(description: "\(path) is not JSON: \(error.message) at byte \(error.position); mend or remove it")
    }
    guard let object = value.object else { throw Fault(description: "\(path) is not a JSON object; mend or remove it") }
    for (name, value) in object.members {
      guard let type = types.first(where: { $0.name == name }) else {
        let known = types.map(\.name).joined(separator: ", ")
        throw Fault(description: "\(path): there is no setting \(name); the settings are \(known)")
      }
      guard type.isRight(value) else { throw Fault(description: "\(path): \(name) is not \(type.kind)") }
      if var members = settings[name]?.object {
        for (member, value) in value.object?.members ?? [] { members[member] = value }
        settings[name] = .object(members)
      } else {
        settings[name] = value
      }
    }
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

extension LoginPolicies {
  /// Reads the setting: words by application, by application without instance, or `*` for all others.
  fileprivate init(_ settings: JSONObject) throws {
    var policies: [String: LoginPolicy] = [:]
    for (name, value) in settings.members {
      guard name == "*" || ApplicationName(name) != nil else {
        throw BrokerConfiguration.Fault(description: "restoreAtLogin: \(name) is no application's name, and not *")
      }
      guard let policy = value.string.flatMap({ LoginPolicy(rawValue: $0) }) else {
        let words = LoginPolicy.allCases.map(\.rawValue).joined(separator: ", ")
        throw BrokerConfiguration.Fault(description: "restoreAtLogin: \(name) is not one of \(words)")
      }
      policies[name] = policy
    }
    self.init(policies)
  }
}
