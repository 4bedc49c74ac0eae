// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationReplica
internal import Testing

/// When what an archive has committed is sent to its replica, and in which pieces.
@Suite struct ShippingQueueTests {
  /// A snapshot that is nearly as long as what it replaces is not worth its way.
  @Test(arguments: [(archive: 1_000, behind: 2_001, copies: true), (1_000, 2_000, false), (0, 500, false)])
  func batchesTwiceAsLongAsTheArchiveBecomeASnapshot(_ archive: Int, _ behind: Int, _ copies: Bool) {
    var limits = ShippingQueue.Limits()
    limits.compactionBytes = 500
    var queue = ShippingQueue(.disk, limits: limits)
    _ = queue.start(stored: 7, tip: 7, behind: behind, at: 0)
    #expect(queue.compact(archiveBytes: archive, at: 0) == (copies ? [.copy] : []))
    guard copies else { return }
    #expect(queue.copied(upTo: 7, at: 1) == [.stored(upTo: 7)])
    #expect(queue.compact(archiveBytes: archive, at: 2) == [])
  }

  @Test func aSnapshotThatCannotBeMadeOfBatchesLeavesThemToBeSent() {
    var limits = ShippingQueue.Limits()
    limits.compactionBytes = 500
    var queue = ShippingQueue(.disk, limits: limits)
    _ = queue.start(stored: 7, tip: 7, behind: 2_001, at: 0)
    #expect(queue.compact(archiveBytes: 0, at: 0) == [.copy])
    _ = queue.add([transaction(7, 8)], at: 1)
    #expect(queue.failed(.refused, at: 2) == [.wait(until: 502)])
    #expect(queue.timePassed(at: 502) == [batch(transaction(7, 8))])
  }

  @Test func whoeverWaitsForTheReplicaDoesNotWaitForALongSnapshotOfBatches() {
    var limits = ShippingQueue.Limits()
    (limits.compactionBytes, limits.batchBytesMax) = (500, 1_000)
    var queue = ShippingQueue(.replica, limits: limits)
    _ = queue.start(stored: 7, tip: 7, behind: 10_000, at: 0)
    #expect(queue.compact(archiveBytes: 1_001, at: 0) == [])
    #expect(queue.compact(archiveBytes: 1_000, at: 0) == [.copy])
  }

  /// Whoever writes without a pause is never tidied up after.
  @Test(arguments: [true, false]) func batchesThatFillTheUsersRoomBecomeASnapshot(areLong: Bool) {
    var limits = ShippingQueue.Limits()
    limits.compactionBytes = 500
    var queue = ShippingQueue(.replica, limits: limits)
    _ = queue.start(stored: 7, tip: 7, behind: areLong ? 501 : 500, at: 0)
    #expect(queue.add([transaction(7, 8)], at: 1).first == batch(transaction(7, 8)))
    _ = queue.failed(.quota(max: 1, value: 2), at: 2)
    #expect(queue.timePassed(at: 502).first == (areLong ? .copy : batch(transaction(7, 8))))
  }

  private func transaction(
    _ after: SequenceNumber,
    _ upto: SequenceNumber,
    bytes: Int = 10
  ) -> ReplicaTransaction {
    ReplicaTransaction(
      after: after,
      upto: upto,
      change: ChangeID(high: 0, low: UInt64(upto)),
      changes: Array(repeating: 0, count: bytes)
    )
  }

  private func batch(_ transactions: ReplicaTransaction...) -> ShippingQueue.Action {
    .append(ReplicaBatch(transactions))
  }

  /// A queue of an archive that has nothing yet.
  private func started(_ promise: ReplicaPromise = .disk, stopped: Bool = false) -> ShippingQueue {
    var limits = ShippingQueue.Limits()
    (limits.batchBytesMax, limits.addedBytesMax, limits.addedMax, limits.backlogBytesMax) = (25, 90, 10, 100)
    var queue = ShippingQueue(promise, limits: limits)
    if !stopped { #expect(queue.start(stored: 0, tip: 0, at: 0) == [.stored(upTo: 0)]) }
    return queue
  }

  // MARK: Batches

  @Test func whatIsCommittedWhileABatchIsUnderWayBecomesTheNextOne() {
    var queue = started()
    let first = batch(transaction(0, 1), transaction(1, 3))
    #expect(queue.add([transaction(0, 1), transaction(1, 3)], at: 1_000) == [first])
    #expect(queue.lag == 3)
    #expect(queue.add([transaction(3, 4)], at: 1_005) == [])
    #expect((queue.lag, queue.bytes) == (4, 30))
    #expect(queue.appended(at: 1_010) == [.stored(upTo: 3), batch(transaction(3, 4))])
    #expect((queue.lag, queue.bytes) == (1, 10))
  }

  @Test func aBatchHasNoMoreThanItsLimitUnlessItIsWhatWasAddedAtOneTime() {
    var queue = started(.disk, stopped: true)
    for end in 1...3 { _ = queue.add([transaction(SequenceNumber(end - 1), SequenceNumber(end))], at: 0) }
    let two = batch(transaction(0, 1), transaction(1, 2))
    #expect(queue.start(stored: 0, tip: 3, at: 0) == [.stored(upTo: 0), two])
    var together = started()
    let three = [transaction(0, 1), transaction(1, 2), transaction(2, 3)]
    #expect(together.add(three, at: 0) == [.append(ReplicaBatch(three))], "the last one may replace some of the others")
  }

  /// The rest of what was added together may be sent: it is the end that must not be missing.
  @Test func ofWhatWasAddedTogetherASnapshotMayHaveTheBeginning() {
    var queue = started()
    #expect(queue.add([transaction(0, 1, bytes: 200)], at: 0) == [.copy])
    _ = queue.add([transaction(1, 2), transaction(2, 4)], at: 1)
    #expect(queue.copied(upTo: 2, at: 10) == [.stored(upTo: 2), batch(transaction(2, 4))])
  }

  @Test func whatHasAGapIsNotOneBatch() {
    var queue = started(.replica)
    #expect(queue.add([transaction(0, 1), transaction(2, 3)], at: 0).first == batch(transaction(0, 1)))
    #expect(queue.appended(at: 1) == [.stored(upTo: 1), .wait(until: 2_000)])
    #expect(queue.add([transaction(1, 2)], at: 2).first == batch(transaction(1, 2), transaction(2, 3)))
  }

  @Test func aTransactionThatComesLateIsWaitedFor() {
    var queue = started(.replica)
    #expect(queue.add([transaction(2, 3)], at: 0) == [.wait(until: 2_000)])
    let both = batch(transaction(0, 2), transaction(2, 3))
    #expect(queue.add([transaction(0, 2)], at: 1) == [both, .wait(until: 2_000)])
  }

  @Test func whoeverClosesTheArchiveHearsThatAllOfItHasArrived() {
    var queue = started()
    _ = queue.add([transaction(0, 1)], at: 0)
    #expect(queue.flush(at: 10) == [])
    #expect(queue.appended(at: 20) == [.stored(upTo: 1), .drained])
    queue.endFlush()
    #expect(queue.add([transaction(1, 2)], at: 30) == [batch(transaction(1, 2))])
    #expect(queue.appended(at: 40) == [.stored(upTo: 2)])
  }

  // MARK: Failures

  @Test(arguments: [.unknown, .away] as [ReplicaError.Kind])
  func aBatchWhoseOutcomeIsUnknownIsRepeatedAsItWas(kind: ReplicaError.Kind) {
    var queue = started()
    _ = queue.add([transaction(0, 1)], at: 0)
    _ = queue.add([transaction(1, 2)], at: 60)
    #expect(queue.failed(kind, at: 100) == [.wait(until: 600)])
    #expect(queue.timePassed(at: 599) == [.wait(until: 600)])
    #expect(queue.timePassed(at: 600) == [batch(transaction(0, 1))])
    #expect(queue.appended(at: 610) == [.stored(upTo: 1), batch(transaction(1, 2))])
  }

  @Test func aLongBatchThatDoesNotArriveGivesWayToASnapshotWhichGoesInPieces() {
    var queue = started()
    let long = batch(transaction(0, 1, bytes: 26))
    #expect(queue.add([transaction(0, 1, bytes: 26)], at: 0) == [long])
    for (index, kind) in [.unknown, .away, .away, .unknown].enumerated() as EnumeratedSequence<[ReplicaError.Kind]> {
      let now = Int64(index + 1) * 1_000
      #expect(queue.failed(kind, at: now) == [.wait(until: now + 500)])
      #expect(queue.timePassed(at: now + 500) == [long])
    }
    _ = queue.failed(.unknown, at: 5_000)
    #expect(queue.timePassed(at: 5_500) == [.copy])
  }

  @Test func aReplicaThatHasLessThanItHadGetsASnapshot() {
    var queue = started()
    _ = queue.add([transaction(0, 1)], at: 0)
    #expect(queue.failed(.gap(0), at: 60) == [.wait(until: 560)])
    #expect(queue.isSnapshotDue)
    #expect(queue.timePassed(at: 560) == [.copy])
    #expect(queue.copied(upTo: 1, at: 600) == [.stored(upTo: 1)])
    #expect(!queue.isSnapshotDue)
  }

  @Test func withoutALeaseNothingIsSentAndNothingIsForgotten() {
    var queue = started()
    _ = queue.add([transaction(0, 1)], at: 0)
    queue.stop()
    #expect(queue.failed(.voided, at: 60) == [])
    #expect(queue.add([transaction(1, 2)], at: 70) == [])
    #expect(queue.timePassed(at: 5_000) == [])
    // It had arrived.
    #expect(queue.start(stored: 1, tip: 2, at: 6_000) == [.stored(upTo: 1), batch(transaction(1, 2))])
  }

  @Test func aServerThatLacksWhatIsNoLongerHereGetsASnapshot() {
    var queue = started()
    _ = queue.add([transaction(0, 1)], at: 0)
    _ = queue.appended(at: 60)
    queue.stop()
    #expect(queue.start(stored: 0, tip: 1, at: 100) == [.stored(upTo: 0), .copy])
  }

  // MARK: Backlog

  @Test func aBacklogThatBecomesTooLargeGivesWayToASnapshot() {
    var queue = started()
    _ = queue.add([transaction(0, 1, bytes: 40)], at: 0)
    _ = queue.failed(.away, at: 10)
    _ = queue.add([transaction(1, 2, bytes: 40)], at: 20)
    #expect(!queue.isSnapshotDue)
    _ = queue.add([transaction(2, 3, bytes: 40)], at: 30)
    #expect(queue.isSnapshotDue)
    #expect(queue.bytes == 40, "what may have arrived is found out first")
    #expect(queue.timePassed(at: 510) == [batch(transaction(0, 1, bytes: 40))])
    #expect(queue.appended(at: 520) == [.stored(upTo: 1), .copy])
    #expect(queue.bytes == 0)
    // The copy has some of what is committed meanwhile.
    #expect(queue.add([transaction(3, 4)], at: 530) == [])
    #expect(queue.add([transaction(4, 5)], at: 540) == [])
    #expect(queue.copied(upTo: 4, at: 550) == [.stored(upTo: 4), batch(transaction(4, 5))])
  }

  @Test func whatWasAddedAtOneTimeAndIsTooLongForABatchGivesWayToASnapshot() {
    var queue = started()
    let two = [transaction(0, 1, bytes: 45), transaction(1, 2, bytes: 45)]
    #expect(queue.add(two, at: 0) == [.append(ReplicaBatch(two))])
    queue = started()
    #expect(queue.add([transaction(0, 1, bytes: 45), transaction(1, 2, bytes: 46)], at: 0) == [.copy])
    queue = started()
    let many = (1...11).map { transaction($0 - 1, $0, bytes: 1) }
    #expect(queue.add(many, at: 0) == [.copy])
  }

  /// Each copy writes as much as the archive has.
  @Test func aCopyThatFailsAgainAndAgainIsMadeEverLessOften() {
    var queue = started()
    #expect(queue.add([transaction(0, 1, bytes: 200)], at: 0) == [.copy])
    var now: Int64 = 0
    for pause in [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] as [Int64] {
      #expect(queue.failed(.away, at: now) == [.wait(until: now + pause)])
      now += pause
      #expect(queue.timePassed(at: now) == [.copy])
    }
    #expect(queue.copied(upTo: 1, at: now) == [.stored(upTo: 1)])
    #expect(queue.add([transaction(1, 2, bytes: 200)], at: now) == [.copy])
    #expect(queue.failed(.away, at: now) == [.wait(until: now + 500)])
  }

  /// Each time the whole archive is sent, also by later openings.
  @Test func aReplicaThatIsPutBackAgainAndAgainGetsASnapshotEverLessOften() {
    var queue = started(.disk, stopped: true)
    var now: Int64 = 0
    for pause in [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] as [Int64] {
      _ = queue.start(stored: 5, tip: 5, at: now)
      #expect(queue.wentBack(to: 3, at: now) == [.wait(until: now + pause)])
      #expect(queue.lag == 2 && queue.isSnapshotDue)
      #expect(queue.wentBack(to: 2, at: now) == [], "it is about to be sent")
      now += pause
      #expect(queue.timePassed(at: now) == [.copy])
      #expect(queue.copied(upTo: 5, at: now) == [.stored(upTo: 5)])
      #expect(queue.wentBack(to: 5, at: now) == [])
      queue = queue.successor
    }
    #expect(queue.lag == 0)
  }

  @Test func nobodyWaitsForATransactionThatACopyHasBrought() {
    var queue = started(.replica)
    #expect(queue.start(stored: 0, tip: 2, at: 0) == [.stored(upTo: 0), .copy])
    #expect(queue.copied(upTo: 3, at: 10) == [.stored(upTo: 3)])
    #expect(queue.add([transaction(2, 3)], at: 20) == [])
    #expect(queue.timePassed(at: 5_000) == [] && !queue.isAway)
  }

  @Test func whatIsDroppedWhileACopyIsMadeNeedsAnotherOne() {
    var queue = started()
    queue.stop()
    #expect(queue.start(stored: 0, tip: 3, at: 0) == [.stored(upTo: 0), .copy])
    _ = queue.add([transaction(3, 4, bytes: 101)], at: 10)
    #expect(queue.copied(upTo: 3, at: 20) == [.stored(upTo: 3), .copy])
    #expect(queue.copied(upTo: 4, at: 30) == [.stored(upTo: 4)])
    // A copy may have what is told only now.
    #expect(queue.add([transaction(3, 4)], at: 40) == [])
    #expect(queue.lag == 0 && queue.bytes == 0)
  }

  // MARK: Writers that wait

  @Test func aWriterThatWaitsForTheReplicaIsServedAtOnce() {
    var queue = started(.replica)
    #expect(queue.add([transaction(0, 1)], at: 0) == [batch(transaction(0, 1)), .wait(until: 2_000)])
    #expect(queue.add([transaction(1, 2)], at: 5) == [.wait(until: 2_000)])
    let rest = batch(transaction(1, 2))
    #expect(queue.appended(at: 10) == [.stored(upTo: 1), rest, .wait(until: 2_005)])
    #expect(queue.appended(at: 20) == [.stored(upTo: 2)])
  }

  @Test func aWriterIsToldAfterTwoSecondsThatItIsUnknownAndTheReplicaIsAwayUntilItAnswers() {
    var queue = started(.replica)
    _ = queue.add([transaction(0, 1)], at: 0)
    #expect(queue.failed(.away, at: 1_700) == [.wait(until: 2_000)])
    #expect(!queue.isAway)
    #expect(queue.timePassed(at: 2_000) == [.unconfirmed, .wait(until: 2_200)])
    #expect(queue.isAway)
    #expect(queue.timePassed(at: 2_200) == [batch(transaction(0, 1))])
    #expect(queue.isAway)
    #expect(queue.appended(at: 2_210) == [.stored(upTo: 1)])
    #expect(!queue.isAway)
  }
}
