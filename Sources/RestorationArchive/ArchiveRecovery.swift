// SPDX-License-Identifier: Apache-2.0

/// Opens an application's archive file, whatever became of it (R32).
///
/// Crash rules, so that being killed at any step leaves a directory from which the next opening goes on:
/// 1. A new archive is complete and synced under its temporary name before it gets the real one.
/// 2. A damaged archive goes aside only when its replacement is ready under the temporary name.
/// 3. The main file goes aside first, its log second: a log without a main file is known to belong to the last file
///    moved aside, while a main file without its log could pass for a sound, older archive.
/// 4. A main file that is missing although there is a backup or a damaged one is an interrupted recovery, not a new
///    application.
/// 5. The backup is copied, never consumed; a damaged file is never deleted and never overwritten.
struct ArchiveRecovery {
  /// An archive that is open and sound.
  struct Opened {
    let archive: SQLiteArchive
    let index: ArchiveIndex
    /// What was done to a damaged file.
    var damage: String?
  }

  let directory: ArchiveDirectory
  let files: ArchiveFiles
  let quota: ArchiveQuota
  /// Whether to make an archive where there is none.
  let isCreating: Bool

  func open() throws(ArchiveError) -> Opened {
    do throws(OpeningFailure) {
      try removeLeftovers()
      switch try entry(files.main) {
      case .other:
        throw .unreadable("\(directory.pathname(files.main)) is not a regular file")
      case .absent:
        return try openWithoutMain()
      case .file(size: 0, _):
        // Archives get their name when they are complete: an empty one has lost everything.
        return try replace(because: "the file is empty")
      case .file:
        return try openMain()
      }
    } catch {
      throw archiveError(error)
    }
  }

  private func archiveError(_ failure: OpeningFailure) -> ArchiveError {
    switch failure {
    case .damaged(let text):
      // Only a replacement that is bad right after it was written gets here.
      ArchiveError(.unreadable, "archive of \(files.application): \(text)")
    case .unreadable(let text):
      ArchiveError(.unreadable, "archive of \(files.application): \(text)")
    case .absent:
      ArchiveError(.absent, "there is no archive of \(files.application)")
    case .limit(let name, let max, let value):
      ArchiveError(
        .limit(name: name, max: max, value: value),
        "no other archive is allowed: \(name) is \(max), this would be \(value)"
      )
    case .full(let text):
      ArchiveError(.full, "archive of \(files.application): \(text); free some space")
    }
  }

  private func openMain() throws(OpeningFailure) -> Opened {
    do throws(OpeningFailure) {
      return try openFile(files.main)
    } catch {
      guard case .damaged(let text) = error else { throw error }
      return try replace(because: text)
    }
  }

  private func openFile(_ name: String) throws(OpeningFailure) -> Opened {
    let archive = try SQLiteArchive(opening: directory.pathname(name))
    let index = try OpeningFailure.deciding { () throws(SQLiteFailure) in try archive.connection.archiveIndex() }
    return Opened(archive: archive, index: index)
  }

  private func openWithoutMain() throws(OpeningFailure) -> Opened {
    let hasLog = try entry(files.log) != .absent
    let hasBackup = try entry(files.backup) != .absent
    if hasLog || hasBackup || lastDamaged() > 0 {
      return try replace(because: "the file is missing")
    }
    guard isCreating else { throw .absent }
    try createFresh()
    do throws(OpeningFailure) {
      try checkQuota(adding: entry(files.fresh).bytes)
    } catch {
      try removeLeftovers()
      throw error
    }
    try install()
    return try openMain()
  }

  /// Counts the archives there are, by their names and sizes alone.
  private func checkQuota(adding addition: Int) throws(OpeningFailure) {
    var archives = 1
    var bytes = addition
    for name in try OpeningFailure.deciding({ () throws(SystemError) in try directory.names() }) {
      guard let application = ArchiveFiles.application(of: name) else { continue }
      archives += 1
      bytes += try entry(name).bytes + entry(ArchiveFiles(application).log).bytes
    }
    guard archives <= quota.applicationsMax else {
      throw .limit(name: "applicationsMax", max: quota.applicationsMax, value: archives)
    }
    guard bytes <= quota.allArchivesBytesMax else {
      throw .limit(name: "allArchivesBytesMax", max: quota.allArchivesBytesMax, value: bytes)
    }
  }

  // MARK: Replacing

  /// Moves what there is aside and puts the backup, or an empty archive, in its place.
  private func replace(because reason: String) throws(OpeningFailure) -> Opened {
    let source = try prepareReplacement()
    let aside = try moveAside()
    try install()
    var opened = try openFile(files.main)
    let place = aside.map { "; what was there is kept as \(directory.pathname($0))" } ?? ""
    opened.damage = "the archive of \(files.application) was damaged (\(reason)): \(source)\(place)"
    return opened
  }

  /// Makes the file that will take the archive's place; says what it is.
  private func prepareReplacement() throws(OpeningFailure) -> String {
    guard case .file = try entry(files.backup) else {
      try createFresh()
      return "there is no backup, an empty archive takes its place"
    }
    try OpeningFailure.deciding { () throws(SystemError) in try directory.copy(files.backup, to: files.fresh) }
    do throws(OpeningFailure) {
      let copy = try openFile(files.fresh).archive
      try OpeningFailure.deciding { () throws(SQLiteFailure) in try copy.rename() }
      return "the last good backup takes its place"
    } catch {
      guard case .damaged(let text) = error else { throw error }
      try removeLeftovers()
      try createFresh()
      return "the backup is damaged too (\(text)), an empty archive takes its place"
    }
  }

  private func createFresh() throws(OpeningFailure) {
    try OpeningFailure.deciding { () throws(SystemError) in try directory.createEmpty(files.fresh) }
    try OpeningFailure.deciding { () throws(SQLiteFailure) in
      try SQLiteArchive.create(at: directory.pathname(files.fresh))
    }
    try OpeningFailure.deciding { () throws(SystemError) in try directory.syncFile(files.fresh) }
  }

  /// Gives the prepared archive its name.
  private func install() throws(OpeningFailure) {
    try OpeningFailure.deciding { () throws(SystemError) in
      try directory.move(files.fresh, to: files.main)
      try directory.sync()
    }
  }

  /// Moves main file and log aside under the next free number; returns the new name.
  private func moveAside() throws(OpeningFailure) -> String? {
    let hasMain = try entry(files.main) != .absent
    let hasLog = try entry(files.log) != .absent
    guard hasMain || hasLog else { return nil }
    var number = lastDamaged()
    // A log alone belongs to the file whose move was interrupted, if there is one without a log.
    if hasMain || number == 0 { number += 1 }
    if try entry(files.damaged(number).log) != .absent { number += 1 }
    let target = files.damaged(number)
    try OpeningFailure.deciding { () throws(SystemError) in
      if hasMain { try directory.move(files.main, to: target.main) }
      if hasLog { try directory.move(files.log, to: target.log) }
      try directory.sync()
    }
    return hasMain ? target.main : target.log
  }

  /// The highest number of a damaged file or log; 0 where there is none.
  private func lastDamaged() -> Int {
    let prefix = "\(files.application)+damaged-"
    let names = (try? directory.names()) ?? []
    return names.reduce(0) { highest, name in
      guard name.hasPrefix(prefix) else { return highest }
      return max(highest, Int(name.dropFirst(prefix.count).prefix { $0.isNumber }) ?? 0)
    }
  }

  /// What a killed broker was still making.
  private func removeLeftovers() throws(OpeningFailure) {
    try OpeningFailure.deciding { () throws(SystemError) in
      for name in [files.fresh, files.newBackup] {
        try directory.remove(name)
        try directory.remove(name + ArchiveFiles.logSuffix)
        try directory.remove(name + "-journal")
      }
    }
  }

  private func entry(_ name: String) throws(OpeningFailure) -> ArchiveDirectory.Entry {
    try OpeningFailure.deciding { () throws(SystemError) in try directory.entry(name) }
  }
}
