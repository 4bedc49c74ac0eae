// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import Testing

@Suite struct OutgoingCallsTests {
  private let event: TurnFixture
  private var calls = OutgoingCalls()

  init() throws { event = try TurnFixture() }

  private mutating func make(by session: Int64, over client: ClientID?) -> CallNumber {
    let call = PendingCall(session: session, client: client, purpose: .pull)
    return calls.make(call, "ask", JSONText(validated: Array("{}".utf8)), in: &event.turn)
  }

  @Test mutating func aCallOverAConnectionIsSentAndOneToBeFetchedIsNot() {
    let sent = make(by: 1, over: 4)
    #expect(event.asked() == ["call"])
    let fetched = make(by: 2, over: nil)
    #expect(event.asked() == [])
    #expect(fetched > sent)
    calls.send(fetched, "ask", JSONText(validated: Array("{}".utf8)), over: 5, in: &event.turn)
    #expect(event.asked() == ["call"])
    #expect(calls[fetched]?.client == 5)
  }

  @Test mutating func aCallEndsOnce() {
    let number = make(by: 1, over: 4)
    _ = event.asked()
    #expect(calls.end(number)?.session == 1)
    #expect(calls.end(number) == nil)
    #expect(calls.giveUp(number, in: &event.turn) == nil)
    #expect(event.asked() == [])
    #expect(calls.isEmpty)
  }

  @Test mutating func theClientIsToldThatAnAnswerIsNoLongerWanted() {
    let (sent, fetched) = (make(by: 1, over: 4), make(by: 1, over: nil))
    _ = event.asked()
    #expect(calls.giveUp(sent, in: &event.turn) != nil)
    #expect(event.asked() == ["endCall"])
    #expect(calls.giveUp(fetched, in: &event.turn) != nil)
    #expect(event.asked() == [])
  }

  @Test mutating func callsAreFoundInTheOrderInWhichTheyWereMade() {
    let numbers = (0..<20).map { make(by: $0 % 2, over: 4) }
    #expect(calls.numbers { $0.session == 1 } == stride(from: 1, to: 20, by: 2).map { numbers[$0] })
    #expect(calls.numbers { $0.client == 5 } == [])
  }
}
