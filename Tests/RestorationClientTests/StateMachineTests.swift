// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient
internal import Testing

/// What is sent when, and how calls end, without any I/O.
@Suite struct StateMachineTests {
  typealias Machine = BrokerConnection.StateMachine

  private var machine = Machine(windowBytes: 100)

  /// Submits a call and reports it as sent if the machine sends it.
  private mutating func call(_ ticket: Int, bytes: Int, as callID: Int) -> [Machine.Action] {
    let actions = machine.submit(ticket, expectsAnswer: true, bytes: bytes)
    if actions.contains(.sendCall(ticket)) { #expect(machine.sent(ticket, as: callID) == []) }
    return actions
  }

  @Test mutating func aCallIsSentAtOnceAndCompletedByItsAnswer() {
    #expect(call(1, bytes: 10, as: 7) == [.sendCall(1)])
    #expect(machine.pending == 1)
    #expect(machine.answered(7) == [.complete(1)])
    #expect(machine.pending == 0)
    #expect(machine.unconfirmedBytes == 0)
  }

  @Test mutating func ticketsAreAllDifferent() {
    let tickets = (0..<100).map { _ in machine.makeTicket() }
    #expect(Set(tickets).count == 100)
  }

  @Test mutating func answersMayOvertake() {
    _ = call(1, bytes: 10, as: 1)
    _ = call(2, bytes: 10, as: 2)
    #expect(machine.answered(2) == [.complete(2)])
    #expect(machine.answered(1) == [.complete(1)])
  }

  @Test mutating func anAnswerNobodyWaitsForIsIgnored() {
    _ = call(1, bytes: 10, as: 1)
    #expect(machine.answered(2) == [])
    #expect(machine.answered(1) == [.complete(1)])
    #expect(machine.answered(1) == [])
  }

  @Test mutating func theWindowIsFullAtItsBorder() {
    #expect(call(1, bytes: 60, as: 1) == [.sendCall(1)])
    #expect(call(2, bytes: 40, as: 2) == [.sendCall(2)])
    #expect(call(3, bytes: 1, as: 3) == [])
    #expect(machine.unconfirmedBytes == 100)
    #expect(machine.answered(2) == [.complete(2), .sendCall(3)])
  }

  @Test mutating func aMessageLargerThanTheWindowGoesAlone() {
    _ = call(1, bytes: 10, as: 1)
    #expect(call(2, bytes: 1_000, as: 2) == [])
    #expect(machine.answered(1) == [.complete(1), .sendCall(2)])
    _ = machine.sent(2, as: 2)
    #expect(call(3, bytes: 1, as: 3) == [])
    #expect(machine.answered(2) == [.complete(2), .sendCall(3)])
  }

  @Test mutating func whatWaitsKeepsItsOrder() {
    _ = call(1, bytes: 100, as: 1)
    #expect(call(2, bytes: 90, as: 2) == [])
    #expect(machine.submit(3, expectsAnswer: false, bytes: 5) == [])
    #expect(call(4, bytes: 5, as: 4) == [])
    #expect(machine.answered(1) == [.complete(1), .sendCall(2), .sendNotification(3), .sendCall(4)])
  }

  @Test mutating func notificationsAreConfirmedByAPingOfOurOwn() {
    #expect(machine.submit(1, expectsAnswer: false, bytes: 50) == [.sendNotification(1)])
    #expect(machine.submit(2, expectsAnswer: false, bytes: 1) == [.sendNotification(2), .sendPing])
    machine.sentPing(as: 1)
    #expect(machine.unconfirmedBytes == 51)
    #expect(machine.submit(3, expectsAnswer: false, bytes: 50) == [])
    #expect(machine.answered(1) == [.sendNotification(3)])
    #expect(machine.unconfirmedBytes == 50)
  }

  @Test mutating func aMessageThatIsBlockedByNotificationsAsksForTheirConfirmation() {
    #expect(machine.submit(1, expectsAnswer: false, bytes: 10) == [.sendNotification(1)])
    #expect(call(2, bytes: 1_000, as: 2) == [.sendPing])
    machine.sentPing(as: 1)
    #expect(machine.answered(1) == [.sendCall(2)])
  }

  @Test mutating func aCallThatWaitsAtTheBrokerHoldsNoNotificationsBack() {
    // It may wait there for another session, for minutes.
    _ = call(1, bytes: 10, as: 1)
    for ticket in stride(from: 2, to: 200, by: 2) {
      let actions = machine.submit(ticket, expectsAnswer: false, bytes: 60)
      #expect(actions == [.sendNotification(ticket), .sendPing])
      machine.sentPing(as: ticket)
      #expect(machine.answered(ticket) == [])
    }
    #expect(machine.unconfirmedBytes == 10)
  }

  @Test mutating func aCancelledCallFreesItsPlace() {
    _ = call(1, bytes: 100, as: 1)
    _ = call(2, bytes: 50, as: 2)
    #expect(machine.cancelled(1) == [.forget(callID: 1), .cancel(1), .sendPing])
    machine.sentPing(as: 3)
    #expect(machine.answered(1) == [])
    #expect(machine.answered(3) == [.sendCall(2)])
  }

  @Test mutating func aCallCancelledBeforeItWasSentIsNotSent() {
    _ = call(1, bytes: 100, as: 1)
    _ = call(2, bytes: 50, as: 2)
    _ = call(3, bytes: 50, as: 3)
    #expect(machine.cancelled(2) == [.cancel(2)])
    #expect(machine.cancelled(2) == [])
    #expect(machine.answered(1) == [.complete(1), .sendCall(3)])
  }

  @Test mutating func cancellingWhatBlockedTheQueueLetsTheRestThrough() {
    _ = call(1, bytes: 50, as: 1)
    _ = call(2, bytes: 80, as: 2)
    _ = call(3, bytes: 50, as: 3)
    #expect(machine.cancelled(2) == [.cancel(2), .sendCall(3)])
  }

  @Test mutating func cancellingAfterTheAnswerDoesNothing() {
    _ = call(1, bytes: 10, as: 1)
    _ = machine.answered(1)
    #expect(machine.cancelled(1) == [])
    #expect(machine.cancelled(99) == [])
  }

  @Test mutating func everythingPendingFailsWhenTheConnectionEnds() {
    _ = call(1, bytes: 90, as: 1)
    _ = call(2, bytes: 90, as: 2)
    _ = machine.submit(3, expectsAnswer: false, bytes: 1)
    #expect(machine.closed(.lost) == [.fail(1, .lost), .fail(2, .lost), .fail(3, .lost)])
    #expect(machine.pending == 0)
    #expect(machine.unconfirmedBytes == 0)
    #expect(machine.submit(4, expectsAnswer: true, bytes: 1) == [.fail(4, .lost)])
    #expect(machine.closed(.protocolFault) == [])
    #expect(machine.submit(5, expectsAnswer: true, bytes: 1) == [.fail(5, .lost)])
  }

  @Test mutating func closingFailsWhatIsPendingAndLetsOutputGo() {
    _ = call(1, bytes: 10, as: 1)
    #expect(machine.close() == [.fail(1, .closed), .close(afterOutput: true)])
    #expect(machine.close() == [])
    #expect(machine.submit(2, expectsAnswer: true, bytes: 1) == [.fail(2, .closed)])
    #expect(machine.answered(1) == [])
    #expect(machine.closed(.lost) == [])
    #expect(machine.submit(3, expectsAnswer: true, bytes: 1) == [.fail(3, .closed)])
  }

  @Test mutating func theBrokersLastWordEndsEveryCall() {
    _ = call(1, bytes: 10, as: 1)
    #expect(machine.inputEnded() == [.fail(1, .lost), .close(afterOutput: false)])
    #expect(machine.inputEnded() == [])
    #expect(machine.closed(.closed) == [])
    #expect(machine.submit(2, expectsAnswer: true, bytes: 1) == [.fail(2, .lost)])
  }

  @Test mutating func aCallThatCannotBeSentFailsForTheReasonTheConnectionEnds() {
    for ticket in 1...2 {
      #expect(machine.submit(ticket, expectsAnswer: true, bytes: 10) == [.sendCall(ticket)])
      #expect(machine.sent(ticket, as: nil) == [])
    }
    #expect(machine.cancelled(1) == [.cancel(1)])
    #expect(machine.closed(.protocolFault) == [.fail(2, .protocolFault)])
    #expect(machine.pending == 0)
  }

  @Test mutating func aCallSentAfterItsEndIsForgotten() {
    #expect(machine.submit(1, expectsAnswer: true, bytes: 10) == [.sendCall(1)])
    #expect(machine.closed(.lost) == [.fail(1, .lost)])
    #expect(machine.sent(1, as: 5) == [.forget(callID: 5)])
  }

  @Test mutating func manyMessagesThroughASmallWindowEndOnceEach() {
    var completed: [Int] = []
    var nextCallID = 1
    var openCalls: [Int] = []
    func carryOut(_ actions: [Machine.Action], _ machine: inout Machine) {
      for action in actions {
        switch action {
        case .sendCall(let ticket):
          openCalls.append(nextCallID)
          _ = machine.sent(ticket, as: nextCallID)
          nextCallID += 1
        case .sendPing:
          openCalls.append(nextCallID)
          machine.sentPing(as: nextCallID)
          nextCallID += 1
        case .complete(let ticket), .sendNotification(let ticket): completed.append(ticket)
        case .forget, .cancel, .fail, .close: Issue.record("\(action)")
        }
      }
    }
    for ticket in 1...5_000 {
      carryOut(machine.submit(ticket, expectsAnswer: ticket % 3 != 0, bytes: ticket % 70), &machine)
      #expect(machine.unconfirmedBytes <= 100)
    }
    while !openCalls.isEmpty {
      carryOut(machine.answered(openCalls.removeFirst()), &machine)
    }
    #expect(completed.sorted() == Array(1...5_000))
    #expect(machine.pending == 0)
  }
}
