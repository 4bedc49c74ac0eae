// SPDX-License-Identifier: Apache-2.0

/// A store whose archives follow their user from host to host. Kept apart from `ArchiveStore`, which knows of no other
/// hosts.
package protocol ArchiveRoaming: Sendable {
  /// Forced take-over: revoke the lease even if its holder is alive. Applies to the opening in progress, otherwise to
  /// the next one.
  func takeOver(_ application: String)

  /// Call once, before the first opening. The observer may be called on any thread, also during a call of the store,
  /// and must return at once.
  func observe(_ observer: @escaping @Sendable (ArchiveRoamingEvent) -> Void)

  /// This user's archives that this host does not hold, and whether the replica has answered. Without an answer, the
  /// archives known from earlier answers.
  ///
  /// - Parameter milliseconds: how long to wait for the answer; `nil`: as long as a call takes.
  nonisolated(nonsending) func others(
    within milliseconds: Int64?
  ) async -> (archives: [ArchiveSummary], isComplete: Bool)

  /// Whether the store sends changes in the background. False a minute after the last change arrived: the next broker
  /// can send the rest.
  nonisolated var isShipping: Bool { get }
}

extension [ArchiveSummary] {
  /// Adds the replica's archives. For an archive with a copy here, the newer of the two summaries counts.
  package mutating func merge(_ others: [ArchiveSummary]) {
    let places = Dictionary(indices.map { (self[$0].application, $0) }) { $1 }
    for var other in others {
      guard let place = places[other.application] else {
        append(other)
        continue
      }
      if other.modified > self[place].modified {
        (other.bytes, other.isHere) = (self[place].bytes, true)
        self[place] = other
      } else {
        self[place].holder = other.holder
      }
    }
  }
}

/// A change to an archive that the broker did not cause. Leases are those handed out by the store; a broker ignores
/// events about leases it no longer has.
package enum ArchiveRoamingEvent: Hashable, Sendable {
  /// Another host waits: save and close the archive. Sent once for each lease.
  case wanted(ArchiveLease, host: String)
  /// Another host has the archive: close it. Sent before any call fails as `lost`.
  case lost(ArchiveLease, ArchiveLoss)
  /// Sent during an opening: the replica's contents replace this host's copy. The copy may have other changes and was
  /// set aside.
  case conflict(application: String, ArchiveConflict)
  /// The replica rejects what was written. Sent once for each cause until the replica has caught up.
  case behind(application: String, ArchiveLag)
  /// Follows `behind`: the replica has everything.
  case caughtUp(application: String)
}

/// The host that holds an archive.
package struct ReplicaHolder: Hashable, Sendable {
  package var host: String
  /// Milliseconds since 1970 by the replica's clock; for information only.
  package var since: Int64

  package init(host: String, since: Int64) { (self.host, self.since) = (host, since) }
}

package struct ArchiveLoss: Hashable, Sendable {
  /// The host that has the archive now; `since` in milliseconds since 1970. Both `nil` if unknown.
  package var host: String?
  package var since: Int64?
  /// Number of committed changes that the replica lacks; they stay in this host's copy.
  package var unshipped: Int64

  package init(host: String? = nil, since: Int64? = nil, unshipped: Int64 = 0) {
    (self.host, self.since, self.unshipped) = (host, since, unshipped)
  }
}

package struct ArchiveLag: Hashable, Sendable {
  package var failure: ReplicaFailure
  /// Number of committed changes that the replica lacks.
  package var changes: Int64

  package init(_ failure: ReplicaFailure, changes: Int64) { (self.failure, self.changes) = (failure, changes) }
}

package struct ArchiveConflict: Hashable, Sendable {
  /// The host that wrote the replacement, if known.
  package var host: String?
  /// Number of changes that only the copy has; `nil` if unknown.
  package var changes: Int64?
  /// The name of the copy's file beside the archives.
  package var file: String
  /// The archive was removed at the replica: nothing replaces it.
  package var isRemoval: Bool

  package init(host: String?, changes: Int64?, file: String, isRemoval: Bool = false) {
    (self.host, self.changes, self.file, self.isRemoval) = (host, changes, file, isRemoval)
  }
}
