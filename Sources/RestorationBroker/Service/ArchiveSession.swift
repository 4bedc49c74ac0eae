// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
package import RestorationArchive
internal import RestorationWire

/// One opening of an application's archive, until it is closed or opened again.
final class ArchiveSession {
  /// Milliseconds after a failed transaction before the next one: a writer that tries again and again must not keep a
  /// thread from others, and is to hear soon that there is room.
  static let pause: Int64 = 80
  /// The same if nobody waits for the next one: what the broker has to write of itself, it writes after each reopening.
  static let longPause: Int64 = 1_000

  let id: ApplicationID
  let name: ApplicationName
  /// The name without instance.
  let base: String
  /// The core no longer needs it; it is closed as soon as nothing is under way.
  var isClosing = false
  /// How its files are removed when it is closed; nil if they stay.
  var removal: ArchiveRemoval?
  var lease: ArchiveLease?
  /// Until the lease is here or it has failed.
  var opening: Task<Void, Never>?
  var hasFailed = false
  /// When the last transaction failed; nil if it was stored.
  var failed: Int64? { didSet { isHurried = false } }
  /// Whether a client waits for the next one that the queue does not know of.
  var isHurried = false
  private var failureLogged: Int64?
  var queue = WriteQueue()
  /// Reads that the cache had no answer to; one call of the store brings all of them.
  var missing: [StateRequest] = []
  var held = HeldSequences()
  var upkeep = UpkeepSchedule()
  var upkeepTimer: Scheduled<Void>?
  /// What was told of the archive while it was being opened (R36).
  var wantedBy: String?
  var loss: (lease: ArchiveLease, loss: ArchiveLoss)?
  /// Calls of the store that have not come back.
  private var callsUnderWay = 0
  private var whenIdle: [CheckedContinuation<Void, Never>] = []

  init(id: ApplicationID, name: ApplicationName) { (self.id, self.name, base) = (id, name, name.base) }

  /// Somebody still waits for an answer of the store.
  var isBusy: Bool { !queue.isIdle || callsUnderWay > 0 || !missing.isEmpty || lease == nil && !hasFailed }

  var holdings: Holdings {
    [
      "waits for the disk": queue.waiting, "bytes that wait for the disk": queue.pendingBytes,
      "reads that were not begun": missing.count, "calls of the store": callsUnderWay,
      "waits for an idle archive": whenIdle.count,
    ]
  }

  /// Whoever still waited for the archive as it was opened before now waits for this one, and for it alone.
  func takeOver(from before: ArchiveSession) {
    before.upkeepTimer?.cancel()
    swap(&whenIdle, &before.whenIdle)
    swap(&missing, &before.missing)
    (failed, held, failureLogged) = (before.failed, before.held, before.failureLogged)
    isHurried = before.isHurried
  }

  /// A transaction has failed just now: what is added waits.
  func isPaused(at now: Int64) -> Bool {
    guard let failed else { return false }
    return now < failed + (isHurried || queue.isAwaited ? Self.pause : Self.longPause)
  }

  /// While the disk is full one entry every few seconds is enough.
  func isToLogFailure(at now: Int64) -> Bool {
    if let failureLogged, now - failureLogged < 5_000 { return false }
    failureLogged = now
    return true
  }

  func callBegins() { callsUnderWay += 1 }

  func callEnded() { callsUnderWay -= 1 }

  /// Returns when nothing is under way.
  nonisolated(nonsending) func idle() async {
    // Asked where it begins to wait: on the way there this task can let others go first.
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

/// Sequences that pages and pieces of work are still read at, each for a while after it was last used.
package struct HeldSequences {
  private static let milliseconds: Int64 = 60_000

  private var held: [(sequence: SequenceNumber, until: Int64)] = []

  package init() {}

  package var sequences: [SequenceNumber] { held.map(\.sequence) }

  package mutating func hold(_ sequences: [SequenceNumber], at now: Int64) {
    held.removeAll { $0.until <= now || sequences.contains($0.sequence) }
    held += sequences.map { ($0, now + Self.milliseconds) }
  }

  package mutating func expire(at now: Int64) { held.removeAll { $0.until <= now } }
}

/// When an archive is tidied: a while after the last write, if readers pause as well or have been waited for once, and
/// a bounded piece at a time. All times are in milliseconds.
package struct UpkeepSchedule {
  private static let quiet: Int64 = 500
  private static let deferralsMax = 1
  /// Between two pieces the archive and its disk are left to others for this many times as long as the piece took.
  private static let restFactor: Int64 = 4

  /// Between `begin` and `ended`.
  package private(set) var isUnderWay = false
  /// Reads so far, and how many there were when upkeep was last put off.
  private var reads = 0
  private var readsBefore = 0
  private var deferrals = 0
  /// When there will have been quiet for long enough.
  private var due: Int64 = 0

  package init() {}

  package mutating func noteRead() { reads &+= 1 }

  /// Something was written; returns how long to wait. Whoever waits already need not do so anew.
  package mutating func written(at now: Int64) -> Int64 {
    deferrals = 0
    due = now + Self.quiet
    return wait(Self.quiet)
  }

  /// The time has come: begins, or returns how long to wait.
  package mutating func begin(at now: Int64) -> Int64? {
    guard now >= due else { return due - now }
    guard reads == readsBefore || deferrals >= Self.deferralsMax else {
      deferrals += 1
      return wait(Self.quiet)
    }
    isUnderWay = true
    return nil
  }

  /// A piece is done; returns how long to wait for the next one.
  package mutating func ended(after milliseconds: Int64) -> Int64 {
    isUnderWay = false
    return wait(max(1, milliseconds * Self.restFactor))
  }

  private mutating func wait(_ milliseconds: Int64) -> Int64 {
    readsBefore = reads
    return milliseconds
  }
}
