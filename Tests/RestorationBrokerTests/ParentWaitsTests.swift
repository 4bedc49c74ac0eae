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

  private mutating func next(isThere: (ObjectReference) -> Bool) -> ParentWaits.Registration? {
    waits.appeared()
    return waits.next(in: &event.turn, isThere: isThere)
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
    #expect(next { _ in false } == nil)
    #expect(event.asked() == [])
    let ready = next { $0 == .path(["b"]) }
    #expect(ready?.caller.client == 2)
    #expect(ready?.request.awaitParentMilliseconds == nil)
    #expect(event.asked() == ["cancelTimer", "unpark"])
    #expect(!waits.isEmpty)
  }

  @Test mutating func thoseWhoseParentIsThereComeInArrivalOrder() throws {
    for client: ClientID in 1...3 { try wait(for: "a", from: client) }
    var order: [ClientID] = []
    while let ready = next(isThere: { _ in true }) { order.append(ready.caller.client) }
    #expect(order == [1, 2, 3])
    #expect(waits.isEmpty)
  }

  @Test mutating func whatTakesTooLongIsRefusedAndItsTimerIsNotCancelled() throws {
    try wait(for: "a", from: 1)
    _ = event.asked()
    _ = waits.timerFired(1, isSettled: true, in: &event.turn)
    #expect(event.asked() == ["unpark", "respond"])
    #expect(waits.isEmpty)
    _ = waits.timerFired(1, isSettled: true, in: &event.turn)
    #expect(event.asked() == [])
  }

  @Test mutating func theEndOfASessionRefusesWhatItWaitsForAndNothingElse() throws {
    try wait(for: "a", from: 1, by: 1)
    try wait(for: "a", from: 2, by: 2)
    try wait(for: "a", from: 1, by: 1)
    _ = event.asked()
    waits.abandon(in: &event.turn) { $0.session == 1 }
    #expect(event.asked() == ["cancelTimer", "unpark", "respond", "cancelTimer", "unpark", "respond"])
    #expect(next { _ in true }?.session == 2)
  }

  @Test mutating func aCancelledWaitEndsWithoutAnAnswerOfItsOwn() throws {
    try wait(for: "a", from: 1)
    _ = event.asked()
    #expect(!waits.cancel(Caller(client: 2, call: nil), in: &event.turn))
    #expect(waits.cancel(Caller(client: 1, call: nil), in: &event.turn))
    #expect(event.asked() == ["cancelTimer", "unpark"])
    #expect(waits.isEmpty)
  }

  /// More than are looked at in one event.
  private mutating func waitForMany() throws {
    for number in 1...300 { try wait(for: number == 300 ? "a" : "b", from: ClientID(number)) }
    #expect(next { $0 == .path(["a"]) } == nil)
    #expect(event.asked().last == "setTimer")
  }

  @Test mutating func ofManyOnlySomeAreLookedAtInOneEventAndTheOthersWhenTheTimerFires() throws {
    try waitForMany()
    // What appears meanwhile may be the parent of one that was looked at.
    #expect(next { _ in true } == nil)
    #expect(event.asked() == [])
    let goesOn = waits.timerFired(0, isSettled: true, in: &event.turn)
    #expect(goesOn)
    waits.appeared()
    var found: [ClientID] = []
    while let ready = waits.next(in: &event.turn, isThere: { _ in true }) { found.append(ready.caller.client) }
    #expect(found == Array(257...300) + Array(1...212))
    #expect(event.asked().last == "setTimer")
  }

  @Test mutating func aLookWaitsUntilItIsKnownWhatTheArchiveHolds() throws {
    try waitForMany()
    let goesOn = waits.timerFired(0, isSettled: false, in: &event.turn)
    #expect(!goesOn)
    #expect(event.asked() == ["setTimer"])
  }

  @Test mutating func theTimerOfALookIsCancelledWithTheLastOne() throws {
    try waitForMany()
    waits.abandon(in: &event.turn) { _ in true }
    #expect(event.asked().filter { $0 == "cancelTimer" }.count == 301)
    #expect(waits.isEmpty)
  }

  @Test mutating func aClientMayOnlyHaveSoManyCallsWait() throws {
    for _ in 1...2 { try wait(for: "a", from: 1) }
    let third: Void? = try? wait(for: "a", from: 1)
    #expect(third == nil)
    try wait(for: "a", from: 2)
  }
}
