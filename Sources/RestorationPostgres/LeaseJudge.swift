// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

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
      package var renewals: Int64
      /// Time since its last renewal by the server's clock, in milliseconds.
      package var silence: Int64

      package init(id: String, term: LeaseTerm, renewals: Int64, silence: Int64) {
        (self.id, self.term, self.renewals, self.silence) = (id, term, renewals, silence)
      }
    }

    package var number: Int64
    package var history: String
    package var epoch: ReplicaEpoch
    /// `nil` if the lease was released.
    package var holder: Holder?
    package var last: ReplicaHolder

    package init(number: Int64, history: String, epoch: ReplicaEpoch, holder: Holder?, last: ReplicaHolder) {
      (self.number, self.history, self.epoch) = (number, history, epoch)
      (self.holder, self.last) = (holder, last)
    }
  }

  package enum Verdict: Hashable, Sendable {
    case granted
    /// Grant only if the holder has not renewed more often than this.
    case lapsed(renewals: Int64)
    case refused(ReplicaHolder)
  }

  private struct Seen: Sendable {
    let holder: String
    let renewals: Int64
    let since: Int64
  }

  /// After a take-over by another server, the former holder of an apparently released archive has this time to return.
  package static let grace: Int64 = 30_000
  /// A holder's longer term counts as a day.
  package static let termMax: Int64 = 86_400_000
  /// Beyond this number all observations start again.
  private static let seenMax = 10_000

  private var seen: [Int64: Seen] = [:]
  /// The newest timeline, and when it was first seen.
  private var timeline: Int64 = -1
  private var timelineSince: Int64 = 0

  package init() {}

  package mutating func note(timeline: Int64, at now: Int64) {
    guard timeline > self.timeline else { return }
    (self.timeline, timelineSince) = (timeline, now)
  }

  /// - Parameter broker: the one that asks.
  package mutating func judge(
    _ archive: Archive,
    _ claim: ReplicaClaim,
    from broker: String,
    at now: Int64
  ) -> Verdict {
    guard !claim.isForced, archive.epoch > .none, archive.holder?.id != broker else { return .granted }
    // Its own former lease, or one that was lost in a take-over by another server.
    if let standing = claim.standing, standing.isClaim, standing.history == archive.history,
      standing.lease >= archive.epoch
    {
      return .granted
    }
    guard Int64(archive.epoch.timeline) == timeline else {
      // The lease is void, but its holder comes first.
      let grace = archive.holder?.term.milliseconds ?? Self.grace
      return now - timelineSince >= grace ? .granted : .refused(archive.last)
    }
    guard let holder = archive.holder else { return .granted }
    return isSilent(holder, archive.number, at: now) ? .lapsed(renewals: holder.renewals) : .refused(archive.last)
  }

  /// Whether an application unknown to the server may begin. After a take-over the server may have lost the
  /// application, whose holder comes first.
  ///
  /// - Parameter age: how long ago, by its own clock, the server granted the first lease of its timeline; `nil` if it
  ///   granted none.
  package func mayBegin(_ claim: ReplicaClaim, age: Int64?, at now: Int64) -> Bool {
    if claim.isForced || claim.standing?.isClaim == true || timeline <= 1 { return true }
    if let age, Self.isLongOver(Self.grace, after: age) { return true }
    return now - timelineSince >= Self.grace
  }

  private mutating func isSilent(_ holder: Archive.Holder, _ archive: Int64, at now: Int64) -> Bool {
    let term = holder.term.milliseconds
    if Self.isLongOver(term, after: holder.silence) { return true }
    if let former = seen[archive], former.holder == holder.id, former.renewals == holder.renewals {
      return now - former.since >= term + 1_000
    }
    if seen.count >= Self.seenMax { seen = [:] }
    seen[archive] = Seen(holder: holder.id, renewals: holder.renewals, since: now)
    return false
  }

  /// By the server's clock.
  private static func isLongOver(_ term: Int64, after time: Int64) -> Bool { time > 2 * term + 60_000 }
}
