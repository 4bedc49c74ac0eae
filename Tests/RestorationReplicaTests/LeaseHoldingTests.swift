// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationReplica
internal import Testing

/// When a broker may write an archive that follows its user. A lease of 20 seconds can be relied upon for 18.
@Suite struct LeaseHoldingTests {
  private let lease = ReplicaLease(application: "draw", archive: 1, id: LeaseID(ChangeID(high: 0, low: 1)))
  private let next = ReplicaLease(application: "draw", archive: 1, id: LeaseID(ChangeID(high: 0, low: 2)))
  private let elsewhere = ReplicaError.Kind.elsewhere(ReplicaHolder(host: "B", since: 5))

  /// Asked for at 1,000 and granted.
  private func held() -> LeaseHolding {
    var holding = LeaseHolding(LeaseTerm(milliseconds: 20_000))
    _ = holding.opened(at: 1_000)
    _ = holding.granted(lease)
    _ = holding.caughtUp()
    return holding
  }

  // MARK: Taking it

  @Test func anArchiveIsWrittenWhenItsCopyHasCaughtUp() {
    var holding = LeaseHolding(LeaseTerm(milliseconds: 20_000))
    #expect(holding.permission(at: 0) == .closed)
    #expect(holding.opened(at: 1_000) == true)
    #expect(holding.opened(at: 1_001) == false, "it is asked for already")
    #expect(holding.granted(lease) == true)
    #expect(holding.permission(at: 2_000) == .closed)
    #expect(holding.caughtUp() == [])
    #expect(holding.permission(at: 2_000) == .granted)
    #expect(holding.lease == lease)
  }

  @Test func anArchiveWhoseOpeningFailedIsAskedForAnewByTheNextOne() {
    var holding = LeaseHolding(LeaseTerm(milliseconds: 20_000))
    _ = holding.opened(at: 0)
    #expect(holding.refused(elsewhere, at: 10) == [])
    #expect(holding.granted(lease) == false, "it is not asked for any more")
    #expect(holding.opened(at: 20) == true)
    _ = holding.granted(lease)
    #expect(holding.failed(.key("k"), at: 30) == [.release(lease)])
    #expect(holding.permission(at: 40) == .closed)
    #expect(holding.opened(at: 50) == true)
    _ = holding.granted(lease)
    #expect(holding.fenced(lease, by: "B") == [], "nobody uses it")
    #expect(holding.lease == nil)
    #expect(holding.opened(at: 60) == true)
  }

  // MARK: Time

  @Test func aLeaseIsReliedUponFromBeforeItWasAskedForUntilAMarginBeforeItsEnd() {
    var holding = held()
    #expect(holding.permission(at: 18_999) == .granted)
    #expect(holding.permission(at: 19_000) == .lapsed)
    holding.renewed(lease, asked: 10_000)
    #expect(holding.permission(at: 27_999) == .granted)
    // Answers may come in another order.
    holding.renewed(lease, asked: 5_000)
    #expect(holding.permission(at: 27_999) == .granted)
    #expect(holding.permission(at: 28_000) == .lapsed)
  }

  @Test func aLapsedLeaseThatNobodyHasTakenIsGoodAgainWhenItIsRenewed() {
    var holding = held()
    #expect(holding.permission(at: 60_000) == .lapsed)
    holding.renewed(lease, asked: 60_000)
    #expect(holding.permission(at: 60_010) == .granted)
  }

  @Test func shortLeasesHaveAMarginOfASecondAndLongOnesAreRenewedEveryTenSeconds() {
    let short = LeaseTerm(milliseconds: 6_000)
    #expect((short.margin, short.renewal, short.reliable) == (1_000, 2_000, 5_000))
    let long = LeaseTerm(milliseconds: 900_000)
    #expect((long.margin, long.renewal, long.reliable) == (90_000, 10_000, 810_000))
  }

  // MARK: Losing it

  @Test func aLaterLeaseEndsEverythingAtOnce() {
    var holding = held()
    #expect(holding.fenced(lease, by: "B") == [.lose(host: "B")])
    #expect(holding.permission(at: 2_000) == .lost(host: "B"))
    #expect(holding.fenced(lease, by: "B") == [], "it is told once")
    holding.renewed(lease, asked: 2_000)
    #expect(holding.permission(at: 2_000) == .lost(host: "B"))
    #expect(holding.closed() == [])
    #expect(holding.opened(at: 3_000) == true)
  }

  @Test func whatIsSaidOfAnotherLeaseChangesNothing() {
    var holding = held()
    #expect(holding.fenced(next, by: "B") == [])
    #expect(holding.voided(next, at: 2_000) == [])
    #expect(holding.wanted(next, by: "B") == [])
    holding.renewed(next, asked: 15_000)
    #expect(holding.permission(at: 18_999) == .granted)
    #expect(holding.permission(at: 19_000) == .lapsed)
  }

  @Test func afterAFailoverTheLeaseIsClaimedAnewWhileWritesGoOn() {
    var holding = held()
    #expect(holding.voided(lease, at: 5_000) == [.acquire])
    #expect(holding.voided(lease, at: 5_001) == [])
    #expect(holding.fenced(lease, by: nil) == [], "the new server need not know it")
    #expect(holding.permission(at: 6_000) == .granted)
    #expect(holding.refused(.away, at: 6_000) == [.wait(until: 6_500)])
    #expect(holding.timePassed(at: 6_500) == [.acquire])
    #expect(holding.granted(next) == true)
    #expect(holding.permission(at: 7_000) == .granted)
    #expect(holding.caughtUp() == [])
    #expect(holding.lease == next)
    #expect(holding.permission(at: 24_499) == .granted)
    #expect(holding.permission(at: 24_500) == .lapsed)
  }

  @Test func aClaimThatIsRefusedOrDivergesIsALoss() {
    var refused = held()
    _ = refused.voided(lease, at: 5_000)
    #expect(refused.permission(at: 19_000) == .lapsed)
    #expect(refused.refused(elsewhere, at: 5_010) == [.lose(host: "B")])
    #expect(refused.permission(at: 6_000) == .lost(host: "B"))
    var diverged = held()
    _ = diverged.voided(lease, at: 5_000)
    _ = diverged.granted(next)
    #expect(diverged.diverged() == [.release(next), .lose(host: nil)])
    #expect(diverged.permission(at: 6_000) == .lost(host: nil))
  }

  // MARK: Giving it back

  @Test func whoIsWantedSavesShipsAndReleases() {
    var holding = held()
    #expect(holding.wanted(lease, by: "B") == [.leave(host: "B")])
    #expect(holding.wanted(lease, by: "B") == [], "it is told once")
    #expect(holding.permission(at: 2_000) == .granted, "the last round is written")
    #expect(holding.closed() == [.flush])
    #expect(holding.permission(at: 2_000) == .closed)
    #expect(holding.flushed() == [.release(lease)])
    holding.released()
    #expect(holding.lease == nil)
    #expect(holding.opened(at: 4_000) == true)
  }

  @Test func anArchiveThatIsOpenedWhileItIsFlushedIsStillHeld() {
    var holding = held()
    _ = holding.closed()
    #expect(holding.opened(at: 2_000) == false)
    #expect(holding.permission(at: 2_000) == .granted)
    #expect(holding.flushed() == [])
  }

  @Test func aLeaseThatTheReplicaDoesNotTakeBackIsKeptUntilTheRestIsSent() {
    var holding = held()
    #expect(holding.releaseRefused() == [], "it is in use")
    _ = holding.closed()
    _ = holding.flushed()
    #expect(holding.voided(lease, at: 2_000) == [], "the answer to the release decides")
    #expect(holding.releaseRefused() == [.flush])
    #expect(holding.lease == lease)
    #expect(holding.permission(at: 2_000) == .closed)
    #expect(holding.flushed() == [.release(lease)])
    holding.released()
    #expect(holding.lease == nil)
    // A replica that does not know the lease says so to the shipment.
    holding = held()
    _ = holding.closed()
    _ = holding.flushed()
    _ = holding.releaseRefused()
    #expect(holding.voided(lease, at: 3_000) == [.acquire])
  }

  @Test func aFailoverDuringTheFlushIsFollowedByTheRestOfIt() {
    var holding = held()
    _ = holding.closed()
    #expect(holding.voided(lease, at: 2_000) == [.acquire])
    #expect(holding.permission(at: 2_000) == .closed)
    #expect(holding.granted(next) == true)
    #expect(holding.caughtUp() == [.flush])
    #expect(holding.flushed() == [.release(next)])
  }

  @Test func whenThereIsNoTimeLeftForTheRestTheClaimIsGivenUp() {
    var holding = held()
    _ = holding.voided(lease, at: 2_000)
    #expect(holding.closed() == [])
    #expect(holding.flushed() == [])
    #expect(holding.lease == nil)
    #expect(holding.opened(at: 3_000) == true)
  }

  // MARK: Asking

  @Test func anArchiveThatIsHeldElsewhereIsAskedForFourTimesASecondForFiveSeconds() {
    let request = LeaseRequest(at: 1_000, wants: true)
    #expect(request.refused(elsewhere, at: 1_010) == .ask(at: 1_260))
    #expect(request.refused(.unknown, at: 5_750) == .ask(at: 6_000))
    #expect(request.refused(elsewhere, at: 5_751) == .giveUp(elsewhere))
    #expect(request.refused(.away, at: 1_010) == .giveUp(.away))
  }

  @Test func whoOnlyReadsDoesNotWaitForAnotherHost() {
    let request = LeaseRequest(at: 1_000, wants: false)
    #expect(request.refused(elsewhere, at: 1_010) == .giveUp(elsewhere))
    #expect(request.refused(.unknown, at: 1_010) == .ask(at: 1_260))
  }
}
