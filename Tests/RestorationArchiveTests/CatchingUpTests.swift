// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import Testing

/// Which of a copy and its replica continues the other.
@Suite struct CatchingUpTests {
  private static let first = ReplicaEpoch(timeline: 1, number: 1)
  private static let later = ReplicaEpoch(timeline: 1, number: 2)

  private func tip(_ sequence: SequenceNumber, _ change: UInt64? = nil) -> ReplicaTip {
    ReplicaTip(sequence: sequence, change: ChangeID(high: 0, low: change ?? UInt64(sequence)))
  }

  private func copy(_ sequence: SequenceNumber, _ change: UInt64? = nil, archive: String = "copy") -> CatchingUp.Copy {
    CatchingUp.Copy(archive: archive, tip: tip(sequence, change))
  }

  /// A standing under the first lease.
  private func standing(_ phase: ReplicaStanding.Phase = .held, history: String = "h") -> ReplicaStanding {
    ReplicaStanding(history: history, lease: Self.first, epoch: Self.first, phase: phase, archive: "copy")
  }

  private func grant(
    _ sequence: SequenceNumber,
    by epoch: ReplicaEpoch = first,
    reign: ReplicaTip? = nil,
    base: SequenceNumber = 0
  ) -> ReplicaGrant {
    ReplicaGrant(
      lease: ReplicaLease(application: "draw", archive: 1, epoch: ReplicaEpoch(timeline: 1, number: 9)),
      history: "h",
      base: base,
      tip: sequence == 0 ? ReplicaTip() : tip(sequence),
      tipEpoch: sequence == 0 ? .none : epoch,
      reign: reign
    )
  }

  private func expect(
    _ copy: CatchingUp.Copy?,
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
    expect(nil, standing(), grant(4, by: Self.later), .install)
  }

  @Test func anArchiveFromBeforeTheReplicaIsShippedOrSetAside() {
    expect(copy(4), nil, grant(0), .ship)
    expect(copy(4), nil, grant(4), .install, isConflict: true)
  }

  @Test func aCopyUnderTheNewestLeaseContinuesTheReplica() {
    for phase in [.held, .released] as [ReplicaStanding.Phase] {
      expect(copy(4), standing(phase), grant(4), .keep)
      expect(copy(6), standing(phase), grant(4), .ship)
      expect(copy(6), standing(phase), grant(0), .ship)
    }
    #expect(CatchingUp(copy(6), standing(), grant(4)).isContinuation)
    #expect(!CatchingUp(copy(2), standing(), grant(4)).isContinuation)
  }

  @Test func aCopyThatWasSetBackIsSetAside() {
    expect(copy(2), standing(), grant(4), .install, isConflict: true)
    expect(copy(4, 9), standing(), grant(4), .install, isConflict: true)
  }

  @Test func aCopyThatEndsWhereItsLeaseHasLeftTheReplicaIsOnlyBehind() {
    expect(copy(4), standing(), grant(7, by: Self.later, reign: tip(4)), .apply(after: 4))
    expect(copy(4), standing(), grant(7, by: Self.later, reign: tip(4), base: 4), .apply(after: 4))
    expect(copy(4), standing(), grant(7, by: Self.later, reign: tip(4), base: 5), .install)
  }

  @Test func aCopyWithWhatTheReplicaNeverGotIsSetAside() {
    expect(copy(5), standing(), grant(7, by: Self.later, reign: tip(4)), .install, isConflict: true)
    expect(copy(4, 9), standing(), grant(7, by: Self.later, reign: tip(4)), .install, isConflict: true)
    expect(copy(3), standing(), grant(7, by: Self.later, reign: tip(4)), .install, isConflict: true)
    expect(copy(4), standing(), grant(7, by: Self.later), .install, isConflict: true)
  }

  @Test func aCopyThatEndsBehindTheReplicaIsSetAsideThoughItsLeaseIsSaidToHaveLeftItThere() {
    expect(copy(9), standing(), grant(7, by: Self.later, reign: tip(9)), .install, isConflict: true)
    expect(copy(9), standing(.catchingUp), grant(7, by: Self.later, reign: tip(9)), .install, isConflict: true)
  }

  /// Whatever the replica says, of which nothing is proved.
  @Test func aCopyGivesWayUnseenOnlyToMoreOfTheSameHistory() {
    var (given, kept) = (0, 0)
    for (length, standing) in Self.standings {
      let copy = copy(length)
      for grant in grants(copy) {
        let plan = CatchingUp(copy, standing, grant)
        guard plan.step == .install || plan.step == .renew else {
          #expect(!plan.isConflict)
          continue
        }
        if plan.isConflict { kept += 1 } else { given += 1 }
        let isOurs = standing.history == "h" && standing.archive == "copy"
        let isMore = isOurs && plan.step == .install && grant.tip.sequence > length
        #expect(plan.isConflict || isMore, "\(length), \(standing), \(grant)")
      }
    }
    #expect(given > 0 && kept > given)
  }

  private static let epochs = (0...3).map { ReplicaEpoch(timeline: 1, number: $0) }

  /// Where a copy ends, and what may be noted of it.
  private static let standings = [2, 4, 6].flatMap { (length: SequenceNumber) in
    epochs.flatMap { epoch in
      [("h", "copy"), ("h", "other"), ("former", "copy"), ("former", "other")].flatMap { history, archive in
        ReplicaStanding.Phase.allCases.map { phase in
          (length, ReplicaStanding(history: history, lease: epoch, epoch: epoch, phase: phase, archive: archive))
        }
      }
    }
  }

  private func grants(_ copy: CatchingUp.Copy) -> [ReplicaGrant] {
    [(0, 0), (2, 0), (4, 0), (4, 3), (6, 5), (8, 0), (8, 7)].flatMap { (end: SequenceNumber, base: SequenceNumber) in
      Self.epochs.flatMap { epoch in
        [nil, tip(2), tip(4), tip(6), copy.tip, tip(copy.tip.sequence, 99)].map { reign in
          grant(end, by: epoch, reign: reign, base: base)
        }
      }
    }
  }

  @Test func anEpochOfALaterTimelineIsLaterWhateverItsNumber() {
    let timeline = ReplicaEpoch(timeline: 2, number: 1)
    expect(copy(5), standing(), grant(7, by: timeline, reign: tip(4)), .install, isConflict: true)
  }

  @Test func anotherFileInThePlaceOfTheCopyIsSetAsideIfAnythingWasShipped() {
    expect(copy(5, archive: "repaired"), standing(), grant(4), .install, isConflict: true)
    expect(copy(5, archive: "repaired"), standing(), grant(0), .ship)
  }

  @Test func aCopyThatWasCatchingUpHasNothingOfItsOwn() {
    expect(copy(2), standing(.catchingUp), grant(4), .apply(after: 2))
    expect(copy(2), standing(.catchingUp), grant(4, base: 3), .install)
    expect(copy(4), standing(.catchingUp), grant(4), .keep)
    expect(copy(3), standing(.catchingUp), grant(7, by: Self.later, reign: tip(4)), .apply(after: 3))
    // But a server that has taken over may have less than it had got.
    expect(copy(5), standing(.catchingUp), grant(4), .ship)
    expect(copy(5), standing(.catchingUp), grant(7, by: Self.later, reign: tip(4)), .install, isConflict: true)
  }

  /// That nothing of it was missing is the replica's word alone.
  @Test func aCopyOfARemovedArchiveIsSetAside() {
    let former = standing(history: "former")
    expect(copy(4), former, grant(0, reign: tip(4)), .renew, isConflict: true)
    expect(copy(5), former, grant(0, reign: tip(4)), .renew, isConflict: true)
    expect(copy(4), former, grant(2, reign: tip(4)), .install, isConflict: true)
    expect(copy(5), former, grant(2, reign: tip(4)), .install, isConflict: true)
    expect(copy(4, archive: "repaired"), former, grant(0, reign: tip(4)), .renew, isConflict: true)
  }
}
