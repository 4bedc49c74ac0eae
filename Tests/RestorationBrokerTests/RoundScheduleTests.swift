// SPDX-License-Identifier: Apache-2.0

internal import RestorationBroker
internal import RestorationWire
internal import Testing

@Suite struct RoundScheduleTests {
  private let event: TurnFixture
  private var schedule = RoundSchedule()

  init() throws {
    var limits = Limits()
    (limits.roundQuietMilliseconds, limits.roundIntervalMilliseconds) = (100, 250)
    event = try TurnFixture(limits)
    schedule.setPulled(true, hasUnsealedContent: false, in: &event.turn)
  }

  private mutating func change(at time: Int64) {
    event.context.now.monotonic = time
    schedule.noteChange(in: &event.turn)
  }

  private mutating func isDue(at time: Int64) -> Bool {
    event.context.now.monotonic = time
    return schedule.isDue(in: &event.turn)
  }

  @Test mutating func aRoundIsDueWhenItHasBeenQuiet() {
    change(at: 1_000)
    #expect(event.timer() == 100)
    change(at: 1_060)
    #expect(event.asked() == [])
    #expect(!isDue(at: 1_100))
    #expect(event.timer() == 60)
    #expect(isDue(at: 1_160))
  }

  @Test mutating func changesThatNeverEndMakeOneDueAfterTheInterval() {
    for time in stride(from: Int64(1_000), through: 1_240, by: 40) { change(at: time) }
    #expect(!isDue(at: 1_249))
    #expect(event.timer() == 1)
    #expect(isDue(at: 1_250))
  }

  @Test mutating func nothingIsScheduledWhileNobodyCanBeAsked() {
    schedule.setPulled(false, hasUnsealedContent: true, in: &event.turn)
    change(at: 1_000)
    #expect(event.asked() == [])
    schedule.setPulled(true, hasUnsealedContent: true, in: &event.turn)
    #expect(event.timer() == 100)
    schedule.setPulled(false, hasUnsealedContent: true, in: &event.turn)
    #expect(event.asked() == ["cancelTimer"])
    #expect(!isDue(at: 9_000))
  }

  @Test mutating func aPostponedRoundWaitsForAsMuchQuietOnceMore() {
    change(at: 1_000)
    #expect(isDue(at: 1_100))
    schedule.postpone(in: &event.turn)
    #expect(event.timer() == 100)
    #expect(!isDue(at: 1_199))
  }

  @Test mutating func noLimitsMeanNoRoundByItself() {
    (event.context.limits.roundQuietMilliseconds, event.context.limits.roundIntervalMilliseconds) = (0, 0)
    change(at: 1_000)
    #expect(event.asked() == [])
    schedule.forget(in: &event.turn)
    #expect(event.asked() == [])
  }
}
