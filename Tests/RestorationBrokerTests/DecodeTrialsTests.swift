// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Nodes are 10 and 11, sessions 1 and 2 (R19, R21, R31).
@Suite struct DecodeTrialsTests {
  private let event: TurnFixture
  private var trials = DecodeTrials()

  init() throws { event = try TurnFixture() }

  private mutating func open(_ node: NodeID, for session: SessionID = 1, byCall: Bool = true) {
    trials.open(node, for: session, byCall: byCall, in: &event.turn)
  }

  private func pass(_ milliseconds: Int64) { event.context.now.monotonic += milliseconds }

  /// What is held against nodes after a crash that any of them may have caused.
  private func blame(_ suspects: Set<NodeID>) -> Blame {
    var blame = Blame()
    _ = blame.failed(DecodeTrials.Failure(unproven: suspects))
    return blame
  }

  private mutating func crash(_ session: SessionID, isStrict: Bool = false) -> DecodeTrials.Failure? {
    trials.ended(session, .signalled(signal: 11), isStrict: isStrict, at: event.context.now.monotonic)
  }

  // MARK: Windows

  @Test mutating func aWindowClosesOnceWhenItsOwnerAnswers() {
    open(10)
    #expect(event.asked() == ["setTimer"])
    #expect(trials.hasOpenWindows)
    #expect(!trials.isIdle)
    let other = trials.close(10, of: 2)
    #expect(!other)
    let first = trials.close(10, of: 1)
    #expect(first)
    let second = trials.close(10, of: 1)
    #expect(!second)
    #expect(trials.isIdle)
    #expect(trials.isRestored)
  }

  @Test mutating func windowsCloseByThemselvesInTimeAndTheTimerFollowsTheNextOne() {
    open(10)
    pass(4_000)
    open(11, for: 2)
    #expect(event.timer() == DecodeWindow.milliseconds)
    pass(6_000)
    #expect(trials.timerFired(in: &event.turn) == [10])
    #expect(event.timer() == 4_000)
    pass(4_000)
    #expect(trials.timerFired(in: &event.turn) == [11])
    #expect(event.asked() == [])
    #expect(!trials.hasOpenWindows)
  }

  @Test mutating func theTimerIsCancelledWhenNothingIsOpen() {
    open(10)
    trials.stopTimerIfIdle(in: &event.turn)
    #expect(event.asked() == ["setTimer"])
    #expect(trials.closeAll(of: 1) == [10])
    trials.stopTimerIfIdle(in: &event.turn)
    trials.stopTimerIfIdle(in: &event.turn)
    #expect(event.asked() == ["cancelTimer"])
  }

  @Test mutating func aWindowThatACrashBrokeIsMendedByWhoeverAnswersForTheNode() {
    open(10)
    #expect(crash(1)?.objects == 1)
    #expect(!trials.hasOpenWindows)
    #expect(!trials.isRestored)
    let isMended = trials.close(10, of: 2)
    #expect(isMended)
    #expect(trials.isRestored)
  }

  @Test mutating func whatAFactoryWasGivenRestoresNothingYet() {
    trials.open(10, for: 1, byCall: true, toFactory: true, in: &event.turn)
    let first = trials.closeFactory(10, of: 1)
    #expect(first)
    #expect(!trials.hasOpenWindows)
    #expect(!trials.isRestored)
    open(10)
    let second = trials.closeFactory(10, of: 1)
    #expect(!second)
    #expect(trials.isRestored)
  }

  @Test mutating func aWindowFollowsTheNodeThatTakesThePlaceOfItsOwn() {
    open(10)
    trials.move(10, to: 11, of: 1)
    #expect(!trials.isOpen(10, for: 1))
    #expect(trials.isOpen(11, for: 1))
  }

  @Test mutating func anArchiveThatIsOpenedAnewKnowsWhatBrokeAndWhomToTell() {
    open(10, byCall: false)
    trials.fetched(10, by: 1)
    open(11, for: 2)
    _ = crash(2)
    var later = DecodeTrials()
    later.resume(trials) { $0 == 1 }
    #expect(later.isIdle)
    #expect(!later.isRestored)
    let unfinished = later.takeUnfinished()
    #expect(unfinished.map(\.session) == [1])
    #expect(unfinished.first?.nodes == [10])
  }

  // MARK: Signs of life

  @Test mutating func aSignOfLifeProvesWhatWasFetchedBeforeAndNotWhatWasSent() {
    open(10, byCall: false)
    open(11)
    trials.heard(from: 1, at: 0)
    open(12, byCall: false)
    #expect(crash(1)?.unproven == [11, 12])
  }

  @Test mutating func anAnswerProvesWhatItsCallHandedOut() {
    open(10)
    open(11)
    trials.acknowledge([10], by: 1)
    #expect(crash(1, isStrict: true)?.unproven == [11])
  }

  @Test mutating func whileSuspectsAreTriedASignProvesOnlyWhatWasHandedOutAWhileBefore() {
    open(10, byCall: false)
    pass(DecodeWindow.trialMilliseconds)
    open(11, byCall: false)
    trials.heard(from: 1, at: event.context.now.monotonic)
    #expect(crash(1, isStrict: true)?.unproven == [11])
  }

  @Test mutating func processesThatCrashTogetherHaveCrashedOnce() {
    open(10, for: 1)
    open(11, for: 2)
    #expect(crash(1)?.isAnother == true)
    #expect(crash(2)?.isAnother == false)
    open(10, for: 3)
    #expect(crash(3)?.isAnother == true)
    #expect(crash(3) == nil)
  }

  // MARK: Suspects

  @Test mutating func aSuspectTravelsAloneUntilItsTrialIsOver() {
    let blame = blame([10])
    open(11)
    #expect(!trials.mayHandOut(10, to: 1, blame, at: 0))
    #expect(trials.mayHandOut(10, to: 2, blame, at: 0))
    #expect(trials.mayHandOut(12, to: 1, blame, at: 0))
    #expect(trials.mayHandOut(10, to: 1, blame, at: DecodeWindow.trialMilliseconds))
    trials.acknowledge([11], by: 1)
    #expect(trials.mayHandOut(10, to: 1, blame, at: 0))
    open(10)
    #expect(!trials.mayHandOut(12, to: 1, blame, at: 0))
  }

  @Test mutating func aDecodeWaitsParkedUntilTheTrialInItsWayIsOver() throws {
    let blame = blame([10])
    open(11)
    _ = event.asked()
    let request = DecodeRestorableState().with { $0.object = .handle(7) }
    try trials.wait(request, by: 1, for: Caller(client: 3, call: nil), in: &event.turn)
    #expect(event.asked() == ["park", "setTimer"])
    let early = trials.next(blame, in: &event.turn) { _ in 10 }
    #expect(early == nil)
    #expect(event.timer() == DecodeWindow.trialMilliseconds)
    pass(DecodeWindow.trialMilliseconds)
    let ready = trials.next(blame, in: &event.turn) { _ in 10 }
    #expect(ready?.caller.client == 3)
    #expect(event.asked() == ["unpark"])
    #expect(trials.next(blame, in: &event.turn) { _ in 10 } == nil)
    #expect(event.asked() == [])
  }

  @Test mutating func aWaitEndsWithAnErrorWhenItsSessionEndsAndWithoutOneWhenItIsCancelled() throws {
    for client: ClientID in 1...2 {
      try trials.wait(
        DecodeRestorableState(),
        by: Int64(client),
        for: Caller(client: client, call: nil),
        in: &event.turn
      )
    }
    _ = event.asked()
    trials.abandon(in: &event.turn) { $0.session == 1 }
    #expect(event.asked() == ["unpark", "respond"])
    let isCancelled = trials.cancel(Caller(client: 2, call: nil), in: &event.turn)
    #expect(isCancelled)
    #expect(event.asked() == ["unpark"])
    #expect(trials.isIdle)
  }

  // MARK: The end of a restoration

  @Test mutating func aSessionHoldsTheEndBackUntilItHasEndedAllItsExtensions() {
    for _ in 1...2 { trials.extend(1, until: nil, in: &event.turn) }
    #expect(event.asked() == ["setTimer"])
    #expect(trials.restoringCount == 1)
    #expect([1, 2, 3].map { _ in trials.endExtension(of: 1) } == [false, true, true])
    #expect(!trials.isExtended(1))
    #expect(trials.isIdle)
  }

  @Test mutating func anExtensionLastsUntilTheDeadlineOfTheRestoration() {
    trials.extend(1, until: nil, in: &event.turn)
    trials.prolong(until: 30_000)
    pass(DecodeTrials.extensionMilliseconds)
    #expect(trials.timerFired(in: &event.turn).isEmpty)
    #expect(trials.isExtended(1))
    #expect(event.timer() == 20_000)
    pass(20_000)
    #expect(trials.timerFired(in: &event.turn).isEmpty)
    #expect(!trials.isExtended(1))
  }

  @Test mutating func whatASessionFetchedItIsToldOfOnceWhenNothingIsRestored() {
    for node: NodeID in [11, 10] {
      open(node, byCall: false)
      trials.fetched(node, by: 1)
    }
    open(12, byCall: false)
    #expect(trials.takeUnfinished().isEmpty)
    trials.finished([11], of: 1)
    _ = trials.closeAll(of: 1)
    #expect(trials.takeUnfinished().map(\.nodes) == [[10]])
    #expect(trials.takeUnfinished().isEmpty)
  }
}
