// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// Chooses the instance for `initialize` with `instance: "auto"`.
struct InstanceChoice {
  private let application: ApplicationName
  private let affinity: String?
  private var taken: Set<String> = []

  init(of application: ApplicationName, affinity: String?) {
    (self.application, self.affinity) = (application, affinity)
  }

  mutating func exclude(_ name: ApplicationName) {
    if name.base == application.base, let instance = name.instance { taken.insert(instance) }
  }

  /// The most recently used vacant instance that the user has not quit, preferably one of the same affinity; else the
  /// first vacant number.
  ///
  /// The number may be one that the user has quit, which begins empty. Otherwise each quit would leave an archive.
  func choose(among summaries: [ArchiveSummary]) -> ApplicationName? {
    let vacant = summaries.compactMap { summary -> (name: ApplicationName, isAkin: Bool, used: Int64)? in
      guard let name = ApplicationName(summary.application), name.base == application.base,
        let instance = name.instance, !taken.contains(instance)
      else { return nil }
      let facts = summary.run.map { RunFacts(stored: $0.facts) } ?? RunFacts()
      guard !facts.endedByUserQuit else { return nil }
      // Writes after the end of the sessions do not count as use, and neither does a backup copy. If the end of a run
      // was not recorded, the last write counts.
      let used = facts.isOpen || facts.used == 0 ? summary.modified : facts.used
      return (name, affinity != nil && facts.affinity == affinity, used)
    }
    let akin = vacant.filter(\.isAkin)
    if let last = (akin.isEmpty ? vacant : akin).max(by: { $0.used < $1.used }) { return last.name }
    return (1...taken.count + 1).lazy.map(String.init).first { !taken.contains($0) }
      .flatMap { application.with(instance: $0) }
  }
}
