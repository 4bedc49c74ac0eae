// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// Who may have a lease, as one gateway judges that: from what a server says of an archive, and for how long the
/// gateway has seen no sign of life of the holder. It lives longer than the brokers that ask.
///
/// Times are in milliseconds of the gateway's own clock, whatever the server's says; only of what is long over the
/// server's clock is believed. The server checks that what was seen of an archive still holds when it gives the lease.
package struct LeaseJudge: Sendable {
  /// What a server says of an archive.
  package struct Archive: Hashable, Sendable {
    package struct Holder: Hashable, Sendable {
      /// Of a broker.
      package var id: String
      package var term: LeaseTerm
      /// How often it has renewed.
      package var renewals: Int64
      /// How long ago, by the server's clock; milliseconds.
      package var silence: Int64

      package init(id: String, term: LeaseTerm, renewals: Int64, silence: Int64) {
        (self.id, self.term, self.renewals, self.silence) = (id, term, renewals, silence)
      }
    }

    package var number: Int64
    package var history: String
    package var epoch: ReplicaEpoch
    /// `nil` if the lease was given back.
    package var holder: Holder?
    /// Whose lease was the newest.
    package var last: ReplicaHolder

    package init(number: Int64, history: String, epoch: ReplicaEpoch, holder: Holder?, last: ReplicaHolder) {
      (self.number, self.history, self.epoch) = (number, history, epoch)
      (self.holder, self.last) = (holder, last)
    }
  }

  package enum Verdict: Hashable, Sendable {
    case granted
    /// If the holder has not renewed more often than this.
    case lapsed(renewals: Int64)
    case refused(ReplicaHolder)
  }

  private struct Seen: Sendable {
    let holder: String
    let renewals: Int64
    let since: Int64
  }

  /// After a server has taken over, its holder has this time to come back to an archive that seems to be given back.
  package static let grace: Int64 = 30_000
  /// A longer term of a holder counts as this one: a day.
  package static let termMax: Int64 = 86_400_000
  /// Above that all observations are made anew.
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

  /// - Parameter broker: Who asks.
  package mutating func judge(
    _ archive: Archive,
    _ claim: ReplicaClaim,
    from broker: String,
    at now: Int64
  ) -> Verdict {
    guard !claim.isForced, archive.epoch > .none, archive.holder?.id != broker else { return .granted }
    // Its own former lease, or one that a server which took over has lost.
    if let standing = claim.standing, standing.isClaim, standing.history == archive.history,
      standing.lease >= archive.epoch
    {
      return .granted
    }
    guard Int64(archive.epoch.timeline) == timeline else {
      // Void; but its holder comes first.
      let grace = archive.holder?.term.milliseconds ?? Self.grace
      return now - timelineSince >= grace ? .granted : .refused(archive.last)
    }
    guard let holder = archive.holder else { return .granted }
    return isSilent(holder, archive.number, at: now) ? .lapsed(renewals: holder.renewals) : .refused(archive.last)
  }

  /// Whether an application may begin of which the server knows nothing. If the server has taken over, it may have lost
  /// the application, whose holder comes first.
  ///
  /// - Parameter age: How long ago the server gave the first lease of its timeline, by its own clock; `nil` if it gave
  ///   no lease.
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
