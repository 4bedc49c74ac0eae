// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// One application's archive. It does all work on its files, one call after the other in a lane of its own, so that no
/// other application waits for its disk.
///
/// Invariants:
/// 1. Only this actor opens, moves, writes and removes files of the application, also those of a closed archive.
/// 2. No method suspends: each runs as one job of the lane, so calls take effect in the order in which they were made.
/// 3. It waits for no other archive. Archives share only the register, which never waits for a disk.
/// 4. After each change of the open files, `note` updates the register.
actor ApplicationArchive {
  nonisolated let application: String
  private let executor: any SerialExecutor
  let directory: ArchiveDirectory
  private let register: ArchiveRegister
  private let quota: ArchiveQuota
  let upkeep: ArchiveUpkeep
  let files: ArchiveFiles
  /// Open or parked.
  private var current: OpenArchive<SQLiteArchive>?
  /// Why the archive is not opened by this process: its log could not be synced.
  private var unsynced: ArchiveError?
  /// Changes that others made to the parked files, until an opening has handled them.
  private var change: String?
  /// The bytes of the files as they were seen last, and how many were noted for lists and limits.
  private var seen: (main: Int, log: Int, noted: Int)?
  /// The log moves into the main file as soon as the waiting work is done.
  private var isCheckpointDue = false
  /// The log's limit in bytes: at most a quarter of the free space at the last checkpoint, so that the log fits into
  /// the main file.
  private var logBytesMax: Int
  /// The archive's summary while its files are open: lists must not wait for it.
  private nonisolated let published = Mutex<ArchiveSummary?>(nil)

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(
    _ application: String,
    in directory: ArchiveDirectory,
    sharing register: ArchiveRegister,
    quota: ArchiveQuota,
    upkeep: ArchiveUpkeep,
    on executor: any SerialExecutor
  ) {
    (self.application, self.directory, self.register) = (application, directory, register)
    (self.quota, self.upkeep, self.executor) = (quota, upkeep, executor)
    files = ArchiveFiles(application)
    logBytesMax = upkeep.logBytesMax
  }

  // MARK: Opening and closing

  func open(creating: Bool) throws(ArchiveError) -> ArchiveOpening {
    defer { note() }
    let epoch = register.nextEpoch()
    if let archive = current {
      try archive.reopen(epoch: epoch)
      if try hasItsFiles(archive) {
        if !archive.isDoubtful, let opening = try? opening(of: archive) {
          publish(archive)
          return opening
        }
      }
      close(archive)
    }
    if let unsynced { throw unsynced }
    takePlace()
    let recovery = ArchiveRecovery(
      directory: directory,
      files: files,
      register: register,
      quota: quota,
      isCreating: creating,
      change: change
    )
    let opened: ArchiveRecovery.Opened
    do throws(ArchiveError) {
      opened = try recovery.open()
    } catch {
      guard error.kind == .indeterminate else { throw error }
      let failure = ArchiveError(.unreadable, "\(error.message); it can be opened when the broker is started again")
      unsynced = failure
      throw failure
    }
    let archive = OpenArchive(application, rows: opened.archive, index: opened.index, epoch: epoch, upkeep: upkeep)
    let opening = try self.opening(of: archive)
    (current, change) = (archive, nil)
    register.forgetSummary(of: application)
    publish(archive)
    return opening
  }

  private func opening(of archive: OpenArchive<SQLiteArchive>) throws(ArchiveError) -> ArchiveOpening {
    var opening = try archive.opening()
    opening.hasFormer = (try? directory.entry(files.former)) != .absent
    if archive.rows.isInMemory { opening.readOnly = "\(directory.path) is read-only" }
    // They are those of the application, or over.
    if files.isSetAside { opening.sessions = [] }
    return opening
  }

  /// Opens the files if they are parked, unless others changed them.
  private func hasItsFiles(_ archive: OpenArchive<SQLiteArchive>) throws(ArchiveError) -> Bool {
    do throws(ArchiveError) {
      try wakeIfParked(archive)
      return true
    } catch {
      guard error.kind == .changed else { throw error }
      return false
    }
  }

  func compute<Value>(_ work: @Sendable () -> sending Value) -> sending Value { work() }

  func close(_ lease: ArchiveLease) {
    guard let archive = current, archive.epoch == lease.epoch else { return }
    defer { note() }
    _ = try? hasItsFiles(archive)
    // An archive in memory differs from its files.
    let summary = archive.rows.isInMemory ? nil : try? archive.summary()
    close(archive)
    keep(summary)
  }

  /// Returns the stamp of the files; `nil` if it cannot be read.
  @discardableResult
  private func keep(_ summary: ArchiveSummary?) -> FileStamp? {
    guard let stamp = directory.stamp(of: application) else { return nil }
    guard var summary else { return stamp }
    summary.bytes = stamp.bytes
    register.keep(summary, of: application, stamp)
    return stamp
  }

  private func close(_ archive: OpenArchive<SQLiteArchive>) {
    current = nil
    isCheckpointDue = false
    published.withLock { $0 = nil }
    // The next opening finds changes that others made to its files.
    guard archive.rows.hasFiles else { return }
    archive.rows.close(keepingLog: archive.failure != nil)
    if (try? directory.entry(files.log)) == .absent { try? directory.remove(files.mark) }
  }

  func remove(damaged: Bool) throws(ArchiveError) {
    guard current?.rows.isParked ?? true else {
      throw ArchiveError(.definite, "the archive of \(application) is open")
    }
    defer { note() }
    (current, change) = (nil, nil)
    published.withLock { $0 = nil }
    register.forgetSummary(of: application)
    do throws(SystemError) {
      try directory.remove(files, damaged: damaged)
    } catch {
      throw ArchiveError(.definite, error.message)
    }
  }

  /// Replaces this archive, which is not open, by a closed one.
  func replace(with name: String) throws(ArchiveError) {
    try checkClosed()
    defer { note() }
    change = nil
    register.forgetSummary(of: application)
    do throws(SystemError) {
      try directory.replace(files.main, with: name)
      try directory.sync()
    } catch {
      throw ArchiveError(.definite, error.message)
    }
  }

  /// Fails unless the main file has everything.
  func checkClosed() throws(ArchiveError) {
    guard current == nil, (try? directory.entry(files.log)) == .absent else {
      throw ArchiveError(.definite, "the archive of \(application) is not closed; restart the broker")
    }
  }

  private func note() {
    register.note(
      application,
      isKept: current != nil || change != nil || unsynced != nil,
      hasFiles: current?.rows.hasFiles ?? false
    )
    noteSize()
  }

  private func noteSize() {
    // Copies that were set aside do not count.
    seen = files.isSetAside ? nil : directory.stamp(of: application).map { ($0.main.bytes, $0.log.bytes, $0.bytes) }
    register.sizes.note(application, bytes: seen?.noted)
  }

  /// The log may have grown by a commit; its file only grows beyond the reserved length.
  private func noteLog(of archive: OpenArchive<SQLiteArchive>) {
    guard let (main, log, noted) = seen else { return }
    let bytes = main + max(log, archive.rows.logBytes, archive.rows.connection.reservedLogBytes)
    guard bytes != noted else { return }
    seen?.noted = bytes
    register.sizes.note(application, bytes: bytes)
  }

  /// The archive with its files open; fails unless the lease is the newest, and writing is still possible.
  func archive(_ lease: ArchiveLease) throws(ArchiveError) -> OpenArchive<SQLiteArchive> {
    guard let current else {
      throw ArchiveError(.fenced, "the archive of \(application) has been closed")
    }
    try current.check(lease)
    try wakeIfParked(current)
    return current
  }

  // MARK: Parking

  /// A longer log is moved into the main file before parking: waking reads the log, and many archives may be parked.
  private static let parkedLogBytesMax = 1 << 20

  private func takePlace() {
    for other in register.takePlace(application) {
      // Goes before all other work, so that no more files are opened than are being closed.
      Task.immediate(priority: .high) { await other.park() }
    }
  }

  /// Fails as `changed` if the files are not as they were left, until the archive is opened anew.
  private func wakeIfParked(_ archive: OpenArchive<SQLiteArchive>) throws(ArchiveError) {
    guard archive.rows.isParked else { return }
    if let change { throw ArchiveError(.changed, "archive of \(application): \(change)") }
    takePlace()
    defer { note() }
    do throws(OpeningFailure) {
      let (foreign, found) = try OpeningFailure.deciding { () throws(SystemError) in
        (try directory.foreignFile(among: files), try directory.stamp(of: files))
      }
      if let foreign { throw .unreadable(foreign) }
      guard found.main != .absent else { throw .damaged("the archive is gone") }
      guard found == archive.rows.left ?? found else { throw .damaged("they are not as it left them") }
      try archive.rows.wake(directory.pathname(files.main), expecting: archive.index.tip)
    } catch {
      guard case .damaged(let text) = error else { throw ArchiveError(error, of: application) }
      let change = "its files were changed while the broker had closed them to make room (\(text))"
      self.change = change
      throw ArchiveError(.changed, "archive of \(application): \(change)")
    }
  }

  /// Closes the files as a kill would, and keeps the index.
  func park() {
    guard let archive = current, archive.rows.hasFiles else { return }
    defer { note() }
    let log = (try? directory.entry(files.log)) ?? .absent
    if isCheckpointDue || log.bytes > Self.parkedLogBytesMax {
      isCheckpointDue = false
      try? checkpoint(archive, .emptyingFile)
    }
    guard archive.failure == nil, !archive.isDoubtful else { return }
    let summary = try? archive.summary()
    archive.rows.park()
    archive.rows.left = keep(summary)
  }

  // MARK: Writing

  func apply(
    _ batch: ArchiveBatch,
    lease: ArchiveLease,
    expecting: SequenceNumber,
    changeID: ChangeID,
    holding: [SequenceNumber]
  ) throws(ArchiveError) -> ArchiveReceipt {
    let changes = batch.take()
    let archive = try archive(lease)
    reserveLog(of: archive)
    do throws(ArchiveError) {
      let receipt = try withRoom(for: changes, in: archive, holding: holding) { () throws(ArchiveError) in
        try archive.apply(changes, expecting: expecting, changeID: changeID, holding: holding)
      }
      archive.rows.acknowledge(receipt.sequence)
      noteLog(of: archive)
      if isLogDue(archive) || !archive.rows.isMainUnclosed { checkpointSoon(lease) }
      publish(archive, after: changes)
      return receipt
    } catch {
      publish(archive)
      throw error
    }
  }

  /// In a burst, makes the log's file longer, unless space is scarce.
  private func reserveLog(of archive: OpenArchive<SQLiteArchive>) {
    guard let bytes = archive.rows.missingLogBytes(upkeep),
      // The log's content needs as much room in the main file.
      2 * bytes <= directory.freeBytes ?? 0
    else { return }
    archive.rows.reserveLog(bytes: bytes)
  }

  /// Whether the log is to move into the main file although the store is busy.
  private func isLogDue(_ archive: OpenArchive<SQLiteArchive>) -> Bool { archive.rows.logBytes > logBytesMax }

  /// Moves the log into the main file after the commits that wait have been answered.
  private func checkpointSoon(_ lease: ArchiveLease) {
    guard !isCheckpointDue else { return }
    isCheckpointDue = true
    Task { self.checkpointIfDue(lease) }
  }

  private func checkpointIfDue(_ lease: ArchiveLease) {
    guard isCheckpointDue else { return }
    isCheckpointDue = false
    guard let archive = try? archive(lease) else { return }
    // The next commit notices a full disk, and every later call a failed sync.
    try? checkpoint(archive, .keepingFile)
  }

  /// A shorter log is not moved because of its length.
  private static let scarceLogBytesMax = 1 << 16

  /// Moves the log into the main file if all of it fits. Half a log would take the room of deletions, and stay as long.
  func checkpoint(
    _ archive: OpenArchive<SQLiteArchive>,
    _ kind: SQLiteConnection.Checkpoint
  ) throws(ArchiveError) {
    guard !archive.rows.isInMemory else { return }
    let growth = try archive.rows.mainBytes() - ((try? directory.entry(files.main).bytes) ?? 0)
    let free = directory.freeBytes ?? .max
    guard growth <= free else {
      throw ArchiveError(.full, "checkpoint: the main file has to grow by \(growth) bytes; free some space")
    }
    do throws(ArchiveError) {
      // A file that keeps its length takes the room that the main file needs next time.
      try archive.rows.checkpoint(free / 4 < upkeep.logBytesMax ? .emptyingFile : kind)
      logBytesMax = min(upkeep.logBytesMax, max(Self.scarceLogBytesMax, (directory.freeBytes ?? .max) / 4))
      noteSize()
    } catch {
      if error.kind == .indeterminate {
        archive.fail(error)
        publish(archive)
      }
      throw error
    }
  }

  // MARK: Reading

  func read(
    _ nodes: [NodeID],
    at point: ArchivePoint,
    lease: ArchiveLease
  ) throws(ArchiveError) -> [StateReading?] {
    try archive(lease).read(nodes, at: point)
  }

  func scan(
    after node: NodeID?,
    limit: Int,
    at point: ArchivePoint,
    lease: ArchiveLease
  ) throws(ArchiveError) -> [NodeReading] {
    try archive(lease).scan(after: node ?? 0, limit: limit, at: point)
  }

  func verify(
    _ lease: ArchiveLease,
    from position: VerificationPosition?
  ) throws(ArchiveError) -> VerificationPiece {
    try archive(lease).verify(from: position)
  }

  // MARK: Upkeep

  func maintain(_ lease: ArchiveLease, holding: [SequenceNumber]) throws(ArchiveError) -> Bool {
    let archive = try archive(lease)
    // It may have failed.
    defer { publish(archive) }
    let isDone = try withRoom(for: [], in: archive, holding: holding) { () throws(ArchiveError) in
      if try archive.purge(holding: holding) { return false }
      if try archive.rows.releasePages(beyond: upkeep.freeBytesMax, atMost: upkeep.batchBytesMax) { return false }
      try checkpoint(archive, .emptyingFile)
      return true
    }
    if isDone {
      directory.makeBallast(bytes: upkeep.ballastBytes)
    } else if isLogDue(archive) {
      try checkpoint(archive, .keepingFile)
    }
    return !isDone
  }

  func backUp(_ lease: ArchiveLease, replacingFormer: Bool, leavingRoom: Bool) throws(ArchiveError) -> Int {
    let archive = try archive(lease)
    if leavingRoom, let free = directory.freeBytes {
      let bytes = try archive.rows.mainBytes()
      guard bytes <= free / 4 else {
        throw ArchiveError(.full, "backup: it would take \(bytes) of \(free) bytes that are free; free some space")
      }
    }
    // If the log is lost later, the main file must not be older than the backup.
    try checkpoint(archive, .keepingFile)
    do throws(OpeningFailure) {
      try archive.rows.copy(to: files.backup, by: files.newBackup, in: directory)
      return try OpeningFailure.deciding { () throws(SystemError) in
        if replacingFormer { try directory.remove(files.former) }
        return try directory.entry(files.backup).bytes
      }
    } catch {
      // The archive and the earlier backup are as they were.
      try? directory.remove(files.newBackup)
      switch error {
      case .damaged(let text), .unreadable(let text), .unsynced(let text):
        throw ArchiveError(.definite, "backup: \(text)")
      case .absent, .limit: throw ArchiveError(.definite, "backup: the archive is not there")
      case .full(let text): throw ArchiveError(.full, "backup: \(text)")
      }
    }
  }

  // MARK: Listing

  /// The summary, without waiting for the disk; `nil` if the archive is not open.
  nonisolated var publishedSummary: ArchiveSummary? { published.withLock { $0 } }

  private func publish(_ archive: OpenArchive<SQLiteArchive>) {
    let summary: ArchiveSummary
    do throws(ArchiveError) {
      summary = try archive.summary()
    } catch {
      summary = .unreadable(application, error.message)
    }
    published.withLock { $0 = summary }
  }

  /// The same after a transaction, without reading the file.
  private func publish(_ archive: OpenArchive<SQLiteArchive>, after changes: [ArchiveChange]) {
    let isUpdated = published.withLock { summary in
      guard summary?.state == .available else { return false }
      summary?.update(archive.index, after: changes)
      return true
    }
    if !isUpdated { publish(archive) }
  }

  /// The summary, read without opening the archive if it is closed; `nil` if there is no archive.
  func summary() -> ArchiveSummary? {
    if let current, !current.rows.isParked { return publishedSummary }
    guard let stamp = directory.stamp(of: application) else { return nil }
    if let known = register.summary(of: application, stamp) { return known }
    var summary = closedSummary(stamp)
    if summary.state == .available {
      summary.bytes = stamp.bytes
      register.keep(summary, of: application, stamp)
    }
    return summary
  }

  private func closedSummary(_ stamp: FileStamp) -> ArchiveSummary {
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
}

extension ArchiveSummary {
  fileprivate mutating func update(_ index: ArchiveIndex, after changes: [ArchiveChange]) {
    objects = index.objects
    generation = index.generations.last?.record.generation ?? 0
    modified = index.tip.written
    for case .run(let record) in changes { run = record }
  }
}
