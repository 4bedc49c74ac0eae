// SPDX-License-Identifier: Apache-2.0

/// A broker's metrics. Their names are stable (`Protocol/metrics.md`).
package struct BrokerMetrics {
  private let statistics: BrokerStatistics
  private let applications: [ApplicationOverview]

  package init(statistics: BrokerStatistics, applications: [ApplicationOverview]) {
    (self.statistics, self.applications) = (statistics, applications)
  }

  private static let counters = [
    ("connections", "connections_accepted", "Connections accepted."),
    ("requests", "requests", "Requests and notifications taken from clients."),
    ("errors", "errors", "Errors answered."),
    ("registrations", "registrations", "Objects registered."),
    ("encodes", "encodes", "States stored."),
    ("decodes", "decodes", "States given back."),
    ("transactions", "transactions", "Transactions made durable."),
    ("events", "events", "Events sent to subscribers."),
    ("eventsLost", "events_lost", "Events lost because subscribers did not read."),
    ("replicaAppends", "replica_appends", "Appends to the fleet's store."),
    ("replicaSnapshots", "replica_snapshots", "Copies of whole archives that were sent to the fleet's store."),
    ("replicaConflicts", "replica_conflicts", "Copies that were set aside because another host had written."),
  ]

  private static let gauges = [
    ("connections", "connections", "Connections."),
    ("sessions", "sessions", "Live sessions."),
    ("openArchives", "open_archives", "Archives in use."),
    ("objects", "objects", "Objects of archives in use."),
    ("timers", "timers", "Timers that are set."),
    ("subscriptions", "subscriptions", "Subscriptions of all connections."),
    ("replicaUnsentChanges", "replica_unsent_changes", "Changes that the fleet's store lacks."),
  ]

  private static let histograms = [
    ("commit", "commit", "Time from handing a transaction to the archive until it is durable."),
    ("append", "replica_append", "Time of an append to the fleet's store."),
    ("turn", "loop_turn", "CPU time of turns of the loop, in which it serves no other client."),
  ]

  private static let up = ("restorationd_up", "Whether a broker has answered: 1 or 0.")

  /// The text if no broker answers.
  package static func down(_ labels: [MetricLabel]) -> String {
    var metrics = OpenMetrics(labels: labels)
    metrics.add(.gauge, up.0, up.1, OpenMetrics.Value(0))
    return metrics.text
  }

  /// - Parameters:
  ///   - labels: of every sample.
  ///   - byApplication: whether metrics of single applications are included.
  package func text(_ labels: [MetricLabel] = [], byApplication: Bool) -> String {
    var metrics = OpenMetrics(labels: labels)
    metrics.add(.gauge, Self.up.0, Self.up.1, OpenMetrics.Value(1))
    addBroker(to: &metrics)
    addArchives(to: &metrics)
    if byApplication { addApplications(to: &metrics) }
    return metrics.text
  }

  private func addBroker(to metrics: inout OpenMetrics) {
    let version = MetricLabel(name: "version", value: statistics.broker.version)
    metrics.add(.gauge, "restorationd_build_info", "The broker's version.", [([version], OpenMetrics.Value(1))])
    let uptime = OpenMetrics.Value(milliseconds: statistics.uptimeMilliseconds)
    metrics.add(.gauge, "restorationd_uptime", in: .seconds, "Time since the broker started.", uptime)
    // Clients in sandboxes get only some of them.
    for (key, name, help) in Self.counters {
      metrics.add(.counter, "restorationd_\(name)", help, statistics.counters[key].map { OpenMetrics.Value($0) })
    }
    let busy = statistics.counters["busyMilliseconds"].map(OpenMetrics.Value.init(milliseconds:))
    metrics.add(.counter, "restorationd_loop_cpu", in: .seconds, "CPU time of the thread that serves clients.", busy)
    let longest = statistics.counters["longestTurnMilliseconds"].map(OpenMetrics.Value.init(milliseconds:))
    let help = "The longest CPU time the loop has spent since the start without serving another client."
    metrics.add(.gauge, "restorationd_loop_longest_turn", in: .seconds, help, longest)
    for (key, name, help) in Self.histograms {
      guard let durations = statistics.durations[key] else { continue }
      metrics.add("restorationd_\(name)", help, durations)
    }
    for (key, name, help) in Self.gauges {
      metrics.add(.gauge, "restorationd_\(name)", help, statistics.gauges[key].map { OpenMetrics.Value($0) })
    }
    let cached = statistics.gauges["cachedBytes"].map { OpenMetrics.Value($0) }
    metrics.add(.gauge, "restorationd_cached_state", in: .bytes, "States kept in memory.", cached)
    addReplica(to: &metrics)
  }

  /// Adds nothing without a fleet's database.
  private func addReplica(to metrics: inout OpenMetrics) {
    let bytes = statistics.gauges["replicaBacklogBytes"].map { OpenMetrics.Value($0) }
    metrics.add(.gauge, "restorationd_replica_backlog", in: .bytes, "What waits in memory to be sent.", bytes)
    let lag = statistics.gauges["replicaLagMilliseconds"].map(OpenMetrics.Value.init(milliseconds:))
    let help = "For how long the fleet's store has not had everything."
    metrics.add(.gauge, "restorationd_replica_lag", in: .seconds, help, lag)
    func samples(_ key: (String) -> String, _ label: String, of numbers: [String: Int64]) -> Samples {
      numbers.sorted { $0.key < $1.key }.compactMap { name, number in
        guard name.hasPrefix(key("")) else { return nil }
        let word = MetricLabel(name: label, value: String(name.dropFirst(key("").count)))
        return (labels: [word], value: OpenMetrics.Value(number))
      }
    }
    let failures = samples(ReplicaMetric.failures, "cause", of: statistics.counters)
    metrics.add(.counter, "restorationd_replica_failures", "Failures to send.", failures)
    let leases = samples(ReplicaMetric.leases, "state", of: statistics.gauges)
    metrics.add(.gauge, "restorationd_replica_leases", "Archives that this host has.", leases)
  }

  private typealias Samples = [(labels: [MetricLabel], value: OpenMetrics.Value)]

  private func addArchives(to metrics: inout OpenMetrics) {
    func add(_ name: String, in unit: OpenMetrics.Unit? = nil, _ help: String, _ number: Int) {
      metrics.add(.gauge, "restorationd_\(name)", in: unit, help, OpenMetrics.Value(number))
    }
    add("applications", "Applications with live sessions or saved state.", applications.count)
    let damaged = applications.count { $0.isDamaged }
    add("damaged_archives", "Archives that are or were damaged, or cannot be read.", damaged)
    let bytes = applications.reduce(0) { $0 + ($1.fileBytes ?? 0) }
    add("archive_files", in: .bytes, "Files of all archives.", bytes)
  }

  private func addApplications(to metrics: inout OpenMetrics) {
    let labelled = applications.map { application in
      (label: MetricLabel(name: "application", value: application.application.description), application: application)
    }
    func add(
      _ name: String,
      in unit: OpenMetrics.Unit? = nil,
      _ help: String,
      _ number: (ApplicationOverview) -> Int64?
    ) {
      let samples = labelled.compactMap { label, application in
        number(application).map { (labels: [label], value: OpenMetrics.Value($0)) }
      }
      metrics.add(.gauge, "restorationd_application_\(name)", in: unit, help, samples)
    }
    add("sessions", "Live sessions.") { Int64($0.sessions) }
    add("objects", "Objects, live and archived.") { Int64($0.objects) }
    add("generation", "The newest generation, if there is one.") { $0.generation }
    add("state", in: .bytes, "States at the head, while the archive is in use.") { $0.stateBytes.map { Int64($0) } }
    add("files", in: .bytes, "Files of the archive, if there are any.") { $0.fileBytes.map { Int64($0) } }
    add("damaged", "Whether the archive is or was damaged, or cannot be read: 1 or 0.") { $0.isDamaged ? 1 : 0 }
  }
}

/// Families with one sample for each of several words.
package enum ReplicaMetric {
  package static func failures(_ cause: String) -> String { "replicaFailures.\(cause)" }
  package static func leases(_ state: String) -> String { "replicaLeases.\(state)" }
}

extension ApplicationOverview {
  fileprivate var isDamaged: Bool { damaged != nil || state == .unreadable }
}
