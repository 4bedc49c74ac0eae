// SPDX-License-Identifier: Apache-2.0

/// Keeps each application's archive in one SQLite file of a directory (`Protocol/archive-format.md`).
///
/// Each `ApplicationArchive` handles its files on a lane of its own, so that applications wait for another's disk only
/// when all threads are busy. The store handles the directory on its lane. An error text may name files; it is for
/// logs.
package actor SQLiteArchiveStore: ArchiveStore {
  private let threads: ArchiveThreads?
  private let newLane: @Sendable () -> any SerialExecutor
  private let executor: any SerialExecutor
  let directory: ArchiveDirectory
  private let register: ArchiveRegister
  private let quota: ArchiveQuota
  private let upkeep: ArchiveUpkeep
  /// Touched by `comeRound`: a method that uses nothing of the store would return without waiting for its lane.
  private var rounds: UInt64 = 0

  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Creates the directory if it is missing, for its owner only; fails as `unreadable` if it cannot be used.
  ///
  /// - Parameter executor: runs the store and all archives; `nil` for threads of its own.
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
    register = ArchiveRegister(openArchivesMax: quota.openArchivesMax)
    if let executor {
      (threads, newLane) = (nil, { executor })
    } else {
      let threads = try ArchiveThreads()
      (self.threads, newLane) = (threads, { threads.lane() })
    }
    self.executor = newLane()
    self.directory.makeBallast(bytes: upkeep.ballastBytes)
    for name in (try? self.directory.names()) ?? [] {
      guard let application = ArchiveFiles.application(of: name) else { continue }
      register.sizes.note(application, bytes: self.directory.stamp(of: application)?.bytes)
    }
  }

  deinit { register.clear() }

  package func comeRound() async -> UInt64 {
    rounds += 1
    return rounds
  }

  package nonisolated var sizes: ArchiveSizes { register.sizes }

  package nonisolated var isReadOnly: Bool { directory.readOnly != nil }

  package nonisolated var progress: StoreProgress { threads?.progress ?? StoreProgress() }

  // MARK: One application

  nonisolated(nonsending) package func open(
    _ application: String,
    for purpose: ArchivePurpose
  ) async throws(ArchiveError) -> ArchiveOpening {
    guard ArchiveFiles.isApplication(application) || ArchiveFiles.isSetAside(application) else {
      throw ArchiveError(.definite, "not the name of an application")
    }
    let archive = visit(application)
    defer { register.leave(application) }
    return try await archive.open(creating: purpose.creates)
  }

  nonisolated(nonsending) package func compute<Value>(
    for application: String,
    _ work: @Sendable () -> sending Value
  ) async -> sending Value {
    let archive = visit(application)
    defer { register.leave(application) }
    return await archive.compute(work)
  }

  nonisolated(nonsending) package func close(_ lease: ArchiveLease) async {
    let archive = visit(lease.application)
    defer { register.leave(lease.application) }
    await archive.close(lease)
  }

  nonisolated(nonsending) package func remove(_ application: String, damaged: Bool) async throws(ArchiveError) {
    let archive = visit(application)
    defer { register.leave(application) }
    try await archive.remove(damaged: damaged)
  }

  nonisolated(nonsending) package func apply(
    _ batch: ArchiveBatch,
    lease: ArchiveLease,
    expecting: SequenceNumber,
    changeID: ChangeID,
    holding: [SequenceNumber]
  ) async throws(ArchiveError) -> ArchiveReceipt {
    try await archive(lease).apply(batch, lease: lease, expecting: expecting, changeID: changeID, holding: holding)
  }

  nonisolated(nonsending) package func read(
    _ nodes: [NodeID],
    at point: ArchivePoint,
    lease: ArchiveLease
  ) async throws(ArchiveError) -> [StateReading?] {
    try await archive(lease).read(nodes, at: point, lease: lease)
  }

  nonisolated(nonsending) package func scan(
    after node: NodeID?,
    limit: Int,
    at point: ArchivePoint,
    lease: ArchiveLease
  ) async throws(ArchiveError) -> [NodeReading] {
    try await archive(lease).scan(after: node, limit: limit, at: point, lease: lease)
  }

  nonisolated(nonsending) package func verify(
    _ lease: ArchiveLease,
    from position: VerificationPosition?
  ) async throws(ArchiveError) -> VerificationPiece {
    try await archive(lease).verify(lease, from: position)
  }

  nonisolated(nonsending) package func maintain(
    _ lease: ArchiveLease,
    holding: [SequenceNumber]
  ) async throws(ArchiveError) -> Bool {
    try await archive(lease).maintain(lease, holding: holding)
  }

  nonisolated(nonsending) package func backUp(
    _ lease: ArchiveLease,
    replacingFormer: Bool,
    leavingRoom: Bool
  ) async throws(ArchiveError) -> Int {
    try await archive(lease).backUp(lease, replacingFormer: replacingFormer, leavingRoom: leavingRoom)
  }

  nonisolated func archive(_ lease: ArchiveLease) throws(ArchiveError) -> ApplicationArchive {
    guard let archive = register.use(lease.application) else {
      throw ArchiveError(.fenced, "the archive of \(lease.application) has been closed")
    }
    return archive
  }

  nonisolated(nonsending) func visiting<Value: Sendable>(
    _ application: String,
    _ body: nonisolated(nonsending) (ApplicationArchive) async throws(ArchiveError) -> Value
  ) async throws(ArchiveError) -> Value {
    let archive = visit(application)
    defer { register.leave(application) }
    return try await body(archive)
  }

  /// The archive of an application, open or not, until `leave`.
  private nonisolated func visit(_ application: String) -> ApplicationArchive {
    register.visit(application) {
      ApplicationArchive(
        application,
        in: directory,
        sharing: register,
        quota: quota,
        upkeep: upkeep,
        on: newLane()
      )
    }
  }

  // MARK: All applications

  package func setOpenArchivesMax(_ max: Int) async {
    let surplus = register.setOpenArchivesMax(max).map { archive in
      Task.immediate(priority: .high) { await archive.park() }
    }
    for parking in surplus { await parking.value }
  }

  /// Waits for no open archive, but for one that is being opened or closed if nothing is known of it yet.
  package func list() async throws(ArchiveError) -> [ArchiveSummary] {
    var summaries: [ArchiveSummary] = []
    for application in try applications() {
      if let summary = await summary(of: application) { summaries.append(summary) }
    }
    return summaries
  }

  /// Those with a main file, in ascending order.
  func applications() throws(ArchiveError) -> [String] {
    do throws(SystemError) {
      return try directory.names().compactMap(ArchiveFiles.application(of:)).sorted()
    } catch {
      throw ArchiveError(.unreadable, error.message)
    }
  }

  package func summary(of application: String) async -> ArchiveSummary? {
    guard let stamp = directory.stamp(of: application) else { return nil }
    var summary = register.opened(application)?.publishedSummary ?? register.summary(of: application, stamp)
    if summary == nil {
      let archive = visit(application)
      defer { register.leave(application) }
      summary = await archive.summary()
    }
    summary?.bytes = stamp.bytes
    return summary
  }
}
