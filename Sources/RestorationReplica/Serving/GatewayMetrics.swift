// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTransport
internal import RestorationWire

/// A gateway's counters since its start, as metrics with stable names (`Protocol/gateway.md`). Users are counted, never
/// named.
package struct GatewayMetrics: Sendable {
  package struct Database: Sendable {
    package var connections: Int
    package var connectionsMax: Int
    package var busy: Int
    package var waiting: Int

    package init(connections: Int, connectionsMax: Int, busy: Int, waiting: Int) {
      (self.connections, self.connectionsMax, self.busy, self.waiting) = (connections, connectionsMax, busy, waiting)
    }
  }

  struct Callers {
    var connections = 0
    var brokers = 0
    var users = 0
  }

  private struct Calls {
    var durations = Durations()
    var counts: [String: Int64] = [:]
  }

  /// By method; unknown names share one entry.
  private var calls: [String: Calls] = [:]
  private var receivedBytes: Int64 = 0
  private var sentBytes: Int64 = 0

  /// Counts an answered call.
  ///
  /// - Parameters:
  ///   - method: `nil` if the name is unknown.
  ///   - bytes: of its parameters.
  ///   - duration: since its arrival.
  mutating func note(_ method: String?, _ outcome: Outcome, bytes: Int, duration: Duration) {
    let word: String
    switch outcome {
    case .result(let text):
      word = "done"
      sentBytes += Int64(text.bytes.count)
    case .error(let error): word = error.data?["kind"]?.string ?? "error"
    }
    receivedBytes += Int64(bytes)
    calls[method ?? "other", default: Calls()].counts[word, default: 0] += 1
    calls[method ?? "other"]?.durations.add(nanoseconds: Int64(duration / .nanoseconds(1)))
  }

  private static let histogram = "Time from the arrival of a call until it is answered."

  func text(_ callers: Callers, _ database: Database) -> String {
    var metrics = OpenMetrics()
    func gauge(_ name: String, _ help: String, _ number: Int) {
      metrics.add(.gauge, "restoration_gateway_\(name)", help, OpenMetrics.Value(number))
    }
    func bytes(_ name: String, _ help: String, _ number: Int64) {
      metrics.add(.counter, "restoration_gateway_\(name)", in: .bytes, help, OpenMetrics.Value(number))
    }
    let version = MetricLabel(name: "version", value: ProtocolVersion.program)
    let build = [(labels: [version], value: OpenMetrics.Value(1))]
    metrics.add(.gauge, "restoration_gateway_build_info", "The gateway's version.", build)
    gauge("connections", "Connections of brokers.", callers.connections)
    gauge("brokers", "Brokers, with those that were here within the last minute.", callers.brokers)
    gauge("users", "Users of these brokers.", callers.users)
    let methods = calls.sorted { $0.key < $1.key }.map { (MetricLabel(name: "method", value: $0.key), $0.value) }
    let outcomes = methods.flatMap { method, calls in
      calls.counts.sorted { $0.key < $1.key }.map { outcome, count in
        (labels: [method, MetricLabel(name: "outcome", value: outcome)], value: OpenMetrics.Value(count))
      }
    }
    metrics.add(.counter, "restoration_gateway_calls", "Calls that were answered.", outcomes)
    let durations = methods.map { (labels: [$0], durations: DurationCounts($1.durations)) }
    metrics.add("restoration_gateway_call", Self.histogram, durations)
    bytes("received", "Parameters of calls.", receivedBytes)
    bytes("sent", "Results of calls.", sentBytes)
    gauge("database_connections", "Connections to the database, with those that are being made.", database.connections)
    gauge("database_connections_max", "How many there may be.", database.connectionsMax)
    gauge("database_connections_busy", "Of these, those at which a call is under way.", database.busy)
    gauge("database_calls_waiting", "Calls that wait for a connection to the database.", database.waiting)
    return metrics.text
  }
}

extension DurationCounts {
  fileprivate init(_ durations: Durations) {
    self.init()
    (counts, sumMicroseconds) = (durations.counts, durations.sumMicroseconds)
    boundsMicroseconds = Durations.boundsMicroseconds
  }
}
