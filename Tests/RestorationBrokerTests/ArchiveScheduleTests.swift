// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import Testing

/// When an archive is tidied, and what it must not delete meanwhile.
@Suite struct ArchiveScheduleTests {
  @Test func upkeepBeginsWhenAnArchiveIsQuietForHalfASecond() {
    var upkeep = UpkeepSchedule()
    #expect(upkeep.written() == 500)
    #expect(upkeep.begin() == nil)
    #expect(upkeep.isUnderWay)
  }

  @Test func upkeepWaitsForReadersToPauseButOnlyOnce() {
    var upkeep = UpkeepSchedule()
    _ = upkeep.written()
    upkeep.noteRead()
    #expect(upkeep.begin() == 500)
    #expect(!upkeep.isUnderWay)
    upkeep.noteRead()
    #expect(upkeep.begin() == nil)
    #expect(upkeep.ended(after: 10) == 40)
    #expect(!upkeep.isUnderWay)
    upkeep.noteRead()
    #expect(upkeep.begin() == nil)
    _ = upkeep.ended(after: 10)
    // The next write begins anew.
    _ = upkeep.written()
    upkeep.noteRead()
    #expect(upkeep.begin() == 500)
  }

  @Test func betweenTwoPiecesOfUpkeepTheThreadIsLeftToOthersForFourTimesAsLong() {
    var upkeep = UpkeepSchedule()
    _ = upkeep.written()
    _ = upkeep.begin()
    #expect(upkeep.ended(after: 25) == 100)
    _ = upkeep.begin()
    #expect(upkeep.ended(after: 0) == 1)
  }

  @Test func aSequenceIsHeldForAMinuteAfterItWasLastUsed() {
    var held = HeldSequences()
    held.hold([7, 9], at: 1_000)
    held.hold([7], at: 31_000)
    held.expire(at: 60_999)
    #expect(held.sequences.sorted() == [7, 9])
    held.expire(at: 61_000)
    #expect(held.sequences == [7])
    held.hold([11], at: 91_000)
    #expect(held.sequences == [11])
  }
}
