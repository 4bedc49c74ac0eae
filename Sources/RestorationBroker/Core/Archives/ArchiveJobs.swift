// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
internal import RestorationWire

/// An application's work on its archive: reads, reports, calls that wait for other reports to end, and open exports.
///
/// Invariants:
/// 1. A report counts until it ends, even after its caller was answered: nothing is closed meanwhile.
/// 2. Numbers are never reused, so a cursor of an earlier export is invalid.
/// 3. A timer is set while there are exports.
package struct ArchiveJobs {
  /// Begins the call; it may have become invalid while it waited.
  package typealias Beginning = (Application) throws(ErrorObject) -> Void

  package struct Waiting {
    let caller: Caller
    let isRollback: Bool
    let begin: Beginning
  }

  private struct UnderWay {
    /// `nil` once it was answered.
    var caller: Caller?
    let isCancellable: Bool
  }

  /// Each may hold the places of all objects; a rollback also holds the texts of a generation.
  private static let reportsMax = 4

  private var reports: [Int: UnderWay] = [:]
  /// The one generation that is being read to become the head.
  private var rollback: (number: Int, generation: Rollback)?
  /// In order of arrival.
  private var waiting: [Waiting] = []
  private var exports: [Int: ExportPlan] = [:]
  private var counter = 0
  /// Unanswered reads.
  private var reads = 0

  package init() {}

  package var isWorking: Bool { reads > 0 || !reports.isEmpty || !waiting.isEmpty }
  package var isIdle: Bool { held == 0 }
  /// Zero when every client has left and nothing is under way.
  package var held: Int { reads + reports.count + waiting.count + exports.count }

  /// The archive is reopened at this change: some reads never return. Exports of durable contents continue.
  package mutating func reset(at sequence: SequenceNumber) {
    reads = 0
    exports = exports.filter { $0.value.sequence <= sequence }
  }

  // MARK: Reads

  /// Each read comes back to `readingFinished` or `decoded`.
  package mutating func read(_ request: consuming Effect, in turn: inout Turn) {
    reads += 1
    turn.ask(request)
  }

  /// A read from before a reopening may end the count of a later one too early. That is harmless: the caller of the
  /// later one is connected, and keeps the archive open.
  package mutating func endRead() { reads = max(0, reads - 1) }

  // MARK: Reports

  private func hasRoom(forRollback isRollback: Bool) -> Bool {
    if isRollback { return rollback == nil }
    return reports.count - (rollback == nil ? 0 : 1) < Self.reportsMax
  }

  /// Whether the call can begin now; otherwise it waits.
  mutating func canBegin(_ call: Waiting) -> Bool {
    if hasRoom(forRollback: call.isRollback) { return true }
    waiting.append(call)
    return false
  }

  mutating func nextWaiting() -> Waiting? {
    waiting.firstIndex { hasRoom(forRollback: $0.isRollback) }.map { waiting.remove(at: $0) }
  }

  /// Begins a report once the changes up to `sequence` are durable; without one, all that is written so far.
  @discardableResult
  package mutating func begin(
    _ report: any Report,
    for call: LongCall,
    after sequence: SequenceNumber? = nil,
    in turn: inout Turn
  ) -> Int {
    counter += 1
    reports[counter] = UnderWay(caller: call.caller, isCancellable: report.isCancellable)
    let id = ReportID(application: turn.application, number: counter)
    turn.ask(.report(report, id, call, after: sequence ?? turn.sequence))
    return counter
  }

  mutating func begin(_ rollback: Rollback, in turn: inout Turn) {
    let reading = RollbackReading(sequence: rollback.generation.sequence)
    self.rollback = (begin(reading, for: rollback.call, in: &turn), rollback)
  }

  /// Changes the rollback in place: a copy would be large.
  mutating func withRollback<Result>(
    _ body: (inout Rollback) throws(ErrorObject) -> Result
  ) throws(ErrorObject) -> Result {
    if let result = try rollback?.generation.change(body) { return result }
    throw .storeFailed("the archive was reopened meanwhile", indeterminate: false)
  }

  /// The generation was read: the replacement of the head answers the call.
  mutating func takeRollback() -> Rollback? {
    defer { rollback = nil }
    if let rollback { reports[rollback.number]?.caller = nil }
    return rollback?.generation
  }

  package mutating func end(_ number: Int) {
    reports[number] = nil
    if rollback?.number == number { rollback = nil }
  }

  // MARK: Cancelling

  /// Ends the caller's job after the current piece; the earlier pieces changed nothing. Returns whether there was a
  /// job. The caller is answered elsewhere.
  package mutating func cancel(_ caller: Caller, in turn: inout Turn) -> Bool {
    if let index = waiting.firstIndex(where: { $0.caller == caller }) {
      waiting.remove(at: index)
      return true
    }
    let found = reports.first { $0.value.caller == caller && $0.value.isCancellable }
    guard let number = found?.key else { return false }
    stop(number, in: &turn)
    return true
  }

  /// Refuses everything that can be cancelled; if the archive is closed, also what cannot.
  package mutating func cancelAll(for error: ErrorObject, isClosed: Bool = false, in turn: inout Turn) {
    for call in waiting { turn.refuse(call.caller, error) }
    waiting = []
    for (number, report) in reports.sorted(by: { $0.key < $1.key }) where report.isCancellable || isClosed {
      guard let caller = report.caller else { continue }
      stop(number, in: &turn)
      turn.refuse(caller, error)
    }
  }

  /// The caller is answered elsewhere.
  private mutating func stop(_ number: Int, in turn: inout Turn) {
    reports[number]?.caller = nil
    if rollback?.number == number { rollback = nil }
    turn.ask(.endReport(ReportID(application: turn.application, number: number)))
  }

  // MARK: Exports

  package func export(_ number: Int) -> ExportPlan? { exports[number] }

  /// Above the limit, drops the export that was idle longest.
  package mutating func add(_ plan: ExportPlan, in turn: inout Turn) -> Int {
    var plan = plan
    plan.lastUsed = turn.now.monotonic
    if exports.count >= ExportPlan.countMax, let oldest = exports.min(by: { $0.value.lastUsed < $1.value.lastUsed }) {
      exports[oldest.key] = nil
    }
    if exports.isEmpty { watchExports(for: ExportPlan.idleMilliseconds, in: &turn) }
    counter += 1
    exports[counter] = plan
    return counter
  }

  /// A page of the export is asked for.
  package mutating func use(export number: Int, in turn: borrowing Turn) {
    exports[number]?.lastUsed = turn.now.monotonic
  }

  package mutating func end(export number: Int, in turn: inout Turn) {
    exports[number] = nil
    unwatchExports(in: &turn)
  }

  package mutating func endExports(of client: ClientID, in turn: inout Turn) {
    guard !exports.isEmpty else { return }
    exports = exports.filter { $0.value.client != client }
    unwatchExports(in: &turn)
  }

  /// Drops exports that were idle too long.
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

extension Rollback {
  fileprivate mutating func change<Result>(
    _ body: (inout Rollback) throws(ErrorObject) -> Result
  ) throws(ErrorObject) -> Result { try body(&self) }
}
