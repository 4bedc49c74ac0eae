// SPDX-License-Identifier: Apache-2.0

/// Where the committed transactions of archives go, so that another host can continue them: one host's way to it.
///
/// It knows no file, socket, key or SQL, and what a transaction changed is opaque to it. Every engine passes the same
/// test suite. Whoever makes one hands in a function that is called when another host has begun to wait for a lease of
/// this broker, so that it renews at once and finds out for which one.
///
/// Invariants every engine keeps, whatever any clock says:
/// 1. An archive has one newest lease, of the timeline of the server that answers. What is written under another one
///    changes nothing.
/// 2. Contents have no gap: a batch begins where they end. A batch that is repeated is stored once.
/// 3. What a call has stored when it returns survives the loss of a server, or the call fails as `uncovered`.
/// 4. Epochs grow, also from one timeline to the next, and contents name the epoch of their last change.
/// 5. Where each lease has left the contents is known for as long as the archive is, and after its removal.
package protocol ArchiveReplica: Sendable {
  /// Takes the lease of an application's archive, which is made if it does not exist; the former lease ends.
  ///
  /// Fails as `elsewhere` while another broker holds it and may be alive; that one is then told who waits, if the claim
  /// wants the archive. Fails as `voided` while a server that has taken over may have lost the archive.
  nonisolated(nonsending) func acquire(
    _ application: String,
    as claim: ReplicaClaim
  ) async throws(ReplicaError) -> ReplicaGrant

  /// Says that this broker is alive; returns all leases that it holds. One among them that it does not know was granted
  /// without its hearing of it: it has to give it back, or other hosts wait for it in vain.
  nonisolated(nonsending) func renew() async throws(ReplicaError) -> ReplicaRenewal

  /// Stores a batch behind the contents.
  ///
  /// After `unknown` the same batch, with the same change, has to be repeated before anything else is appended.
  nonisolated(nonsending) func append(_ batch: ReplicaBatch, _ lease: ReplicaLease) async throws(ReplicaError)

  /// Reads a bounded piece of the contents. Fails as `gap` if what is behind the position begins within the snapshot.
  nonisolated(nonsending) func load(
    _ lease: ReplicaLease,
    from position: ReplicaPosition
  ) async throws(ReplicaError) -> ReplicaPage

  /// Stores a part of a snapshot. When all of its parts are there, it takes the place of everything up to its end.
  ///
  /// It may end behind the contents, and so bring what no batch has brought. If not, it has to end where a batch ends,
  /// else it fails as `gap`.
  nonisolated(nonsending) func snapshot(_ part: SnapshotPart, _ lease: ReplicaLease) async throws(ReplicaError)

  /// Gives the lease back, or removes the archive.
  nonisolated(nonsending) func release(_ lease: ReplicaLease, _ end: ReplicaEnd) async throws(ReplicaError)

  /// The summaries of this user's archives behind an application, or from the first one on.
  nonisolated(nonsending) func list(after application: String?) async throws(ReplicaError) -> ReplicaListing
}

extension ArchiveReplica {
  /// The summary of every archive of this user, in ascending order of application. It ends when nobody waits for it,
  /// and when there are more than a user may have.
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
}

/// What counts for everything that is asked on behalf of one call.
package enum ReplicaCall {
  /// From then on its caller no longer waits; `nil` if that is unknown.
  @TaskLocal package static var deadline: ContinuousClock.Instant?
}

/// Why a replica could not do what it was asked.
package struct ReplicaError: Error, Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    /// Another broker holds the lease.
    case elsewhere(ReplicaHolder)
    /// A later lease has ended this one, or the archive was removed; the host that holds it, if one does.
    case fenced(host: String?)
    /// The lease is of a former timeline: it has to be acquired again.
    case voided
    /// The replica cannot be reached; nothing was stored.
    case away
    /// Whether it was stored is unknown.
    case unknown
    /// What was given does not continue the contents, which end here, or begin here if they were to be loaded.
    case gap(SequenceNumber)
    /// The server has no other one that would survive it; nothing was stored.
    case uncovered
    /// The contents need a reader of this version.
    case tooNew(Int)
    /// The contents were encrypted with a key that is not here.
    case key(String)
    /// The user has no more room. Bytes.
    case quota(max: Int, value: Int)
    /// The replica does not take what it was given; repeating it is of no use.
    case refused
  }

  package let kind: Kind
  /// For logs and for people: what happened and what to do next.
  package let message: String

  package init(_ kind: Kind, _ message: String) { (self.kind, self.message) = (kind, message) }
}
