// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// The instance that `initialize` with `instance: "auto"` gets.
struct InstanceChoice {
  private let application: ApplicationName
  /// Instances in use.
  private var taken: Set<String> = []

  init(of application: ApplicationName) { self.application = application }

  mutating func exclude(_ name: ApplicationName) {
    if name.base == application.base, let instance = name.instance { taken.insert(instance) }
  }

  /// The most recently used instance not in use that the user has not quit, otherwise the first number not in use.
  ///
  /// The number may be one that the user has quit, which begins empty: otherwise every run that the user quits would
  /// leave an archive.
  func choose(among summaries: [ArchiveSummary]) -> ApplicationName? {
    let vacant = summaries.compactMap { summary -> (name: ApplicationName, used: Int64)? in
      guard let name = ApplicationName(summary.application), name.base == application.base,
        let instance = name.instance, !taken.contains(instance)
      else { return nil }
      let facts = summary.run.map { RunFacts(stored: $0.facts) } ?? RunFacts()
      guard !facts.endedByUserQuit else { return nil }
      // What was written after the end of the sessions is no use, and neither is a backup copy. Of a run whose end was
      // not recorded, the last write is all that is known.
      return (name, facts.isOpen || facts.used == 0 ? summary.modified : facts.used)
    }
    if let last = vacant.max(by: { $0.used < $1.used }) { return last.name }
    return (1...taken.count + 1).lazy.map(String.init).first { !taken.contains($0) }
      .flatMap { application.with(instance: $0) }
  }
}
