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
  /// Opens an application's archive and takes the write lease.
  ///
  /// If the file is damaged it is moved aside, never deleted, and the last good backup takes its place (R32); the
  /// opening says so.
  ///
  /// - Parameter purpose: whether to create the archive if it does not exist; otherwise fails as `absent`.
  nonisolated(nonsending) func open(
    _ application: String,
    for purpose: ArchivePurpose
  ) async throws(ArchiveError) -> ArchiveOpening

  /// Runs `work` on the lane of the application's archive, so that the caller's loop is free meanwhile.
  nonisolated(nonsending) func compute<Value>(
    for application: String,
    _ work: @Sendable () -> sending Value
  ) async -> sending Value

  /// Makes all changes of the batch durable in one transaction, including those added before the transaction begins.
  ///
  /// - Parameter expecting: the last sequence the caller knows; another value on disk fails as `fenced`.
  /// - Parameter changeID: names this transaction; if the last one is repeated, it writes nothing and returns the same.
  /// - Parameter holding: sequences that open cursors still read at: if upkeep does not keep pace, a commit deletes
  ///   dead rows.
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

  /// Does a bounded piece of upkeep (deletes dead rows, moves the log into the main file).
  ///
  /// - Parameter holding: sequences that open cursors still read at.
  /// - Returns: whether there is more to do.
  nonisolated(nonsending) func maintain(
    _ lease: ArchiveLease,
    holding: [SequenceNumber]
  ) async throws(ArchiveError) -> Bool

  /// Checks a bounded piece of the stored rows and changes nothing; other calls run between two pieces.
  ///
  /// Every row that a reader can reach is compared with its checksum. The caller gets the text, because a store does
  /// not interpret it. Begin with `nil`, then pass the position that each piece names.
  nonisolated(nonsending) func verify(
    _ lease: ArchiveLease,
    from position: VerificationPosition?
  ) async throws(ArchiveError) -> VerificationPiece

  /// Keeps a copy of the archive as the last good one (R32); returns its size in bytes.
  ///
  /// - Parameter replacingFormer: whether a copy in an earlier format, from before the archive was migrated, goes then.
  @discardableResult
  nonisolated(nonsending) func backUp(_ lease: ArchiveLease, replacingFormer: Bool) async throws(ArchiveError) -> Int

  nonisolated(nonsending) func close(_ lease: ArchiveLease) async

  /// Changes how many archives have their files open at a time.
  nonisolated(nonsending) func setOpenArchivesMax(_ max: Int) async

  /// Removes an archive that is not open, with its backup; its name is free then.
  ///
  /// - Parameter damaged: whether files that were moved aside because of damage go as well (R32).
  nonisolated(nonsending) func remove(_ application: String, damaged: Bool) async throws(ArchiveError)

  /// Returns after a turn through the store; how often it has been called.
  @discardableResult
  nonisolated(nonsending) func comeRound() async -> UInt64

  nonisolated var progress: StoreProgress { get }

  nonisolated var sizes: ArchiveSizes { get }

  /// The summary of every archive, open or not, in ascending order of application.
  nonisolated(nonsending) func list() async throws(ArchiveError) -> [ArchiveSummary]
}

extension ArchiveStore {
  /// An engine without files has none to close.
  nonisolated(nonsending) package func setOpenArchivesMax(_ max: Int) async {}

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
