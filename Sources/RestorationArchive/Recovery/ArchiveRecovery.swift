// SPDX-License-Identifier: Apache-2.0

/// Opens an application's archive file in whatever condition it is (R32).
///
/// Crash rules, so that after a kill at any step the next opening can resume:
/// 1. A new archive is complete and synced under its temporary name before it gets the real one.
/// 2. A damaged archive goes aside only when its replacement is ready under the temporary name.
/// 3. The main file goes aside first, its log second: a log without a main file is known to belong to the last file
///    moved aside, while a main file without its log could pass for a sound, older archive.
/// 4. If the main file is missing but a backup or a damaged file exists, a recovery was interrupted: the application
///    is not new, unless a note says that the archive was removed. The note is durable before the main file
///    is removed, and the other files follow.
/// 5. The backup is copied, never moved; a damaged file is never deleted or overwritten.
/// 6. A file is damaged only if two checks find the same, in bytes that were read without an error. After a read
///    error all files stay as they are.
/// 7. If SQLite would drop a part of a log, log and main file are copied aside before SQLite sees them.
/// 8. The finding and the action are durable in the archive (`ArchiveRows.damage`) before their evidence is removed.
/// 9. An archive of format 1 is migrated last, when it is known to be sound, in one transaction, and after a copy of it
///    has got its name. An earlier copy is not overwritten.
/// 10. A log that was left behind is synced before it is read: a kill may have come before the sync, and what a client
///    reads must not be lost with the power. If that fails, it is not tried again: the second sync would succeed, and
///    the log might still not be on disk.
struct ArchiveRecovery {
  struct Opened {
    var archive: SQLiteArchive
    let index: ArchiveIndex
    let faults: RowFaults
  }

  let directory: ArchiveDirectory
  let files: ArchiveFiles
  let register: ArchiveRegister
  let quota: ArchiveQuota
  /// Whether to create the archive if it does not exist.
  let isCreating: Bool
  /// Changes that others made to the files while this store had them parked; `nil` if there are none.
  let change: String?

  func open() throws(ArchiveError) -> Opened {
    do throws(OpeningFailure) {
      try refuseForeignFiles()
      if files.isSetAside || directory.readOnly != nil { return try openInMemory() }
      try removeLeftovers()
      let opened = try openAnyFormat()
      if let finding = opened.faults.finding { throw .damaged(finding) }
      try migrate(opened)
      return opened
    } catch {
      // Only a replacement that is bad right after it was written is still called damaged here.
      throw ArchiveError(error, of: files.application)
    }
  }

  private func openAnyFormat() throws(OpeningFailure) -> Opened {
    switch try entry(files.main) {
    case .absent:
      return try openWithoutMain()
    case .other:
      throw .unreadable(directory.irregular(files.main))
    case .file(size: 0, _, _):
      // An archive gets its name when it is complete: an empty one has lost everything.
      return try replace(because: "the file is empty")
    case .file:
      return try openMain()
    }
  }

  /// If the archive has format 1, keeps a copy of it, and makes it one of format 2.
  private func migrate(_ opened: Opened) throws(OpeningFailure) {
    let connection = opened.archive.connection
    guard try OpeningFailure.deciding({ () throws(SQLiteFailure) in try !connection.hasChecksums() }) else { return }
    if try entry(files.former) == .absent {
      try opened.archive.copy(to: files.former, by: files.newBackup, in: directory)
    }
    try OpeningFailure.deciding { () throws(SQLiteFailure) in
      try connection.execute("BEGIN IMMEDIATE")
      try connection.addChecksums()
      try connection.execute("COMMIT")
    }
    try emptyLog(of: opened)
  }

  private func refuseForeignFiles() throws(OpeningFailure) {
    let foreign = try OpeningFailure.deciding { () throws(SystemError) in try directory.foreignFile(among: files) }
    if let foreign { throw .unreadable(foreign) }
  }

  private func openMain() throws(OpeningFailure) -> Opened {
    if try entry(files.removed) != .absent {
      // There is an archive again: if it is lost, that is a recovery.
      try OpeningFailure.deciding { () throws(SystemError) in
        try directory.remove(files.removed)
        try directory.sync()
      }
    }
    if try entry(files.log) != .absent { try syncLog() }
    let log = try OpeningFailure.deciding { () throws(SystemError) in try directory.logFinding(of: files) }
    let mark = try acknowledgedMark()
    do throws(OpeningFailure) {
      if let damage = log?.damage { return try settle(damage, hasLog: true) }
      let opened = try openFile(files.main)
      let loss = change ?? self.loss(in: opened, hasLog: log != nil, mark)
      if loss != nil || !opened.faults.isEmpty {
        opened.archive.connection.close()
        return try settle(loss, hasLog: log != nil)
      }
      // The rest of an interrupted commit must not be found behind later ones.
      if log == .torn { try emptyLog(of: opened) }
      return opened
    } catch {
      guard case .damaged(let text) = error else { throw error }
      return try replace(because: text)
    }
  }

  private func syncLog() throws(OpeningFailure) {
    let log = try OpeningFailure.deciding { () throws(SystemError) in
      try directory.system.open(directory.pathname(files.log), .reading)
    }
    do throws(SystemError) {
      try log.sync()
    } catch {
      throw .unsynced(error.message)
    }
    try OpeningFailure.deciding { () throws(SystemError) in try directory.sync() }
  }

  /// The evidence that acknowledged changes are missing from an opened archive; `nil` if there is none.
  private func loss(in opened: Opened, hasLog: Bool, _ mark: [UInt8]) -> String? {
    let last = opened.index.tip.sequence
    let acknowledged = AcknowledgedMark.sequence(in: mark, archive: opened.archive.archive) ?? last
    if !hasLog, acknowledged > last || opened.archive.isUnclosed { return "its log is missing" }
    return acknowledged > last ? "its log was damaged (it ends before sequence \(acknowledged))" : nil
  }

  /// Opens the readable part of an archive, and records the finding and the action in it.
  ///
  /// - Parameter loss: `nil` if only rows are damaged.
  private func settle(_ loss: String?, hasLog: Bool) throws(OpeningFailure) -> Opened {
    // If the log is missing, opening loses nothing more.
    var copies = hasLog || loss == nil ? try keepCopies(hasLog: hasLog) : nil
    var found = try examine(files.main)
    if hasLog, loss != nil, let alone = try examineWithoutLog(), alone.sequence > found?.sequence ?? -1 {
      try OpeningFailure.deciding { () throws(SystemError) in
        try directory.remove(files.log)
        try directory.sync()
      }
      found = alone
    }
    guard let found else { throw .damaged(loss ?? "its rows are damaged") }
    if copies == nil, !found.faults.isEmpty { copies = try keepCopies(hasLog: hasLog) }
    let findings = [loss, found.faults.finding].compactMap(\.self).joined(separator: "; ")
    let rest = loss == nil ? "everything else is" : "it is"
    let end = loss == nil ? "" : " at sequence \(found.sequence), and changes after that, if there were any, are lost"
    let place = copies.map { "; the files are kept as found in \(directory.pathname($0))" } ?? ""
    let damage = """
      the archive of \(files.application) was damaged (\(findings)): \(rest) as it was\(end)\(found.faults.remedy)\
      \(place)
      """
    let path = directory.pathname(files.main)
    do throws(SQLiteFailure) {
      try SQLiteArchive.settle(at: path, in: directory.system, damage: damage, mending: found.faults)
    } catch {
      // The file has just been read whole. SQLite takes some read errors for damage.
      throw error.isDamage ? .unreadable(error.description) : OpeningFailure(error)
    }
    return try openFile(files.main)
  }

  /// The same for the main file alone: replaying a damaged log from before the last checkpoint would overwrite newer
  /// rows.
  private func examineWithoutLog() throws(OpeningFailure) -> (sequence: SequenceNumber, faults: RowFaults)? {
    try OpeningFailure.deciding { () throws(SystemError) in try directory.copy(files.main, to: files.fresh) }
    let found = try examine(files.fresh)
    try removeLeftovers()
    return found
  }

  /// The last sequence in an archive file, and its damaged rows; `nil` if the file is damaged.
  private func examine(_ name: String) throws(OpeningFailure) -> (sequence: SequenceNumber, faults: RowFaults)? {
    do throws(OpeningFailure) {
      let opened = try openFile(name)
      opened.archive.connection.close()
      return (opened.index.tip.sequence, opened.faults)
    } catch {
      guard case .damaged = error else { throw error }
      return nil
    }
  }

  private func emptyLog(of opened: Opened) throws(OpeningFailure) {
    do throws(SQLiteFailure) {
      try opened.archive.connection.checkpoint(.emptyingFile)
    } catch {
      // If the disk is full, the next opening finds the same.
      let failure = OpeningFailure(error)
      guard case .full = failure else { throw failure }
    }
  }

  /// The text of the mark; empty if the file is missing or of another size.
  private func acknowledgedMark() throws(OpeningFailure) -> [UInt8] {
    var text: [UInt8] = []
    guard case .file(AcknowledgedMark.bytes, _, _) = try entry(files.mark) else { return text }
    try OpeningFailure.deciding { () throws(SystemError) in
      try directory.read(files.mark) { text.append(contentsOf: $0) }
    }
    return text
  }

  /// Opens an archive file. It is damaged only if two checks find the same, and it can be read whole after each: SQLite
  /// reports some read errors as damage.
  private func openFile(_ name: String, foundDamaged former: String? = nil) throws(OpeningFailure) -> Opened {
    let finding: String
    do throws(OpeningFailure) {
      let opened = try openOnce(name)
      guard let rows = opened.faults.finding, rows != former else { return opened }
      opened.archive.connection.close()
      finding = rows
    } catch {
      guard case .damaged(let text) = error else { throw error }
      finding = text
    }
    try readThrough(name)
    guard let former else { return try openFile(name, foundDamaged: finding) }
    guard finding == former else {
      throw .unreadable("two reads found different damage, \(former) and \(finding)")
    }
    throw .damaged(finding)
  }

  private func readThrough(_ name: String) throws(OpeningFailure) {
    for name in [name, name + ArchiveFiles.logSuffix] where try entry(name) != .absent {
      try OpeningFailure.deciding { () throws(SystemError) in try directory.read(name) { _ in } }
    }
  }

  private func openOnce(_ name: String) throws(OpeningFailure) -> Opened {
    try SQLiteArchive.opening(directory.pathname(name), in: directory.system) { connection throws(OpeningFailure) in
      let archive = try SQLiteArchive(checking: connection, mark: directory.pathname(files.mark), in: directory.system)
      let (index, faults) = try OpeningFailure.deciding { () throws(SQLiteFailure) in try connection.archiveIndex() }
      return Opened(archive: archive, index: index, faults: faults)
    }
  }

  private func openWithoutMain() throws(OpeningFailure) -> Opened {
    if let change { return try replace(because: change) }
    if try entry(files.removed) != .absent {
      try OpeningFailure.deciding { () throws(SystemError) in try directory.removeRest(files, damaged: false) }
    } else {
      for name in files.beside where try entry(name) != .absent {
        return try replace(because: "the file is missing")
      }
      if try lastDamaged() != 0 { return try replace(because: "the file is missing") }
    }
    guard isCreating else { throw .absent }
    try createFresh()
    try installWithinQuota()
    return try openMain()
  }

  private func installWithinQuota() throws(OpeningFailure) {
    let limit = register.sizes.add(files.application, bytes: try entry(files.fresh).bytes, within: quota)
    if case .limit(let name, let max, let value)? = limit {
      try removeLeftovers()
      throw .limit(name: name, max: max, value: value)
    }
    try install()
  }

  // MARK: Replacing

  /// Puts the backup, or an empty archive, in the place of the files, which move aside.
  private func replace(because reason: String) throws(OpeningFailure) -> Opened {
    let (source, faults) = try prepareReplacement()
    let moves = try movesAside()
    let place = moves.first.map { "; the damaged archive is kept as \(directory.pathname($0.to))" } ?? ""
    let damage = "the archive of \(files.application) was damaged (\(reason)): \(source)\(faults.remedy)\(place)"
    let path = directory.pathname(files.fresh)
    try OpeningFailure.deciding { () throws(SQLiteFailure) in
      _ = try SQLiteArchive.settle(at: path, in: directory.system, damage: damage, mending: faults)
    }
    try OpeningFailure.deciding { () throws(SystemError) in try directory.syncFile(files.fresh) }
    try OpeningFailure.deciding { () throws(SystemError) in
      for (from, to) in moves { try directory.move(from, to: to) }
      if !moves.isEmpty { try directory.sync() }
    }
    try install()
    return try openFile(files.main)
  }

  /// Makes the file that will replace the archive. Returns its description and its damage.
  private func prepareReplacement() throws(OpeningFailure) -> (String, RowFaults) {
    let copy = try prepareCopy()
    guard try salvage() else { return copy }
    guard let found = try examine(files.fresh) else {
      try removeLeftovers()
      return try prepareCopy()
    }
    return ("\(copy.0), with what is sound of it, the newer one of each object", found.faults)
  }

  /// Adds the sound rows of the damaged file to its replacement; returns whether there were any.
  private func salvage() throws(OpeningFailure) -> Bool {
    guard case .file = try entry(files.main) else { return false }
    let image = try OpeningFailure.deciding { () throws(SystemError) in
      try ArchiveImage(of: files.main, in: directory)
    }
    do throws(SQLiteFailure) {
      let connection = try SQLiteConnection(directory.pathname(files.fresh), in: directory.system)
      defer { connection.close() }
      return try Salvage(image, of: directory.system).add(to: connection)
    } catch {
      guard error.isDamage else { throw OpeningFailure(error) }
      return false
    }
  }

  private func prepareCopy() throws(OpeningFailure) -> (String, RowFaults) {
    var why = "there is no backup"
    for (name, title) in [(files.backup, "backup"), (files.former, "copy in format 1")] {
      switch try entry(name) {
      case .file: break
      case .absent: continue
      case .other: throw .unreadable(directory.irregular(name))
      }
      try OpeningFailure.deciding { () throws(SystemError) in try directory.copy(name, to: files.fresh) }
      if let found = try examine(files.fresh) {
        let rows = found.faults.finding.map { " (\($0))" } ?? ""
        return ("the last good \(title)\(rows) replaces it", found.faults)
      }
      why = "the \(title) is damaged too"
      try removeLeftovers()
    }
    try createFresh()
    return ("\(why), so an empty archive replaces it", RowFaults())
  }

  private func createFresh() throws(OpeningFailure) {
    try OpeningFailure.deciding { () throws(SystemError) in _ = try directory.createEmpty(files.fresh) }
    try OpeningFailure.deciding { () throws(SQLiteFailure) in
      try SQLiteArchive.create(at: directory.pathname(files.fresh), in: directory.system)
    }
    try OpeningFailure.deciding { () throws(SystemError) in try directory.syncFile(files.fresh) }
  }

  private func install() throws(OpeningFailure) {
    try OpeningFailure.deciding { () throws(SystemError) in
      try directory.move(files.fresh, to: files.main)
      try directory.sync()
    }
  }

  /// Which files go aside, the main file first, and to where: under the next free number.
  private func movesAside() throws(OpeningFailure) -> [(from: String, to: String)] {
    let hasMain = try entry(files.main) != .absent
    let hasLog = try entry(files.log) != .absent
    guard hasMain || hasLog else { return [] }
    var number = try lastDamaged()
    // If a log is alone, it belongs to the last damaged file, unless that has a log: its move was interrupted.
    if hasMain || number == 0 { number += 1 }
    if try entry(files.damaged(number).log) != .absent { number += 1 }
    let target = files.damaged(number)
    return (hasMain ? [(files.main, target.main)] : []) + (hasLog ? [(files.log, target.log)] : [])
  }

  /// Copies main file and log aside under the next free number; returns the main file's new name. If opening fails
  /// afterwards and the next one finds the same bytes, it makes no more copies.
  ///
  /// - Parameter hasLog: whether there was a log; looking at a closed archive makes an empty one.
  private func keepCopies(hasLog: Bool) throws(OpeningFailure) -> String {
    let number = try lastDamaged()
    let (last, target) = (files.damaged(number), files.damaged(number + 1))
    return try OpeningFailure.deciding { () throws(SystemError) -> String in
      let hasSameLog = hasLog ? try directory.isSame(files.log, as: last.log) : try directory.entry(last.log) == .absent
      if hasSameLog, try directory.isSame(files.main, as: last.main) { return last.main }
      try directory.copy(files.main, to: files.fresh)
      if hasLog { try directory.copy(files.log, to: files.fresh + ArchiveFiles.logSuffix) }
      try directory.move(files.fresh, to: target.main)
      if hasLog { try directory.move(files.fresh + ArchiveFiles.logSuffix, to: target.log) }
      try directory.sync()
      return target.main
    }
  }

  /// The highest number of a damaged file or log; 0 if there are no such files. Higher numbers than a store could have
  /// given are ignored.
  private func lastDamaged() throws(OpeningFailure) -> Int {
    let prefix = files.damagedPrefix
    let names = try OpeningFailure.deciding { () throws(SystemError) in try directory.names() }
    return names.reduce(0) { highest, name in
      guard name.hasPrefix(prefix) else { return highest }
      let number = Int(name.dropFirst(prefix.count).prefix { $0.isNumber }) ?? 0
      return number < Self.damagedMax ? max(highest, number) : highest
    }
  }

  private static let damagedMax = 1 << 32

  private func removeLeftovers() throws(OpeningFailure) {
    try OpeningFailure.deciding { () throws(SystemError) in
      for name in files.drafts {
        try directory.remove(name)
        try directory.remove(name + ArchiveFiles.logSuffix)
        try directory.remove(name + ArchiveFiles.journalSuffix)
      }
    }
  }

  func entry(_ name: String) throws(OpeningFailure) -> FileEntry {
    try OpeningFailure.deciding { () throws(SystemError) in try directory.entry(name) }
  }
}

extension ArchiveDirectory {
  fileprivate func irregular(_ name: String) -> String { "\(pathname(name)) is not a regular file; move it elsewhere" }

  /// Names a foreign file in the place of an archive's file or directory; `nil` if there is none. It is not opened: a
  /// FIFO would block, and a rollback journal would be played back.
  func foreignFile(among files: ArchiveFiles) throws(SystemError) -> String? {
    // The next broker would refuse a link there, and its lock is on the former directory.
    guard system.isDirectory(path) else { return "\(path) is no longer a directory; put it back where it was" }
    for name in [files.main, files.log, files.mark] where try entry(name) == .other { return irregular(name) }
    return try entry(files.journal) == .absent
      ? nil : "\(pathname(files.journal)) does not belong to an archive; move it elsewhere"
  }

  /// The part of an archive's log that will be replayed; `nil` if the log is missing.
  func logFinding(of files: ArchiveFiles) throws(SystemError) -> LogWalk.Finding? {
    guard try entry(files.log) != .absent else { return nil }
    var walk = LogWalk()
    try read(files.log) { walk.take($0) }
    return walk.finding
  }
}

extension LogWalk.Finding {
  fileprivate var damage: String? { if case .damaged(let text) = self { "its log was damaged (\(text))" } else { nil } }
}
