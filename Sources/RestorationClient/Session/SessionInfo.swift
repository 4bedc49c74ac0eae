// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

/// What the broker answers to `BrokerConnection.initialize`.
public struct SessionInfo: Hashable, Sendable {
  /// The version of the protocol that is spoken.
  public let protocolVersion: Int64
  /// The broker's program.
  public let broker: BrokerVersion
  /// The whole name, with the instance, also where the broker chose it.
  public let application: ApplicationName
  /// The token to resume the session by; a secret of the application.
  public let session: String
  /// Whether the token asked for was known, so that objects, handles and revisions go on.
  public let wasResumed: Bool
  /// What there is to restore.
  public let restoration: RestorationSituation
  /// What the broker holds its clients to.
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
  /// For logs: without the token.
  public var description: String {
    "\(application): \(restoration.state), \(restoration.reason), by \(broker.name) \(broker.version)"
  }
}
