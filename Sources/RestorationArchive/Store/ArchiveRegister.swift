// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// The shared data of a store's archives: which are in use, which files are open, and summaries of the closed ones. It
/// never waits for a disk.
///
/// Invariants:
/// 1. An application has at most one `ApplicationArchive` with open files. It is in the register from the first visit
///    until it is neither kept nor visited. So openings, closings and removals of the same application follow each
///    other in its lane.
/// 2. Before opening files, an archive takes a place for them (`open`). If all places are taken, the least recently
///    used archives are asked to park, in lanes of their own, without a wait for it. Until then more than
///    `openArchivesMax` have open files: at most as many more as there are threads, because such a request goes before
///    all other work.
/// 3. Epochs of leases grow, over all archives.
final class ArchiveRegister: Sendable {
  private enum Place {
    case none
    case taken
    case leaving
  }

  private struct Entry {
    let archive: ApplicationArchive
    /// Calls under way.
    var visits = 0
    /// It is open or parked, or the next opening needs a finding.
    var isKept = false
    var place = Place.none
    var lastUse: UInt64 = 0
  }

  private struct State {
    var entries: [String: Entry] = [:]
    /// Counts the uses of archives.
    var uses: UInt64 = 0
    var openArchivesMax: Int
    var lastEpoch: Int64 = 0
    /// Summaries of closed and parked archives, valid while their files have the same stamp.
    var summaries: [String: (stamp: FileStamp, summary: ArchiveSummary)] = [:]

    mutating func removeIfUnused(_ application: String) {
      guard let entry = entries[application], entry.visits == 0, !entry.isKept else { return }
      entries[application] = nil
    }

    /// Chooses the least recently used archives to park, until `openArchivesMax` holds.
    mutating func displaced(sparing application: String? = nil) -> [ApplicationArchive] {
      let surplus = entries.values.count { $0.place == .taken } - openArchivesMax
      guard surplus > 0 else { return [] }
      let oldest = entries.filter { $0.value.place == .taken && $0.key != application }
        .sorted { $0.value.lastUse < $1.value.lastUse }
        .prefix(surplus)
      for (application, _) in oldest { entries[application]?.place = .leaving }
      return oldest.map(\.value.archive)
    }
  }

  private let state: Mutex<State>
  let sizes = ArchiveSizes()

  init(openArchivesMax: Int) { state = Mutex(State(openArchivesMax: openArchivesMax)) }

  // MARK: Who is in use

  /// The archive of an application, made if there is none; registered until `leave`.
  func visit(_ application: String, making make: () -> ApplicationArchive) -> ApplicationArchive {
    state.withLock { state in
      state.uses += 1
      var entry = state.entries[application] ?? Entry(archive: make())
      entry.visits += 1
      entry.lastUse = state.uses
      state.entries[application] = entry
      return entry.archive
    }
  }

  func leave(_ application: String) {
    state.withLock { state in
      state.entries[application]?.visits -= 1
      state.removeIfUnused(application)
    }
  }

  /// The archive of an application if it is kept or visited; notes the use.
  func use(_ application: String) -> ApplicationArchive? {
    state.withLock { state in
      guard let index = state.entries.index(forKey: application) else { return nil }
      state.uses += 1
      state.entries.values[index].lastUse = state.uses
      return state.entries.values[index].archive
    }
  }

  func opened(_ application: String) -> ApplicationArchive? {
    state.withLock { state in
      guard let entry = state.entries[application], entry.place != .none else { return nil }
      return entry.archive
    }
  }

  func nextEpoch() -> Int64 {
    state.withLock { state in
      state.lastEpoch += 1
      return state.lastEpoch
    }
  }

  /// Releases all archives, which refer to the register themselves.
  func clear() {
    let entries = state.withLock { state in
      defer { state.entries = [:] }
      return state.entries
    }
    // Files are closed here, where nothing is locked.
    _ = consume entries
  }

  // MARK: Open files

  /// Takes a place for an archive's files; returns the archives to park.
  func takePlace(_ application: String) -> [ApplicationArchive] {
    state.withLock { state in
      state.entries[application]?.place = .taken
      return state.displaced(sparing: application)
    }
  }

  func note(_ application: String, isKept: Bool, hasFiles: Bool) {
    state.withLock { state in
      state.entries[application]?.isKept = isKept
      state.entries[application]?.place = hasFiles ? .taken : .none
      state.removeIfUnused(application)
    }
  }

  /// Returns the archives to park, also those that were asked before and still have open files.
  func setOpenArchivesMax(_ max: Int) -> [ApplicationArchive] {
    state.withLock { state in
      state.openArchivesMax = max
      _ = state.displaced()
      return state.entries.values.filter { $0.place == .leaving }.map(\.archive)
    }
  }

  // MARK: Summaries

  /// The summary of an archive whose files are closed; `nil` if the files have changed.
  func summary(of application: String, _ stamp: FileStamp) -> ArchiveSummary? {
    state.withLock { state in
      guard let known = state.summaries[application], known.stamp == stamp else { return nil }
      return known.summary
    }
  }

  func keep(_ summary: ArchiveSummary, of application: String, _ stamp: FileStamp) {
    state.withLock { $0.summaries[application] = (stamp, summary) }
  }

  func forgetSummary(of application: String) { state.withLock { $0.summaries[application] = nil } }
}
