// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// What the broker has done since it started and what it holds now.
public struct BrokerStatistics: Hashable, Sendable {
  /// Name of the broker's program.
  public let brokerName: String
  /// Version of the broker's program.
  public let brokerVersion: String
  /// Number of the broker's process.
  public let pid: Int64
  /// Time since it started.
  public let uptime: Duration
  /// Totals since the start by name; they only grow. Names come and go with the broker's version.
  public let counters: [String: Int64]
  /// What there is at this moment by name.
  public let gauges: [String: Int64]

  init(_ wire: ReportStatistics.Reply) {
    brokerName = wire.broker.name
    brokerVersion = wire.broker.version
    pid = wire.pid
    uptime = .milliseconds(wire.uptimeMilliseconds)
    counters = wire.counters
    gauges = wire.gauges
  }
}
