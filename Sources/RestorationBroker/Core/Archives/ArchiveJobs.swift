// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
internal import RestorationWire

/// What an application has asked of its archive: reads, what is done in several pieces, calls that wait until less of
/// that is under way, and exports whose next page may be asked for.
///
/// Invariants:
/// 1. Each operation has one step under way, also if it was cancelled: nothing is closed before that has come back.
/// 2. Numbers are never given again, so that a step or cursor of before the archive was opened anew means nothing.
/// 3. A timer is set while there are exports.
package struct ArchiveJobs {
  /// Does what the call says; it may have become wrong while it waited.
  package typealias Beginning = (Application) throws(ErrorObject) -> Void

  /// A call that waits until it can begin.
  package struct Waiting {
    let caller: Caller
    let isRollback: Bool
    let begin: Beginning
  }

  /// Each may hold the places of all objects, and rolling back besides that the texts of a generation.
  private static let operationsMax = 4
  private static let rollbacksMax = 1

  private var operations: [Int: Operation] = [:]
  /// In the order in which they came.
  private var waiting: [Waiting] = []
  /// Operations whose caller has stopped waiting, until the step that is under way is done.
  private var cancelled: Set<Int> = []
  private var exports: [Int: ExportPlan] = [:]
  private var counter = 0
  /// Reads whose answers have not come.
  private var reads = 0

  package init() {}

  package var isWorking: Bool { reads > 0 || !operations.isEmpty || !cancelled.isEmpty || !waiting.isEmpty }
  package var isIdle: Bool { held == 0 }
  /// Zero when every client has left and nothing is under way.
  package var held: Int { reads + operations.count + cancelled.count + waiting.count + exports.count }

  /// The archive is opened anew at this change: steps that come back are of no use, and not all reads do. Exports of
  /// what is durable go on.
  package mutating func reset(at sequence: SequenceNumber) {
    (operations, reads) = ([:], 0)
    exports = exports.filter { $0.value.sequence <= sequence }
  }

  // MARK: Reads

  /// Each read comes back to `readingFinished` or `decoded`.
  package mutating func read(_ request: consuming Effect, in turn: inout Turn) {
    reads += 1
    turn.ask(request)
  }

  /// The read may have begun before the archive was opened anew; then one of later is counted as ended too early, which
  /// is harmless: whoever waits for it is connected, and keeps the archive open.
  package mutating func endRead() { reads = max(0, reads - 1) }

  // MARK: Steps

  private func hasRoom(forRollback isRollback: Bool) -> Bool {
    let rollbacks = operations.values.count { $0.isRollback }
    if isRollback { return rollbacks < Self.rollbacksMax }
    return operations.count - rollbacks + cancelled.count < Self.operationsMax
  }

  /// Whether the call can begin now; otherwise it waits.
  mutating func canBegin(_ call: Waiting) -> Bool {
    if hasRoom(forRollback: call.isRollback) { return true }
    waiting.append(call)
    return false
  }

  /// The next call that can begin.
  mutating func nextWaiting() -> Waiting? {
    waiting.firstIndex { hasRoom(forRollback: $0.isRollback) }.map { waiting.remove(at: $0) }
  }

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
    let job = StoreJob(caller: caller, operation: number, step: step, holds: operation.holds)
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
    if let index = waiting.firstIndex(where: { $0.caller == caller }) {
      waiting.remove(at: index)
      return true
    }
    guard let number = operations.first(where: { $0.value.cancellableFor == caller })?.key else { return false }
    cancel(number)
    return true
  }

  /// Ends everything that may be ended.
  package mutating func cancelAll(for error: ErrorObject, in turn: inout Turn) {
    for call in waiting { turn.refuse(call.caller, error) }
    waiting = []
    for (number, operation) in operations.sorted(by: { $0.key < $1.key }) {
      guard let caller = operation.cancellableFor else { continue }
      cancel(number)
      turn.refuse(caller, error)
    }
  }

  /// The archive is closed: nothing comes back.
  mutating func abandon(for error: ErrorObject, in turn: inout Turn) {
    for call in waiting { turn.refuse(call.caller, error) }
    for operation in operations.sorted(by: { $0.key < $1.key }) { turn.refuse(operation.value.caller, error) }
    (waiting, operations) = ([], [:])
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
