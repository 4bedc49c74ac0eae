// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Group commit: changes made during a commit share a transaction; no answer leaves before its change is durable (R15).
@Suite struct WriteQueueTests {
  private func openQueue(at sequence: SequenceNumber = 10) -> WriteQueue {
    var queue = WriteQueue()
    queue.opened(at: sequence)
    return queue
  }

  private func waiting(_ sequence: SequenceNumber, client: ClientID) -> WriteQueue.Waiting {
    WriteQueue.Waiting(after: sequence, caller: Caller(client: client, call: nil), answer: .result(EmptyResult()))
  }

  /// As the archive does when it begins to write.
  private func take(_ action: WriteQueue.Action) {
    guard case .commit(let batch, _) = action else {
      Issue.record("no transaction")
      return
    }
    _ = batch.take()
  }

  @Test func nothingIsCommittedBeforeTheArchiveIsOpen() {
    var queue = WriteQueue()
    queue.add(.removeState(1))
    guard case .none = queue.next() else {
      Issue.record("a transaction began on a closed archive")
      return
    }
    queue.opened(at: 0)
    guard case .commit(let batch, let expecting) = queue.next() else {
      Issue.record("the change that waited was not committed")
      return
    }
    #expect(batch.take() == [.removeState(1)])
    #expect(expecting == 0)
  }

  @Test func everythingWrittenDuringATransactionSharesTheNextOne() {
    var queue = openQueue()
    queue.add(.removeState(1))
    guard case .commit(let first, _) = queue.next() else {
      Issue.record("no transaction")
      return
    }
    #expect(first.take() == [.removeState(1)])
    queue.add(.removeState(2))
    guard case .commit(let second, let expecting) = queue.next() else {
      Issue.record("the archive's thread would have to wait for the next transaction")
      return
    }
    #expect(expecting == 11)
    for node in 3...50 {
      queue.add(.removeState(NodeID(node)))
      guard case .none = queue.next() else {
        Issue.record("a third transaction, although the second has not begun")
        return
      }
    }
    _ = queue.committed(ArchiveReceipt(sequence: 11, reachableBytes: 0))
    #expect(queue.tail == 60)
    #expect(second.take().count == 49)
    let done = queue.committed(ArchiveReceipt(sequence: 60, reachableBytes: 0))
    #expect(done.isEmpty)
    #expect(queue.isIdle)
  }

  @Test func bytesThatWaitAreCountedUntilTheirOwnTransactionIsDurable() {
    var queue = openQueue()
    queue.add(.state(StateRecord(node: 1, context: 0, written: 0, text: Array("{}".utf8)[...])))
    let first = queue.pendingBytes
    take(queue.next())
    queue.add(.state(StateRecord(node: 1, context: 0, written: 0, text: Array("[1,2]".utf8)[...])))
    _ = queue.next()
    let both = queue.pendingBytes
    #expect(both == first + first + 3)
    _ = queue.committed(ArchiveReceipt(sequence: 11, reachableBytes: 0))
    #expect(queue.pendingBytes == both - first)
    _ = queue.committed(ArchiveReceipt(sequence: 12, reachableBytes: 0))
    #expect(queue.pendingBytes == 0)
  }

  /// Small changes come in the largest numbers.
  @Test func aChangeWithoutAnyTextCountsForWhatItTakes() {
    var queue = openQueue()
    for _ in 0..<1_000 { queue.add(.removeState(1)) }
    #expect(queue.pendingBytes >= 1_000 * MemoryLayout<ArchiveChange>.size)
    _ = queue.fail()
    #expect(queue.pendingBytes == 0)
  }

  @Test func whatIsToldLaterCountsUntilItIsTold() throws {
    var queue = openQueue()
    queue.add(.removeState(1))
    let change = queue.pendingBytes
    try queue.await(notice(1, .stored))
    try queue.await(notice(2, .notStored))
    let text = JSONText(validated: Array("\"\(String(repeating: "x", count: 5_000))\"".utf8))
    queue.await(.notification(.client(7), method: "pathChanged", parameters: text))
    #expect(queue.pendingBytes > change + 5_000 + 2 * MemoryLayout<Announcement>.size)
    take(queue.next())
    _ = queue.committed(ArchiveReceipt(sequence: 11, reachableBytes: 0))
    #expect(queue.pendingBytes > 5_000)
    _ = queue.readyNotices()
    #expect(queue.pendingBytes == 0)
    queue.add(.removeState(1))
    try queue.await(notice(3, .stored))
    _ = queue.fail()
    #expect(queue.pendingBytes == 0)
  }

  @Test func anAnswerLeavesWithItsOwnTransactionInOrder() {
    var queue = openQueue()
    queue.add(.removeState(1))
    queue.await(waiting(11, client: 1))
    queue.await(waiting(11, client: 2))
    take(queue.next())
    queue.add(.removeState(2))
    queue.await(waiting(12, client: 3))
    take(queue.next())
    let first = queue.committed(ArchiveReceipt(sequence: 11, reachableBytes: 0))
    #expect(first.map(\.caller.client) == [1, 2])
    let second = queue.committed(ArchiveReceipt(sequence: 12, reachableBytes: 0))
    #expect(second.map(\.caller.client) == [3])
    #expect(queue.isIdle)
  }

  @Test func anAnswerThatWaitsForLessDoesNotTakeAnEarlierOneAlong() {
    var queue = openQueue()
    for nodes in [1...2, 3...5] {
      for node in nodes { queue.add(.removeState(NodeID(node))) }
      take(queue.next())
    }
    queue.await(waiting(15, client: 1))
    queue.await(waiting(12, client: 2))
    let early = queue.committed(ArchiveReceipt(sequence: 12, reachableBytes: 0))
    #expect(early.isEmpty)
    let late = queue.committed(ArchiveReceipt(sequence: 15, reachableBytes: 0))
    #expect(late.map(\.caller.client) == [1, 2])
  }

  @Test func aReadWaitsForTheChangeItMustSee() {
    var queue = openQueue()
    queue.add(.removeState(1))
    let caller = Caller(client: 1, call: nil)
    let row = StateRequest.Row(node: 1, sequence: 11)
    queue.await(StateRequest(caller: caller, purpose: .decode(node: 1), rows: [row]), after: 11)
    #expect(queue.readyReads().isEmpty)
    _ = queue.next()
    _ = queue.committed(ArchiveReceipt(sequence: 11, reachableBytes: 0))
    #expect(queue.readyReads().map(\.rows) == [[row]])
    #expect(queue.readyReads().isEmpty)
  }

  @Test func whatSomebodyWaitsToReadIsKnownUntilItIsRead() {
    var queue = openQueue()
    queue.add(.removeState(1))
    let caller = Caller(client: 1, call: nil)
    let row = StateRequest.Row(node: 1, sequence: 11)
    queue.await(StateRequest(caller: caller, purpose: .decode(node: 1), rows: [row]), after: 11)
    take(queue.next())
    queue.add(.removeState(2))
    queue.await(after: 12) { _ in }
    #expect(queue.awaitedSequences == [11, 12])
    take(queue.next())
    _ = queue.committed(ArchiveReceipt(sequence: 11, reachableBytes: 0))
    _ = queue.readyReads()
    #expect(queue.awaitedSequences == [12])
    _ = queue.fail()
    #expect(queue.awaitedSequences.isEmpty)
  }

  @Test func aFailedTransactionTakesEverybodyWhoWaitedWithIt() {
    var queue = openQueue()
    queue.add(.removeState(1))
    queue.await(waiting(11, client: 1))
    _ = queue.next()
    queue.add(.removeState(2))
    queue.await(waiting(12, client: 2))
    queue.await(after: 12) { _ in }
    let failure = queue.fail()
    #expect(failure.callers.map(\.client) == [1, 2])
    #expect(failure.readers.count == 1, "a report has to hear that it will read nothing")
    #expect(queue.isIdle)
    guard case .none = queue.next() else {
      Issue.record("a failed queue went on without its archive being opened again")
      return
    }
  }

  @Test func aClientIsSettledWhenWhatItsNotificationWroteIsDurableOrNeverWillBe() {
    var queue = openQueue()
    queue.add(.removeState(1))
    queue.await(ClientID(7))
    take(queue.next())
    queue.add(.removeState(2))
    queue.await(ClientID(8))
    queue.await(ClientID(7))
    take(queue.next())
    #expect(queue.settledClients().isEmpty)
    _ = queue.committed(ArchiveReceipt(sequence: 11, reachableBytes: 0))
    #expect(queue.settledClients() == [7])
    #expect(queue.settledClients().isEmpty)
    #expect(queue.fail().clients == [8, 7])
    #expect(queue.settledClients().isEmpty)
  }

  // MARK: Notices

  private func notice(_ number: Int, _ condition: Announcement.Condition) throws -> WriteQueue.Notice {
    let application = try #require(ApplicationName("App"))
    return .announcement(
      Announcement(
        application: application,
        event: EventsLost(lost: Int64(number)),
        condition: condition,
        recipients: []
      )
    )
  }

  private func numbers(_ notices: [WriteQueue.Notice]) -> [Int64] {
    notices.map { notice in
      guard case .announcement(let announcement) = notice, let event = announcement.event as? EventsLost else {
        return 0
      }
      return event.lost
    }
  }

  @Test func aNoticeWaitsForWhatWasWrittenBeforeIt() throws {
    var queue = openQueue()
    queue.add(.removeState(1))
    try queue.await(notice(1, .stored))
    try queue.await(notice(2, .notStored))
    take(queue.next())
    queue.add(.removeState(2))
    try queue.await(notice(3, .settled))
    queue.await(.notification(.client(7), method: "pathChanged", parameters: .null))
    take(queue.next())
    #expect(queue.readyNotices().isEmpty)
    _ = queue.committed(ArchiveReceipt(sequence: 11, reachableBytes: 0))
    #expect(numbers(queue.readyNotices()) == [1])
    _ = queue.committed(ArchiveReceipt(sequence: 12, reachableBytes: 0))
    #expect(numbers(queue.readyNotices()) == [3, 0])
    #expect(queue.readyNotices().isEmpty)
  }

  @Test func afterAFailureOnlyWhatIsTrueAllTheSameIsTold() throws {
    var queue = openQueue()
    queue.add(.removeState(1))
    try queue.await(notice(1, .stored))
    try queue.await(notice(2, .notStored))
    try queue.await(notice(3, .settled))
    queue.await(.notification(.client(7), method: "pathChanged", parameters: .null))
    take(queue.next())
    #expect(numbers(queue.fail().notices) == [2, 3])
    #expect(queue.readyNotices().isEmpty)
  }
}
