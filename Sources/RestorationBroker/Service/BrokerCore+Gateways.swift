// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationTransport
internal import RestorationWire

/// What gateways report, in the core's words.
extension BrokerCore {
  mutating func take(_ event: ArchiveEvent, _ processes: ProcessGateway, at now: Moment) {
    switch event {
    case .opened(let id, let result):
      let ended = (try? result.get()).map { processes.endedSessions(of: $0.sessions) } ?? []
      opened(id, result, ended: ended, at: now)
    case .committed(let id, let receipt): committed(id, receipt, at: now)
    case .commitFailed(let id, let error, let pause): commitFailed(id, error, pause: pause, at: now)
    case .read(let id, let request, let result): readingFinished(id, request, result, at: now)
    case .carriedOut(let id, let job, let result): jobFinished(id, job, result, at: now)
    case .listed(let purpose, let result): listingFinished(purpose, result, at: now)
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

  /// Counters and gauges of core and service together.
  func statistics(
    uptime: Int64,
    _ archives: ArchiveGateway,
    _ clients: ClientGateway,
    _ timers: Timers
  ) -> ReportStatistics.Reply {
    ReportStatistics.Reply().with {
      $0.broker = BrokerVersion().with {
        $0.name = "restorationd"
        $0.version = context.settings.version
      }
      $0.pid = Host.processID
      $0.uptimeMilliseconds = uptime
      $0.counters = [
        "connections": counters.connections, "requests": counters.requests, "errors": counters.errors,
        "encodes": counters.encodes, "decodes": counters.decodes, "registrations": counters.registrations,
        "transactions": archives.transactions, "events": clients.outlet.sent, "eventsLost": clients.outlet.lost,
      ]
      $0.gauges = [
        "connections": Int64(clients.count), "openArchives": Int64(archives.count),
        "sessions": Int64(sessionCount), "objects": Int64(objectCount),
        "cachedBytes": Int64(archives.cachedBytes), "timers": Int64(timers.count),
        "subscriptions": Int64(subscriptionCount),
      ]
    }
  }
}
