// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationReplica

/// Decides who may have a lease, for one gateway: from a server's facts about an archive, and from how long the gateway
/// has seen no renewal of the holder. It lives longer than the brokers that ask.
///
/// Times are milliseconds of the gateway's own clock. The server's clock counts only for what ended long ago. When the
/// server grants the lease, it checks that the facts still hold.
package struct LeaseJudge: Sendable {
  /// A server's facts about an archive.
  package struct Archive: Hashable, Sendable {
    package struct Holder: Hashable, Sendable {
      package var id: String
      package var term: LeaseTerm
      /// Random, another one after each renewal.
      package var renewal: ChangeID
      /// Time since its last renewal by the server's clock, in milliseconds.
      package var silence: Int64

      package init(id: String, term: LeaseTerm, renewal: ChangeID, silence: Int64) {
        (self.id, self.term, self.renewal, self.silence) = (id, term, renewal, silence)
      }
    }

    package var number: Int64
    package var lease: LeaseID
    /// `nil` if the lease was released.
    package var holder: Holder?
    package var last: ReplicaHolder

    package init(number: Int64, lease: LeaseID, holder: Holder?, last: ReplicaHolder) {
      (self.number, self.lease, self.holder, self.last) = (number, lease, holder, last)
    }
  }

  package enum Verdict: Hashable, Sendable {
    case granted
    /// Grant only if this is still the holder's last renewal.
    case lapsed(renewal: ChangeID)
    case refused(ReplicaHolder)
  }

  private struct Seen: Sendable {
    let holder: String
    let renewal: ChangeID
    let since: Int64
  }

  /// A holder's longer term counts as a day.
  package static let termMax: Int64 = 86_400_000
  /// Beyond this number all observations start again.
  private static let seenMax = 10_000

  private var seen: [Int64: Seen] = [:]

  package init() {}

  /// - Parameter broker: the one that asks.
  package mutating func judge(
    _ archive: Archive,
    _ claim: ReplicaClaim,
    from broker: String,
    at now: Int64
  ) -> Verdict {
    guard !claim.isForced, let holder = archive.holder, holder.id != broker else { return .granted }
    if claim.standing?.proves(theEndOf: archive.lease) == true { return .granted }
    return isSilent(holder, archive.number, at: now) ? .lapsed(renewal: holder.renewal) : .refused(archive.last)
  }

  private mutating func isSilent(_ holder: Archive.Holder, _ archive: Int64, at now: Int64) -> Bool {
    let term = holder.term.milliseconds
    // By the server's clock.
    if holder.silence > 2 * term + 60_000 { return true }
    if let former = seen[archive], former.holder == holder.id, former.renewal == holder.renewal {
      return now - former.since >= term + 1_000
    }
    if seen.count >= Self.seenMax { seen = [:] }
    seen[archive] = Seen(holder: holder.id, renewal: holder.renewal, since: now)
    return false
  }
}
