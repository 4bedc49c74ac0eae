// SPDX-License-Identifier: Apache-2.0

internal import RestorationTransport
public import RestorationWire

/// The description of this process for `RestorationSession.start` and `BrokerConnection.initialize`.
public struct SessionOptions: Hashable, Sendable {
  /// The instance of the application; each has an archive of its own.
  public enum Instance: Hashable, Sendable {
    /// The most recently used vacant instance, otherwise a new one.
    case automatic
    case named(String)
  }

  /// `[A-Za-z0-9][A-Za-z0-9._-]{0,127}`, optionally with `@instance`.
  public var application: String
  /// `nil` for the application without instances, or if `application` names one.
  public var instance: Instance?
  /// Role of the process in its application, such as `editor`.
  public var process: String?
  /// Version of the program; recorded with every state it writes (R10).
  public var bundleVersion: String?
  /// By UIKit's numbers: −1 unspecified, 0 phone, 1 pad, 2 TV, 3 car, 5 Mac, 6 vision; recorded with every state (R10).
  public var userInterfaceIdiom: Int64
  /// The systemd user unit that starts this process again; the environment variable `RESTORATION_UNIT` by default.
  public var storyboardUnit: String?
  /// Whether this session is the application's delegate (R9).
  public var isDelegate: Bool
  /// Whether the broker asks a `RestorationSession` to encode its objects at a save, and to decode them at a
  /// restoration; register them with a `StateRestoring`. Otherwise the program encodes and decodes by itself, and the
  /// last encoded states are saved.
  public var answersCalls: Bool
  /// The kinds of notifications to deliver.
  public var notifications: Set<BrokerNotification.Kind>
  /// Class names of earlier versions → current names (R25).
  public var classAliases: [String: String]
  /// Restoration identifiers of earlier versions → current ones.
  public var identifierAliases: [String: String]
  /// Whether to take the application over from another host; its sessions there end (R36). Applies once, at the start.
  public var takeOver: Bool
  /// The user's context, such as a directory: `automatic` prefers the instance that last had the same.
  public var affinity: String?

  /// Everything else has the protocol's default, but all notifications are delivered.
  public init(
    application: String,
    instance: Instance? = nil,
    process: String? = nil,
    bundleVersion: String? = nil,
    userInterfaceIdiom: Int64 = -1,
    storyboardUnit: String? = nil,
    isDelegate: Bool = false,
    answersCalls: Bool = false,
    notifications: Set<BrokerNotification.Kind> = Set(BrokerNotification.Kind.allCases),
    classAliases: [String: String] = [:],
    identifierAliases: [String: String] = [:],
    takeOver: Bool = false,
    affinity: String? = nil
  ) {
    (self.application, self.instance, self.process) = (application, instance, process)
    (self.bundleVersion, self.userInterfaceIdiom) = (bundleVersion, userInterfaceIdiom)
    self.storyboardUnit = storyboardUnit ?? Host.environment("RESTORATION_UNIT").flatMap { $0.isEmpty ? nil : $0 }
    (self.isDelegate, self.answersCalls, self.notifications) = (isDelegate, answersCalls, notifications)
    (self.classAliases, self.identifierAliases, self.takeOver) = (classAliases, identifierAliases, takeOver)
    self.affinity = affinity
  }

  /// The calls and notifications that a session serves: always those about its objects and archive.
  func served(byDelegate hasDelegate: Bool) -> [ServedMethod] {
    var served: [ServedMethod] = [.pathChanged, .registrationReplaced]
    if notifications.contains(.applicationStateSaved) { served.append(.applicationStateSaved) }
    if answersCalls || notifications.contains(.headReplaced) { served.append(.headReplaced) }
    served += [.stateWanted, .archiveLost]
    if answersCalls {
      served += [
        .encodeRestorableStateWithCoder, .decodeRestorableStateWithCoder, .objectWithRestorationIdentifierPath,
        .modelIdentifierForElementAtIndexPath, .indexPathForElementWithModelIdentifier,
        .applicationFinishedRestoringState,
      ]
    }
    if hasDelegate {
      served += [
        .shouldSaveApplicationState, .shouldRestoreApplicationState, .willEncodeRestorableState,
        .viewControllerWithRestorationIdentifierPath, .didDecodeRestorableState,
      ]
    }
    return served
  }

  /// The largest message of a served client, in bytes: with larger ones, states would come one by one.
  static let sessionMessageBytesMax: Int64 = 1 << 20

  func forSession(serving served: [ServedMethod], resuming token: String?) throws -> Initialize {
    let bytesMax = answersCalls ? Self.sessionMessageBytesMax : nil
    return try wire(resuming: token, serving: served, messageBytesMax: bytesMax)
  }

  /// Throws a `RestorationError` if the application's name cannot be sent.
  ///
  /// - Parameters:
  ///   - served: `nil` serves the notifications of the options.
  ///   - messageBytesMax: of the largest message that is read; `nil` for any size.
  func wire(
    resuming session: String?,
    serving served: [ServedMethod]? = nil,
    messageBytesMax: Int64? = nil
  ) throws -> Initialize {
    let name = try ApplicationName(sending: application)
    let chosen: String? =
      switch instance {
      case nil: nil
      case .automatic: Initialize.automaticInstance
      case .named(let name): name
      }
    return Initialize().with {
      $0.application = name
      $0.session = session
      $0.instance = chosen
      $0.process = process
      $0.bundleVersion = bundleVersion
      $0.userInterfaceIdiom = userInterfaceIdiom
      $0.storyboard = storyboardUnit
      $0.delegate = isDelegate
      $0.serves = served ?? BrokerNotification.Kind.allCases.filter(notifications.contains).map(\.wire)
      $0.messageBytesMax = messageBytesMax
      $0.aliases = Aliases().with {
        $0.classes = classAliases
        $0.identifiers = identifierAliases
      }
      ($0.takeOver, $0.affinity) = (takeOver, affinity)
    }
  }
}

/// The behaviour of a `RestorationSession` that starts without a broker.
public enum WithoutBroker: Hashable, Sendable {
  /// The session works as if nothing was saved, and keeps states in memory. The first broker gets its objects and
  /// states. The log says so, once. A broker that is being restarted is awaited first, for a second at most.
  ///
  /// - `register` succeeds at once, `encode` ends with `.unsaved`, `decode` gives this process's states; a save or a
  ///   restoration does nothing.
  /// - A call that only a broker can answer throws a `BrokerConnectionError`.
  /// - States of a former run are not delivered: those in memory replace them (R29). They stay saved if the program
  ///   saves none.
  /// - States in memory are lost if the process ends.
  case memory
  /// Starting throws a `BrokerConnectionError`; for tools.
  case fails
}

/// The broker's answer to `BrokerConnection.initialize`.
public struct SessionInfo: Hashable, Sendable {
  public let protocolVersion: Int64
  public let broker: BrokerVersion
  /// The full name, with the instance, even if the broker chose it.
  public let application: ApplicationName
  /// The token to resume the session; a secret of the application. Empty before the first broker.
  public let session: String
  /// Whether the session was resumed: objects, handles and revisions continue.
  public let wasResumed: Bool
  public let restoration: RestorationSituation
  public let limits: Limits

  init(_ wire: Initialize.Reply, resuming: String?) {
    protocolVersion = wire.protocolVersion
    broker = wire.broker
    application = wire.application
    session = wire.session
    wasResumed = wire.session == resuming
    restoration = wire.restoration
    limits = wire.limits
  }
}

extension SessionInfo: CustomStringConvertible {
  /// Without the token, for logs.
  public var description: String {
    "\(application): \(restoration.state), \(restoration.reason), by \(broker.name) \(broker.version)"
  }
}

extension ApplicationName {
  /// Throws a `RestorationError` if `text` is no such name.
  package init(sending text: String) throws {
    guard let name = ApplicationName(text) else {
      throw RestorationError(
        .invalidParameter(
          "/application",
          "\"\(text)\" is not an application name",
          hint: "Use letters, digits, dots, dashes and underscores, at most \(ApplicationName.baseMax)."
        )
      )
    }
    self = name
  }
}
