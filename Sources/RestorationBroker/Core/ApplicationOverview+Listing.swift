// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

extension ApplicationOverview {
  /// Overviews of all applications the client may use: open ones from memory, closed ones from the store's summaries.
  static func all(
    in core: BrokerCore,
    _ summaries: [ArchiveSummary],
    for client: Client
  ) -> [ApplicationOverview] {
    var overviews: [ApplicationName: ApplicationOverview] = [:]
    for summary in summaries {
      guard let name = ApplicationName(summary.application), !name.isSetAside else { continue }
      let facts = summary.run.map { RunFacts(stored: $0.facts) } ?? RunFacts()
      overviews[name] = ApplicationOverview().with {
        $0.application = name
        $0.sessions = 0
        $0.objects = summary.objects
        $0.generation = summary.generation == 0 ? nil : summary.generation
        $0.bytes = summary.bytes
        $0.fileBytes = summary.isHere ? summary.bytes : nil
        $0.unusedDays = summary.isElsewhere ? nil : summary.unusedDays(facts, at: core.context.now.wall)
        $0.host = summary.holder?.host
        $0.state = summary.availability(facts)
        $0.withheld = Int(clamping: facts.withheld)
        $0.restoreAtLogin = core.context.settings.loginPolicies.policy(for: name)
        $0.units = facts.units.map(\.name)
        $0.damaged = facts.damage
      }
    }
    for application in core.applications.values.map(\.settled) where !application.name.isSetAside {
      guard case .open = application.phase else { continue }
      let listed = overviews[application.name]
      overviews[application.name] = application.overview.with {
        $0.fileBytes = listed?.fileBytes
        $0.unusedDays = $0.sessions == 0 ? listed?.unusedDays : nil
      }
    }
    let usable = overviews.values.filter { client.mayUse($0.application) }
    return usable.sorted { $0.application.description < $1.application.description }
  }
}

extension ArchiveSummary {
  /// Whole days since the newest write or the end of the last session; `nil` if neither is known.
  fileprivate func unusedDays(_ facts: RunFacts, at wall: Int64) -> Int? {
    let used = max(modified, facts.used)
    return used == 0 ? nil : Int(max(0, wall - used) / (24 * 3_600 * 1_000))
  }

  fileprivate func availability(_ facts: RunFacts) -> RestorationState {
    guard state == .available else { return .unreadable }
    guard objects > 0 else { return .none }
    return facts.withholdsAll ? .quarantined : .available
  }
}
