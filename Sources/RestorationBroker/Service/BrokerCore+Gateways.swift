// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationTransport
internal import RestorationWire

/// Translates reports of gateways into events of the core.
extension BrokerCore {
  mutating func take(_ event: ArchiveEvent, _ processes: ProcessGateway, at now: Moment) {
    switch event {
    case .opened(let id, let result):
      let ended = (try? result.get()).map { processes.endedSessions(of: $0.opening.sessions) } ?? []
      opened(id, result, ended: ended, at: now)
    case .committed(let id, let receipt): committed(id, receipt, at: now)
    case .commitFailed(let id, let error, let pause): commitFailed(id, error, pause: pause, at: now)
    case .read(let id, let request, let result): readingFinished(id, request, result, at: now)
    case .listed(let purpose, let result): listingFinished(purpose, result, at: now)
    case .wanted(let id, let host): wanted(id, by: host, at: now)
    case .lost(let id, let loss): lost(id, loss, at: now)
    case .replica(let name, let fact): context.tell(fact, of: name, applicationIDs[name] ?? 0)
    }
  }

  mutating func take(_ event: ProcessEvent, at now: Moment) {
    switch event {
    case .exited(let key, let end): processExited(key.application, key.session, end, at: now)
    case .probed(let id, let sessions, let ended, let call): probed(id, sessions, ended: ended, call, at: now)
    case .unitChecked(let key, let unit, let files): unitChecked(key.application, key.session, unit, files, at: now)
    case .unitFailed(let id, let unit, let message): unitFailed(id, unit, message, at: now)
    }
  }
}

extension BrokerStatistics {
  init(of core: BrokerCore, uptime: Int64) {
    self.init()
    broker = BrokerVersion().with {
      $0.name = "restorationd"
      $0.version = core.context.settings.version
    }
    pid = Host.processID
    uptimeMilliseconds = uptime
  }

  mutating func add(
    _ core: BrokerCore,
    _ archives: ArchiveGateway,
    _ clients: ClientGateway,
    _ timers: Timers,
    _ meter: LoopMeter?
  ) {
    let counted = core.counters
    counters = [
      "connections": counted.connections, "requests": counted.requests, "errors": clients.errors,
      "encodes": counted.encodes, "decodes": counted.decodes, "registrations": counted.registrations,
      "transactions": archives.transactions, "events": clients.outlet.sent, "eventsLost": clients.outlet.lost,
    ]
    durations["commit"] = DurationCounts(archives.commits)
    if let meter {
      counters["busyMilliseconds"] = meter.busyMilliseconds
      counters["longestTurnMilliseconds"] = meter.longestTurnMilliseconds
      durations["turn"] = DurationCounts(meter.durations)
    }
    gauges = [
      "connections": Int64(clients.count), "openArchives": Int64(archives.count),
      "sessions": Int64(core.sessionCount), "objects": Int64(core.objectCount),
      "cachedBytes": Int64(archives.cachedBytes), "timers": Int64(timers.count),
      "subscriptions": Int64(core.subscriptionCount), "readOnly": archives.store.isReadOnly ? 1 : 0,
    ]
    if let store = archives.store as? any ArchiveReplicating { add(store.figures, store.appendDurations) }
  }

  private mutating func add(_ replica: ReplicaFigures, _ appends: Durations?) {
    counters["replicaAppends"] = replica.appends
    counters["replicaSnapshots"] = replica.snapshots
    counters["replicaConflicts"] = replica.conflicts
    for cause in ReplicaFailure.Cause.allCases {
      counters[ReplicaMetric.failures(cause.rawValue)] = replica.failures[cause] ?? 0
    }
    gauges["replicaUnsentChanges"] = replica.changes
    gauges["replicaBacklogBytes"] = Int64(replica.bytes)
    gauges["replicaLagMilliseconds"] = replica.milliseconds
    for state in ReplicaFigures.Holding.allCases {
      gauges[ReplicaMetric.leases(state.rawValue)] = Int64(replica.leases[state] ?? 0)
    }
    durations["append"] = appends.map(DurationCounts.init)
  }

  /// Adds the gauges of one application and its instances, for clients confined to it. Totals cover all clients.
  mutating func add(_ core: BrokerCore, only application: String) {
    let own = core.applications.values.filter { $0.name.base == application }
    let clients = core.clients.values.filter { $0.confinement == application }
    gauges = [
      "connections": Int64(clients.count), "openArchives": Int64(own.count),
      "sessions": Int64(own.reduce(0) { $0 + $1.sessions.count }),
      "objects": Int64(own.reduce(0) { $0 + $1.tree.count }),
      "subscriptions": Int64(clients.reduce(0) { $0 + core.context.subscriptions.entries(of: $1.id).count }),
    ]
  }
}

extension DurationCounts {
  fileprivate init(_ durations: Durations) {
    self.init()
    (counts, sumMicroseconds) = (durations.counts, durations.sumMicroseconds)
    boundsMicroseconds = Durations.boundsMicroseconds
  }
}
