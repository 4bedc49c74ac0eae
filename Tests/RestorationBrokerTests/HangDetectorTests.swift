// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import Testing

/// What the watchdog is told of the threads of the archives.
@Suite struct HangDetectorTests {
  /// Threads that have made so many steps; all others than the idle ones are at work.
  private static func progress(_ steps: UInt64..., idle: Set<Int> = []) -> StoreProgress {
    StoreProgress(
      threads: steps.enumerated().map { StoreProgress.Thread(steps: $1, isAtWork: !idle.contains($0)) }
    )
  }

  @Test func aThreadThatMakesNoStepHangsHoweverBusyTheOthersAre() {
    var hangs = HangDetector()
    var hasAdvanced = hangs.hasAdvanced(to: Self.progress(1, 1))
    for step in 2...9 as ClosedRange<UInt64> {
      hasAdvanced = hangs.hasAdvanced(to: Self.progress(1, step))
      #expect(hasAdvanced)
      #expect(hangs.isHanging)
    }
    hasAdvanced = hangs.hasAdvanced(to: Self.progress(2, 9))
    #expect(hasAdvanced)
    #expect(!hangs.isHanging)
  }

  @Test func aThreadThatSleepsOrGetsOnDoesNotHang() {
    var hangs = HangDetector()
    var hasAdvanced = false
    for step in 1...9 as ClosedRange<UInt64> {
      hasAdvanced = hangs.hasAdvanced(to: Self.progress(5, step, idle: [0]))
      #expect(hasAdvanced)
      #expect(!hangs.isHanging)
    }
    hasAdvanced = hangs.hasAdvanced(to: Self.progress(5, 9, idle: [0, 1]))
    #expect(!hasAdvanced)
    // It has done a job since, and has got another one.
    hasAdvanced = hangs.hasAdvanced(to: Self.progress(6, 9, idle: [1]))
    #expect(hasAdvanced)
    #expect(!hangs.isHanging)
  }

  /// Each needs two looks for a job, and at every look one of them has made no step.
  @Test func threadsThatAreSlowInTurnDoNotHang() {
    var hangs = HangDetector()
    var rows: [Int] = [0]
    for look in 0..<20 as Range<UInt64> {
      _ = hangs.hasAdvanced(to: Self.progress(look / 2, (look + 1) / 2))
      if hangs.isHanging { rows[rows.count - 1] += 1 } else { rows.append(0) }
    }
    #expect(rows.max() == 1)
    #expect(rows.count > 5)
  }

  @Test func anAnswerDuringAHangBeatsAsSoonAsItIsOver() {
    var decision = BeatDecision()
    var looks: [(beats: Bool, asks: Bool)] = []
    var rounds: [Bool] = []
    looks.append(decision.look(at: Self.progress(1, 1)))
    looks.append(decision.look(at: Self.progress(1, 2)))
    rounds.append(decision.cameRound())
    looks.append(decision.look(at: Self.progress(1, 3)))
    rounds.append(decision.cameRound())
    looks.append(decision.look(at: Self.progress(2, 3)))
    rounds.append(decision.cameRound())
    #expect(looks.map(\.beats) == [false, false, false, true])
    #expect(rounds == [false, false, true])
  }
}
