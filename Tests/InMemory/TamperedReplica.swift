// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
package import RestorationReplica
internal import Synchronization

/// A replica of which somebody has the server: what it grants, loads and lists is as he wants it to be.
package final class TamperedReplica: ArchiveReplica {
  private struct Changes {
    var grant: @Sendable (ReplicaGrant) -> ReplicaGrant = { $0 }
    /// Also of what cannot be loaded.
    var page: @Sendable (ReplicaPage?, ReplicaPosition) -> ReplicaPage? = { page, _ in page }
    var listing: @Sendable (ReplicaListing, String?) -> ReplicaListing = { listing, _ in listing }
    var loads = 0
    var listings = 0
  }

  private let base: any ArchiveReplica
  private let changes = Mutex(Changes())

  package init(around base: any ArchiveReplica) { self.base = base }

  package func changeGrants(_ change: @escaping @Sendable (ReplicaGrant) -> ReplicaGrant) {
    changes.withLock { $0.grant = change }
  }

  package func changePages(_ change: @escaping @Sendable (ReplicaPage) -> ReplicaPage) {
    changes.withLock { $0.page = { page, _ in page.map(change) } }
  }

  /// - Parameter page: takes the place of what would be loaded from there.
  package func load(_ page: @escaping @Sendable (ReplicaPosition) -> ReplicaPage) {
    changes.withLock { $0.page = { page($1) } }
  }

  package func changeSummaries(_ change: @escaping @Sendable (ReplicaSummary) -> ReplicaSummary) {
    list { listing, _ in ReplicaListing(archives: listing.archives.map(change), hasMore: listing.hasMore) }
  }

  package func list(_ listing: @escaping @Sendable (ReplicaListing, _ after: String?) -> ReplicaListing) {
    changes.withLock { $0.listing = listing }
  }

  /// How many pages were asked for.
  package var loads: Int { changes.withLock { $0.loads } }
  package var listings: Int { changes.withLock { $0.listings } }

  nonisolated(nonsending) package func acquire(
    _ application: String,
    as claim: ReplicaClaim
  ) async throws(ReplicaError) -> ReplicaGrant {
    let grant = try await base.acquire(application, as: claim)
    return changes.withLock { $0.grant }(grant)
  }

  nonisolated(nonsending) package func renew() async throws(ReplicaError) -> ReplicaRenewal { try await base.renew() }

  nonisolated(nonsending) package func append(
    _ batch: ReplicaBatch,
    _ lease: ReplicaLease
  ) async throws(ReplicaError) { try await base.append(batch, lease) }

  nonisolated(nonsending) package func load(
    _ lease: ReplicaLease,
    from position: ReplicaPosition
  ) async throws(ReplicaError) -> ReplicaPage {
    let change = changes.withLock { changes in
      changes.loads += 1
      return changes.page
    }
    do throws(ReplicaError) {
      let page = try await base.load(lease, from: position)
      return change(page, position) ?? page
    } catch {
      guard let page = change(nil, position) else { throw error }
      return page
    }
  }

  nonisolated(nonsending) package func snapshot(
    _ part: SnapshotPart,
    _ lease: ReplicaLease
  ) async throws(ReplicaError) { try await base.snapshot(part, lease) }

  nonisolated(nonsending) package func release(
    _ lease: ReplicaLease,
    _ end: ReplicaEnd
  ) async throws(ReplicaError) { try await base.release(lease, end) }

  nonisolated(nonsending) package func list(
    after application: String?
  ) async throws(ReplicaError) -> ReplicaListing {
    let change = changes.withLock { changes in
      changes.listings += 1
      return changes.listing
    }
    return change(try await base.list(after: application), application)
  }
}
