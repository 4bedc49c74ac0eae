// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// What the broker answers to `BrokerConnection.initialize`.
public struct SessionInfo: Hashable, Sendable {
  /// The version of the protocol that is spoken.
  public let protocolVersion: Int64
  /// Name of the broker's program.
  public let brokerName: String
  /// Version of the broker's program.
  public let brokerVersion: String
  /// The whole name, with the instance, also where the broker chose it.
  public let application: String
  /// The token to resume the session by; a secret of the application.
  public let session: String
  /// Whether the token asked for was known, so that objects, handles and revisions go on.
  public let wasResumed: Bool
  /// What there is to restore.
  public let restoration: RestorationSituation
  /// What the broker holds its clients to.
  public let limits: BrokerLimits

  init(_ wire: Initialize.Reply, resuming: String?) {
    protocolVersion = wire.protocolVersion
    brokerName = wire.broker.name
    brokerVersion = wire.broker.version
    application = wire.application.description
    session = wire.session
    wasResumed = wire.session == resuming
    restoration = RestorationSituation(wire.restoration)
    limits = BrokerLimits(wire.limits)
  }
}

extension SessionInfo: CustomStringConvertible {
  /// For logs: without the token.
  public var description: String {
    "\(application): \(restoration.state), \(restoration.reason), by \(brokerName) \(brokerVersion)"
  }
}

/// What a session finds at its beginning (R20).
public struct RestorationSituation: Hashable, Sendable {
  /// Why an application, or one process role of it, finds itself as it is.
  public enum Reason: String, CaseIterable, Hashable, Sendable {
    /// There was nothing, or it was discarded.
    case pristine
    /// The last run left cleanly.
    case launch
    /// The last run crashed, or a damaged archive was replaced by its backup.
    case recover
    /// The broker started this process in order to restore it.
    case restore
  }

  /// Whether there is saved state.
  public let state: StateAvailability
  /// Of this process role where the broker knows it, else of the application.
  public let reason: Reason
  /// The generation that the run started from; nil where none was sealed.
  public let generation: Int64?
  /// UUID of the archive; numbers kept elsewhere mean something only together with it. Nil where it cannot be read.
  public let archive: String?
  /// Who wrote last and when; nil where nobody has.
  public let origin: StateOrigin?
  /// What was found damaged in the archive and what was done, for people (R32); nil if nothing was, or a run has ended
  /// since.
  public let damaged: String?

  init(_ wire: RestorationWire.RestorationSituation) {
    state = StateAvailability(wire.state)
    reason =
      switch wire.reason {
      case .pristine: .pristine
      case .launch: .launch
      case .recover: .recover
      case .restore: .restore
      }
    generation = wire.generation
    archive = wire.archive
    origin = wire.coder.flatMap(StateOrigin.init)
    damaged = wire.damaged
  }
}

/// What becomes of a session's objects when it ends (R30).
public enum GoodbyeReason: String, CaseIterable, Hashable, Sendable {
  /// The session's objects are over; their state is removed.
  case closed
  /// The user quit the application; its state is discarded.
  case userQuit
  /// The process comes back, e.g. after an update; everything is kept.
  case restart
  /// The user's session ends; everything is kept.
  case logout

  var wire: Goodbye.Reason {
    switch self {
    case .closed: .closed
    case .userQuit: .userQuit
    case .restart: .restart
    case .logout: .logout
    }
  }
}
