// SPDX-License-Identifier: Apache-2.0

/// Counts every committed change of an archive; 0 before the first (see `Protocol/archive-format.md`).
package typealias SequenceNumber = Int64

/// The permanent id of a node in its archive; references inside stored text use it. 1, 2, 3 …, never reused.
package typealias NodeID = Int64

/// Names one stored context (class and reserved keys of the writer), shared by all states written under it.
package typealias ContextID = Int64

/// Names a client session inside an archive; never reused.
package typealias SessionID = Int64

package struct ChangeID: Hashable, Sendable {
  package let high: UInt64
  package let low: UInt64

  package init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

  package static func random() -> ChangeID {
    ChangeID(high: .random(in: .min ... .max), low: .random(in: .min ... .max))
  }

  /// Of those that one broker gives, only the first is random.
  package var next: ChangeID { ChangeID(high: high, low: low &+ 1) }
}

/// The right to write an archive; a later `open` of the same archive fences it off.
package struct ArchiveLease: Hashable, Sendable {
  package let application: String
  package let epoch: Int64

  package init(application: String, epoch: Int64) { (self.application, self.epoch) = (application, epoch) }
}

package enum ArchivePoint: Hashable, Sendable {
  /// The newest row of each node.
  case head
  /// The newest row of each node that is not early (R19), for an owner that has not decoded yet.
  case beforeClaim
  /// The contents when this sequence had just been written: a generation, or a cursor's fixed view.
  case sequence(SequenceNumber)
}

package struct ArchiveReceipt: Hashable, Sendable {
  package let sequence: SequenceNumber
  /// Bytes of the texts a reader can still reach: of states, of the contexts that those name, and of nodes.
  package let reachableBytes: Int
  /// Stored contexts that no row names; see `ArchiveChange.forgetContexts`.
  package let unnamedContexts: [ContextID]

  package init(sequence: SequenceNumber, reachableBytes: Int, unnamedContexts: [ContextID] = []) {
    (self.sequence, self.reachableBytes, self.unnamedContexts) = (sequence, reachableBytes, unnamedContexts)
  }
}

package struct ArchiveError: Error, Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    /// Nothing was written; the caller may continue.
    case definite
    /// The replica refuses it, and does so again until somebody has acted; nothing was changed.
    case refused
    /// Whether the write is durable is unknown; the broker must end, because a failed sync cannot be repeated.
    case indeterminate
    /// Another writer has taken the archive, or the expected sequence is not the newest.
    case fenced
    /// The archive exists and cannot be read now (permission, I/O error, newer format); nothing was touched.
    case unreadable
    /// Others changed the files while the store had them closed; nothing was touched. The next opening deals with it.
    case changed
    /// The archive does not exist, and may not be created.
    case absent
    /// A configured limit on archives is reached; nothing was created.
    case limit(name: String, max: Int, value: Int)
    /// The disk or quota is full; nothing was written, and reading still works.
    case full
    /// Another host holds the archive, in milliseconds since 1970 `since`; nothing was touched here.
    case elsewhere(host: String, since: Int64)
    /// Another host has taken the archive: writes here do not count. `nil` if that host is unknown.
    case lost(host: String?)
    /// The write is provisional: it is on this disk, but the replica has not confirmed it. It is still sent, unless
    /// another host has continued the archive.
    case unconfirmed

    /// The broker must end: to continue would break a promise.
    package var isFatal: Bool {
      switch self {
      case .indeterminate, .fenced: true
      case .definite, .refused, .unreadable, .changed, .absent, .limit, .full, .elsewhere, .lost, .unconfirmed: false
      }
    }
  }

  package let kind: Kind
  /// For logs and people: the error and the next step.
  package let message: String

  package init(_ kind: Kind, _ message: String) { (self.kind, self.message) = (kind, message) }
}
