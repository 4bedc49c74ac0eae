// SPDX-License-Identifier: Apache-2.0

internal import RestorationBroker
internal import Testing

/// A client that is not read for two reasons is read again when both have ended.
@Suite struct InputPausesTests {
  @Test func aWriterIsPausedOnceAndResumedWhenTheDiskHasKeptPace() {
    var pauses = InputPauses()
    let isFirst = pauses.pauseWriter(1)
    let isAgain = pauses.pauseWriter(1)
    #expect(isFirst && !isAgain && pauses.hasWriters)
    #expect(pauses.resumeWriters() == [1])
    #expect(!pauses.hasWriters)
    #expect(pauses.resumeWriters().isEmpty)
  }

  @Test func aWriterThatWaitsForAnArchiveAsWellIsResumedWithTheArchive() {
    var pauses = InputPauses()
    _ = pauses.pauseWriter(1)
    _ = pauses.pauseWriter(2)
    let isPaused = pauses.setWaiting(1, true)
    #expect(isPaused)
    #expect(pauses.resumeWriters() == [2])
    let isStillPaused = pauses.setWaiting(1, false)
    #expect(!isStillPaused)
  }

  @Test func aClientWhoseArchiveHasOpenedStaysPausedWhileItsWritesWait() {
    var pauses = InputPauses()
    _ = pauses.pauseWriter(1)
    _ = pauses.setWaiting(1, true)
    let isPaused = pauses.setWaiting(1, false)
    #expect(isPaused)
  }

  @Test func nobodyIsResumedAfterTheBrokerHasBegunToStop() {
    var pauses = InputPauses()
    _ = pauses.pauseWriter(1)
    pauses.stop()
    let isPaused = pauses.setWaiting(2, false)
    #expect(isPaused)
    #expect(pauses.resumeWriters().isEmpty)
  }

  @Test func aClientThatHasLeftIsForgotten() {
    var pauses = InputPauses()
    _ = pauses.pauseWriter(1)
    _ = pauses.setWaiting(1, true)
    pauses.forget(1)
    #expect(!pauses.hasWriters)
    let isPaused = pauses.setWaiting(1, false)
    #expect(!isPaused)
  }
}
