// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient
internal import Testing

/// When the session connects, what it sends again and how calls end, without any I/O.
@Suite struct SessionStateMachineTests {
  typealias Machine = RestorationSession.StateMachine
  typealias Call = CallQueue.Call

  private var machine = Machine(windowBytes: 100, timeout: nil, at: 0)

  private mutating func submit(
    _ ticket: Int,
    idempotent: Bool = true,
    objects: [Int] = [],
    bytes: Int = 10,
    at now: Int64 = 0
  ) -> [Machine.Action] {
    machine.submit(ticket, Call(isIdempotent: idempotent, objects: objects, bytes: bytes), at: now)
  }

  /// Loses the connection and gets another one.
  private mutating func reconnect(resumed: Bool = true, at now: Int64 = 0) -> [Machine.Action] {
    _ = machine.lost(at: now)
    _ = machine.elapsed()
    _ = machine.connected()
    return machine.initialized(isResumed: resumed, at: now)
  }

  // MARK: Calls

  @Test mutating func aCallIsSentAtOnceAndCompletedByItsAnswer() {
    #expect(submit(1) == [.send(1)])
    #expect(machine.pending == 1)
    #expect(machine.answered(1, isFinal: true) == [.complete(1)])
    #expect(machine.answered(1, isFinal: true) == [])
    #expect(machine.pending == 0)
  }

  @Test mutating func ticketsCountUp() {
    let tickets = (0..<10).map { _ in machine.makeTicket() }
    #expect(tickets == tickets.sorted() && Set(tickets).count == 10)
  }

  @Test mutating func theWindowIsFullAtItsBorderAndTheRestWaitsInOrder() {
    #expect(submit(1, bytes: 60) == [.send(1)])
    #expect(submit(2, bytes: 40) == [.send(2)])
    #expect(submit(3, bytes: 90) == [])
    #expect(submit(4, bytes: 1) == [])
    #expect(machine.answered(2, isFinal: true) == [.complete(2)])
    #expect(machine.answered(1, isFinal: true) == [.complete(1), .send(3), .send(4)])
  }

  @Test mutating func withoutABrokerSoManyCallsAndBytesWaitAndLaterOnesAreRefused() {
    _ = machine.lost(at: 0)
    let (calls, bytes) = (CallQueue.Limit.calls, CallQueue.Limit.bytes)
    for ticket in 1..<calls.max { _ = submit(ticket, bytes: 1) }
    #expect(submit(calls.max, bytes: bytes.max) == [.fail(calls.max, .limitExceeded(.bytes))])
    #expect(submit(calls.max, bytes: 1) == [])
    #expect(submit(calls.max + 1, bytes: 1) == [.fail(calls.max + 1, .limitExceeded(.calls))])
    #expect(machine.cancelled(1) == [.cancel(1)])
    #expect(submit(calls.max + 2, bytes: bytes.max - calls.max + 1) == [])
    _ = machine.connected()
    #expect(machine.initialized(isResumed: true, at: 0).contains(.send(2)))
    // With a broker they only wait for their turn.
    #expect(submit(calls.max + 3, bytes: bytes.max) == [])
  }

  @Test mutating func aCallOfOneConnectionFailsWithIt() {
    _ = machine.submit(1, Call(isIdempotent: true, bytes: 100, isOfOneConnection: true), at: 0)
    _ = machine.submit(2, Call(isIdempotent: true, bytes: 100, isOfOneConnection: true), at: 0)
    #expect(machine.lost(at: 0).contains(.fail(1, .outcomeUnknown)))
    _ = machine.connected()
    // What was not sent yet is sent.
    #expect(machine.initialized(isResumed: true, at: 0).contains(.send(2)))
  }

  @Test mutating func aCallLargerThanTheWindowGoesAlone() {
    #expect(submit(1, bytes: 1_000) == [.send(1)])
    #expect(submit(2, bytes: 1) == [])
    #expect(machine.answered(1, isFinal: true) == [.complete(1), .send(2)])
  }

  @Test mutating func aCallThatCannotBeSentMakesRoom() {
    _ = submit(1, bytes: 100)
    #expect(submit(2) == [])
    #expect(machine.unsendable(1) == [.send(2)])
    #expect(machine.unsendable(1) == [])
  }

  // MARK: Cancelling

  @Test mutating func aCallCancelledWhileItIsWithTheBrokerIsForgotten() {
    _ = submit(1, bytes: 100)
    _ = submit(2)
    #expect(machine.cancelled(1) == [.forget(1), .cancel(1), .send(2)])
    #expect(machine.cancelled(1) == [])
    #expect(machine.answered(1, isFinal: true) == [])
  }

  @Test mutating func aCallCancelledWhileItWaitsIsNeverSent() {
    _ = submit(1, bytes: 100)
    _ = submit(2)
    #expect(machine.cancelled(2) == [.cancel(2)])
    #expect(machine.answered(1, isFinal: true) == [.complete(1)])
  }

  @Test mutating func aCallCancelledBetweenTwoConnectionsIsNotSentAgain() {
    _ = submit(1)
    _ = submit(2)
    _ = machine.lost(at: 0)
    #expect(machine.cancelled(1) == [.cancel(1)])
    _ = machine.connected()
    #expect(machine.cancelled(3) == [])
    #expect(machine.initialized(isResumed: true, at: 0) == [.report(.connected), .send(2)])
    #expect(machine.pending == 1)
  }

  // MARK: Losing the connection

  @Test mutating func aLostConnectionIsMadeAgainAtOnceThenMoreAndMoreSlowly() {
    _ = submit(1)
    #expect(machine.lost(at: 0) == [.report(.reconnecting), .connect])
    var waits: [Int64] = []
    for _ in 0..<8 {
      guard case .wait(milliseconds: let milliseconds)? = machine.connectFailed().first else { break }
      waits.append(milliseconds)
      #expect(machine.elapsed() == [.connect])
      #expect(machine.elapsed() == [])
    }
    #expect(waits == [5, 10, 20, 40, 80, 100, 100, 100])
    #expect(machine.connected() == [.initialize])
    #expect(machine.initialized(isResumed: true, at: 0) == [.report(.connected), .send(1)])
  }

  @Test mutating func whileNothingWaitsTheBrokerIsLookedForMoreSlowlyAndACallSpeedsItUp() {
    _ = machine.lost(at: 0)
    for _ in 0..<12 {
      _ = machine.connectFailed()
      _ = machine.elapsed()
    }
    #expect(machine.connectFailed() == [.wait(milliseconds: ReconnectDelay.longestIdle)])
    #expect(submit(1) == [.connect])
    #expect(machine.connectFailed() == [.wait(milliseconds: ReconnectDelay.longestWithWork)])
    #expect(submit(2) == [])
  }

  @Test mutating func whoLosesEachConnectionAtOnceWaits() {
    _ = submit(1)
    _ = machine.lost(at: 0)
    _ = machine.connected()
    _ = machine.initialized(isResumed: true, at: 0)
    #expect(machine.lost(at: 999) == [.report(.reconnecting), .wait(milliseconds: 5)])
    _ = machine.elapsed()
    // While the session is being resumed as well, which is not reported again.
    _ = machine.connected()
    #expect(machine.lost(at: 999) == [.wait(milliseconds: 10)])
  }

  @Test mutating func aConnectionThatWasOfUseIsMadeAgainAtOnce() {
    _ = submit(1)
    _ = reconnect()
    #expect(machine.lost(at: 1_000) == [.report(.reconnecting), .connect])
    _ = machine.connected()
    _ = machine.initialized(isResumed: true, at: 1_000)
    #expect(machine.answered(1, isFinal: true) == [.complete(1)])
    #expect(machine.lost(at: 1_001) == [.report(.reconnecting), .connect])
  }

  @Test mutating func whatWasNotAnsweredIsSentAgainInItsOrderBeforeWhatCameLater() {
    for ticket in 1...4 { _ = submit(ticket, bytes: 30) }
    // 4 was not sent. 2 was answered.
    _ = machine.answered(2, isFinal: true)
    _ = machine.lost(at: 0)
    #expect(submit(5) == [])
    _ = machine.connected()
    #expect(submit(6) == [])
    #expect(
      machine.initialized(isResumed: true, at: 0) == [.report(.connected), .send(1), .send(3), .send(4), .send(5)]
    )
    #expect(machine.answered(4, isFinal: true) == [.complete(4), .send(6)])
  }

  @Test mutating func whatMustNotBeSentTwiceFailsWhereItWasSentAndWaitsWhereItWasNot() {
    _ = submit(1, idempotent: false, bytes: 100)
    _ = submit(2, idempotent: false)
    #expect(machine.lost(at: 0) == [.report(.reconnecting), .fail(1, .outcomeUnknown), .connect])
    _ = machine.connected()
    #expect(machine.initialized(isResumed: true, at: 0) == [.report(.connected), .send(2)])
  }

  @Test mutating func aCallThatEveryConnectionIsLostWithIsGivenUp() {
    _ = submit(1)
    for _ in 1..<Machine.triesMax { #expect(reconnect().contains(.send(1))) }
    #expect(machine.lost(at: 0).contains(.fail(1, .outcomeUnknown)))
    #expect(machine.pending == 0)
  }

  @Test mutating func anAnswerThatAsksForAnotherConnectionIsNotTheLast() {
    _ = submit(1)
    _ = submit(2, idempotent: false)
    #expect(machine.answered(1, isFinal: false) == [.disconnect])
    #expect(machine.answered(2, isFinal: false) == [.complete(2)])
    #expect(reconnect().contains(.send(1)))
    for _ in 2..<Machine.triesMax {
      #expect(machine.answered(1, isFinal: false) == [.disconnect])
      _ = reconnect()
    }
    #expect(machine.answered(1, isFinal: false) == [.complete(1)])
  }

  @Test mutating func aBrokerThatEndsIsAskedAgainOverTheSameConnection() {
    _ = submit(1)
    _ = submit(2, idempotent: false)
    #expect(machine.shuttingDown(1) == [.send(1)])
    // The other one is answered if it was sent.
    #expect(machine.answered(2, isFinal: true) == [.complete(2)])
    #expect(machine.answered(1, isFinal: true) == [.complete(1)])
    #expect(machine.pending == 0)
  }

  @Test mutating func aConnectionThatEndsWithItsBrokerIsLostAsUsual() {
    _ = submit(1)
    _ = submit(2, idempotent: false)
    _ = machine.shuttingDown(1)
    #expect(machine.lost(at: 0) == [.report(.reconnecting), .fail(2, .outcomeUnknown), .connect])
    #expect(machine.shuttingDown(1) == nil)
    _ = machine.connected()
    #expect(machine.initialized(isResumed: true, at: 0) == [.report(.connected), .send(1)])
  }

  @Test mutating func brokersThatEndAreAskedSoOftenAtMost() {
    _ = submit(1)
    for _ in 1..<Machine.triesMax { #expect(machine.shuttingDown(1) == [.send(1)]) }
    #expect(machine.shuttingDown(1) == nil)
    #expect(machine.answered(1, isFinal: true) == [.complete(1)])
  }

  @Test mutating func whatMayNotBeSentTwiceEndsWithItsBroker() {
    _ = submit(1, idempotent: false)
    #expect(machine.shuttingDown(1) == nil)
    #expect(machine.answered(1, isFinal: true) == [.complete(1)])
  }

  @Test mutating func whatIsAskedAgainGoesBeforeWhatWaits() {
    _ = submit(1, bytes: 60)
    _ = submit(2, bytes: 90)
    #expect(machine.shuttingDown(1) == [.send(1)])
    #expect(machine.answered(1, isFinal: true) == [.complete(1), .send(2)])
  }

  @Test mutating func anAnswerThatComesTooLateIsIgnored() {
    _ = submit(1)
    _ = machine.lost(at: 0)
    #expect(machine.answered(1, isFinal: true) == [])
    #expect(machine.pending == 1)
  }

  @Test mutating func aBrokerThatCannotResumeNowIsAskedAgain() {
    _ = machine.lost(at: 0)
    _ = machine.connected()
    #expect(machine.postponed() == [.disconnect])
    #expect(machine.lost(at: 0) == [.wait(milliseconds: 5)])
    #expect(machine.postponed() == [])
    #expect(machine.refused() == [])
  }

  @Test mutating func r36ASessionOfAnotherHostsApplicationEndsOnceWhatWasSentIsAnswered() {
    #expect(submit(1) == [.send(1)])
    #expect(submit(2, bytes: 100) == [])
    #expect(machine.fenced() == [.fail(2, .ended)])
    #expect(submit(3) == [.fail(3, .ended)])
    #expect(!machine.hasEnded)
    #expect(
      machine.answered(1, isFinal: true) == [.complete(1), .close(leaving: false), .report(.ended(.refused))]
    )
    #expect(machine.fenced() == [])
  }

  @Test mutating func r36ASessionOfAnotherHostsApplicationDoesNotConnectAgain() {
    _ = submit(1)
    _ = machine.fenced()
    #expect(machine.lost(at: 0) == [.fail(1, .outcomeUnknown), .close(leaving: false), .report(.ended(.refused))])
    #expect(machine.hasEnded)
  }

  @Test mutating func aBrokerThatRefusesEndsTheSession() {
    _ = submit(1)
    _ = machine.lost(at: 0)
    _ = submit(2)
    _ = machine.connected()
    #expect(
      machine.refused() == [
        .fail(1, .outcomeUnknown), .fail(2, .ended), .close(leaving: false), .report(.ended(.refused)),
      ]
    )
    #expect(machine.hasEnded)
    #expect(submit(3) == [.fail(3, .ended)])
    #expect(machine.lost(at: 0) == [])
  }
}

/// Objects of a session that the broker has lost.
@Suite struct SessionObjectStateMachineTests {
  typealias Machine = RestorationSession.StateMachine
  typealias Call = CallQueue.Call

  private var machine = Machine(windowBytes: 100, timeout: nil, at: 0)

  private mutating func lose() {
    _ = machine.lost(at: 0)
    _ = machine.elapsed()
    _ = machine.connected()
  }

  private mutating func submit(_ ticket: Int, _ objects: [Int]) -> [Machine.Action] {
    machine.submit(ticket, Call(isIdempotent: true, objects: objects, bytes: 1), at: 0)
  }

  @Test mutating func aResumedSessionRegistersNothing() {
    machine.registered(1, below: nil)
    lose()
    #expect(machine.initialized(isResumed: true, at: 0) == [.report(.connected)])
    #expect(submit(1, [1]) == [.send(1)])
  }

  @Test mutating func aNewSessionRegistersParentsFirstAndSiblingsInTheirOrder() {
    // 1 was moved below 4 later.
    machine.registered(1, below: nil)
    machine.registered(2, below: nil)
    machine.registered(3, below: 2)
    machine.registered(4, below: 2)
    machine.registered(5, below: 99)
    machine.moved(1, below: 4)
    lose()
    #expect(machine.initialized(isResumed: false, at: 0) == [.report(.connected), .register(2), .register(5)])
    #expect(machine.settled(5, isRegistered: true) == [])
    #expect(machine.settled(2, isRegistered: true) == [.register(3), .register(4)])
    #expect(machine.settled(4, isRegistered: true) == [.register(1)])
    #expect(machine.settled(1, isRegistered: true) == [])
    #expect(machine.settled(3, isRegistered: true) == [.replay])
  }

  @Test mutating func callsWaitForTheirObjectsAndOthersGoOn() {
    machine.registered(1, below: nil)
    machine.registered(2, below: nil)
    _ = submit(1, [1])
    _ = submit(2, [2])
    _ = submit(3, [1])
    lose()
    _ = submit(4, [])
    #expect(
      machine.initialized(isResumed: false, at: 0) == [.report(.connected), .register(1), .register(2), .send(4)]
    )
    #expect(submit(5, [2, 1]) == [])
    #expect(machine.settled(2, isRegistered: true) == [.send(2)])
    #expect(machine.cancelled(3) == [.cancel(3)])
    #expect(machine.settled(1, isRegistered: true) == [.replay, .send(1), .send(5)])
  }

  @Test mutating func callsForAnObjectThatIsLostFailAndItsChildrenGoOn() {
    machine.registered(1, below: nil)
    machine.registered(2, below: 1)
    _ = submit(1, [1])
    lose()
    _ = machine.initialized(isResumed: false, at: 0)
    #expect(machine.settled(1, isRegistered: false) == [.register(2), .fail(1, .notRegistered(1))])
    #expect(machine.settled(2, isRegistered: true) == [.replay])
    #expect(submit(2, [1]) == [.fail(2, .notRegistered(1))])
    // A lost object is not registered again.
    lose()
    #expect(machine.initialized(isResumed: false, at: 0) == [.report(.connected), .register(2)])
  }

  @Test mutating func registeringAgainGoesOnAfterAnotherLoss() {
    machine.registered(1, below: nil)
    machine.registered(2, below: 1)
    machine.registered(3, below: nil)
    _ = submit(1, [2])
    lose()
    _ = machine.initialized(isResumed: false, at: 0)
    _ = machine.settled(3, isRegistered: true)
    lose()
    // The new session is resumed: answered registrations are valid.
    #expect(machine.initialized(isResumed: true, at: 0) == [.report(.connected), .register(1)])
    #expect(machine.settled(1, isRegistered: true) == [.register(2)])
    #expect(machine.settled(2, isRegistered: true) == [.replay, .send(1)])
  }

  @Test mutating func anUnknownObjectHasAllRegisteredAgainOnce() {
    machine.registered(1, below: nil)
    machine.registered(2, below: 1)
    _ = submit(1, [2])
    _ = submit(2, [2])
    #expect(machine.unknownObject(1) == [.register(1)])
    #expect(machine.unknownObject(2) == [])
    #expect(submit(3, [2]) == [])
    #expect(machine.settled(1, isRegistered: true) == [.register(2)])
    #expect(machine.settled(2, isRegistered: true) == [.send(1), .send(2), .send(3)])
    #expect(machine.unknownObject(1) == nil)
    #expect(machine.answered(1, isFinal: true) == [.complete(1)])
    lose()
    #expect(machine.initialized(isResumed: true, at: 0) == [.report(.connected), .send(2), .send(3)])
    #expect(machine.unknownObject(2) == [.register(1)])
    // A new session has been told everything already.
    lose()
    _ = machine.initialized(isResumed: false, at: 0)
    _ = machine.settled(1, isRegistered: true)
    _ = machine.settled(2, isRegistered: true)
    #expect(machine.unknownObject(2) == nil)
    #expect(machine.unknownObject(9) == nil)
  }

  /// It is sent again only for an object that is being registered again; otherwise it would be sent forever.
  @Test mutating func anObjectThatIsUnknownAfterItWasRegisteredAgainIsReported() {
    machine.registered(1, below: nil)
    machine.registered(2, below: nil)
    _ = submit(1, [1])
    #expect(machine.unknownObject(1) == [.register(1), .register(2)])
    #expect(machine.settled(1, isRegistered: true) == [.send(1)])
    #expect(machine.unknownObject(1) == nil)
  }

  @Test mutating func childrenWaitForTheirParentsAlsoWhereAllIsRegisteredAgainMeanwhile() {
    for object in 1...4 { machine.registered(object, below: object == 4 ? nil : object - 1) }
    lose()
    _ = machine.initialized(isResumed: false, at: 0)
    #expect(machine.settled(4, isRegistered: true) == [])
    lose()
    #expect(machine.initialized(isResumed: true, at: 0) == [.report(.connected), .register(1)])
    #expect(submit(1, [4]) == [.send(1)])
    #expect(machine.unknownObject(1) == [.register(4)])
    #expect(machine.settled(1, isRegistered: true) == [.register(2)])
    #expect(machine.settled(2, isRegistered: true) == [.register(3)])
    #expect(machine.settled(4, isRegistered: true) == [.send(1)])
    #expect(machine.settled(3, isRegistered: true) == [.replay])
  }

  @Test mutating func whatItsOwnerRegistersMeanwhileIsCountedOnce() {
    machine.registered(1, below: nil)
    lose()
    #expect(machine.initialized(isResumed: false, at: 0) == [.report(.connected), .register(1)])
    machine.registered(1, below: nil)
    #expect(machine.settled(1, isRegistered: true) == [.replay])
  }

  /// An answer that was lost, to a move in between, leaves such a picture of the tree.
  @Test mutating func objectsThatSeemToBeBelowEachOtherAreRegisteredAgain() {
    for object in 1...4 { machine.registered(object, below: object - 1) }
    machine.moved(1, below: 3)
    _ = submit(1, [4])
    lose()
    #expect(machine.initialized(isResumed: false, at: 0) == [.report(.connected), .register(1)])
    #expect(machine.settled(1, isRegistered: false) == [.register(2)])
    #expect(machine.settled(2, isRegistered: true) == [.register(3)])
    #expect(machine.settled(3, isRegistered: true) == [.register(4)])
    #expect(machine.settled(4, isRegistered: true) == [.replay, .send(1)])
  }

  @Test mutating func aGoodbyeWaitsForCallsThatWaitForTheirObjects() {
    machine.registered(1, below: nil)
    _ = submit(1, [1])
    lose()
    _ = machine.initialized(isResumed: false, at: 0)
    #expect(machine.end(2, bytes: 0, at: 0) == [])
    #expect(machine.settled(1, isRegistered: true) == [.replay, .send(1), .send(2)])
  }

  @Test mutating func anObjectTakenOverOrUnregisteredIsNotTheSessionsAnyMore() {
    machine.registered(1, below: nil)
    machine.registered(2, below: nil)
    #expect(machine.removed(1) == [])
    #expect(machine.removed(2) == [])
    #expect(submit(1, [1]) == [.fail(1, .notRegistered(1))])
    #expect(submit(2, [2]) == [.fail(2, .notRegistered(2))])
    lose()
    #expect(machine.initialized(isResumed: false, at: 0) == [.report(.connected), .replay])
  }
}

/// Waiting with a limit, and ending.
@Suite struct SessionEndStateMachineTests {
  typealias Machine = RestorationSession.StateMachine
  typealias Call = CallQueue.Call

  private var machine = Machine(windowBytes: 100, timeout: 50, at: 0)

  private mutating func submit(_ ticket: Int, bytes: Int = 10, at now: Int64 = 0) -> [Machine.Action] {
    machine.submit(ticket, Call(isIdempotent: true, bytes: bytes), at: now)
  }

  @Test mutating func callsWaitForABrokerSoLongAndNoLonger() {
    #expect(submit(1, bytes: 100) == [.send(1), .setAlarm(at: 500)])
    #expect(submit(2) == [])
    machine.heard(at: 900)
    #expect(machine.lost(at: 1_000) == [.report(.reconnecting), .connect, .setAlarm(at: 1_050)])
    _ = machine.connectFailed()
    #expect(submit(3, at: 1_020) == [])
    #expect(machine.alarm(at: 1_050) == [.fail(1, .outcomeUnknown), .fail(2, .timedOut), .setAlarm(at: 1_070)])
    #expect(machine.cancelled(3) == [.cancel(3), .setAlarm(at: nil)])
    _ = machine.elapsed()
    #expect(submit(4, at: 1_080) == [.setAlarm(at: 1_130)])
    _ = machine.connected()
    #expect(machine.initialized(isResumed: true, at: 1_090) == [.report(.connected), .send(4)])
    #expect(machine.alarm(at: 1_130) == [.setAlarm(at: 1_590)])
  }

  /// Connections that end at once are as good as none.
  @Test mutating func callsDoNotWaitLongerForABrokerThatComesAndGoes() {
    _ = submit(1)
    machine.heard(at: 1_000)
    #expect(machine.lost(at: 1_000).contains(.setAlarm(at: 1_050)))
    _ = machine.connected()
    _ = machine.initialized(isResumed: true, at: 1_020)
    #expect(machine.lost(at: 1_040) == [.report(.reconnecting), .wait(milliseconds: 5)])
    #expect(machine.alarm(at: 1_050) == [.fail(1, .outcomeUnknown)])
  }

  @Test mutating func aBrokerThatIsSilentForLongIsAskedAndThenLeft() {
    #expect(submit(1, at: 2_000) == [.send(1), .setAlarm(at: 2_500)])
    #expect(submit(2, at: 2_010) == [.send(2)])
    machine.heard(at: 2_100)
    #expect(machine.answered(2, isFinal: true) == [.complete(2)])
    #expect(machine.alarm(at: 2_500) == [.setAlarm(at: 2_600)])
    #expect(machine.alarm(at: 2_600) == [.ping, .setAlarm(at: 3_100)])
    machine.heard(at: 2_610)
    #expect(machine.alarm(at: 3_100) == [.setAlarm(at: 3_110)])
    #expect(machine.alarm(at: 3_110) == [.ping, .setAlarm(at: 3_610)])
    #expect(submit(3, at: 3_600) == [.send(3)])
    #expect(machine.alarm(at: 3_610) == [.disconnect])
    // For waiting calls it was gone all that time.
    #expect(machine.lost(at: 3_611) == [.report(.reconnecting), .connect, .setAlarm(at: 2_660)])
    #expect(machine.alarm(at: 3_611) == [.fail(1, .outcomeUnknown), .setAlarm(at: 3_650)])
    #expect(machine.alarm(at: 3_650) == [.fail(3, .outcomeUnknown)])
  }

  @Test mutating func aBrokerThatOwesNothingMayBeSilent() {
    _ = submit(1)
    _ = machine.answered(1, isFinal: true)
    #expect(machine.alarm(at: 500) == [])
    #expect(submit(2, at: 9_000) == [.send(2), .setAlarm(at: 9_500)])
  }

  @Test mutating func aGoodbyeFollowsWhatWasCalledBefore() {
    _ = submit(1, bytes: 100)
    #expect(machine.end(2, bytes: 0, at: 0) == [.send(2)])
    #expect(submit(3) == [.fail(3, .ended)])
    #expect(machine.end(4, bytes: 0, at: 0) == [.fail(4, .ended)])
    #expect(machine.answered(1, isFinal: true) == [.complete(1)])
    #expect(
      machine.answered(2, isFinal: true) == [
        .complete(2), .setAlarm(at: nil), .close(leaving: false), .report(.ended(.left(isConfirmed: true))),
      ]
    )
    #expect(machine.lost(at: 0) == [])
    #expect(machine.connected() == [.close(leaving: false)])
  }

  @Test mutating func aGoodbyeWaitsForABrokerAndIsSaidAgain() {
    _ = machine.end(1, bytes: 0, at: 0)
    #expect(machine.lost(at: 0) == [.report(.reconnecting), .connect, .setAlarm(at: nil)])
    _ = machine.connected()
    #expect(machine.initialized(isResumed: true, at: 0) == [.setAlarm(at: 500), .report(.connected), .send(1)])
  }

  @Test mutating func aGoodbyeWasHeardWhereTheBrokerDoesNotKnowTheSessionAnyMore() {
    machine.registered(1, below: nil)
    _ = submit(1)
    _ = machine.end(2, bytes: 0, at: 0)
    _ = machine.lost(at: 0)
    _ = machine.connected()
    #expect(
      machine.initialized(isResumed: false, at: 0) == [
        .complete(2), .setAlarm(at: nil), .fail(1, .outcomeUnknown), .close(leaving: true),
        .report(.ended(.left(isConfirmed: true))),
      ]
    )
  }

  @Test mutating func givingUpEndsEverything() {
    _ = submit(1, bytes: 100)
    _ = submit(2)
    _ = machine.end(3, bytes: 0, at: 0)
    #expect(
      machine.cancelled(3) == [
        .send(3), .setAlarm(at: nil), .fail(1, .outcomeUnknown), .fail(2, .ended), .fail(3, .outcomeUnknown),
        .close(leaving: false), .report(.ended(.left(isConfirmed: false))),
      ]
    )
    #expect(machine.giveUp() == [])
    #expect(machine.pending == 0)
    #expect(machine.alarm(at: 1_000) == [])
    #expect(machine.connectFailed() == [])
  }
}

/// The order of calls alone.
@Suite struct CallQueueTests {
  /// As if each call has its own time limit and no broker comes.
  @Test func callsThatAreGivenUpBehindOneThatWaitsTakeNoRoom() {
    var queue = CallQueue(windowBytes: 100)
    queue.append(0, CallQueue.Call(isIdempotent: true, bytes: 1), at: 0)
    for ticket in 1...10_000 {
      queue.append(ticket, CallQueue.Call(isIdempotent: true, bytes: 1), at: 0)
      _ = queue.remove(ticket)
    }
    #expect(queue.count == 1)
    #expect(queue.length < 100)
    #expect(queue.first() == 0)
  }
}
