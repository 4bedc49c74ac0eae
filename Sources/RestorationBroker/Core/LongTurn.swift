// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive

/// What takes too long for one event: it is done in pieces, between which the loop serves others.
///
/// To others it happens at its end: until then its changes and effects are held back, and calls of the application wait
/// (`isUnsettled`). Whatever else reaches the application has the rest done first (`settled`).
///
/// It is a task, because a task can pause in the middle of a function, and its own executor, because the pieces are to
/// be done when the core says so, within an event. It waits for nothing but its next piece.
final class LongTurn: TaskExecutor, @unchecked Sendable {
  typealias Body = (LongTurn) async throws(ErrorObject) -> Void

  private let body: Body
  /// Answered if it fails.
  fileprivate let caller: Caller
  /// The next piece; nil while one is done, and at the end.
  private var piece: UnownedJob?
  private var pause: UnsafeContinuation<Void, Never>?
  /// How many objects are looked at in one piece, and how many were in this one.
  private let objectsMax: Int
  private var objects = 0
  /// What it has led to that takes long as well.
  fileprivate var following: [(LongTurn) async -> Void] = []
  fileprivate private(set) var failure: ErrorObject?
  /// What the pieces have led to.
  fileprivate var outcome = Outcome()
  /// Why nothing of it will be stored.
  fileprivate var loss: ErrorObject?
  /// Of transactions before it, which became durable meanwhile.
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

  /// So many objects were looked at. Ends the piece if that was enough; the rest goes on in a later event.
  func did(_ count: Int) async {
    objects += count
    guard objects >= objectsMax else { return }
    objects = 0
    await withUnsafeContinuation { pause = $0 }
  }

  /// Does the next piece; returns whether it was the last one.
  fileprivate func goOn() -> Bool {
    pause.take()?.resume()
    piece.take()?.runSynchronously(on: asUnownedTaskExecutor())
    return pause == nil
  }

  /// Refuses the call if it has failed.
  fileprivate func end(in turn: inout Turn) {
    turn.long = nil
    if let failure { turn.refuse(caller, failure) }
    if caller.call == nil { turn.ask(.release(caller.client)) }
  }
}

extension Application {
  /// Does what may have no place in one event. Throws if it fails in the first piece, which is done at once.
  func takeLong(for caller: Caller, _ body: @escaping LongTurn.Body) throws(ErrorObject) {
    if let failure = begin(LongTurn(for: caller, objectsMax: turn.settings.pieceObjects, body)) { throw failure }
  }

  /// The same, for what cannot fail and answers its callers itself.
  ///
  /// What its first piece writes is held back as well, but not what follows in the event: then it writes nothing.
  func takeLong(_ body: @escaping (LongTurn) async -> Void) {
    if turn.isLong {
      turn.long?.following.append(body)
    } else {
      _ = begin(LongTurn(for: .nobody, objectsMax: turn.settings.pieceObjects, body))
    }
  }

  /// - Returns: why it has failed; nil if it has not, or goes on later.
  private func begin(_ long: LongTurn) -> ErrorObject? {
    precondition(!turn.isLong, "calls wait for what is under way")
    turn.long = long
    guard takePiece(of: long) else {
      turn.long = nil
      return long.failure
    }
    // Until it is done, the connection of a notification is not idle: nobody else waits for it.
    let caller = long.caller
    if caller.call == nil { turn.ask(.hold(caller.client)) }
    // At the end of the broker there may be no later event.
    if turn.isEnding { _ = settled } else { turn.ask(.goOn(id)) }
    return nil
  }

  /// The application with what is under way done, for what cannot wait.
  var settled: Application {
    while takePiece() {}
    return self
  }

  /// A transaction before it has failed: nothing of it is stored, as of all that was written since.
  func abandonLong(for error: ErrorObject) {
    turn.long?.loss = error
    _ = settled
  }

  /// Whether the receipt has to wait: what it leads to would be written before what is held back.
  func defers(_ receipt: ArchiveReceipt) -> Bool {
    turn.long?.receipts.append(receipt)
    return turn.isLong
  }

  /// Does the next piece, if something is under way; returns whether another follows.
  func takePiece() -> Bool {
    guard let long = turn.long else { return false }
    if takePiece(of: long) { return true }
    long.end(in: &turn)
    // After a failure they are of no use: the archive is opened anew.
    guard long.loss == nil, !long.receipts.isEmpty else { return false }
    for receipt in long.receipts { committed(receipt) }
    _ = turn.endTrouble()
    return false
  }

  /// What the pieces lead to is held back until the last one is done.
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
