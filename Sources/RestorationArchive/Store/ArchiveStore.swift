// SPDX-License-Identifier: Apache-2.0

/// The storage of the broker's archives: one append-only log of nodes and states per application.
///
/// The interface uses the broker's words and no file path, row id, clock or SQL type, so that any engine can implement
/// it. Text is opaque: a store neither parses nor changes it. Every engine passes the same test suite.
///
/// Invariants every engine keeps:
/// 1. `apply` is atomic: when it returns, either all of its changes are visible and durable, or no change is.
/// 2. Each change of an `apply` takes the next sequence number, in order; numbers are never reused.
/// 3. A row is never rewritten. A row that a reader can reach (head, the newest row that is not early, every kept
///    generation, every held sequence) or that is withheld is never deleted.
/// 4. A row whose checksum is wrong makes only that state `unreadable`.
/// 5. Writes under a lease that is no longer the newest fail as `fenced`.
/// 6. Calls for one application take effect in the order in which they were made. No call waits for another
///    application's disk, but for those that are about all of them.
package protocol ArchiveStore: Sendable {
  /// Opens an application's archive and takes the write lease. Moves a damaged file aside, never deletes it, and uses
  /// the last good backup (R32); the opening says so.
  ///
  /// - Parameter purpose: whether to create a missing archive; otherwise the call fails as `absent`.
  nonisolated(nonsending) func open(
    _ application: String,
    for purpose: ArchivePurpose
  ) async throws(ArchiveError) -> ArchiveOpening

  /// Runs `work` on the lane of the application's archive, so that the caller's loop is free meanwhile.
  nonisolated(nonsending) func compute<Value>(
    for application: String,
    _ work: @Sendable () -> sending Value
  ) async -> sending Value

  /// Makes all changes of the batch durable in one transaction, with those added before it begins.
  ///
  /// - Parameter expecting: the last sequence the caller knows; another value on disk fails as `fenced`.
  /// - Parameter changeID: names this transaction; repeating the last one writes nothing and returns the same.
  /// - Parameter holding: sequences that open cursors read at; an overdue purge must not delete their rows.
  nonisolated(nonsending) func apply(
    _ batch: ArchiveBatch,
    lease: ArchiveLease,
    expecting: SequenceNumber,
    changeID: ChangeID,
    holding: [SequenceNumber]
  ) async throws(ArchiveError) -> ArchiveReceipt

  /// The states of `nodes` as seen at `point`, in the same order; `nil` if a node has no state.
  nonisolated(nonsending) func read(
    _ nodes: [NodeID],
    at point: ArchivePoint,
    lease: ArchiveLease
  ) async throws(ArchiveError) -> [StateReading?]

  /// Nodes in ascending order of id, with the summary of their state as seen at `point`, without its text.
  nonisolated(nonsending) func scan(
    after node: NodeID?,
    limit: Int,
    at point: ArchivePoint,
    lease: ArchiveLease
  ) async throws(ArchiveError) -> [NodeReading]

  /// Does a bounded piece of upkeep: deletes dead rows, moves the log into the main file.
  ///
  /// - Parameter holding: sequences that open cursors still read at.
  /// - Returns: whether there is more to do.
  nonisolated(nonsending) func maintain(
    _ lease: ArchiveLease,
    holding: [SequenceNumber]
  ) async throws(ArchiveError) -> Bool

  /// Checks a bounded piece of the rows and changes nothing; other calls run between two pieces. Compares every
  /// reachable row with its checksum, and returns its text to the caller. Begin with `nil`, then pass the position of
  /// each piece.
  nonisolated(nonsending) func verify(
    _ lease: ArchiveLease,
    from position: VerificationPosition?
  ) async throws(ArchiveError) -> VerificationPiece

  /// Keeps a copy of the archive as the last good one (R32); returns its bytes.
  ///
  /// - Parameters:
  ///   - replacingFormer: whether to delete the copy from before a migration.
  ///   - leavingRoom: whether to fail as `full` above a quarter of the free space.
  nonisolated(nonsending) func backUp(
    _ lease: ArchiveLease,
    replacingFormer: Bool,
    leavingRoom: Bool
  ) async throws(ArchiveError) -> Int

  nonisolated(nonsending) func close(_ lease: ArchiveLease) async

  nonisolated(nonsending) func setOpenArchivesMax(_ max: Int) async

  /// Removes an archive that is not open, with its backup.
  ///
  /// - Parameter damaged: whether to remove the files set aside for damage too (R32).
  nonisolated(nonsending) func remove(_ application: String, damaged: Bool) async throws(ArchiveError)

  /// Returns after a turn through the store, with the number of turns.
  @discardableResult
  nonisolated(nonsending) func comeRound() async -> UInt64

  nonisolated var progress: StoreProgress { get }

  nonisolated var sizes: ArchiveSizes { get }

  /// Whether nothing can be written at the moment.
  nonisolated var isReadOnly: Bool { get }

  /// The summary of every archive, open or not, in ascending order of application.
  nonisolated(nonsending) func list() async throws(ArchiveError) -> [ArchiveSummary]
}

extension ArchiveStore {
  /// An engine without files has none to close.
  nonisolated(nonsending) package func setOpenArchivesMax(_ max: Int) async {}

  package nonisolated var isReadOnly: Bool { false }

  @discardableResult
  nonisolated(nonsending) package func backUp(
    _ lease: ArchiveLease,
    replacingFormer: Bool
  ) async throws(ArchiveError) -> Int {
    try await backUp(lease, replacingFormer: replacingFormer, leavingRoom: false)
  }

  package func open(_ application: String) async throws(ArchiveError) -> ArchiveOpening {
    try await open(application, for: .writing)
  }

  package func apply(
    _ changes: [ArchiveChange],
    lease: ArchiveLease,
    expecting: SequenceNumber,
    changeID: ChangeID,
    holding: [SequenceNumber] = []
  ) async throws(ArchiveError) -> ArchiveReceipt {
    try await apply(ArchiveBatch(changes), lease: lease, expecting: expecting, changeID: changeID, holding: holding)
  }
}
