// SPDX-License-Identifier: Apache-2.0

/// What one archive is to send to its replica: in which pieces, when again, and what takes its place if it becomes too
/// much. Events in, actions out; times are in milliseconds. Each opening has a new one.
///
/// Invariants:
/// 1. One batch or snapshot is under way at a time. A batch whose outcome is unknown is repeated as it was, or gives
///    way to a snapshot.
/// 2. What is sent begins where the replica's contents end, and has no gap. What was added together, and has no gap,
///    ends in one batch.
/// 3. No more than `backlogBytesMax` wait, and no more than `addedBytesMax` was added at one time. What would exceed
///    that is dropped together with all that waits: a snapshot of the archive, which has all of it, takes its place.
package struct ShippingQueue: Hashable, Sendable {
  /// When whoever writes is told that it is stored.
  package enum Promise: String, Sendable {
    /// When it is on this host's disk.
    case disk
    /// When the replica has it too.
    case replica
  }

  package enum Action: Hashable, Sendable {
    /// Send it, and tell `appended` or `failed`.
    case append(ReplicaBatch)
    /// Copy the archive, send the copy, and tell `copied` or `failed`.
    case copy
    /// The replica has everything up to here.
    case stored(upTo: SequenceNumber)
    /// Whoever waits is told that it is unknown whether the replica will have it; it is sent all the same.
    case unconfirmed
    /// There is nothing left to send.
    case drained
    /// Tell `timePassed` at this time.
    case wait(until: Int64)
  }

  package struct Limits: Hashable, Sendable {
    /// A batch has no more, unless it is what was added at one time.
    package var batchBytesMax = 1 << 20
    /// More cannot be sent as one batch.
    package var addedBytesMax = 4 << 20
    package var addedMax = 16_384
    package var backlogBytesMax = 8 << 20
    /// After how long something is tried again.
    package var retry: Int64 = 500
    /// After how long a copy is made again at the latest.
    package var copyRetryMax: Int64 = 30_000
    /// With more bytes in batches a snapshot may take their place, if it is less than half as long.
    package var compactionBytes = 1 << 20
    /// How long a writer waits for the replica.
    package var patience: Int64 = 2_000

    package init() {}
  }

  private enum Phase: Hashable {
    /// Without a lease nothing is sent.
    case stopped
    case idle
    case appending, copying
    case resting(until: Int64)
  }

  private struct Waiting: Hashable {
    let transaction: ReplicaTransaction
    /// When it was added.
    let since: Int64
    /// A batch may end with it.
    let isEnd: Bool
  }

  /// A batch of more than `batchBytesMax` is repeated so often.
  private static let unknownBatchesMax = 2

  private let limits: Limits
  private let promise: Promise
  private var phase = Phase.stopped
  /// Where the replica's contents end, as far as that is known.
  package private(set) var stored: SequenceNumber = 0
  /// Where the archive ends.
  package private(set) var tail: SequenceNumber = 0
  /// In ascending order.
  private var waiting: [Waiting] = []
  /// Bytes of what waits; what is under way counts until the replica has it.
  package private(set) var bytes = 0
  /// How many of those that wait are under way, or were when their outcome became unknown.
  private var sent = 0
  /// One after the other. Each has written as much as the archive has.
  private var failedCopies = 0
  /// How often it has become unknown whether the batch that is under way has arrived.
  private var unknownBatches = 0
  /// Up to here only a snapshot can bring what is missing.
  private var dropped: SequenceNumber = 0
  /// A snapshot is to take the place of batches.
  private var isCompacting = false
  /// Bytes of the replica's batches, as far as that is known.
  private var batchBytes = 0
  private var isFlushing = false
  /// The replica has kept a writer waiting for too long: until it answers, nothing may be written under `.replica`.
  package private(set) var isAway = false
  /// When a writer will have waited for too long.
  private var overdue: Int64?

  package init(_ promise: Promise, limits: Limits = Limits()) { (self.promise, self.limits) = (promise, limits) }
}

extension ShippingQueue {
  /// Changes that the replica does not have.
  package var lag: SequenceNumber { tail - stored }
  package var isSnapshotDue: Bool { dropped > stored || isCompacting }

  /// The archive is open under a lease: it ends at `tip`, the replica's contents at `stored`. What is missing there and
  /// does not wait here is brought by a snapshot.
  ///
  /// - Parameter behind: about how many bytes its batches have.
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

  /// The lease is gone, or void: what is under way comes to nothing. What waits stays.
  package mutating func stop() {
    phase = .stopped
    sent = 0
  }

  /// Transactions are on the disk.
  package mutating func add(_ transactions: [ReplicaTransaction], at now: Int64) -> [Action] {
    for (index, transaction) in transactions.enumerated() {
      tail = max(tail, transaction.upto)
      // A snapshot has it already.
      guard transaction.upto > stored else { continue }
      if promise == .replica, overdue == nil { overdue = now + limits.patience }
      // Answers of the disk may come in another order.
      let place = waiting.lastIndex { $0.transaction.after < transaction.after }.map { $0 + 1 } ?? waiting.startIndex
      let isEnd = index + 1 == transactions.count || transactions[index + 1].after != transaction.upto
      waiting.insert(Waiting(transaction: transaction, since: now, isEnd: isEnd), at: place)
      bytes += transaction.changes.count
    }
    let isTooLong = transactions.bytes > limits.addedBytesMax || transactions.count > limits.addedMax
    if isTooLong || bytes > limits.backlogBytesMax { drop() }
    return next(at: now)
  }

  /// Gives up what waits, for a snapshot: also when all archives together have too much waiting.
  package mutating func drop() {
    dropped = tail
    // What is under way may have arrived, and is found out first.
    waiting.removeLast(waiting.count - sent)
    bytes = waiting.lazy.map(\.transaction).bytes
  }

  /// Nobody writes. Whoever reads the contents reads the snapshot and all batches: if these have become long, a new
  /// snapshot takes their place.
  ///
  /// - Parameter archiveBytes: about how long it will be.
  package mutating func compact(archiveBytes: Int, at now: Int64) -> [Action] {
    guard phase == .idle, tail == stored, batchBytes > max(limits.compactionBytes, 2 * archiveBytes) else { return [] }
    // A writer that comes meanwhile would wait for it.
    guard promise == .disk || archiveBytes <= limits.batchBytesMax else { return [] }
    isCompacting = true
    return next(at: now)
  }

  /// The archive ends here, and a snapshot of all of it is wanted.
  package mutating func renew(upTo sequence: SequenceNumber, at now: Int64) -> [Action] {
    tail = max(tail, sequence)
    drop()
    return next(at: now)
  }

  /// Whoever closes the archive waits: `drained` says that all of it has arrived.
  package mutating func flush(at now: Int64) -> [Action] {
    isFlushing = true
    return next(at: now)
  }

  /// The archive is in use again.
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

  /// The replica has a copy of the archive that ends here.
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

  /// What was under way has failed. What ends the lease is told `stop` as well.
  package mutating func failed(_ kind: ReplicaError.Kind, at now: Int64) -> [Action] {
    guard phase == .appending || phase == .copying else { return [] }
    var pause = limits.retry
    if phase == .copying {
      pause = min(limits.copyRetryMax, limits.retry << min(failedCopies, 16))
      failedCopies += 1
      // It can wait until as much has come again; batches go on.
      if isCompacting { (isCompacting, batchBytes) = (false, 0) }
    }
    phase = .resting(until: now + pause)
    switch kind {
    case .away: break
    // It may have arrived. What is too long for a slow way gives way to a snapshot, which goes in pieces; that has it
    // too.
    case .unknown:
      unknownBatches += sent > 0 ? 1 : 0
      if sentBytes > limits.batchBytesMax, unknownBatches > Self.unknownBatchesMax {
        sent = 0
        drop()
      }
    // The replica has less than it had, or what was sent is too much for it.
    case .gap, .quota, .refused, .uncovered, .elsewhere, .fenced, .voided, .tooNew, .key:
      sent = 0
      // A snapshot may take less room than the batches that it replaces.
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
      // One that comes late is waited for.
      if waiting.first?.transaction.after == stored { actions = append(batchCount()) }
    }
    return actions + (wake.compactMap { $0 }.min().map { [.wait(until: $0)] } ?? [])
  }

  private mutating func append(_ count: Int) -> [Action] {
    (phase, sent) = (.appending, count)
    return [.append(ReplicaBatch(waiting[..<count].map(\.transaction)))]
  }

  /// How many of those that wait become the next batch: without a gap, and not too large.
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
