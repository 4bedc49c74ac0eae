// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// What an application keeps of the restoration that it is in (R21, R22, R31). Session 7 owns nodes 1 and 2.
@Suite struct RestorationUnderWayTests {
  private let event: TurnFixture
  private var restoring = Restoring()
  private let facts = RestorationDecisionTests.Facts(owners: [1: 7, 2: 7])

  init() throws {
    var limits = Limits()
    limits.parkedMax = 2
    event = try TurnFixture(limits)
  }

  private mutating func begin(for client: ClientID = 1) throws -> Int64? {
    let call = LongCall(Caller(client: client, call: nil), by: nil, token: nil, at: Moment())
    return try restoring.begin(for: call, bytesMax: 100, milliseconds: 1_000, in: &event.turn)
  }

  /// Takes in an event, and gives what is to be done about it.
  private mutating func actions(_ event: Restoration.Event) -> [Restoration.Action] {
    guard restoring.take(event, facts) else { return [] }
    var actions: [Restoration.Action] = []
    while let action = restoring.next() { actions.append(action) }
    return actions
  }

  private mutating func plan() {
    let plan = [1, 2].map { Restoration.Planned(node: $0, parent: nil, lookups: [.existing]) }
    _ = actions(.started)
    _ = actions(.planned(plan, at: 0))
  }

  @Test mutating func oneRestorationIsUnderWayAndCallersJoinIt() throws {
    #expect(try begin(for: 1) == 1_000)
    #expect(try begin(for: 2) == nil)
    #expect(restoring.callers.count == 2)
    #expect(event.asked() == ["park", "park"])
    _ = try begin(for: 1)
    #expect(throws: ErrorObject.self) { try begin(for: 1) }
  }

  @Test mutating func aCallerLeavesAndTheRestorationStays() throws {
    _ = try begin()
    _ = event.asked()
    let stranger = restoring.leave(Caller(client: 2, call: nil), in: &event.turn)
    #expect(!stranger)
    let caller = restoring.leave(Caller(client: 1, call: nil), in: &event.turn)
    #expect(caller)
    #expect(event.asked() == ["unpark"])
    #expect(restoring.isUnderWay)
  }

  @Test mutating func whatAnActionLeadsToIsDoneAfterIt() throws {
    _ = try begin()
    let isFirst = restoring.take(.started, facts)
    #expect(isFirst)
    #expect(restoring.next() == .plan)
    let nested = restoring.take(.planned([], at: 0), facts)
    #expect(!nested)
    #expect(restoring.next() == .end)
    #expect(restoring.next() == nil)
  }

  @Test mutating func theTimerFollowsTheDecisions() throws {
    _ = try begin()
    _ = event.asked()
    plan()
    restoring.watch(in: &event.turn)
    #expect(event.timer() == 500)
    restoring.watch(in: &event.turn)
    #expect(event.asked() == [])
    _ = restoring.end(in: &event.turn)
    #expect(event.asked() == ["cancelTimer"])
  }

  @Test mutating func nothingOfARestorationIsThereForTheNextOne() throws {
    _ = try begin()
    plan()
    restoring.note("no", of: [1])
    restoring.hold((1, .delegate, 7))
    restoring.start(UnitName("a.service"), in: &event.turn)
    let over = restoring.end(in: &event.turn)
    #expect(over?.messages == [1: "no"])
    #expect(over?.decisions?.items.count == 2)
    #expect(restoring.end(in: &event.turn) == nil)
    _ = try begin()
    #expect(restoring.number == 2)
    #expect(restoring.messages.isEmpty)
    #expect(restoring.takeHeldCalls().isEmpty)
    #expect(restoring.startedUnits.isEmpty)
    #expect(!restoring.isDelivering(1))
  }

  @Test mutating func aRestorationWaitsForEachDelivery() throws {
    _ = try begin()
    plan()
    #expect(restoring.isDelivering(1) && restoring.isDelivering(2))
    _ = actions(.delivered(1, .restored, because: nil))
    #expect(!restoring.isDelivering(1) && restoring.isDelivering(2))
  }

  @Test mutating func aUnitIsStartedOnceAndTakesWithItWhatItAloneWasToBring() throws {
    _ = try begin()
    let unit = UnitName("a.service")
    for _ in 1...2 { restoring.start(unit, in: &event.turn) }
    #expect(event.asked() == ["park", "startUnit"])
    #expect(restoring.isStarting)
    restoring.setUnits([2: try #require(unit)])
    _ = actions(.started)
    let planned = [1, 2].map { Restoration.Planned(node: $0, parent: nil, lookups: [.restorationClass]) }
    _ = actions(.planned(planned, at: 0))
    #expect(restoring.unitFailed("a.service", "unknown") == [2])
    #expect(!restoring.isStarting)
    #expect(restoring.failedUnits == ["a.service": "unknown"])
  }
}
