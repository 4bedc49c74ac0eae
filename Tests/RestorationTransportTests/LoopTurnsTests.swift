// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import RestorationTransport
internal import Testing

@Suite struct LoopTurnsTests {
  private var turns = LoopTurns()
  private var readings = 0

  /// A turn ends when the clock and the loop's CPU time show this, in microseconds.
  private mutating func end(at time: UInt64, cpu: Int64) {
    var readings = readings
    turns.ended(at: .uptimeNanoseconds(1_000 * time)) {
      readings += 1
      return 1_000 * cpu
    }
    self.readings = readings
  }

  private var longest: Int64 { turns.longest / 1_000 }

  @Test mutating func whatCameBeforeTheFirstReadingCountsForNoTurn() {
    end(at: 5_000, cpu: 4_000)
    #expect(longest == 0)
  }

  @Test mutating func theLongestTurnIsKept() {
    end(at: 0, cpu: 0)
    end(at: 30_000, cpu: 20_000)
    end(at: 40_000, cpu: 25_000)
    #expect(longest == 20_000)
    end(at: 90_000, cpu: 50_000)
    #expect(longest == 25_000)
  }

  @Test mutating func timeInWhichTheLoopSleepsOrOthersRunDoesNotCount() {
    end(at: 0, cpu: 0)
    end(at: 60_000_000, cpu: 300)
    #expect(longest == 300)
  }

  @Test mutating func turnsOfLessThanAMillisecondAreReadTogether() {
    for turn in 0...1_000 { end(at: 10 * UInt64(turn), cpu: 10 * Int64(turn)) }
    #expect(readings == 11)
    #expect(longest == 1_000)
    #expect(turns.durations.counts[3] == 10 && turns.durations.sumMicroseconds == 10_000)
  }

  @Test mutating func aLongTurnAfterUnreadOnesIsToldTooLongByLessThanAMillisecond() {
    end(at: 0, cpu: 0)
    end(at: 900, cpu: 900)
    end(at: 20_900, cpu: 20_900)
    #expect(longest == 20_900)
  }
}
