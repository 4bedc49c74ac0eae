// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
internal import RestorationWire

/// Group commit of one application: the changes for the next transaction, and the answers that wait for it.
///
/// Invariants:
/// 1. Changes written during a transaction share the next one, which is handed over at once, so that the archive's
///    thread continues without waiting for this queue.
/// 2. An answer that promises durability leaves only when its change is durable (R15).
/// 3. `answers` is in ascending order of awaited changes; an answer that waits for less leaves with the one before it.
/// 4. The archive numbers changes `durable + 1, durable + 2 …` in the order of their addition.
package struct WriteQueue {
  package struct Waiting {
    package let after: SequenceNumber
    package let caller: Caller
    package let answer: Answer

    package init(after: SequenceNumber, caller: Caller, answer: Answer) {
      (self.after, self.caller, self.answer) = (after, caller, answer)
    }
  }

  /// An unsolicited message to clients.
  package enum Notice: Sendable {
    case notification(Recipient, method: String, parameters: JSONText)
    case announcement(Announcement)

    /// Whether it is sent when the changes before it are durable.
    package var followsSuccess: Bool {
      if case .announcement(let announcement) = self { announcement.condition != .notStored } else { true }
    }

    /// Whether it is sent when they failed.
    fileprivate var followsFailure: Bool {
      if case .announcement(let announcement) = self { announcement.condition != .stored } else { false }
    }

    /// Its approximate memory while it waits.
    fileprivate var memory: Int {
      switch self {
      case .notification(_, _, let parameters): 256 + parameters.bytes.count
      case .announcement(let announcement): 512 + announcement.recipients.count * MemoryLayout<Subscriber>.stride
      }
    }
  }

  /// Gets `nil` when the change that it waits for is durable, or the error if it never will be.
  package typealias Reader = (ArchiveError?) -> Void

  package enum Action {
    case none
    case commit(ArchiveBatch, expecting: SequenceNumber)
  }

  private struct HandedOver {
    let batch: ArchiveBatch
    var count: Int
    var bytes: Int
  }

  private var isOpen = false
  package private(set) var durable: SequenceNumber = 0
  /// Added since the last batch was handed over.
  private var changes: [ArchiveChange] = []
  private var changesBytes = 0
  /// In the order of execution; at most the last one can still be extended.
  private var handedOver: [HandedOver] = []
  private var handedOverCount = 0
  /// Approximate memory of what waits for the disk; writers that are faster than the disk are paused by it.
  package private(set) var pendingBytes = 0
  /// Notifications are not counted as calls in flight, so the memory of what they leave waiting for the disk is: beyond
  /// this many bytes their sender is not read, until half of them are durable.
  private static let pauseBytes = 4 << 20
  private var answers: [Waiting] = []
  private var notices = Waits<Notice>()
  private var reads = Waits<StateRequest>()
  private var readers = Waits<Reader>()
  /// Clients that get no message, but whose connections are not idle before.
  private var clients = Waits<ClientID>()

  /// Elements that wait for changes, in any order.
  private struct Waits<Element> {
    private(set) var all: [(element: Element, after: SequenceNumber)] = []

    var isEmpty: Bool { all.isEmpty }
    var count: Int { all.count }

    mutating func add(_ element: Element, after: SequenceNumber) { all.append((element, after)) }

    mutating func take(upTo durable: SequenceNumber) -> [Element] {
      guard !all.isEmpty else { return [] }
      defer { all.removeAll { $0.after <= durable } }
      return all.filter { $0.after <= durable }.map(\.element)
    }
  }

  /// Everything that ends with a failed transaction.
  package struct Failure {
    /// Callers that get the error.
    package let callers: [Caller]
    /// Readers whose changes will never be durable.
    package let readers: [Reader]
    /// Notices that are sent nevertheless.
    package let notices: [Notice]
    package let clients: [ClientID]
  }

  package var isIdle: Bool { handedOver.isEmpty && changes.isEmpty }

  /// Number of changes that are not durable and of their waiters.
  package var waiting: Int {
    changes.count + handedOver.count + handedOverCount + changesBytes + answers.count + notices.count + reads.count
      + readers.count + clients.count
  }

  /// Whether a client waits for a change that is not durable.
  package var isAwaited: Bool { !answers.isEmpty || !reads.isEmpty || !readers.isEmpty || !clients.isEmpty }

  package init() {}

  package var tail: SequenceNumber { durable + Int64(handedOverCount + changes.count) }

  package mutating func opened(at sequence: SequenceNumber) {
    isOpen = true
    durable = sequence
  }

  var isOverfull: Bool { pendingBytes > Self.pauseBytes }
  /// Whether paused writers may resume.
  var hasRoom: Bool { pendingBytes <= Self.pauseBytes / 2 }

  package mutating func add(_ change: ArchiveChange) {
    let bytes = change.memory
    pendingBytes += bytes
    changesBytes += bytes
    changes.append(change)
  }

  package mutating func await(_ answer: Waiting) {
    let after = max(answer.after, answers.last?.after ?? 0)
    answers.append(Waiting(after: after, caller: answer.caller, answer: answer.answer))
  }

  package mutating func await(_ request: StateRequest, after: SequenceNumber) { reads.add(request, after: after) }

  package mutating func await(after sequence: SequenceNumber, _ reader: @escaping Reader) {
    readers.add(reader, after: sequence)
  }

  /// The client's notification waits for everything added so far.
  package mutating func await(_ client: ClientID) { clients.add(client, after: tail) }

  /// Hands over the added changes, together with the batch that the archive has not begun yet, if any.
  package mutating func next() -> Action {
    guard isOpen, !changes.isEmpty else { return .none }
    let expecting = durable + Int64(handedOverCount)
    let (count, bytes) = (changes.count, changesBytes)
    handedOverCount += count
    changesBytes = 0
    defer { changes.removeAll(keepingCapacity: true) }
    if let last = handedOver.last, last.batch.add(changes) {
      handedOver[handedOver.count - 1].count += count
      handedOver[handedOver.count - 1].bytes += bytes
      return .none
    }
    let batch = ArchiveBatch(changes)
    handedOver.append(HandedOver(batch: batch, count: count, bytes: bytes))
    return .commit(batch, expecting: expecting)
  }

  /// The transaction is durable; returns the answers to send.
  package mutating func committed(_ receipt: ArchiveReceipt) -> [Waiting] {
    durable = receipt.sequence
    let done = handedOver.removeFirst()
    handedOverCount -= done.count
    pendingBytes -= done.bytes
    var ready: [Waiting] = []
    if let last = answers.last, last.after <= durable {
      swap(&ready, &answers)
    } else {
      let end = answers.firstIndex { $0.after > durable } ?? answers.endIndex
      ready = Array(answers[..<end])
      answers.removeFirst(end)
    }
    return ready
  }

  /// The notice is sent when everything added so far is durable.
  package mutating func await(_ notice: Notice) {
    pendingBytes += notice.memory
    notices.add(notice, after: tail)
  }

  package mutating func readyNotices() -> [Notice] {
    let due = notices.take(upTo: durable)
    pendingBytes -= due.reduce(0) { $0 + $1.memory }
    return due.filter(\.followsSuccess)
  }

  /// Sequences that waiting reads will use: the archive must not delete rows visible there.
  package var awaitedSequences: [SequenceNumber] {
    reads.all.flatMap(\.element.rows).map(\.sequence) + readers.all.map(\.after)
  }

  package mutating func readyReads() -> [StateRequest] { reads.take(upTo: durable) }

  /// Readers whose changes are durable now.
  package mutating func readyReaders() -> [Reader] { readers.take(upTo: durable) }

  package mutating func settledClients() -> [ClientID] { clients.take(upTo: durable) }

  /// The transaction failed: everything that is not durable is lost.
  package mutating func fail() -> Failure {
    let failure = Failure(
      callers: answers.map(\.caller) + reads.all.map(\.element.caller),
      readers: readers.all.map(\.element),
      notices: notices.all.map(\.element).filter(\.followsFailure),
      clients: clients.all.map(\.element)
    )
    let durable = durable
    self = WriteQueue()
    self.durable = durable
    return failure
  }
}
