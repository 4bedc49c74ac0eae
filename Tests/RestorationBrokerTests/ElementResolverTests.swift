// SPDX-License-Identifier: Apache-2.0

internal import RestorationBroker
internal import RestorationWire
internal import Testing

@Suite struct ElementResolverTests {
  private let event: TurnFixture
  private var resolver = ElementResolver()
  private let elements = [
    RestorableElement(.selected, at: [0]), RestorableElement(.selected, at: [1], identifier: "a"),
    RestorableElement(.selected, at: [2], identifier: "b"), RestorableElement(.topVisible, at: [3]),
  ]

  init() throws { event = try TurnFixture() }

  private mutating func begin() -> Int {
    resolver.begin(elements, of: 5, for: .delivery(1, batch: 1, 5), in: &event.turn)
  }

  @Test mutating func oneElementAfterTheOtherIsAskedForIfItHasAnIdentifier() {
    let number = begin()
    #expect(event.timer() == ElementResolver.milliseconds)
    #expect(resolver.next(of: number)?.identifier == "a")
    resolver.asked(number, by: 77)
    #expect(resolver[number]?.call == 77)
    #expect(resolver.answered(number)?.identifier == "a")
    #expect(resolver[number]?.call == nil)
    resolver.settle(number, RestorableElement(.selected, at: [9], identifier: "a"))
    #expect(resolver.next(of: number)?.identifier == "b")
    resolver.settle(number, nil)
    #expect(resolver.next(of: number) == nil)
    #expect(resolver.end(number, in: &event.turn)?.elements.map(\.indexPath) == [[0], [9], [3]])
    #expect(event.asked() == ["cancelTimer"])
  }

  @Test mutating func whatWasNotFoundInTimeIsHandedOutAsItWasSaved() {
    let number = begin()
    _ = resolver.next(of: number)
    resolver.settle(number, nil)
    #expect(resolver.end(number, in: &event.turn)?.elements.map(\.indexPath) == [[0], [2], [3]])
    #expect(resolver.end(number, in: &event.turn) == nil)
    #expect(resolver.answered(number) == nil)
  }

  @Test mutating func aDataSourceThatIsAwaitedHasItsTimeOnceItIsThere() {
    let number = resolver.begin(elements, of: 5, for: .delivery(1, batch: 1, 5), awaiting: 15_000, in: &event.turn)
    #expect(event.timer() == 15_000)
    #expect(resolver.awaiting == [number])
    #expect(resolver[number]?.elements.map(\.unresolved) == [nil, .noDataSource, .noDataSource, nil])
    resolver.found(number, in: &event.turn)
    #expect(event.timer() == ElementResolver.milliseconds)
    #expect(resolver.awaiting.isEmpty)
    _ = resolver.next(of: number)
    resolver.lost(number)
    #expect(resolver[number]?.elements.map(\.unresolved) == [nil, .gone, .gone, nil])
  }

  @Test mutating func aDataSourceThatDoesNotAnswerIsNotedOnceForAView() {
    let number = begin()
    #expect(resolver.noteUnresolved(number) == true)
    #expect(resolver.noteUnresolved(number) == false)
    #expect(resolver.noteUnresolved(number + 1) == false)
  }
}
