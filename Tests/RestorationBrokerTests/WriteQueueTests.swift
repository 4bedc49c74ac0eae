// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Group commit: what is written meanwhile shares a transaction; no answer leaves before its change is durable (R15).
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
    guard case .commit(let first, _) = queue.next() else {
      Issue.record("no transaction")
      return
    }
    _ = first.take()
    queue.add(.state(StateRecord(node: 1, context: 0, written: 0, text: Array("[1,2]".utf8)[...])))
    _ = queue.next()
    #expect(queue.pendingBytes == 7)
    _ = queue.committed(ArchiveReceipt(sequence: 11, reachableBytes: 0))
    #expect(queue.pendingBytes == 5)
    _ = queue.committed(ArchiveReceipt(sequence: 12, reachableBytes: 0))
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

  @Test func aFailedTransactionTakesEverybodyWhoWaitedWithIt() {
    var queue = openQueue()
    queue.add(.removeState(1))
    queue.await(waiting(11, client: 1))
    _ = queue.next()
    queue.add(.removeState(2))
    queue.await(waiting(12, client: 2))
    #expect(queue.failed().map(\.client) == [1, 2])
    #expect(queue.isIdle)
    guard case .none = queue.next() else {
      Issue.record("a failed queue went on without its archive being opened again")
      return
    }
  }
}
