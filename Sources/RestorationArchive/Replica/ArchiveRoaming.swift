// SPDX-License-Identifier: Apache-2.0

/// What a store does besides if its archives follow their user from host to host. Not in `ArchiveStore`, which knows of
/// no other hosts.
package protocol ArchiveRoaming: Sendable {
  /// The user says that whoever holds the archive is to lose it, alive or not. Counts for the opening that is under
  /// way, or else for the next one.
  func takeOver(_ application: String)

  /// Set once, before the first opening. Called from anywhere, also while a call of the store is under way; it returns
  /// at once.
  func observe(_ observer: @escaping @Sendable (ArchiveRoamingEvent) -> Void)

  /// Archives of this user that this host does not hold, as other hosts have left them, and whether the replica has
  /// answered; if not, those that are known.
  ///
  /// - Parameter milliseconds: for so long it is waited for; `nil` for as long as a call takes.
  nonisolated(nonsending) func others(
    within milliseconds: Int64?
  ) async -> (archives: [ArchiveSummary], isComplete: Bool)

  /// Something is being sent that nobody waits for. Not for longer than a minute after the last of it has arrived: what
  /// is left is sent by the next broker, too.
  nonisolated var isShipping: Bool { get }
}

/// What becomes of an archive without the broker's doing. Leases are those that the store has handed out; a broker
/// ignores an event about one that it no longer has.
package enum ArchiveRoamingEvent: Hashable, Sendable {
  /// Another host waits for the archive: it is to be saved and closed. Told once for each lease.
  case wanted(ArchiveLease, host: String)
  /// The archive belongs to another host. Told before any call fails as `lost`; the broker closes the archive.
  case lost(ArchiveLease, ArchiveLoss)
  /// Told while an archive is being opened: what the replica has takes the place of this host's copy, which may have
  /// something else and was set aside.
  case conflict(application: String, ArchiveConflict)
  /// The replica does not take what was written: told once for each cause, until it has caught up.
  case behind(application: String, ArchiveLag)
  /// After `behind`: the replica has everything.
  case caughtUp(application: String)
}

package struct ArchiveLoss: Hashable, Sendable {
  /// Who has the archive now, and since when in milliseconds since 1970, as far as that is known.
  package var host: String?
  package var since: Int64?
  /// How many committed changes the replica has not got; they stay in this host's copy.
  package var unshipped: Int64

  package init(host: String? = nil, since: Int64? = nil, unshipped: Int64 = 0) {
    (self.host, self.since, self.unshipped) = (host, since, unshipped)
  }

  package init(to holder: ReplicaHolder?, unshipped: Int64 = 0) {
    self.init(host: holder?.host, since: holder?.since, unshipped: unshipped)
  }
}

/// What the replica has not got.
package struct ArchiveLag: Hashable, Sendable {
  package var failure: ReplicaFailure
  /// How many committed changes it lacks.
  package var changes: Int64

  package init(_ failure: ReplicaFailure, changes: Int64) { (self.failure, self.changes) = (failure, changes) }
}

package struct ArchiveConflict: Hashable, Sendable {
  /// Who wrote what has taken its place, if that is known.
  package var host: String?
  /// How many changes only the copy has; `nil` if that is unknown.
  package var changes: Int64?
  /// The name of the file beside the archives in which the copy is.
  package var file: String
  /// The replica says that the archive was removed: nothing takes its place.
  package var isRemoval: Bool

  package init(host: String?, changes: Int64?, file: String, isRemoval: Bool = false) {
    (self.host, self.changes, self.file, self.isRemoval) = (host, changes, file, isRemoval)
  }
}
