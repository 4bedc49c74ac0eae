// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

extension ApplicationOverview {
  /// Those that the client may use: of open archives as they are now, of the others as the store lists them.
  static func all(
    in core: BrokerCore,
    _ summaries: [ArchiveSummary],
    for client: Client
  ) -> [ApplicationOverview] {
    var overviews: [ApplicationName: ApplicationOverview] = [:]
    for summary in summaries {
      guard let name = ApplicationName(summary.application) else { continue }
      let facts = summary.run.map { RunFacts(stored: $0.facts) } ?? RunFacts()
      overviews[name] = ApplicationOverview().with {
        $0.application = name
        $0.sessions = 0
        $0.objects = summary.objects
        $0.generation = summary.generation == 0 ? nil : summary.generation
        $0.bytes = summary.bytes
        $0.fileBytes = summary.isHere ? summary.bytes : nil
        $0.host = summary.holder?.host
        $0.state = summary.availability(facts)
        $0.restoreAtLogin = core.context.settings.loginPolicies.policy(for: name)
        $0.units = facts.units.map(\.name)
        $0.damaged = facts.damage
      }
    }
    for application in core.applications.values.map(\.settled) {
      guard case .open = application.phase else { continue }
      let fileBytes = overviews[application.name]?.fileBytes
      overviews[application.name] = application.overview.with { $0.fileBytes = fileBytes }
    }
    let usable = overviews.values.filter { client.mayUse($0.application) }
    return usable.sorted { $0.application.description < $1.application.description }
  }
}

extension ArchiveSummary {
  /// What the closed archive has to restore.
  fileprivate func availability(_ facts: RunFacts) -> RestorationState {
    guard state == .available else { return .unreadable }
    guard objects > 0 else { return .none }
    return facts.withholdsAll ? .quarantined : .available
  }
}
