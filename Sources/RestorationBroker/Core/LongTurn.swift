// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive

/// Work that takes too long for one event. It is done in pieces, and the loop serves others between them.
///
/// To others it happens at its end: until then its changes and effects are held back, and calls of the application wait
/// (`isUnsettled`). Any other event of the application finishes it first (`settled`).
///
/// It is a task, because a task can pause in the middle of a function. It is its own executor, because the core decides
/// when a piece runs, within an event. It waits for nothing but its next piece.
final class LongTurn: TaskExecutor, @unchecked Sendable {
  typealias Body = (LongTurn) async throws(ErrorObject) -> Void

  private let body: Body
  /// Gets the refusal if the turn fails.
  fileprivate let caller: Caller
  /// The next piece; `nil` while one runs, and at the end.
  private var piece: UnownedJob?
  private var pause: UnsafeContinuation<Void, Never>?
  /// The most objects of one piece, and those of this one.
  private let objectsMax: Int
  private var objects = 0
  /// Further long turns that its pieces have caused.
  fileprivate var following: [(LongTurn) async -> Void] = []
  fileprivate private(set) var failure: ErrorObject?
  /// Changes and effects of the pieces, held back until the end.
  fileprivate var outcome = Outcome()
  /// A former transaction has failed: with this error the changes are dropped.
  fileprivate var loss: ErrorObject?
  /// Receipts of former transactions that became durable meanwhile.
  fileprivate var receipts: [ArchiveReceipt] = []

  fileprivate init(for caller: Caller, objectsMax: Int, _ body: @escaping Body) {
    (self.caller, self.objectsMax, self.body) = (caller, objectsMax, body)
    Task(executorPreference: self) { await self.perform() }
  }

  private func perform() async {
    do throws(ErrorObject) {
      try await body(self)
    } catch {
      failure = error
    }
    while !following.isEmpty { await following.removeFirst()(self) }
  }

  func enqueue(_ job: consuming ExecutorJob) { piece = UnownedJob(job) }

  /// Counts objects. If the piece is long enough, the rest continues in a later event.
  func did(_ count: Int) async {
    objects += count
    guard objects >= objectsMax else { return }
    objects = 0
    await withUnsafeContinuation { pause = $0 }
  }

  /// - Returns: whether this was the last piece.
  fileprivate func goOn() -> Bool {
    pause.take()?.resume()
    piece.take()?.runSynchronously(on: asUnownedTaskExecutor())
    return pause == nil
  }

  fileprivate func end(in turn: inout Turn) {
    turn.long = nil
    if let failure { turn.refuse(caller, failure) }
    if caller.call == nil { turn.ask(.release(caller.client)) }
  }
}

extension Application {
  /// Runs `body` as a long turn. The first piece runs at once; its error is thrown.
  func takeLong(for caller: Caller, _ body: @escaping LongTurn.Body) throws(ErrorObject) {
    if let failure = begin(LongTurn(for: caller, objectsMax: turn.settings.pieceObjects, body)) { throw failure }
  }

  /// Runs a long turn that cannot fail and answers its callers itself.
  ///
  /// The changes of its first piece are held back as well, but later writes of the same event are not: that event must
  /// not write afterwards.
  func takeLong(_ body: @escaping (LongTurn) async -> Void) {
    if turn.isLong {
      turn.long?.following.append(body)
    } else {
      _ = begin(LongTurn(for: .nobody, objectsMax: turn.settings.pieceObjects, body))
    }
  }

  /// - Returns: the error of the first piece; `nil` if the turn has succeeded so far.
  private func begin(_ long: LongTurn) -> ErrorObject? {
    precondition(!turn.isLong, "calls wait for what is under way")
    turn.long = long
    guard takePiece(of: long) else {
      turn.long = nil
      return long.failure
    }
    // The connection of a notification would count as idle: no answer is pending.
    let caller = long.caller
    if caller.call == nil { turn.ask(.hold(caller.client)) }
    // While the broker ends, there may be no later event.
    if turn.isEnding { _ = settled } else { turn.ask(.goOn(id)) }
    return nil
  }

  /// Finishes the long turn under way, for events that cannot wait.
  var settled: Application {
    while takePiece() {}
    return self
  }

  /// A former transaction has failed, so nothing of the turn is stored.
  func abandonLong(for error: ErrorObject) {
    turn.long?.loss = error
    _ = settled
  }

  /// Whether the receipt must wait: its changes would precede those that are held back.
  func defers(_ receipt: ArchiveReceipt) -> Bool {
    turn.long?.receipts.append(receipt)
    return turn.isLong
  }

  /// Does the next piece, and returns whether another follows.
  func takePiece() -> Bool {
    guard let long = turn.long else { return false }
    if takePiece(of: long) { return true }
    long.end(in: &turn)
    // After a failure receipts are useless: the archive is opened again.
    guard long.loss == nil, !long.receipts.isEmpty else { return false }
    for receipt in long.receipts { committed(receipt) }
    _ = turn.endTrouble()
    return false
  }

  /// Does the next piece, and holds back its outcome until the last one is done.
  private func takePiece(of long: LongTurn) -> Bool {
    turn.swapOutcome(with: &long.outcome)
    let isLast = long.goOn()
    turn.swapOutcome(with: &long.outcome)
    guard isLast else { return true }
    if let loss = long.loss { long.outcome.lose(for: loss) }
    turn.append(long.outcome)
    return false
  }
}
