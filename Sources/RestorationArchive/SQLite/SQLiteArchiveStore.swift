// SPDX-License-Identifier: Apache-2.0

/// Keeps each application's archive in one SQLite file of a directory (`Protocol/archive-format.md`).
///
/// Everything happens on one thread of the store's own. The text of an error may name files; it is for logs.
package actor SQLiteArchiveStore: LeasedArchives {
  private let executor: any SerialExecutor
  let queueEnd: QueueEnd
  let directory: ArchiveDirectory
  private var quota: ArchiveQuota
  private let upkeep: ArchiveUpkeep
  private var archives: [String: OpenArchive<SQLiteArchive>] = [:]
  /// Tells leases apart. It need not outlast the store: while this one lives, no other can open the files.
  private var lastEpoch: Int64 = 0
  /// Touched by `comeRound`: a method that uses nothing of the store would return without waiting for its thread.
  private var rounds: UInt64 = 0
  /// Something failed for lack of space, and the ballast has not been made again.
  private var isShortOfSpace = false
  /// Archives whose log moves into the main file as soon as the waiting work is done.
  private var checkpointsDue: Set<String> = []
  /// Counts the uses of archives.
  private var uses: UInt64 = 0
  /// What others did to the files of parked archives, until an opening has dealt with it.
  private var changes: [String: String] = [:]
  /// Summaries of closed and parked archives, valid while their files have the same stamp.
  private var summaries: [String: (stamp: FileStamp, summary: ArchiveSummary)] = [:]

  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Creates the directory if it is missing, and makes it accessible to its owner only; fails as `unreadable` if it
  /// cannot be used.
  ///
  /// - Parameter executor: where the store runs; `nil` for a thread of its own.
  package init(
    directory: String,
    of system: any FileSystem = SystemFiles(),
    on executor: (any SerialExecutor)? = nil,
    quota: ArchiveQuota = ArchiveQuota(),
    upkeep: ArchiveUpkeep = ArchiveUpkeep()
  ) throws(ArchiveError) {
    do throws(SystemError) {
      self.directory = try ArchiveDirectory(directory, of: system)
    } catch {
      throw ArchiveError(.unreadable, error.message)
    }
    (self.quota, self.upkeep) = (quota, upkeep)
    if let executor { self.executor = executor } else { self.executor = try ArchiveWriter() }
    queueEnd = QueueEnd(of: self.executor)
    self.directory.makeBallast(bytes: upkeep.ballastBytes)
  }

  package func comeRound() async -> UInt64 {
    rounds += 1
    return rounds
  }

  package nonisolated var progress: UInt64 {
    ((executor as? ArchiveWriter)?.progress ?? 0) &+ SQLiteConnection.progress
  }

  // MARK: Opening and closing

  package func open(_ application: String, creating: Bool) async throws(ArchiveError) -> ArchiveOpening {
    guard ArchiveFiles.isApplication(application) else {
      throw ArchiveError(.definite, "not the name of an application")
    }
    lastEpoch += 1
    if let archive = archives[application] {
      try archive.reopen(epoch: lastEpoch)
      if try hasItsFiles(archive) {
        // The main file may have room for what is in the log; then the next commit writes from the log's beginning.
        if isShortOfSpace { try? checkpoint(archive, .keepingFile) }
        if !archive.isDoubtful, let opening = try? archive.opening() { return opening }
      }
      close(archive)
    }
    parkOldest(leaving: quota.openArchivesMax - 1)
    let recovery = ArchiveRecovery(
      directory: directory,
      files: ArchiveFiles(application),
      quota: quota,
      isCreating: creating,
      change: changes[application]
    )
    let opened = try recovery.open()
    let archive = OpenArchive(application, rows: opened.archive, index: opened.index, epoch: lastEpoch, upkeep: upkeep)
    let opening = try archive.opening()
    archives[application] = archive
    (summaries[application], changes[application]) = (nil, nil)
    try use(archive)
    return opening
  }

  /// Uses an archive unless others changed its files.
  private func hasItsFiles(_ archive: OpenArchive<SQLiteArchive>) throws(ArchiveError) -> Bool {
    do throws(ArchiveError) {
      try use(archive)
      return true
    } catch {
      guard error.kind == .changed else { throw error }
      return false
    }
  }

  package func close(_ lease: ArchiveLease) async {
    guard let archive = archives[lease.application], archive.epoch == lease.epoch else { return }
    _ = try? hasItsFiles(archive)
    let summary = try? archive.summary()
    close(archive)
    keep(summary, of: lease.application)
  }

  /// Returns the stamp of the files; `nil` if it cannot be read.
  @discardableResult
  private func keep(_ summary: ArchiveSummary?, of application: String) -> FileStamp? {
    guard let stamp = stamp(of: application) else { return nil }
    guard var summary else { return stamp }
    summary.bytes = stamp.bytes
    summaries[application] = (stamp, summary)
    return stamp
  }

  private func close(_ archive: OpenArchive<SQLiteArchive>) {
    let application = archive.application
    archives[application] = nil
    checkpointsDue.remove(application)
    // What others made of its files, the next opening finds as it is.
    guard !archive.rows.isParked else { return }
    archive.rows.close(keepingLog: archive.failure != nil)
    let files = ArchiveFiles(application)
    if (try? directory.entry(files.log)) == .absent { try? directory.remove(files.mark) }
  }

  package func remove(_ application: String, damaged: Bool) async throws(ArchiveError) {
    guard archives[application]?.rows.isParked ?? true else {
      throw ArchiveError(.definite, "the archive of \(application) is open")
    }
    archives[application] = nil
    (summaries[application], changes[application]) = (nil, nil)
    do throws(SystemError) {
      try directory.remove(ArchiveFiles(application), damaged: damaged)
    } catch {
      throw ArchiveError(.definite, error.message)
    }
  }

  func archive(_ lease: ArchiveLease) throws(ArchiveError) -> OpenArchive<SQLiteArchive> {
    guard let archive = archives[lease.application] else {
      throw ArchiveError(.fenced, "the archive of \(lease.application) has been closed")
    }
    try archive.check(lease)
    try use(archive)
    return archive
  }

  // MARK: Parking

  /// Bytes of a log that are moved into the main file before an archive is parked: waking it reads all of the log.
  private static let parkedLogBytesMax = 1 << 20

  package func setOpenArchivesMax(_ max: Int) async {
    quota.openArchivesMax = max
    parkOldest(leaving: max)
  }

  /// Notes a use, and opens the files if they are parked.
  private func use(_ archive: OpenArchive<SQLiteArchive>) throws(ArchiveError) {
    uses += 1
    archive.rows.lastUse = uses
    guard archive.rows.isParked else { return }
    parkOldest(leaving: quota.openArchivesMax - 1)
    try wake(archive)
  }

  /// Fails as `changed` if the files are not as they were left, and then until the archive is opened anew.
  private func wake(_ archive: OpenArchive<SQLiteArchive>) throws(ArchiveError) {
    let files = ArchiveFiles(archive.application)
    if let change = changes[files.application] {
      throw ArchiveError(.changed, "archive of \(files.application): \(change)")
    }
    do throws(OpeningFailure) {
      let (foreign, found) = try OpeningFailure.deciding { () throws(SystemError) in
        (try directory.foreignFile(among: files), try stamp(of: files))
      }
      if let foreign { throw .unreadable(foreign) }
      guard found.main != .absent else { throw .damaged("the archive is gone") }
      guard found == archive.rows.left ?? found else { throw .damaged("they are not as it left them") }
      try archive.rows.wake(directory.pathname(files.main), expecting: archive.index.tip)
    } catch {
      guard case .damaged(let text) = error else { throw ArchiveError(error, of: files.application) }
      let change = "its files were changed while the broker had closed them to make room (\(text))"
      changes[files.application] = change
      throw ArchiveError(.changed, "archive of \(files.application): \(change)")
    }
  }

  /// Parks the archives that were used least recently, until `count` have their files open.
  private func parkOldest(leaving count: Int) {
    let open = archives.values.filter { !$0.rows.isParked }
    guard open.count > count else { return }
    let oldest = open.sorted { $0.rows.lastUse < $1.rows.lastUse }
    for archive in oldest.prefix(open.count - count) { park(archive) }
  }

  /// Closes the files as a kill would, and keeps what is known of them.
  private func park(_ archive: OpenArchive<SQLiteArchive>) {
    if checkpointsDue.remove(archive.application) != nil || archive.rows.logBytes > Self.parkedLogBytesMax {
      try? checkpoint(archive, .emptyingFile)
    }
    guard archive.failure == nil, !archive.isDoubtful else { return }
    let summary = try? archive.summary()
    archive.rows.park()
    archive.rows.left = keep(summary, of: archive.application)
  }

  // MARK: Writing

  package func apply(
    _ batch: ArchiveBatch,
    lease: ArchiveLease,
    expecting: SequenceNumber,
    changeID: ChangeID,
    holding: [SequenceNumber]
  ) async throws(ArchiveError) -> ArchiveReceipt {
    let changes = batch.take()
    let archive = try archive(lease)
    let receipt = try withBallast(if: changes.areSmall) { () throws(ArchiveError) in
      try archive.apply(changes, expecting: expecting, changeID: changeID, holding: holding)
    }
    archive.rows.acknowledge(receipt.sequence)
    if archive.rows.logBytes > upkeep.logBytesMax || !archive.rows.isMainUnclosed { checkpointSoon(lease) }
    return receipt
  }

  /// If the body fails for lack of space and is entitled to the ballast, gives it up and retries once.
  private func withBallast<Value>(
    if isEntitled: @autoclosure () -> Bool,
    _ body: () throws(ArchiveError) -> Value
  ) throws(ArchiveError) -> Value {
    do throws(ArchiveError) {
      return try body()
    } catch {
      guard error.kind == .full else { throw error }
      isShortOfSpace = true
      guard isEntitled(), directory.releaseBallast() else { throw error }
      return try body()
    }
  }

  /// Moves the log into the main file after the commits that wait have been answered.
  private func checkpointSoon(_ lease: ArchiveLease) {
    guard checkpointsDue.insert(lease.application).inserted else { return }
    Task { self.checkpointIfDue(lease) }
  }

  private func checkpointIfDue(_ lease: ArchiveLease) {
    guard checkpointsDue.remove(lease.application) != nil, let archive = try? archive(lease) else { return }
    // The next commit notices a full disk, and every later call a failed sync.
    try? checkpoint(archive, .keepingFile)
  }

  private func checkpoint(
    _ archive: OpenArchive<SQLiteArchive>,
    _ kind: SQLiteConnection.Checkpoint
  ) throws(ArchiveError) {
    do throws(ArchiveError) {
      try archive.rows.checkpoint(kind)
    } catch {
      if error.kind == .indeterminate { archive.fail(error) }
      throw error
    }
  }

  // MARK: Upkeep

  package func maintain(_ lease: ArchiveLease, holding: [SequenceNumber]) async throws(ArchiveError) -> Bool {
    let archive = try archive(lease)
    let isSparing = isShortOfSpace
    let isDone = try withBallast(if: true) { () throws(ArchiveError) in
      // Zeroing deleted rows fills as much of the log as writing them did; pages cut off the main file need not be
      // moved there.
      if isSparing { try archive.rows.setErasing(false) }
      if try archive.purge(holding: holding) { return false }
      let unused = isSparing ? 0 : upkeep.freeBytesMax
      if try archive.rows.releasePages(beyond: unused, atMost: upkeep.batchBytesMax) { return false }
      try checkpoint(archive, .emptyingFile)
      return true
    }
    if isDone {
      directory.makeBallast(bytes: upkeep.ballastBytes)
      isShortOfSpace = upkeep.ballastBytes > 0 && !directory.hasBallast
      if isSparing { try archive.rows.setErasing(true) }
    } else if archive.rows.logBytes > upkeep.logBytesMax, !isSparing {
      try checkpoint(archive, .keepingFile)
    }
    return !isDone
  }

  package func backUp(_ lease: ArchiveLease) async throws(ArchiveError) -> Int {
    let archive = try archive(lease)
    let files = ArchiveFiles(lease.application)
    // If the log is lost later, the main file must not be older than the backup.
    try checkpoint(archive, .keepingFile)
    do throws(OpeningFailure) {
      try OpeningFailure.deciding { () throws(SystemError) in _ = try directory.createEmpty(files.newBackup) }
      try OpeningFailure.deciding { () throws(SQLiteFailure) in
        try archive.rows.copy(to: directory.pathname(files.newBackup))
      }
      try OpeningFailure.deciding { () throws(SystemError) in
        try directory.syncFile(files.newBackup)
        try directory.replace(files.backup, with: files.newBackup)
        try directory.sync()
      }
      return try OpeningFailure.deciding { () throws(SystemError) in try directory.entry(files.backup).bytes }
    } catch {
      // The archive and the earlier backup are as they were.
      try? directory.remove(files.newBackup)
      switch error {
      case .damaged(let text), .unreadable(let text): throw ArchiveError(.definite, "backup: \(text)")
      case .absent, .limit: throw ArchiveError(.definite, "backup: the archive is not there")
      case .full(let text): throw ArchiveError(.full, "backup: \(text)")
      }
    }
  }

  // MARK: Listing

  package func list() async throws(ArchiveError) -> [ArchiveSummary] {
    let names: [String]
    do throws(SystemError) {
      names = try directory.names()
    } catch {
      throw ArchiveError(.unreadable, error.message)
    }
    var summaries: [ArchiveSummary] = []
    for application in names.compactMap(ArchiveFiles.application(of:)).sorted() {
      if let summary = summary(of: application) { summaries.append(summary) }
      // Commits that arrive meanwhile go first.
      await queueEnd.reach()
    }
    return summaries
  }

  private func summary(of application: String) -> ArchiveSummary? {
    guard let stamp = stamp(of: application) else { return nil }
    var summary: ArchiveSummary
    if let archive = archives[application], !archive.rows.isParked {
      do throws(ArchiveError) {
        summary = try archive.summary()
      } catch {
        summary = .unreadable(application, error.message)
      }
    } else if let known = summaries[application], known.stamp == stamp {
      return known.summary
    } else {
      summary = closedSummary(of: application, stamp)
      if summary.state == .available {
        summary.bytes = stamp.bytes
        summaries[application] = (stamp, summary)
      }
    }
    summary.bytes = stamp.bytes
    return summary
  }

  private func closedSummary(of application: String, _ stamp: FileStamp) -> ArchiveSummary {
    let files = ArchiveFiles(application)
    do throws(SystemError) {
      if let foreign = try directory.foreignFile(among: files) { return .unreadable(application, foreign) }
      if case .damaged(let text) = try directory.logFinding(of: files) {
        return .unreadable(application, "its log is damaged (\(text)); \(ArchiveSummary.isSettledByOpening)")
      }
    } catch {
      return .unreadable(application, error.message)
    }
    return SQLiteArchive.summary(of: application, in: directory, log: stamp.log)
  }

  private func stamp(of application: String) -> FileStamp? {
    guard let stamp = try? stamp(of: ArchiveFiles(application)), stamp.main != .absent else { return nil }
    return stamp
  }

  private func stamp(of files: ArchiveFiles) throws(SystemError) -> FileStamp {
    FileStamp(main: try directory.entry(files.main), log: try directory.entry(files.log))
  }
}

/// Changes whenever the files of an archive do.
struct FileStamp: Equatable {
  var main: FileEntry
  var log: FileEntry

  var bytes: Int { main.bytes + log.bytes }
}

extension [ArchiveChange] {
  /// Whether to release the ballast for them: removals, and the notes they need, add little. What empties the head
  /// frees more than the nodes it leaves take.
  fileprivate var areSmall: Bool {
    let emptiesHead = contains(.removeAll)
    return allSatisfy { change in
      if case .node = change, emptiesHead { true } else { change.isSmall }
    }
  }
}

extension ArchiveChange {
  fileprivate var isSmall: Bool {
    switch self {
    case .node(let record): record.isRemoved
    case .removeState, .removeAll, .settle, .withhold, .release, .forgetContexts, .pin, .dropGeneration, .session,
      .forgetSessions, .claim, .run:
      true
    case .state, .context, .seal: false
    }
  }
}
