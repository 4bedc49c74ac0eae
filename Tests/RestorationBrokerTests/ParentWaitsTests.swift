// SPDX-License-Identifier: Apache-2.0

internal import RestorationBroker
internal import RestorationWire
internal import Testing

@Suite struct ParentWaitsTests {
  private let event: TurnFixture
  private var waits = ParentWaits()

  init() throws {
    var limits = Limits()
    limits.parkedMax = 2
    event = try TurnFixture(limits)
  }

  private mutating func wait(for parent: String, from client: ClientID, by session: Int64 = 1) throws {
    var request = RegisterObjectForStateRestoration()
    request.awaitParentMilliseconds = 50
    try waits.wait(
      for: .path([parent]),
      with: request,
      milliseconds: 50,
      by: session,
      for: Caller(client: client, call: nil),
      in: &event.turn
    )
  }

  @Test mutating func aRegistrationIsParkedUntilItsParentIsThere() throws {
    try wait(for: "a", from: 1)
    try wait(for: "b", from: 2)
    #expect(event.asked() == ["park", "setTimer", "park", "setTimer"])
    #expect(waits.next(in: &event.turn) { _ in false } == nil)
    #expect(event.asked() == [])
    let ready = waits.next(in: &event.turn) { $0 == .path(["b"]) }
    #expect(ready?.caller.client == 2)
    #expect(ready?.request.awaitParentMilliseconds == nil)
    #expect(event.asked() == ["cancelTimer", "unpark"])
    #expect(!waits.isEmpty)
  }

  @Test mutating func thoseWhoseParentIsThereComeInArrivalOrder() throws {
    for client: ClientID in 1...3 { try wait(for: "a", from: client) }
    var order: [ClientID] = []
    while let ready = waits.next(in: &event.turn, isThere: { _ in true }) { order.append(ready.caller.client) }
    #expect(order == [1, 2, 3])
    #expect(waits.isEmpty)
  }

  @Test mutating func whatTakesTooLongIsRefusedAndItsTimerIsNotCancelled() throws {
    try wait(for: "a", from: 1)
    _ = event.asked()
    waits.timerFired(1, in: &event.turn)
    #expect(event.asked() == ["unpark", "respond"])
    #expect(waits.isEmpty)
    waits.timerFired(1, in: &event.turn)
    #expect(event.asked() == [])
  }

  @Test mutating func theEndOfASessionRefusesWhatItWaitsForAndNothingElse() throws {
    try wait(for: "a", from: 1, by: 1)
    try wait(for: "a", from: 2, by: 2)
    try wait(for: "a", from: 1, by: 1)
    _ = event.asked()
    waits.abandon(in: &event.turn) { $0.session == 1 }
    #expect(event.asked() == ["cancelTimer", "unpark", "respond", "cancelTimer", "unpark", "respond"])
    #expect(waits.next(in: &event.turn) { _ in true }?.session == 2)
  }

  @Test mutating func aCancelledWaitEndsWithoutAnAnswerOfItsOwn() throws {
    try wait(for: "a", from: 1)
    _ = event.asked()
    #expect(!waits.cancel(Caller(client: 2, call: nil), in: &event.turn))
    #expect(waits.cancel(Caller(client: 1, call: nil), in: &event.turn))
    #expect(event.asked() == ["cancelTimer", "unpark"])
    #expect(waits.isEmpty)
  }

  @Test mutating func aClientMayOnlyHaveSoManyCallsWait() throws {
    for _ in 1...2 { try wait(for: "a", from: 1) }
    let third: Void? = try? wait(for: "a", from: 1)
    #expect(third == nil)
    try wait(for: "a", from: 2)
  }
}
