// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
internal import RestorationWire

/// Group commit of one application: what waits for the next transaction, and who waits for it.
///
/// Invariants:
/// 1. Whatever is written while a transaction is under way shares the next one, which is handed over at once, so that
///    the archive's lane continues without waiting for this one.
/// 2. An answer that promises durability leaves only when its change is durable (R15).
/// 3. `answers` is in ascending order of what it waits for; one that waits for less leaves with the one before it.
/// 4. The archive gives changes the numbers `durable + 1, durable + 2 …` in the order they were added.
package struct WriteQueue {
  package struct Waiting {
    package let after: SequenceNumber
    package let caller: Caller
    package let answer: Answer

    package init(after: SequenceNumber, caller: Caller, answer: Answer) {
      (self.after, self.caller, self.answer) = (after, caller, answer)
    }
  }

  /// Something clients are told without having asked just now.
  package enum Notice: Sendable {
    case notification(Recipient, method: String, parameters: JSONText)
    case announcement(Announcement)

    /// Whether it is told when the changes before it are durable.
    package var followsSuccess: Bool {
      if case .announcement(let announcement) = self { announcement.condition != .notStored } else { true }
    }

    /// Whether it is told when they never will be.
    fileprivate var followsFailure: Bool {
      if case .announcement(let announcement) = self { announcement.condition != .stored } else { false }
    }

    /// About the memory it takes while it waits.
    fileprivate var memory: Int {
      switch self {
      case .notification(_, _, let parameters): 256 + parameters.bytes.count
      case .announcement(let announcement): 512 + announcement.recipients.count * MemoryLayout<Subscriber>.stride
      }
    }
  }

  /// What is to be done next.
  package enum Action {
    case none
    case commit(ArchiveBatch, expecting: SequenceNumber)
  }

  /// A batch the archive has been given.
  private struct HandedOver {
    let batch: ArchiveBatch
    var count: Int
    var bytes: Int
  }

  private var isOpen = false
  package private(set) var durable: SequenceNumber = 0
  /// Added since the last hand-over.
  private var changes: [ArchiveChange] = []
  private var changesBytes = 0
  /// In the order in which they are carried out; at most the last one can still take more.
  private var handedOver: [HandedOver] = []
  private var handedOverCount = 0
  /// About the memory of what waits for the disk: pauses those who write faster than it takes that.
  package private(set) var pendingBytes = 0
  /// Notifications are not counted as calls in flight, so the memory of what they leave waiting for the disk is: beyond
  /// this many bytes their sender is not read, until half of them are durable.
  private static let pauseBytes = 4 << 20
  private var answers: [Waiting] = []
  private var notices = Waits<Notice>()
  private var reads = Waits<StateRequest>()
  private var jobs = Waits<StoreJob>()
  /// Clients that are told nothing, but whose connections are not idle before.
  private var clients = Waits<ClientID>()

  /// What waits for changes, in any order.
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

  /// What ends with a transaction that has failed.
  package struct Failure {
    /// Who is to get the error.
    package let callers: [Caller]
    /// Work that will not be done; who began it waits for its end.
    package let jobs: [StoreJob]
    /// Notices that go all the same.
    package let notices: [Notice]
    package let clients: [ClientID]
  }

  package var isIdle: Bool { handedOver.isEmpty && changes.isEmpty }

  /// What is not durable, and who waits for that.
  package var waiting: Int {
    changes.count + handedOver.count + handedOverCount + changesBytes + answers.count + notices.count + reads.count
      + jobs.count + clients.count
  }

  /// A client waits for what is not durable.
  package var isAwaited: Bool { !answers.isEmpty || !reads.isEmpty || !jobs.isEmpty || !clients.isEmpty }

  package init() {}

  /// The number of the last change added.
  package var tail: SequenceNumber { durable + Int64(handedOverCount + changes.count) }

  package mutating func opened(at sequence: SequenceNumber) {
    isOpen = true
    durable = sequence
  }

  var isOverfull: Bool { pendingBytes > Self.pauseBytes }
  /// So little waits that who wrote too fast may go on.
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

  package mutating func await(_ job: StoreJob, after: SequenceNumber) { jobs.add(job, after: after) }

  /// The client has sent a notification: it waits for everything added so far.
  package mutating func await(_ client: ClientID) { clients.add(client, after: tail) }

  /// Hands over what was added, with the batch the archive has not begun yet if there is one.
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

  /// The transaction is durable; returns the answers that may go.
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

  /// The notice leaves when everything added so far is durable.
  package mutating func await(_ notice: Notice) {
    pendingBytes += notice.memory
    notices.add(notice, after: tail)
  }

  package mutating func readyNotices() -> [Notice] {
    let due = notices.take(upTo: durable)
    pendingBytes -= due.reduce(0) { $0 + $1.memory }
    return due.filter(\.followsSuccess)
  }

  /// What is read by those who wait here: meanwhile the archive may not delete a row that is shown then.
  package var awaitedSequences: [SequenceNumber] {
    reads.all.flatMap(\.element.rows).map(\.sequence) + jobs.all.map(\.after)
  }

  /// Reads whose changes are durable now.
  package mutating func readyReads() -> [StateRequest] { reads.take(upTo: durable) }

  /// Pieces of work whose changes are durable now.
  package mutating func readyJobs() -> [StoreJob] { jobs.take(upTo: durable) }

  /// Clients whose notifications are durable now.
  package mutating func settledClients() -> [ClientID] { clients.take(upTo: durable) }

  /// The transaction failed: nothing that was not durable before will be.
  package mutating func fail() -> Failure {
    let (reads, jobs) = (reads.all.map(\.element), jobs.all.map(\.element))
    let failure = Failure(
      callers: answers.map(\.caller) + reads.map(\.caller),
      jobs: jobs,
      notices: notices.all.map(\.element).filter(\.followsFailure),
      clients: clients.all.map(\.element)
    )
    let durable = durable
    self = WriteQueue()
    self.durable = durable
    return failure
  }
}
