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
    let vacant = summaries.filter { summary in
      guard let name = ApplicationName(summary.application), name.base == application.base,
        let instance = name.instance, !taken.contains(instance)
      else { return false }
      return !(summary.run.map { RunFacts(stored: $0.facts).endedByUserQuit } ?? false)
    }
    if let last = vacant.max(by: { $0.modified < $1.modified }) { return ApplicationName(last.application) }
    return (1...taken.count + 1).lazy.map(String.init).first { !taken.contains($0) }
      .flatMap { application.with(instance: $0) }
  }
}
