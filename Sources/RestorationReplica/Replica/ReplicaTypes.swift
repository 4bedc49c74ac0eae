// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// The right to continue an archive at its replica.
package struct ReplicaLease: Hashable, Sendable {
  package var application: String
  package var archive: Int64
  package var id: LeaseID

  package init(application: String, archive: Int64, id: LeaseID) {
    (self.application, self.archive, self.id) = (application, archive, id)
  }
}

/// A broker's request for a lease.
package struct ReplicaClaim: Hashable, Sendable {
  /// `nil` if this host has never held the archive.
  package var standing: ReplicaStanding?
  /// The newest version of contents that the broker can read.
  package var reader: Int
  /// Whether the holder is asked to leave; otherwise the claim succeeds only for a free archive.
  package var wants: Bool
  /// Forced take-over: revoke the lease even if its holder is alive.
  package var isForced: Bool

  package init(standing: ReplicaStanding? = nil, reader: Int, wants: Bool = false, isForced: Bool = false) {
    (self.standing, self.reader, self.wants, self.isForced) = (standing, reader, wants, isForced)
  }
}

/// A lease, and the state of the replica's contents.
package struct ReplicaGrant: Hashable, Sendable {
  package var lease: ReplicaLease
  /// A UUID. If it differs from before, the former contents were removed and these do not continue them.
  package var history: String
  /// The end of the snapshot; 0 without one.
  package var base: SequenceNumber
  package var tip: ReplicaTip
  /// Where former leases left the contents, the oldest first: the newest ones, and those that the claimant knows.
  package var reigns: [ReplicaReign]
  /// The former holder; `nil` for the first lease.
  package var former: ReplicaHolder?

  package init(
    lease: ReplicaLease,
    history: String,
    base: SequenceNumber = 0,
    tip: ReplicaTip = ReplicaTip(),
    reigns: [ReplicaReign] = [],
    former: ReplicaHolder? = nil
  ) {
    (self.lease, self.history, self.base, self.tip) = (lease, history, base, tip)
    (self.reigns, self.former) = (reigns, former)
  }
}

package struct ReplicaRenewal: Hashable, Sendable {
  /// This broker's leases that are the newest of their archives, and where the contents end.
  package var held: [ReplicaLease: SequenceNumber]
  /// Those of `held` that another host waits for.
  package var wanted: [ReplicaLease: String]

  package init(held: [ReplicaLease: SequenceNumber] = [:], wanted: [ReplicaLease: String] = [:]) {
    (self.held, self.wanted) = (held, wanted)
  }
}

/// A transaction that waits to be sent.
package struct ReplicaTransaction: Hashable, Sendable {
  /// The transaction made the changes `after + 1 … upto`.
  package var after: SequenceNumber
  package var upto: SequenceNumber
  package var change: ChangeID
  /// As in the body of a batch.
  package var changes: [UInt8]

  package init(after: SequenceNumber, upto: SequenceNumber, change: ChangeID, changes: [UInt8]) {
    (self.after, self.upto, self.change, self.changes) = (after, upto, change, changes)
  }
}

extension Sequence<ReplicaTransaction> {
  var bytes: Int { reduce(0) { $0 + $1.changes.count } }
}

/// Consecutive transactions that are stored together.
package struct ReplicaBatch: Hashable, Sendable {
  /// The transactions made the changes `after + 1 … upto`.
  package var after: SequenceNumber
  package var upto: SequenceNumber
  /// The last transaction's change; names the batch.
  package var change: ChangeID
  /// An encoded `ChangeBatch`, or one that was sealed.
  package var body: [UInt8]

  package init(after: SequenceNumber, upto: SequenceNumber, change: ChangeID, body: [UInt8]) {
    (self.after, self.upto, self.change, self.body) = (after, upto, change, body)
  }
}

/// A piece of a copy of a whole archive.
package struct SnapshotPart: Hashable, Sendable {
  /// Names the copy; random, above 0. Two copies that end at the same change may differ in their bytes.
  package var attempt: Int64
  package var tip: ReplicaTip
  /// The version of a reader that the copy needs.
  package var reader: Int
  /// 0 … `count - 1`.
  package var number: Int
  package var count: Int
  package var bytes: [UInt8]

  package init(attempt: Int64 = 1, tip: ReplicaTip, reader: Int, number: Int, count: Int, bytes: [UInt8]) {
    (self.attempt, self.tip, self.reader) = (attempt, tip, reader)
    (self.number, self.count, self.bytes) = (number, count, bytes)
  }
}

package enum ReplicaPosition: Hashable, Sendable {
  case snapshot(part: Int)
  /// From the first batch on that ends behind this sequence.
  case batches(after: SequenceNumber)
}

/// A piece of an archive's contents: parts of the snapshot or batches, in order.
package struct ReplicaPage: Hashable, Sendable {
  package var parts: [SnapshotPart]
  package var batches: [ReplicaBatch]
  /// Where the next page begins; `nil` at the end.
  package var next: ReplicaPosition?

  package init(parts: [SnapshotPart] = [], batches: [ReplicaBatch] = [], next: ReplicaPosition? = nil) {
    (self.parts, self.batches, self.next) = (parts, batches, next)
  }
}

/// The fate of an archive when its lease is released.
package enum ReplicaEnd: Hashable, Sendable {
  /// The archive stays. `upto`: everything was shipped, and the contents must end here; `nil`: something was not
  /// shipped. `summary`: the archive's description in lists; if empty, the former one stays.
  case left(upto: SequenceNumber?, summary: [UInt8])
  case removed
}

/// A page of a user's archives, in ascending order of application.
package struct ReplicaListing: Hashable, Sendable {
  /// With the longest summaries and names this many take 2 MB.
  package static let pageMax = 256
  /// The most archives of a user, including removed ones.
  package static let archivesMax = 1_000

  package var archives: [ReplicaSummary]
  package var hasMore: Bool

  package init(archives: [ReplicaSummary] = [], hasMore: Bool = false) {
    (self.archives, self.hasMore) = (archives, hasMore)
  }
}

package struct ReplicaSummary: Hashable, Sendable {
  package var application: String
  package var holder: ReplicaHolder?
  package var sequence: SequenceNumber
  /// As the last holder left it; empty if none did.
  package var summary: [UInt8]

  package init(application: String, holder: ReplicaHolder?, sequence: SequenceNumber, summary: [UInt8]) {
    (self.application, self.holder, self.sequence, self.summary) = (application, holder, sequence, summary)
  }

  func isElsewhere(_ host: String) -> Bool { holder.map { $0.host != host } ?? false }
}
