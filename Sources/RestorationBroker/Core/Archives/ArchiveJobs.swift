// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
internal import RestorationWire

/// What an application has asked of its archive: reads, what is done in several pieces, and exports whose next page may
/// be asked for.
///
/// Invariants:
/// 1. Each operation has one step under way, also if it was cancelled: nothing is closed before that has come back.
/// 2. Numbers are never given again, so that a step or cursor of before the archive was opened anew means nothing.
/// 3. A timer is set while there are exports.
package struct ArchiveJobs {
  private var operations: [Int: Operation] = [:]
  /// Operations whose caller has stopped waiting, until the step that is under way is done.
  private var cancelled: Set<Int> = []
  private var exports: [Int: ExportPlan] = [:]
  private var counter = 0
  /// Reads whose answers have not come.
  private var reads = 0

  package init() {}

  package var isWorking: Bool { reads > 0 || !operations.isEmpty || !cancelled.isEmpty }
  package var isIdle: Bool { !isWorking && exports.isEmpty }

  /// The archive is opened anew at this change: steps that come back are of no use, and not all reads do. Exports of
  /// what is durable go on.
  package mutating func reset(at sequence: SequenceNumber) {
    (operations, reads) = ([:], 0)
    exports = exports.filter { $0.value.sequence <= sequence }
  }

  // MARK: Reads

  /// Each read comes back to `readingFinished`, `scanFinished` or `decoded`.
  package mutating func read(_ request: consuming Effect, in turn: inout Turn) {
    reads += 1
    turn.ask(request)
  }

  /// The read may have begun before the archive was opened anew; then one of later is counted as ended too early, which
  /// is harmless: whoever waits for it is connected, and keeps the archive open.
  package mutating func endRead() { reads = max(0, reads - 1) }

  // MARK: Steps

  /// Begins an operation with its first step, once everything written so far is durable.
  package mutating func begin(_ operation: Operation, _ step: StoreJob.Step, for caller: Caller, in turn: inout Turn) {
    counter += 1
    carryOut(operation, step, counter, for: caller, after: turn.sequence, in: &turn)
  }

  /// Continues the operation with another step.
  package mutating func goOn(
    with operation: Operation,
    _ step: StoreJob.Step,
    _ job: StoreJob,
    after sequence: SequenceNumber = 0,
    in turn: inout Turn
  ) {
    carryOut(operation, step, job.operation, for: job.caller, after: sequence, in: &turn)
  }

  private mutating func carryOut(
    _ operation: Operation,
    _ step: StoreJob.Step,
    _ number: Int,
    for caller: Caller,
    after sequence: SequenceNumber,
    in turn: inout Turn
  ) {
    operations[number] = operation
    let (holds, bytes) = (operation.holds, operation.replyBytes)
    let job = StoreJob(caller: caller, operation: number, step: step, holds: holds, replyBytes: bytes)
    turn.ask(.carryOut(turn.application, job, after: sequence))
  }

  /// The operation whose step has ended, to be continued or answered; `nil` if it was cancelled.
  package mutating func finishStep(of job: StoreJob, in turn: inout Turn) -> Operation? {
    if cancelled.remove(job.operation) != nil { return nil }
    if let operation = operations.removeValue(forKey: job.operation) { return operation }
    turn.refuse(job.caller, .storeFailed("the archive was reopened meanwhile", indeterminate: false))
    return nil
  }

  // MARK: Cancelling

  /// Ends what the caller waits for with the step that is under way; nothing has been changed by those before it.
  ///
  /// - Returns: whether it was waiting; it is answered elsewhere.
  package mutating func cancel(_ caller: Caller) -> Bool {
    guard let number = operations.first(where: { $0.value.cancellableFor == caller })?.key else { return false }
    cancel(number)
    return true
  }

  /// Ends everything that may be ended.
  package mutating func cancelAll(for error: ErrorObject, in turn: inout Turn) {
    for (number, operation) in operations.sorted(by: { $0.key < $1.key }) {
      guard let caller = operation.cancellableFor else { continue }
      cancel(number)
      turn.refuse(caller, error)
    }
  }

  private mutating func cancel(_ number: Int) {
    operations[number] = nil
    cancelled.insert(number)
  }

  // MARK: Exports

  package func export(_ number: Int) -> ExportPlan? { exports[number] }

  /// Beyond what may wait for its next page the longest idle one is given up.
  package mutating func add(_ plan: ExportPlan, in turn: inout Turn) -> Int {
    if exports.count >= ExportPlan.countMax, let oldest = exports.min(by: { $0.value.lastUsed < $1.value.lastUsed }) {
      exports[oldest.key] = nil
    }
    if exports.isEmpty { watchExports(for: ExportPlan.idleMilliseconds, in: &turn) }
    counter += 1
    exports[counter] = plan
    return counter
  }

  /// A page of the export is asked for.
  package mutating func use(export number: Int, in turn: borrowing Turn) -> ExportPlan? {
    exports[number]?.lastUsed = turn.now.monotonic
    return exports[number]
  }

  package mutating func end(export number: Int, in turn: inout Turn) {
    exports[number] = nil
    unwatchExports(in: &turn)
  }

  /// Gives up the exports of a client that has gone.
  package mutating func endExports(of client: ClientID, in turn: inout Turn) {
    guard !exports.isEmpty else { return }
    exports = exports.filter { $0.value.client != client }
    unwatchExports(in: &turn)
  }

  /// Gives up exports whose next page nobody has asked for.
  package mutating func exportTimerFired(in turn: inout Turn) {
    let now = turn.now.monotonic
    exports = exports.filter { now - $0.value.lastUsed < ExportPlan.idleMilliseconds }
    guard let oldest = exports.values.map(\.lastUsed).min() else { return }
    watchExports(for: max(1, oldest + ExportPlan.idleMilliseconds - now), in: &turn)
  }

  private func unwatchExports(in turn: inout Turn) {
    if exports.isEmpty { turn.ask(.cancelTimer(.exports(turn.application))) }
  }

  private func watchExports(for milliseconds: Int64, in turn: inout Turn) {
    turn.ask(.setTimer(.exports(turn.application), milliseconds: milliseconds))
  }
}
