// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

@Suite struct ArchiveJobsTests {
  private let event: TurnFixture
  private var jobs = ArchiveJobs()
  private let caller = Caller(client: 1, call: nil)

  init() throws { event = try TurnFixture() }

  private struct NoReport: Report {
    let isCancellable: Bool
    func run(_ archive: isolated ArchiveSnapshots) async throws(ErrorObject) -> (any JSONWritable & Sendable)? { nil }
  }

  /// Begins a report; returns its number.
  private mutating func begin(cancellable: Bool = true) throws -> Int {
    let call = LongCall(caller, by: nil, token: nil, at: Moment())
    jobs.begin(NoReport(isCancellable: cancellable), for: call, in: &event.turn)
    guard case .report(_, let id, _, _)? = event.context.outcome.effects.last else { throw CancellationError() }
    #expect(event.asked() == ["report"])
    return id.number
  }

  @Test mutating func aReportIsWorkUntilItHasEnded() throws {
    let report = try begin()
    #expect(jobs.isWorking)
    jobs.end(report)
    #expect(jobs.isIdle)
  }

  @Test mutating func aReadIsWorkUntilItComesBackOrTheArchiveIsOpenedAnew() {
    let read = Effect.read(1, StateRequest(caller: caller, purpose: .decode(node: 2), rows: []), after: 0)
    for _ in 1...2 { jobs.read(read, in: &event.turn) }
    #expect(event.asked() == ["read", "read"])
    jobs.endRead()
    #expect(jobs.isWorking)
    jobs.endRead()
    #expect(jobs.isIdle)
    jobs.read(read, in: &event.turn)
    jobs.reset(at: 0)
    #expect(jobs.isIdle)
    jobs.endRead()
    jobs.read(read, in: &event.turn)
    #expect(!jobs.isIdle)
  }

  @Test mutating func aReportThatWasCancelledKeepsTheArchiveBusyUntilItHasEnded() throws {
    let report = try begin()
    #expect(jobs.cancel(Caller(client: 2, call: nil), in: &event.turn) == false)
    #expect(jobs.cancel(caller, in: &event.turn) == true)
    #expect(event.asked() == ["endReport"])
    #expect(jobs.cancel(caller, in: &event.turn) == false)
    #expect(jobs.isWorking)
    jobs.end(report)
    #expect(jobs.isIdle)
  }

  @Test mutating func aReportThatCannotBeCancelledEndsOnlyWithTheArchive() throws {
    _ = (try begin(cancellable: false), try begin())
    #expect(jobs.cancel(caller, in: &event.turn) == true)
    #expect(jobs.cancel(caller, in: &event.turn) == false)
    _ = event.asked()
    jobs.cancelAll(for: .internalError(hint: ""), in: &event.turn)
    #expect(event.asked() == [])
    jobs.cancelAll(for: .internalError(hint: ""), isClosed: true, in: &event.turn)
    #expect(event.asked() == ["endReport", "respond"])
  }

  // MARK: Exports

  @Test mutating func onlyAnExportOfWhatIsDurableOutlivesAFailedTransaction() {
    let number = export()
    jobs.reset(at: 1)
    #expect(jobs.export(number) != nil)
    jobs.reset(at: 0)
    #expect(jobs.export(number) == nil)
  }

  private mutating func export(for client: ClientID = 1, at time: Int64 = 0) -> Int {
    let plan = ExportPlan(at: 1, reveals: false, for: client)
    event.context.now.monotonic = time
    return jobs.add(plan, in: &event.turn)
  }

  @Test mutating func exportsAreGivenUpWhenNobodyAsksForTheirNextPage() {
    let (first, second) = (export(at: 1_000), export(at: 3_000))
    #expect(event.timer() == ExportPlan.idleMilliseconds)
    event.context.now.monotonic = 1_000 + ExportPlan.idleMilliseconds
    jobs.exportTimerFired(in: &event.turn)
    #expect(event.timer() == 2_000)
    #expect(jobs.export(first) == nil)
    #expect(jobs.export(second) != nil)
  }

  @Test mutating func theTimerEndsWithTheLastExport() {
    let (mine, _) = (export(), export(for: 2))
    _ = event.asked()
    jobs.endExports(of: 2, in: &event.turn)
    #expect(event.asked() == [])
    jobs.end(export: mine, in: &event.turn)
    #expect(event.asked() == ["cancelTimer"])
    #expect(jobs.isIdle)
  }

  @Test mutating func beyondTheirMostTheLongestIdleExportIsGivenUp() {
    let numbers = (0...8).map { export(at: Int64($0)) }
    #expect(jobs.export(numbers[0]) == nil)
    #expect(numbers.dropFirst().allSatisfy { jobs.export($0) != nil })
  }
}
