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

  private var call: LongCall { LongCall(caller, by: nil, token: nil, at: Moment()) }

  /// Begins a copy, or a check, which may be cancelled.
  private mutating func begin(cancellable: Bool = false) throws -> StoreJob {
    let operation: Operation = cancellable ? .verification(Verification(call, [])) : .backup(call, to: nil)
    jobs.begin(operation, .check(nil), for: caller, in: &event.turn)
    guard case .carryOut(_, let job, _)? = event.context.outcome.effects.last else { throw CancellationError() }
    _ = event.asked()
    return job
  }

  @Test mutating func anOperationIsTakenOnStepByStep() throws {
    let job = try begin()
    #expect(jobs.isWorking)
    let operation = try #require(jobs.finishStep(of: job, in: &event.turn))
    #expect(!jobs.isWorking)
    jobs.goOn(with: operation, .check(nil), job, in: &event.turn)
    #expect(event.asked() == ["carryOut"])
    #expect(jobs.finishStep(of: job, in: &event.turn) != nil)
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

  @Test mutating func whatIsCancelledKeepsTheArchiveBusyUntilItsStepIsDone() throws {
    let job = try begin(cancellable: true)
    #expect(jobs.cancel(Caller(client: 2, call: nil)) == false)
    #expect(jobs.cancel(caller) == true)
    #expect(jobs.cancel(caller) == false)
    #expect(jobs.isWorking)
    #expect(jobs.finishStep(of: job, in: &event.turn) == nil)
    #expect(event.asked() == [])
    #expect(jobs.isIdle)
  }

  @Test mutating func aCopyIsNotCancelled() throws {
    let (copy, check) = (try begin(), try begin(cancellable: true))
    jobs.cancelAll(for: .internalError(hint: ""), in: &event.turn)
    #expect(event.asked() == ["respond"])
    #expect(jobs.finishStep(of: check, in: &event.turn) == nil)
    #expect(jobs.finishStep(of: copy, in: &event.turn) != nil)
  }

  @Test mutating func aStepOfBeforeTheArchiveWasOpenedAnewIsRefused() throws {
    let job = try begin()
    jobs.reset(at: 0)
    #expect(jobs.isIdle)
    #expect(jobs.finishStep(of: job, in: &event.turn) == nil)
    #expect(event.asked() == ["respond"])
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
    let number = jobs.add(plan, in: &event.turn)
    _ = jobs.use(export: number, in: event.turn)
    return number
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
