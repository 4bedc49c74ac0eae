// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// Stores the committed transactions of archives, so that another host can continue them. One value serves one host.
///
/// It knows no file, socket, key or SQL; a transaction's changes are opaque to it. Every engine passes the same test
/// suite. A replica's maker passes a function, which the replica calls when another host begins to wait for a lease of
/// this broker; the broker then renews at once and learns for which archive.
///
/// Invariants of every engine, independent of any clock:
/// 1. An archive has one newest lease. A write under any other lease changes nothing. No two leases have the same ID.
/// 2. Contents have no gap: a batch begins at their end. A repeated batch is stored once.
/// 3. When a call returns, what it stored survives the loss of a server; otherwise the call fails as `uncovered`.
/// 4. For each of the last 10,000 leases under which something was written, the replica knows the end of the contents
///    at that lease's end; 0 if the archive was removed since.
///
/// A replica may be put back to an earlier state: a backup that is started, a server that takes over without the last
/// changes. Then it does not know the newest leases (`voided`), and may end before what was stored.
package protocol ArchiveReplica: Sendable {
  /// Takes the lease of an application's archive and ends the former lease. Makes the archive if it does not exist.
  ///
  /// Fails as `elsewhere` while another broker holds the lease and may be alive; if `claim.wants`, that broker is told
  /// which host waits.
  nonisolated(nonsending) func acquire(
    _ application: String,
    as claim: ReplicaClaim
  ) async throws(ReplicaError) -> ReplicaGrant

  /// Reports that this broker is alive. Returns all leases it holds, including any whose grant it never received: the
  /// broker must release those, or other hosts wait in vain.
  nonisolated(nonsending) func renew() async throws(ReplicaError) -> ReplicaRenewal

  /// Appends a batch to the contents.
  ///
  /// After `unknown`, repeat the same batch with the same change before any other append.
  nonisolated(nonsending) func append(_ batch: ReplicaBatch, _ lease: ReplicaLease) async throws(ReplicaError)

  /// Reads a bounded piece of the contents. Fails as `gap` if the position is inside the snapshot.
  nonisolated(nonsending) func load(
    _ lease: ReplicaLease,
    from position: ReplicaPosition
  ) async throws(ReplicaError) -> ReplicaPage

  /// Stores a part of a snapshot. When all parts are stored, the snapshot replaces everything up to its end.
  ///
  /// It may end behind the contents and so add changes. Otherwise it must end where a batch ends, or it fails as `gap`.
  nonisolated(nonsending) func snapshot(_ part: SnapshotPart, _ lease: ReplicaLease) async throws(ReplicaError)

  /// Gives the lease back. Fails as `gap` if everything was shipped and the contents end before: the replica was put
  /// back to an earlier state.
  nonisolated(nonsending) func release(_ lease: ReplicaLease, _ end: ReplicaEnd) async throws(ReplicaError)

  /// The summaries of this user's archives after `application`, or from the first one on.
  nonisolated(nonsending) func list(after application: String?) async throws(ReplicaError) -> ReplicaListing
}

extension ArchiveReplica {
  /// The summary of every archive of this user, in ascending order of application. Stops when the task is cancelled, or
  /// beyond the most archives a user may have.
  nonisolated(nonsending) package func list() async throws(ReplicaError) -> [ReplicaSummary] {
    var all: [ReplicaSummary] = []
    while true {
      let page = try await list(after: all.last?.application)
      all += page.archives
      guard page.hasMore, !page.archives.isEmpty else { return all }
      guard all.count < ReplicaListing.archivesMax else {
        let text = "the fleet's store lists more than \(ReplicaListing.archivesMax) archives, which no user may have"
        throw ReplicaError(.refused, "\(text); look at the fleet's store")
      }
      guard !Task.isCancelled else { throw ReplicaError(.away, "nobody waits any longer for the list; ask again") }
    }
  }

  /// The summary of one archive, for which one page is asked; `nil` if there is no archive of that name.
  nonisolated(nonsending) package func summary(
    of application: String
  ) async throws(ReplicaError) -> ReplicaSummary? {
    // No name of an application lies between this text and the one that is meant: "~" comes after all its letters.
    var before = Array(application.utf8)
    if let last = before.popLast() { before += [last - 1, UInt8(ascii: "~")] }
    return try await list(after: String(decoding: before, as: UTF8.self)).archives.first {
      $0.application == application
    }
  }
}

/// Context of all replica calls that one call makes.
package enum ReplicaCall {
  /// Its caller waits no longer than this; `nil` if unknown.
  @TaskLocal package static var deadline: ContinuousClock.Instant?
}

package struct ReplicaError: Error, Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    case elsewhere(ReplicaHolder)
    /// A later lease has ended this one, or the archive was removed. `host` holds the archive now, if known.
    case fenced(host: String?)
    /// The replica does not know the lease: it was put back to an earlier state. Acquire the lease again.
    case voided
    /// The replica cannot be reached; nothing was stored.
    case away
    /// The outcome is unknown: the batch may be stored.
    case unknown
    /// The batch does not continue the contents. The value is where they end, or where they begin if loading failed.
    case gap(SequenceNumber)
    /// No second server holds the data, so it would not survive; nothing was stored.
    case uncovered
    /// The contents need a reader of this version.
    case tooNew(Int)
    /// The contents were encrypted with a key that is not here.
    case key(String)
    /// The user's space is used up; both values in bytes.
    case quota(max: Int, value: Int)
    /// The replica rejects the input; a repetition fails as well.
    case refused
  }

  package let kind: Kind
  /// For logs and people: what happened and what to do next.
  package let message: String

  package init(_ kind: Kind, _ message: String) { (self.kind, self.message) = (kind, message) }
}
