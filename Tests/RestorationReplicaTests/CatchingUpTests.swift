// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationReplica
internal import Testing

/// Which of a copy and its replica continues the other.
@Suite struct CatchingUpTests {
  private static let first = LeaseID(ChangeID(high: 0, low: 1))
  private static let later = LeaseID(ChangeID(high: 0, low: 2))

  private func tip(_ sequence: SequenceNumber, _ change: UInt64? = nil) -> ReplicaTip {
    ReplicaTip(sequence: sequence, change: ChangeID(high: 0, low: change ?? UInt64(sequence)))
  }

  private func copy(_ sequence: SequenceNumber, _ change: UInt64? = nil, archive: String = "copy") -> CarriedCopy {
    CarriedCopy(archive: archive, tip: tip(sequence, change))
  }

  /// A standing under the first lease.
  private func standing(
    _ phase: ReplicaStanding.Phase = .held,
    history: String = "h",
    upTo end: SequenceNumber = ReplicaReign.everything
  ) -> ReplicaStanding {
    ReplicaStanding(history: history, reigns: [ReplicaReign(Self.first, end: end)], phase: phase, archive: "copy")
  }

  /// - Parameter ends: where the first leases have left the contents.
  private func grant(
    _ sequence: SequenceNumber,
    ends: [SequenceNumber]? = nil,
    base: SequenceNumber = 0
  ) -> ReplicaGrant {
    ReplicaGrant(
      lease: ReplicaLease(application: "draw", archive: 1, id: LeaseID(ChangeID(high: 0, low: 9))),
      history: "h",
      base: base,
      tip: sequence == 0 ? ReplicaTip() : tip(sequence),
      reigns: zip([Self.first, Self.later], ends ?? [sequence]).map { ReplicaReign($0, end: $1) }
    )
  }

  private func expect(
    _ copy: CarriedCopy?,
    _ standing: ReplicaStanding?,
    _ grant: ReplicaGrant,
    _ step: CatchingUp.Step,
    isConflict: Bool = false,
    at location: SourceLocation = #_sourceLocation
  ) {
    let plan = CatchingUp(copy, standing, grant)
    #expect(plan.step == step, sourceLocation: location)
    #expect(plan.isConflict == isConflict, sourceLocation: location)
  }

  @Test func aHostWithoutACopyTakesWhatThereIs() {
    expect(nil, nil, grant(0), .keep)
    expect(copy(0), standing(), grant(0), .keep)
    expect(nil, nil, grant(4), .install)
    expect(nil, standing(), grant(4, ends: [2, 4]), .install)
  }

  @Test func anArchiveFromBeforeTheReplicaIsShippedOrSetAside() {
    expect(copy(4), nil, grant(0, ends: []), .keep)
    expect(copy(4), nil, grant(4), .install, isConflict: true)
  }

  @Test func aCopyUnderTheNewestLeaseContinuesTheReplica() {
    for phase in [.held, .released] as [ReplicaStanding.Phase] {
      expect(copy(4), standing(phase), grant(4), .keep)
      expect(copy(6), standing(phase), grant(4), .keep)
      expect(copy(6), standing(phase), grant(0), .keep)
    }
  }

  @Test func aCopyThatWasSetBackIsOnlyBehind() {
    expect(copy(2), standing(), grant(4), .apply(after: 2))
    expect(copy(4, 9), standing(), grant(4), .install, isConflict: true)
  }

  @Test func aCopyThatEndsWhereItsLeaseHasLeftTheReplicaIsOnlyBehind() {
    expect(copy(4), standing(), grant(7, ends: [4, 7]), .apply(after: 4))
    expect(copy(4), standing(), grant(7, ends: [4, 7], base: 4), .apply(after: 4))
    expect(copy(4), standing(), grant(7, ends: [4, 7], base: 5), .install)
  }

  @Test func aCopyWithWhatTheReplicaNeverGotIsSetAside() {
    expect(copy(5), standing(), grant(7, ends: [4, 7]), .install, isConflict: true)
    expect(copy(4), standing(), grant(7, ends: []), .install, isConflict: true)
  }

  /// A backup that is started as it is, or a server that takes over and lacks the newest leases.
  @Test func aReplicaThatWasPutBackIsContinuedUnlessItHasGoneOnElsewhere() {
    var standing = standing(upTo: 4)
    standing.reigns.append(ReplicaReign(LeaseID(ChangeID(high: 0, low: 7)), end: ReplicaReign.everything))
    expect(copy(6), standing, grant(4), .keep)
    expect(copy(6), standing, grant(2), .keep)
    expect(copy(6), standing, grant(5, ends: [4, 5]), .install, isConflict: true)
    expect(copy(6), standing, grant(8, ends: [4, 8]), .install, isConflict: true)
    // It knows the lease under which the copy was written, but not all of it.
    standing.reigns.append(ReplicaReign(Self.later, end: ReplicaReign.everything))
    expect(copy(6), standing, grant(5, ends: [4, 5]), .keep)
  }

  @Test func aCopyThatEndsBehindTheReplicaIsContinuedWhereverItsLeaseIsSaidToHaveLeftIt() {
    expect(copy(9), standing(), grant(7, ends: [9, 7]), .keep)
  }

  /// Whatever the replica says, of which nothing is proved.
  @Test func aCopyGivesWayUnseenOnlyToMoreOfTheSameHistory() {
    var (given, kept) = (0, 0)
    for (length, standing) in Self.standings {
      let copy = copy(length)
      for grant in Self.grants {
        let plan = CatchingUp(copy, standing, grant)
        guard plan.step == .install else {
          #expect(!plan.isConflict)
          continue
        }
        if plan.isConflict { kept += 1 } else { given += 1 }
        let isOurs = standing.history == "h" && standing.archive == "copy"
        let isMore = isOurs && grant.tip.sequence > length
        #expect(plan.isConflict || isMore, "\(length), \(standing), \(grant)")
      }
    }
    #expect(given > 0 && kept > given)
  }

  private static let leases = (0...3).map { LeaseID(ChangeID(high: 0, low: $0)) }
  private static let ends: [SequenceNumber] = [ReplicaReign.everything, 0, 2, 6]

  /// Where a copy ends, and what may be noted of it.
  private static let standings: [(SequenceNumber, ReplicaStanding)] = {
    var standings: [(SequenceNumber, ReplicaStanding)] = []
    for length in [2, 4, 6] as [SequenceNumber] {
      for (history, archive) in [("h", "copy"), ("h", "other"), ("former", "copy"), ("former", "other")] {
        for phase in ReplicaStanding.Phase.allCases {
          for (lease, end) in leases.flatMap({ lease in ends.map { (lease, $0) } }) {
            let reigns = [ReplicaReign(lease, end: end)]
            let standing = ReplicaStanding(history: history, reigns: reigns, phase: phase, archive: archive)
            standings.append((length, standing))
          }
        }
      }
    }
    return standings
  }()

  private static let grants: [ReplicaGrant] = {
    var grants: [ReplicaGrant] = []
    let contents: [(end: UInt64, base: SequenceNumber)] = [(0, 0), (2, 0), (4, 0), (4, 3), (6, 5), (8, 0), (8, 7)]
    for (end, base) in contents {
      let change = end == 0 ? nil : ChangeID(high: 0, low: end)
      let tip = ReplicaTip(sequence: SequenceNumber(end), change: change)
      for lease in leases {
        for reign in ends {
          let own = ReplicaLease(application: "draw", archive: 1, id: LeaseID(ChangeID(high: 0, low: 9)))
          let reigns = [ReplicaReign(lease, end: reign)]
          grants.append(ReplicaGrant(lease: own, history: "h", base: base, tip: tip, reigns: reigns))
        }
      }
    }
    return grants
  }()

  @Test func anotherFileInThePlaceOfTheCopyIsSetAsideIfAnythingWasShipped() {
    expect(copy(5, archive: "repaired"), standing(), grant(4), .install, isConflict: true)
    expect(copy(5, archive: "repaired"), standing(), grant(0), .keep)
  }

  @Test func aCopyThatWasCatchingUpHasNothingOfItsOwn() {
    let standing = standing(.catchingUp, upTo: 4)
    expect(copy(2), standing, grant(4), .apply(after: 2))
    expect(copy(2), standing, grant(4, base: 3), .install)
    expect(copy(4), standing, grant(4), .keep)
    expect(copy(3), standing, grant(7, ends: [4, 7]), .apply(after: 3))
    // But a server that has taken over may have less than it had got.
    expect(copy(4), standing, grant(3), .keep)
    expect(copy(4), standing, grant(7, ends: [3, 7]), .install, isConflict: true)
  }

  /// Of the contents that came behind a removal, no lease of before has anything.
  @Test func leasesOfBeforeARemovalProveNothing() {
    var grant = grant(12, ends: [0, 0])
    grant.reigns.append(ReplicaReign(LeaseID(ChangeID(high: 0, low: 3)), end: 12))
    var standing = standing(upTo: 0)
    let own = ReplicaReign(LeaseID(ChangeID(high: 0, low: 4)), end: ReplicaReign.everything)
    standing.reigns += [ReplicaReign(Self.later, end: 0), own]
    expect(copy(3), standing, grant, .install, isConflict: true)
  }

  /// That nothing of it was missing is the replica's word alone.
  @Test func aCopyOfARemovedArchiveIsSetAside() {
    let former = standing(history: "former")
    expect(copy(4), former, grant(0, ends: [4]), .install, isConflict: true)
    expect(copy(5), former, grant(0, ends: [4]), .install, isConflict: true)
    expect(copy(4), former, grant(2, ends: [4]), .install, isConflict: true)
    expect(copy(5), former, grant(2, ends: [4]), .install, isConflict: true)
    expect(copy(4, archive: "repaired"), former, grant(0, ends: [4]), .install, isConflict: true)
  }
}
