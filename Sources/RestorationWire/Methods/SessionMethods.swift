// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

package struct Initialize: RestorationMethod {
  package static let method = "initialize"
  package static let summary = "Opens or resumes a session."
  package static let errors: [ErrorCode] = [
    .invalidParams, .invalidRequest, .alreadyServed, .unsupportedProtocolVersion, .limitExceeded,
  ]
  package static let isScoped = false

  /// The value of `instance` that lets the broker choose.
  package static let automaticInstance = "auto"

  package var application = ApplicationName.blank
  package var session: String?
  package var instance: String?
  package var process: String?
  package var bundleVersion: String?
  package var userInterfaceIdiom = ReservedKeys.unspecifiedIdiom
  package var storyboard: String?
  package var delegate = false
  package var serves: [ServedMethod] = []
  package var messageBytesMax: Int64?
  package var aliases = Aliases()
  package var protocolVersion = ProtocolVersion.current
  package var takeOver = false
  package var affinity: String?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("application", &application, "The application name.")
    try members.optional("session", &session, .name, "Token of the session to resume, from an earlier answer.")
    try members.optional(
      "instance",
      &instance,
      """
      Name of the instance, or `auto`: the most recently used instance that no live session uses and that was not \
      ended by `userQuit`, otherwise a new one.
      """
    )
    try members.optional(
      "process",
      &process,
      .role,
      "Role of the process in the application, such as `editor`; shown to people, and it decides the reason."
    )
    try members.optional(
      "bundleVersion",
      &bundleVersion,
      .name,
      "Version of the program; recorded with every state it writes (R10)."
    )
    try members.member(
      "userInterfaceIdiom",
      &userInterfaceIdiom,
      default: ReservedKeys.unspecifiedIdiom,
      "Kind of interface, by UIKit's numbers: −1 unspecified, 0 phone, 1 pad, 2 TV, 3 car, 5 Mac, 6 vision."
    )
    try members.optional("storyboard", unit: &storyboard, "The systemd user unit that starts this process again (R22).")
    try members.flag("delegate", &delegate, "This session is the application's delegate (R9).")
    try members.member("serves", &serves, default: [], "Calls and notifications that this client serves.")
    try members.optional(
      "messageBytesMax",
      &messageBytesMax,
      .from(1),
      "Bytes of the largest message the client reads; pages are made to fit."
    )
    try members.member(
      "aliases",
      &aliases,
      default: Aliases(),
      "Names in archives of earlier versions, and their current names."
    )
    // Always sent, so that a broker of another version can refuse it.
    var version: Int64? = protocolVersion
    try members.optional("protocolVersion", &version, "The version the client speaks.")
    protocolVersion = version ?? ProtocolVersion.current
    try members.flag("takeOver", &takeOver, "Take the application over if another host has it (R36).")
    try members.optional(
      "affinity",
      &affinity,
      .bytes(0...4_096),
      "Where the user works with it, such as a directory: `auto` prefers the instance that was last given the same."
    )
  }

  package func check() throws(Misfit) {
    guard let instance, application.with(instance: instance) == nil else { return }
    let (message, hint) =
      application.instance == nil
      ? ("\(JSONText(.string(instance)).brief) is not the name of an instance", ApplicationName.instanceHint)
      : ("\(application) names an instance already", "Leave out instance, or give \(application.base) as application.")
    throw Misfit(.unsuited(message, hint: hint), at: "instance")
  }

  package struct Reply: WireObject, Hashable {
    package var protocolVersion = ProtocolVersion.current
    package var broker = BrokerVersion()
    package var application = ApplicationName.blank
    package var session = ""
    package var restoration = RestorationSituation()
    package var limits = Limits()
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required(
        "protocolVersion",
        &protocolVersion,
        .from(1),
        "The version in use, which is the requested one."
      )
      try members.required("broker", &broker, "The broker's program.")
      try members.required("application", &application, "The full name, with the instance if there is one.")
      try members.required("session", &session, .sessionToken, "Token to resume by: 32 hexadecimal digits.")
      try members.required("restoration", &restoration, "What there is to restore.")
      try members.required("limits", &limits, "Every limit.")
    }
  }
}

package struct Goodbye: RestorationMethod {
  package static let method = "goodbye"
  package static let summary = "Ends the session."
  package static let errors: [ErrorCode] = [.archiveUnreadable, .storeFailed]

  package var reason = GoodbyeReason.closed
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("reason", &reason, "What becomes of the objects (R30).")
  }
}

/// Is answered when the broker has read all that was sent before.
public struct Ping: RestorationMethod {
  package static let method = "ping"
  package static let summary = "Does nothing."
  package static let isScoped = false

  public init() {}
}

/// Reports the limits that the broker enforces.
public struct ReportLimits: RestorationMethod {
  package static let method = "limits"
  package static let summary = "Reports limits."
  package static let isScoped = false

  public typealias Reply = Limits

  public init() {}
}

/// Reports the broker's activity since its start, and its present content.
public struct ReportStatistics: RestorationMethod {
  package static let method = "statistics"
  package static let summary = "Reports what the broker has done."
  package static let isScoped = false

  public typealias Reply = BrokerStatistics

  public init() {}
}

package struct Discover: RestorationMethod {
  package static let method = "rpc.discover"
  package static let summary = "Describes the protocol to programs."
  package static let isScoped = false

  package typealias Reply = OpenRPCDocument

  package var forGenerators = false
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.flag("forGenerators", &forGenerators, "Describe only what clients call, for generators of clients.")
  }
}

/// The protocol versions of this code; within a version, changes only add.
package enum ProtocolVersion {
  /// Of the programs and libraries of this repository.
  package static let program = "0.1.0"

  package static let first: Int64 = 1
  package static let current: Int64 = 1

  /// In ascending order; `data.supported` of `unsupportedProtocolVersion`.
  package static let supported: [Int64] = [1]
}

package struct Subscribe: RestorationMethod {
  package static let method = "subscribe"
  package static let summary = "Sends events to the connection."
  package static let errors: [ErrorCode] = [.invalidParams, .forbidden, .limitExceeded]

  package var events: [EventName]?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional(
      "events",
      &events,
      .some,
      "Names of events to send; null means all, including those of later brokers."
    )
  }

  package struct Reply: WireObject, Hashable {
    package var subscription: Int64 = 0
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required(
        "subscription",
        &subscription,
        .from(1),
        "Number of the subscription: 1, 2, 3 … on each connection, never given out twice."
      )
    }
  }
}

/// No event of the subscription follows the answer.
package struct Unsubscribe: RestorationMethod {
  package static let method = "unsubscribe"
  package static let summary = "Ends a subscription."
  package static let errors: [ErrorCode] = [.invalidParams]
  package static let isScoped = false

  package var subscription: Int64 = 0
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("subscription", &subscription, .from(1), "As `subscribe` gave it on this connection.")
  }
}
