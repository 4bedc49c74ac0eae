// SPDX-License-Identifier: Apache-2.0

/// Names a lease among all that an archive ever had at its replica; later ones are greater.
///
/// One number, so that epochs which two timelines have given are never equal.
package struct ReplicaEpoch: Hashable, Comparable, Sendable {
  /// `timeline · 2³² + number`.
  package let rawValue: Int64

  /// Before any lease.
  package static let none = ReplicaEpoch(rawValue: 0)

  package init(rawValue: Int64) { self.rawValue = rawValue }

  package init(timeline: UInt32, number: UInt32) { rawValue = Int64(timeline) << 32 + Int64(number) }

  /// Counts how often another server has taken over from the one that was written to.
  package var timeline: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 32) }
  /// Counts the leases of an archive.
  package var number: UInt32 { UInt32(truncatingIfNeeded: rawValue) }

  package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
}

/// Where contents end: the last sequence, and the transaction that wrote it.
package struct ReplicaTip: Hashable, Sendable {
  package var sequence: SequenceNumber
  /// `nil` if there are no contents.
  package var change: ChangeID?

  package init(sequence: SequenceNumber = 0, change: ChangeID? = nil) {
    (self.sequence, self.change) = (sequence, change)
  }
}

/// The right to continue an archive at its replica.
package struct ReplicaLease: Hashable, Sendable {
  package var application: String
  /// The replica's number of the archive.
  package var archive: Int64
  package var epoch: ReplicaEpoch

  package init(application: String, archive: Int64, epoch: ReplicaEpoch) {
    (self.application, self.archive, self.epoch) = (application, archive, epoch)
  }
}

/// On what grounds a broker asks for a lease.
package struct ReplicaClaim: Hashable, Sendable {
  /// `nil` if this host has never held it.
  package var standing: ReplicaStanding?
  /// The newest version of contents that the broker reads.
  package var reader: Int
  /// The holder is to hear of it, and to leave; otherwise only an archive that is free is asked for.
  package var wants: Bool
  /// The user says that the holder is to lose it, alive or not.
  package var isForced: Bool

  package init(standing: ReplicaStanding? = nil, reader: Int, wants: Bool = false, isForced: Bool = false) {
    (self.standing, self.reader, self.wants, self.isForced) = (standing, reader, wants, isForced)
  }
}

/// A lease, and what there is at the replica.
package struct ReplicaGrant: Hashable, Sendable {
  package var lease: ReplicaLease
  /// A UUID; another one than before: the contents do not continue the former ones, which were removed.
  package var history: String
  /// Where the snapshot ends; 0 without one.
  package var base: SequenceNumber
  package var tip: ReplicaTip
  /// Under which lease the last change was made.
  package var tipEpoch: ReplicaEpoch
  /// Where the newest former lease up to the epoch of the claimant's standing has left the contents; `nil` if there was
  /// none.
  package var reign: ReplicaTip?
  /// Whether the last holder left in order, with everything shipped.
  package var wasFlushed: Bool
  /// Who held the lease before; `nil` if this is the first one.
  package var former: ReplicaHolder?

  package init(
    lease: ReplicaLease,
    history: String,
    base: SequenceNumber = 0,
    tip: ReplicaTip = ReplicaTip(),
    tipEpoch: ReplicaEpoch = .none,
    reign: ReplicaTip? = nil,
    wasFlushed: Bool = true,
    former: ReplicaHolder? = nil
  ) {
    (self.lease, self.history, self.base, self.tip) = (lease, history, base, tip)
    (self.tipEpoch, self.reign, self.wasFlushed, self.former) = (tipEpoch, reign, wasFlushed, former)
  }
}

/// Who holds a lease.
package struct ReplicaHolder: Hashable, Sendable {
  package var host: String
  /// Milliseconds since 1970, by the replica's clock; information only.
  package var since: Int64

  package init(host: String, since: Int64) { (self.host, self.since) = (host, since) }
}

package struct ReplicaRenewal: Hashable, Sendable {
  /// The broker's leases that are the newest of their archives.
  package var held: Set<ReplicaLease>
  /// Of these, the ones that another host waits for.
  package var wanted: [ReplicaLease: String]

  package init(held: Set<ReplicaLease> = [], wanted: [ReplicaLease: String] = [:]) {
    (self.held, self.wanted) = (held, wanted)
  }
}

/// What one transaction of an archive has changed.
package struct ReplicaTransaction: Hashable, Sendable {
  /// It made the changes `after + 1 … upto`.
  package var after: SequenceNumber
  package var upto: SequenceNumber
  package var change: ChangeID
  package var changes: [UInt8]

  package init(after: SequenceNumber, upto: SequenceNumber, change: ChangeID, changes: [UInt8]) {
    (self.after, self.upto, self.change, self.changes) = (after, upto, change, changes)
  }
}

extension Sequence<ReplicaTransaction> {
  /// Of their changes.
  var bytes: Int { reduce(0) { $0 + $1.changes.count } }
}

/// Transactions, one behind the other, that are stored together.
package struct ReplicaBatch: Hashable, Sendable {
  /// At least one.
  package let transactions: [ReplicaTransaction]

  package init(_ transactions: [ReplicaTransaction]) {
    precondition(!transactions.isEmpty, "a batch without a transaction has no place")
    self.transactions = transactions
  }

  package var after: SequenceNumber { transactions[0].after }
  package var upto: SequenceNumber { transactions[transactions.count - 1].upto }
  /// The last transaction's; names the batch.
  package var change: ChangeID { transactions[transactions.count - 1].change }
  package var bytes: Int { transactions.bytes }
}

/// A piece of a copy of a whole archive.
package struct SnapshotPart: Hashable, Sendable {
  /// Which copy it is; at random, above 0. Two copies that end at the same change need not have the same bytes.
  package var attempt: Int64
  /// Where the copy ends.
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
  /// From this part of the snapshot on.
  case snapshot(part: Int)
  /// From the first batch on that ends behind this sequence.
  case batches(after: SequenceNumber)
}

/// A piece of an archive's contents at the replica: parts of the snapshot or batches, in order.
package struct ReplicaPage: Hashable, Sendable {
  package var parts: [SnapshotPart]
  package var batches: [ReplicaBatch]
  /// Where to go on; `nil` at the end.
  package var next: ReplicaPosition?

  package init(parts: [SnapshotPart] = [], batches: [ReplicaBatch] = [], next: ReplicaPosition? = nil) {
    (self.parts, self.batches, self.next) = (parts, batches, next)
  }
}

/// How a lease is given back.
package enum ReplicaEnd: Hashable, Sendable {
  /// The archive stays. `isFlushed`: everything was shipped. `summary`: what lists say of it; if it is empty, what they
  /// said before.
  case left(isFlushed: Bool, summary: [UInt8])
  /// The archive goes, and older copies of it with it.
  case removed
}

/// A page of the archives of a user, in ascending order of application.
package struct ReplicaListing: Hashable, Sendable {
  /// With the longest summaries and names, so many take 2 MB.
  package static let pageMax = 256
  /// Archives of a user, with those that were removed.
  package static let archivesMax = 1_000

  /// At most `pageMax`.
  package var archives: [ReplicaSummary]
  /// Whether there are others behind the last one.
  package var hasMore: Bool

  package init(archives: [ReplicaSummary] = [], hasMore: Bool = false) {
    (self.archives, self.hasMore) = (archives, hasMore)
  }
}

package struct ReplicaSummary: Hashable, Sendable {
  package var application: String
  /// `nil` if it is not held.
  package var holder: ReplicaHolder?
  package var wasFlushed: Bool
  /// Where the contents end.
  package var sequence: SequenceNumber
  /// As the last holder left it; empty before that.
  package var summary: [UInt8]

  package init(
    application: String,
    holder: ReplicaHolder?,
    wasFlushed: Bool,
    sequence: SequenceNumber,
    summary: [UInt8]
  ) {
    (self.application, self.holder, self.wasFlushed) = (application, holder, wasFlushed)
    (self.sequence, self.summary) = (sequence, summary)
  }

  /// Another host than this one holds it.
  func isElsewhere(_ host: String) -> Bool { holder.map { $0.host != host } ?? false }
}
