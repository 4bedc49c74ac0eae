// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// What `RestorationSession.start` and `BrokerConnection.initialize` tell the broker about this process.
public struct SessionOptions: Hashable, Sendable {
  /// Which of several instances of the application this is; each has an archive of its own.
  public enum Instance: Hashable, Sendable {
    /// The most recently used one that is vacant, else a new one.
    case automatic
    /// The one of this name.
    case named(String)
  }

  /// `[A-Za-z0-9][A-Za-z0-9._-]{0,127}`, optionally with `@instance`.
  public var application: String
  /// Nil for the application without instances, or where `application` names one.
  public var instance: Instance?
  /// Role of the process in its application, such as `editor`.
  public var process: String?
  /// Version of the program; recorded with every state it writes (R26).
  public var bundleVersion: String?
  /// By UIKit's numbers: −1 unspecified, 0 phone, 1 pad, 2 TV, 3 car, 5 Mac, 6 vision; recorded with every state (R26).
  public var userInterfaceIdiom: Int64
  /// The systemd user unit that starts this process again.
  public var storyboardUnit: String?
  /// Whether this session is the application's delegate (R9).
  public var isDelegate: Bool
  /// What `notifications` of the session or connection will give.
  public var notifications: Set<BrokerNotification.Kind>
  /// Class names of earlier versions → today's (R25).
  public var classAliases: [String: String]
  /// Restoration identifiers of earlier versions → today's.
  public var identifierAliases: [String: String]

  /// Options for this application; everything else has the protocol's default, but all notifications are asked for.
  public init(
    application: String,
    instance: Instance? = nil,
    process: String? = nil,
    bundleVersion: String? = nil,
    userInterfaceIdiom: Int64 = -1,
    storyboardUnit: String? = nil,
    isDelegate: Bool = false,
    notifications: Set<BrokerNotification.Kind> = Set(BrokerNotification.Kind.allCases),
    classAliases: [String: String] = [:],
    identifierAliases: [String: String] = [:]
  ) {
    self.application = application
    self.instance = instance
    self.process = process
    self.bundleVersion = bundleVersion
    self.userInterfaceIdiom = userInterfaceIdiom
    self.storyboardUnit = storyboardUnit
    self.isDelegate = isDelegate
    self.notifications = notifications
    self.classAliases = classAliases
    self.identifierAliases = identifierAliases
  }

  /// What a session asks for: it follows its objects, whatever the application wants to be told of.
  var forSession: SessionOptions {
    var options = self
    options.notifications = [.pathChanged, .registrationReplaced]
    return options
  }

  /// Throws a `RestorationError` where the application's name cannot be sent.
  func wire(resuming session: String?) throws -> Initialize {
    guard let name = ApplicationName(application) else {
      throw RestorationError(
        .invalidParameter(
          "/application",
          "\"\(application)\" is not an application name",
          hint: "Use letters, digits, dots, dashes and underscores, at most \(ApplicationName.baseMax)."
        )
      )
    }
    let chosen: String? =
      switch instance {
      case nil: nil
      case .automatic: Initialize.automaticInstance
      case .named(let name): name
      }
    return Initialize(
      application: name,
      session: session,
      instance: chosen,
      process: process,
      bundleVersion: bundleVersion,
      userInterfaceIdiom: userInterfaceIdiom,
      storyboard: storyboardUnit,
      delegate: isDelegate,
      serves: BrokerNotification.Kind.allCases.filter(notifications.contains).map(\.wire),
      aliases: Aliases(classes: classAliases, identifiers: identifierAliases)
    )
  }
}
