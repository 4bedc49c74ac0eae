// SPDX-License-Identifier: Apache-2.0

/// Where the broker keeps archives: one append-only log of nodes and states per application.
///
/// The interface is in the broker's words and holds no file path, row id, clock or SQL type, so that another engine can
/// stand behind it. Text is opaque: a store neither parses nor changes it. Every engine passes the same test suite.
///
/// Invariants every engine keeps:
/// 1. `apply` is atomic: all of its changes are visible and durable when it returns, or none is.
/// 2. Each change of an `apply` takes the next sequence number, in order; numbers are never reused.
/// 3. A row is never rewritten. What a reader may still reach (head, the newest row that is not early, every kept
///    generation, every held sequence) is never deleted, nor what is withheld.
/// 4. A row whose checksum fails makes that one state `unreadable`; nothing else.
/// 5. Writes under a lease that is no longer the newest fail as `fenced`.
package protocol ArchiveStore: Sendable {
  /// Opens an application's archive and takes the write lease.
  ///
  /// - Parameter creating: whether to make an archive where there is none; else that fails as `absent`.
  ///
  /// A damaged file is moved aside, never deleted, and the last good backup takes its place (R32); the opening says so.
  func open(_ application: String, creating: Bool) async throws(ArchiveError) -> ArchiveOpening

  /// Makes all changes of the batch durable in one transaction, those included that are added to it before it begins.
  ///
  /// - Parameter expecting: the last sequence the caller knows; another value on disk fails as `fenced`.
  /// - Parameter changeID: names this transaction; the last one applied again returns its answer and writes nothing.
  /// - Parameter holding: sequences that are still read at; a commit deletes dead rows itself when upkeep does
  ///   not keep pace.
  func apply(
    _ batch: ArchiveBatch,
    lease: ArchiveLease,
    expecting: SequenceNumber,
    changeID: ChangeID,
    holding: [SequenceNumber]
  ) async throws(ArchiveError) -> ArchiveReceipt

  /// The states of `nodes` as seen at `point`, in the same order; nil where there is none.
  func read(
    _ nodes: [NodeID],
    at point: ArchivePoint,
    lease: ArchiveLease
  ) async throws(ArchiveError) -> [StateReading?]

  /// Nodes in ascending order of id, with what is known of their state as seen at `point`, without its text.
  func scan(
    after node: NodeID?,
    limit: Int,
    at point: ArchivePoint,
    lease: ArchiveLease
  ) async throws(ArchiveError) -> [NodeReading]

  /// Does a bounded piece of upkeep (deletes rows nobody can reach, moves the log into the main file).
  ///
  /// - Parameter holding: sequences that open cursors still read at.
  /// - Returns: whether there is more to do.
  func maintain(_ lease: ArchiveLease, holding: [SequenceNumber]) async throws(ArchiveError) -> Bool

  /// Checks a bounded piece of what is stored, as it is on disk, and changes nothing; others get their turn between two
  /// pieces.
  ///
  /// Every row that some reader can reach is read and held against its checksum; its text is handed over, because a
  /// store does not know what it means. Begin with nil, go on with the position each piece names.
  func verify(
    _ lease: ArchiveLease,
    from position: VerificationPosition?
  ) async throws(ArchiveError) -> VerificationPiece

  /// Keeps a copy of the archive as the last good one (R32); returns its size in bytes.
  @discardableResult
  func backUp(_ lease: ArchiveLease) async throws(ArchiveError) -> Int

  /// Gives the lease back and closes the archive.
  func close(_ lease: ArchiveLease) async

  /// Returns when everything that was asked for before has had its turn; how often it has been called.
  @discardableResult
  func comeRound() async -> UInt64

  /// A count of pieces of work that were done: a store that has much to do gets on as long as it grows.
  nonisolated var progress: UInt64 { get }

  /// What is known of every archive, opened or not, in ascending order of application.
  func list() async throws(ArchiveError) -> [ArchiveSummary]
}

extension ArchiveStore {
  /// Opens an application's archive, making it where there is none.
  package func open(_ application: String) async throws(ArchiveError) -> ArchiveOpening {
    try await open(application, creating: true)
  }

  /// Makes all changes durable in one transaction.
  package func apply(
    _ changes: [ArchiveChange],
    lease: ArchiveLease,
    expecting: SequenceNumber,
    changeID: ChangeID,
    holding: [SequenceNumber] = []
  ) async throws(ArchiveError) -> ArchiveReceipt {
    try await apply(
      ArchiveBatch(changes),
      lease: lease,
      expecting: expecting,
      changeID: changeID,
      holding: holding
    )
  }
}
