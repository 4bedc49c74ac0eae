// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
package import RestorationArchive
internal import RestorationWire

final class ArchiveSession {
  /// Milliseconds between a failed transaction and the next one: a writer that tries again and again must not keep a
  /// thread from others, and should soon learn that there is space again.
  static let pause: Int64 = 80
  /// The pause if no client waits. The broker's own writes recur after each reopening.
  static let longPause: Int64 = 1_000

  let id: ApplicationID
  let name: ApplicationName
  let base: String
  /// The core no longer needs the archive; it is closed when nothing is in progress.
  var isClosing = false
  /// How its files are removed on closing; `nil` if they stay.
  var removal: ArchiveRemoval?
  var lease: ArchiveLease?
  /// Set until the lease is here or the opening has failed.
  var opening: Task<Void, Never>?
  var hasFailed = false
  /// The time of the last transaction if it failed; `nil` if it was stored.
  var failed: Int64? { didSet { isHurried = false } }
  /// Whether a client outside of the queue waits for the next transaction.
  var isHurried = false
  private var failureLogged: Int64?
  var queue = WriteQueue()
  /// Reads that the cache could not answer; one call of the store reads them all.
  var missing: [StateRequest] = []
  var held = HeldSequences()
  var upkeep = UpkeepSchedule()
  var upkeepTimer: Scheduled<Void>?
  /// Events of other hosts that came while the archive was being opened.
  var wantedBy: String?
  var loss: (lease: ArchiveLease, loss: ArchiveLoss)?
  private var callsUnderWay = 0
  private var whenIdle: [CheckedContinuation<Void, Never>] = []

  init(id: ApplicationID, name: ApplicationName) { (self.id, self.name, base) = (id, name, name.base) }

  /// Whether an answer of the store is awaited.
  var isBusy: Bool { !queue.isIdle || callsUnderWay > 0 || !missing.isEmpty || lease == nil && !hasFailed }

  var holdings: Holdings {
    [
      "waits for the disk": queue.waiting, "bytes that wait for the disk": queue.pendingBytes,
      "reads that were not begun": missing.count, "calls of the store": callsUnderWay,
      "waits for an idle archive": whenIdle.count,
    ]
  }

  /// Moves all waiters of the former opening to this one.
  func takeOver(from before: ArchiveSession) {
    before.upkeepTimer?.cancel()
    swap(&whenIdle, &before.whenIdle)
    swap(&missing, &before.missing)
    (failed, held, failureLogged) = (before.failed, before.held, before.failureLogged)
    isHurried = before.isHurried
  }

  /// Whether writes wait because the last transaction has just failed.
  func isPaused(at now: Int64) -> Bool {
    guard let failed else { return false }
    return now < failed + (isHurried || queue.isAwaited ? Self.pause : Self.longPause)
  }

  /// While the disk is full, one entry every few seconds is enough.
  func isToLogFailure(at now: Int64) -> Bool {
    if let failureLogged, now - failureLogged < 5_000 { return false }
    failureLogged = now
    return true
  }

  func callBegins() { callsUnderWay += 1 }

  func callEnded() { callsUnderWay -= 1 }

  nonisolated(nonsending) func idle() async {
    // Checked inside, because the task may be suspended on the way here.
    await withCheckedContinuation { waiting in
      if isBusy { whenIdle.append(waiting) } else { waiting.resume() }
    }
  }

  func resumeWaiting() {
    let waiting = whenIdle
    whenIdle = []
    for continuation in waiting { continuation.resume() }
  }
}

/// Keeps sequences readable for as long as it exists, and a minute longer: for the next page.
package struct SnapshotHold: ~Copyable {
  private let release: () -> Void

  init(_ release: @escaping () -> Void) { self.release = release }

  deinit { release() }
}

/// Sequences that reports read at, each for a while after the last one that did.
package struct HeldSequences {
  private static let milliseconds: Int64 = 60_000

  /// How many read at each.
  private var held: [SequenceNumber: Int] = [:]
  private var released: [(sequence: SequenceNumber, until: Int64)] = []

  package init() {}

  package var sequences: [SequenceNumber] { held.keys + released.map(\.sequence) }

  package mutating func hold(_ sequences: [SequenceNumber]) {
    for sequence in sequences { held[sequence, default: 0] += 1 }
  }

  package mutating func release(_ sequences: [SequenceNumber], at now: Int64) {
    for sequence in sequences { held[sequence] = held[sequence].flatMap { $0 > 1 ? $0 - 1 : nil } }
    released.removeAll { $0.until <= now || sequences.contains($0.sequence) }
    released += sequences.map { ($0, now + Self.milliseconds) }
  }

  package mutating func expire(at now: Int64) { released.removeAll { $0.until <= now } }
}

/// Decides when to tidy an archive: some time after the last write, if readers pause as well or were waited for once,
/// in bounded pieces. All times in milliseconds.
package struct UpkeepSchedule {
  private static let quiet: Int64 = 500
  private static let deferralsMax = 1
  /// The pause between two pieces is this many times as long as the piece took.
  private static let restFactor: Int64 = 4

  package private(set) var isUnderWay = false
  /// The reads so far, and their number when maintenance was last postponed.
  private var reads = 0
  private var readsBefore = 0
  private var deferrals = 0
  /// The time at which it has been quiet for long enough.
  private var due: Int64 = 0

  package init() {}

  package mutating func noteRead() { reads &+= 1 }

  /// Returns how long to wait; an earlier wait may continue.
  package mutating func written(at now: Int64) -> Int64 {
    deferrals = 0
    due = now + Self.quiet
    return wait(Self.quiet)
  }

  /// Begins a piece, or returns how long to wait.
  package mutating func begin(at now: Int64) -> Int64? {
    guard now >= due else { return due - now }
    guard reads == readsBefore || deferrals >= Self.deferralsMax else {
      deferrals += 1
      return wait(Self.quiet)
    }
    isUnderWay = true
    return nil
  }

  /// Returns how long to wait for the next piece.
  package mutating func ended(after milliseconds: Int64) -> Int64 {
    isUnderWay = false
    return wait(max(1, milliseconds * Self.restFactor))
  }

  private mutating func wait(_ milliseconds: Int64) -> Int64 {
    readsBefore = reads
    return milliseconds
  }
}
