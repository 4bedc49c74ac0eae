// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOEmbedded
internal import RestorationBroker
internal import Testing

/// The event loop of which a test of somebody else moves the time, over a loop of which this test does.
@Suite struct TestClockTests {
  private let loop = EmbeddedEventLoop()
  private let clock: TestClock
  private let fired: NIOLoopBoundBox<[String]>

  init() {
    clock = TestClock(over: loop)
    fired = NIOLoopBoundBox([], eventLoop: loop)
  }

  @discardableResult
  private func schedule(_ name: String, in delay: TimeAmount, _ then: @escaping @Sendable () -> Void = {})
    -> Scheduled<Void>
  {
    clock.scheduleTask(in: delay) { [fired] in
      fired.value.append(name)
      then()
    }
  }

  private func advance(_ time: TimeAmount) {
    var rest = time
    while clock.step(&rest) {}
    #expect(rest == .zero)
  }

  @Test func timersFireInOrderEachAtItsTime() {
    let (clock, fired, start) = (clock, fired, clock.now)
    @Sendable func note(_ name: String) {
      fired.value.append("\(name) at \((clock.now - start).nanoseconds / 1_000_000_000)")
    }
    clock.scheduleTask(in: .seconds(10)) {
      note("first")
      clock.scheduleTask(in: .seconds(5)) { note("of the first") }
      clock.scheduleTask(in: .seconds(11)) { note("too late") }
    }
    clock.scheduleTask(in: .seconds(12)) { note("second") }
    advance(.seconds(20))
    #expect(fired.value == ["first at 10", "second at 12", "of the first at 15"])
    #expect(clock.offset == .seconds(20) && clock.now == loop.now + .seconds(20))
  }

  @Test func whatIsNotDueWaitsForTheRestOfItsTime() {
    schedule("late", in: .seconds(30))
    advance(.seconds(20))
    loop.advanceTime(by: .milliseconds(9_999))
    #expect(fired.value.isEmpty)
    loop.advanceTime(by: .milliseconds(1))
    #expect(fired.value == ["late"])
  }

  @Test func timeRunsWithoutBeingMoved() {
    schedule("second", in: .seconds(2))
    schedule("first", in: .seconds(1))
    schedule("third", in: .seconds(2))
    loop.advanceTime(by: .seconds(2))
    #expect(fired.value == ["first", "second", "third"] && clock.offset == .zero)
  }

  @Test func aTimerThatWasCancelledDoesNotFireThoughItIsDueWithTheOneThatCancelsIt() {
    let never = schedule("never", in: .seconds(2))
    schedule("early", in: .seconds(1)).cancel()
    let victim = NIOLoopBoundBox<Scheduled<Void>?>(nil, eventLoop: loop)
    schedule("canceller", in: .seconds(2)) { victim.value?.cancel() }
    victim.value = schedule("victim", in: .seconds(2))
    never.cancel()
    advance(.seconds(3))
    #expect(fired.value == ["canceller"])
  }

  @Test func whatWaitsForTheLoopIsNotMoved() {
    schedule("turn", in: .microseconds(20))
    advance(.seconds(1))
    #expect(fired.value.isEmpty)
    loop.advanceTime(by: .microseconds(20))
    #expect(fired.value == ["turn"])
  }

  @Test func aClockMayBeAheadFromTheBeginning() {
    let ahead = TestClock(over: loop, offset: .hours(24))
    #expect(ahead.now == loop.now + .hours(24))
    let wall = TestClock(over: loop).wallMilliseconds
    #expect((24 * 3_600_000...25 * 3_600_000).contains(ahead.wallMilliseconds - wall))
  }

  private func looks(_ budget: inout MoveBudget, own: Bool, at now: NIODeadline) throws -> Int {
    try (0...1_000).first { look in
      try !budget.isWaiting(forOwnWork: own, forArchives: true, look: look, at: now)
    } ?? .max
  }

  @Test func aMoveWaitsOnlySoLongForArchivesInAStepAndInAll() throws {
    var budget = MoveBudget(at: loop.now)
    let steps = try (1...11).map { _ in try looks(&budget, own: false, at: loop.now) }
    #expect(steps == Array(repeating: 1_000, count: 10) + [0])
    let own = try looks(&budget, own: true, at: loop.now)
    #expect(own == .max)
  }

  @Test func aMoveFailsIfItTakesTooLong() throws {
    var budget = MoveBudget(at: loop.now)
    let inTime = try looks(&budget, own: true, at: loop.now + .seconds(49))
    #expect(inTime == .max)
    let error = #expect(throws: MoveBudget.UsedUp.self) { try looks(&budget, own: false, at: loop.now + .seconds(50)) }
    #expect(error?.description == "the broker was not done within 50 seconds")
  }
}
