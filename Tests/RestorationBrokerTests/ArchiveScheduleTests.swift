// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import Testing

/// When an archive is tidied, and what it must not delete meanwhile.
@Suite struct ArchiveScheduleTests {
  @Test func upkeepBeginsWhenAnArchiveIsQuietForHalfASecond() {
    var upkeep = UpkeepSchedule()
    #expect(upkeep.written(at: 1_000) == 500)
    #expect(upkeep.begin(at: 1_500) == nil)
    #expect(upkeep.isUnderWay)
  }

  @Test func whoeverWaitsForTheHalfSecondIsToldHowMuchIsLeftAfterAFurtherWrite() {
    var upkeep = UpkeepSchedule()
    _ = upkeep.written(at: 1_000)
    _ = upkeep.written(at: 1_300)
    #expect(upkeep.begin(at: 1_500) == 300)
    #expect(!upkeep.isUnderWay)
    #expect(upkeep.begin(at: 1_800) == nil)
  }

  @Test func upkeepWaitsForReadersToPauseButOnlyOnce() {
    var upkeep = UpkeepSchedule()
    _ = upkeep.written(at: 0)
    upkeep.noteRead()
    #expect(upkeep.begin(at: 500) == 500)
    #expect(!upkeep.isUnderWay)
    upkeep.noteRead()
    #expect(upkeep.begin(at: 500) == nil)
    #expect(upkeep.ended(after: 10) == 40)
    #expect(!upkeep.isUnderWay)
    upkeep.noteRead()
    #expect(upkeep.begin(at: 500) == nil)
    _ = upkeep.ended(after: 10)
    // The next write begins anew.
    _ = upkeep.written(at: 0)
    upkeep.noteRead()
    #expect(upkeep.begin(at: 500) == 500)
  }

  @Test func betweenTwoPiecesOfUpkeepTheThreadIsLeftToOthersForFourTimesAsLong() {
    var upkeep = UpkeepSchedule()
    _ = upkeep.written(at: 0)
    _ = upkeep.begin(at: 500)
    #expect(upkeep.ended(after: 25) == 100)
    _ = upkeep.begin(at: 500)
    #expect(upkeep.ended(after: 0) == 1)
  }

  @Test func aSequenceIsHeldWhileItIsUsedAndForAMinuteAfterwards() {
    var held = HeldSequences()
    held.hold([7, 9])
    held.hold([7])
    held.release([7, 9], at: 1_000)
    held.expire(at: 60_999)
    #expect(Set(held.sequences) == [7, 9])
    held.expire(at: 61_000)
    #expect(held.sequences == [7])
    held.release([7], at: 61_000)
    #expect(held.sequences == [7])
    held.expire(at: 121_000)
    #expect(held.sequences.isEmpty)
  }
}
