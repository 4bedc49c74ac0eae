// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// Decides what one archive sends to its replica: in which pieces, when to repeat, and when a snapshot replaces a long
/// queue. Events in, actions out; times in milliseconds. Each opening makes a new one.
///
/// Invariants:
/// 1. One batch or snapshot is in progress at a time. A batch with unknown outcome is repeated unchanged, or replaced
///    by a snapshot.
/// 2. A shipment begins at the end of the replica's contents and has no gap. Transactions added together without a gap
///    end in one batch.
/// 3. At most `backlogBytesMax` wait, and at most `addedBytesMax` are added at once. Beyond that everything that waits
///    is dropped, and a snapshot of the archive, which has all of it, is sent instead.
package struct ShippingQueue: Hashable, Sendable {
  package enum Action: Hashable, Sendable {
    /// Send it, then call `appended` or `failed`.
    case append(ReplicaBatch)
    /// Copy the archive, send the copy, then call `copied` or `failed`.
    case copy
    /// The replica has everything up to here.
    case stored(upTo: SequenceNumber)
    /// Tell waiting writers that the outcome at the replica is unknown; sending continues.
    case unconfirmed
    case drained
    /// Call `timePassed` at this time.
    case wait(until: Int64)
  }

  package struct Limits: Hashable, Sendable {
    /// The most bytes of a batch, except for transactions added at once.
    package var batchBytesMax = 1 << 20
    /// More cannot be sent as one batch.
    package var addedBytesMax = 4 << 20
    package var addedMax = 16_384
    package var backlogBytesMax = 8 << 20
    package var retry: Int64 = 500
    /// The longest pause before a failed copy is repeated.
    package var copyRetryMax: Int64 = 30_000
    /// Beyond this size of batches a snapshot replaces them, if it is less than half as long.
    package var compactionBytes = 1 << 20
    /// How long a writer waits for the replica.
    package var patience: Int64 = 2_000

    package init() {}
  }

  private enum Phase: Hashable {
    case stopped
    case idle
    case appending, copying
    case resting(until: Int64)
  }

  private struct Waiting: Hashable {
    let transaction: ReplicaTransaction
    let since: Int64
    let isEnd: Bool
  }

  /// How often a batch of more than `batchBytesMax` is repeated.
  private static let unknownBatchesMax = 2

  private let limits: Limits
  private let promise: ReplicaPromise
  private var phase = Phase.stopped
  /// The end of the replica's contents, as far as known.
  package private(set) var stored: SequenceNumber = 0
  package private(set) var tail: SequenceNumber = 0
  private var waiting: [Waiting] = []
  /// Bytes that wait, including the batch in progress.
  package private(set) var bytes = 0
  /// How many of `waiting` are in progress, or were when their outcome became unknown.
  private var sent = 0
  /// Number of failures in a row. Each has written as much as the archive has.
  private var failedCopies = 0
  /// How often the replica was put back. Each time the whole archive is sent.
  private var putBacks = 0
  /// How often the outcome of the batch in progress became unknown.
  private var unknownBatches = 0
  /// Changes up to here can be sent only by a snapshot.
  private var dropped: SequenceNumber = 0
  /// Whether the next shipment is a snapshot that replaces batches.
  private var isCompacting = false
  /// Bytes of the replica's batches, as far as known.
  private var batchBytes = 0
  private var isFlushing = false
  /// A writer has waited too long: until the replica answers, writes under `.replica` are refused.
  package private(set) var isAway = false
  /// When a writer will have waited too long.
  private var overdue: Int64?

  package init(_ promise: ReplicaPromise, limits: Limits = Limits()) { (self.promise, self.limits) = (promise, limits) }

  /// The queue of the next opening, which knows only how often the replica was put back.
  package var successor: ShippingQueue {
    var next = ShippingQueue(promise, limits: limits)
    next.putBacks = putBacks
    return next
  }
}

extension ShippingQueue {
  package var lag: SequenceNumber { tail - stored }
  package var isSnapshotDue: Bool { dropped > stored || isCompacting }

  /// The archive is open under a lease: it ends at `tip`, the replica's contents at `stored`. Missing changes that do
  /// not wait here are sent by a snapshot.
  ///
  /// - Parameter behind: about how many bytes of batches the replica has.
  package mutating func start(
    stored: SequenceNumber,
    tip: SequenceNumber,
    behind: Int = 0,
    at now: Int64
  ) -> [Action] {
    (phase, self.stored, sent, tail) = (.idle, stored, 0, max(tip, tail))
    unknownBatches = 0
    batchBytes = behind
    forget(upTo: stored)
    if tail == stored { (overdue, isAway) = (nil, false) }
    if tail > stored, waiting.first?.transaction.after != stored { drop() }
    return [.stored(upTo: stored)] + next(at: now)
  }

  /// The lease is gone or void: the shipment in progress does not count. Waiting transactions stay.
  package mutating func stop() {
    phase = .stopped
    sent = 0
  }

  package mutating func add(_ transactions: [ReplicaTransaction], at now: Int64) -> [Action] {
    for (index, transaction) in transactions.enumerated() {
      tail = max(tail, transaction.upto)
      // A snapshot has it already.
      guard transaction.upto > stored else { continue }
      if promise == .replica, overdue == nil { overdue = now + limits.patience }
      // The disk may answer in another order.
      let place = waiting.lastIndex { $0.transaction.after < transaction.after }.map { $0 + 1 } ?? waiting.startIndex
      let isEnd = index + 1 == transactions.count || transactions[index + 1].after != transaction.upto
      waiting.insert(Waiting(transaction: transaction, since: now, isEnd: isEnd), at: place)
      bytes += transaction.changes.count
    }
    let isTooLong = transactions.bytes > limits.addedBytesMax || transactions.count > limits.addedMax
    if isTooLong || bytes > limits.backlogBytesMax { drop() }
    return next(at: now)
  }

  /// Drops what waits in favour of a snapshot. Also called when too much waits of all archives together.
  package mutating func drop() {
    dropped = tail
    // The batch in progress may have arrived; that is resolved first.
    waiting.removeLast(waiting.count - sent)
    bytes = waiting.lazy.map(\.transaction).bytes
  }

  /// Call when the archive is not being written. If batches have become long, a new snapshot replaces them: readers
  /// load the snapshot and all batches.
  ///
  /// - Parameter archiveBytes: about how long the snapshot will be.
  package mutating func compact(archiveBytes: Int, at now: Int64) -> [Action] {
    guard phase == .idle, tail == stored, batchBytes > max(limits.compactionBytes, 2 * archiveBytes) else { return [] }
    // A writer that comes meanwhile would wait for it.
    guard promise == .disk || archiveBytes <= limits.batchBytesMax else { return [] }
    isCompacting = true
    return next(at: now)
  }

  /// Replaces everything at the replica by a snapshot; the archive ends at `sequence`.
  package mutating func renew(upTo sequence: SequenceNumber, at now: Int64) -> [Action] {
    tail = max(tail, sequence)
    drop()
    return next(at: now)
  }

  /// The replica was put back to an earlier state, and ends at `end`: what it lacks is sent again, after a pause that
  /// grows. A shipment in progress finds out by itself.
  package mutating func wentBack(to end: SequenceNumber, at now: Int64) -> [Action] {
    guard phase == .idle, sent == 0, end < stored else { return [] }
    stored = end
    drop()
    phase = .resting(until: now + min(limits.copyRetryMax, limits.retry << min(putBacks, 16)))
    putBacks += 1
    return next(at: now)
  }

  /// The archive is closing: `drained` follows when everything has arrived.
  package mutating func flush(at now: Int64) -> [Action] {
    isFlushing = true
    return next(at: now)
  }

  package mutating func endFlush() { isFlushing = false }

  package mutating func timePassed(at now: Int64) -> [Action] {
    if case .resting(let until) = phase, now >= until { phase = .idle }
    guard let overdue, now >= overdue else { return next(at: now) }
    self.overdue = nil
    isAway = true
    return [.unconfirmed] + next(at: now)
  }

  // MARK: Answers

  package mutating func appended(at now: Int64) -> [Action] {
    guard phase == .appending, sent > 0 else { return [] }
    batchBytes += sentBytes
    return arrived(upTo: waiting[sent - 1].transaction.upto, at: now)
  }

  /// The replica has a copy of the archive up to `sequence`.
  package mutating func copied(upTo sequence: SequenceNumber, at now: Int64) -> [Action] {
    guard phase == .copying else { return [] }
    (isCompacting, batchBytes) = (false, 0)
    return arrived(upTo: sequence, at: now)
  }

  private mutating func arrived(upTo sequence: SequenceNumber, at now: Int64) -> [Action] {
    (phase, sent, stored, isAway) = (.idle, 0, sequence, false)
    (failedCopies, unknownBatches) = (0, 0)
    tail = max(tail, sequence)
    forget(upTo: sequence)
    if tail == stored {
      overdue = nil
    } else if let first = waiting.first, overdue != nil {
      overdue = first.since + limits.patience
    }
    return [.stored(upTo: stored)] + next(at: now)
  }

  private var sentBytes: Int { waiting[..<sent].lazy.map(\.transaction).bytes }

  private mutating func forget(upTo sequence: SequenceNumber) {
    waiting.removeAll { $0.transaction.upto <= sequence }
    bytes = waiting.lazy.map(\.transaction).bytes
  }

  /// The shipment in progress has failed. If the lease has ended, call `stop` as well.
  package mutating func failed(_ kind: ReplicaError.Kind, at now: Int64) -> [Action] {
    guard phase == .appending || phase == .copying else { return [] }
    var pause = limits.retry
    if phase == .copying {
      pause = min(limits.copyRetryMax, limits.retry << min(failedCopies, 16))
      failedCopies += 1
      // Compaction can wait until as many bytes have been added again; batches continue.
      if isCompacting { (isCompacting, batchBytes) = (false, 0) }
    }
    phase = .resting(until: now + pause)
    switch kind {
    case .away: break
    // The batch may have arrived. If it is too long for a slow connection, a snapshot replaces it, which is sent in
    // pieces.
    case .unknown:
      unknownBatches += sent > 0 ? 1 : 0
      if sentBytes > limits.batchBytesMax, unknownBatches > Self.unknownBatchesMax {
        sent = 0
        drop()
      }
    // The replica has less than before, or the shipment is too large for it.
    case .gap, .quota, .refused, .uncovered, .elsewhere, .fenced, .voided, .tooNew, .key:
      sent = 0
      // A snapshot may take less space than the batches it replaces.
      let isTooLong = if case .quota = kind { batchBytes > limits.compactionBytes } else { false }
      if case .gap = kind { drop() } else if isTooLong { drop() }
    }
    return next(at: now)
  }

  // MARK: What is next

  private mutating func next(at now: Int64) -> [Action] {
    var wake = [overdue]
    var actions: [Action] = []
    switch phase {
    case .stopped, .appending, .copying: break
    case .resting(let until): wake.append(until)
    case .idle where sent > 0: actions = append(sent)
    case .idle where isSnapshotDue:
      phase = .copying
      actions = [.copy]
    case .idle where tail == stored: if isFlushing { actions = [.drained] }
    case .idle:
      // A late transaction is waited for.
      if waiting.first?.transaction.after == stored { actions = append(batchCount()) }
    }
    return actions + (wake.compactMap { $0 }.min().map { [.wait(until: $0)] } ?? [])
  }

  private mutating func append(_ count: Int) -> [Action] {
    (phase, sent) = (.appending, count)
    return [.append(ReplicaBatch(waiting[..<count].map(\.transaction)))]
  }

  /// How many of `waiting` form the next batch: without a gap, and not too large.
  private func batchCount() -> Int {
    var (count, size, end) = (0, 0, stored)
    for (index, next) in waiting.enumerated() {
      size += next.transaction.changes.count
      guard next.transaction.after == end, count == 0 || size <= limits.batchBytesMax else { break }
      end = next.transaction.upto
      if next.isEnd { count = index + 1 }
    }
    return count
  }
}
