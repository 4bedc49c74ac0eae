// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// How far contents have what was written under a lease. Only a lease's holder writes under it, so contents of one
/// history that know the same lease are equal up to the earlier of their ends.
package struct ReplicaReign: Hashable, Sendable {
  /// The most that a host notes of its copy, and that a replica tells of the newest leases.
  package static let max = 64
  /// The most that a replica tells: the newest leases, and those that the claimant knows.
  package static let toldMax = 2 * max

  /// The end of the lease under which a copy is used: everything that the copy has and will have.
  package static let everything = ArchiveTip.sequenceMax

  package var lease: LeaseID
  package var end: SequenceNumber

  package init(_ lease: LeaseID, end: SequenceNumber) { (self.lease, self.end) = (lease, end) }
}

extension [ReplicaReign] {
  /// As a host notes them, and as a database tells them; `nil` if the text is invalid.
  package init?(text: some StringProtocol) {
    self.init()
    for word in text.split(separator: ",", omittingEmptySubsequences: false) {
      let parts = word.split(separator: " ", omittingEmptySubsequences: false)
      guard parts.count == 2, let lease = LeaseID(parts[0]), let end = SequenceNumber(parts[1]), end >= 0 else {
        return nil
      }
      append(ReplicaReign(lease, end: end))
    }
  }

  var text: String { map { "\($0.lease.text) \($0.end)" }.joined(separator: ",") }
}

extension ReplicaStanding {
  /// The newest lease this host has had.
  package var lease: LeaseID? { reigns.last?.lease }

  /// The note of a copy that has, or is about to get, the contents of a grant.
  ///
  /// - Parameter former: the note of the same file so far, which the contents of the grant continue.
  init(_ grant: ReplicaGrant, _ phase: Phase, archive: String, continuing former: ReplicaStanding? = nil) {
    var reigns = (former?.reigns ?? []).filter { $0.lease != grant.lease.id }
    for told in grant.reigns {
      if let known = reigns.firstIndex(where: { $0.lease == told.lease }) {
        reigns[known].end = Swift.max(reigns[known].end, told.end)
      } else {
        reigns.append(told)
      }
    }
    let own = ReplicaReign(grant.lease.id, end: phase == .held ? ReplicaReign.everything : grant.tip.sequence)
    self.init(
      history: grant.history,
      reigns: reigns.suffix(ReplicaReign.max - 1) + [own],
      phase: phase,
      archive: archive
    )
  }

  /// This host has got a lease. The copy, which ends at `end`, is as it was.
  mutating func begin(_ lease: LeaseID, at end: SequenceNumber) {
    let former = reigns.map { ReplicaReign($0.lease, end: min($0.end, end)) }
    // A lease under which nothing has come proves nothing.
    reigns = former.filter { $0.end != 0 }.suffix(ReplicaReign.max - 1)
    reigns.append(ReplicaReign(lease, end: 0))
  }

  /// Up to where a copy that ends at `end` and the contents of a grant are surely equal.
  func common(with grant: ReplicaGrant, upTo end: SequenceNumber) -> SequenceNumber {
    let known = Dictionary(reigns.map { ($0.lease, $0.end) }, uniquingKeysWith: Swift.max)
    return grant.reigns.reduce(0) { common, told in
      guard let here = known[told.lease] else { return common }
      return Swift.max(common, min(here, end, told.end, grant.tip.sequence))
    }
  }
}
