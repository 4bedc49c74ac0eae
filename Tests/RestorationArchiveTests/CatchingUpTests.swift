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

  @Test func aCopyThatWasSetBackIsReplaced() {
    expect(copy(2), standing(), grant(4), .install)
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

  @Test func aCopyOfARemovedArchiveGoesOrIsSetAsideWithWhatWasNotShipped() {
    let former = standing(history: "former")
    expect(copy(4), former, grant(0, reign: tip(4)), .renew)
    expect(copy(5), former, grant(0, reign: tip(4)), .renew, isConflict: true)
    expect(copy(4), former, grant(2, reign: tip(4)), .install)
    expect(copy(5), former, grant(2, reign: tip(4)), .install, isConflict: true)
    expect(copy(4, archive: "repaired"), former, grant(0, reign: tip(4)), .renew, isConflict: true)
  }
}
