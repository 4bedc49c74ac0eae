// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

@Suite struct RunHistoryTests {
  private var runs = RunHistory()

  init() { runs.begin(hasState: true) }

  private func reason(_ role: String? = nil, hasState: Bool = true, isToRestore: Bool = false) -> RestorationReason {
    runs.reason(for: role, hasState: hasState, isToRestore: isToRestore)
  }

  @Test mutating func aCrashIsToldToTheNextRunAndForgottenByTheOneAfter() {
    runs.sessionEnded(.crashed, role: nil, isLast: false)
    runs.sessionEnded(.clean, role: nil, isLast: true)
    runs.begin(hasState: true)
    #expect(reason() == .recover)
    runs.sessionEnded(.clean, role: nil, isLast: true)
    runs.begin(hasState: true)
    #expect(reason() == .launch)
  }

  @Test mutating func howTheSameRoleEndedLastCountsMoreThanTheRun() {
    runs.sessionEnded(.crashed, role: "viewer", isLast: false)
    runs.sessionEnded(.clean, role: "editor", isLast: true)
    runs.begin(hasState: true)
    #expect(["viewer", "editor", "other"].map { reason($0) } == [.recover, .launch, .recover])
    runs.forgetRoles()
    #expect(reason("editor") == .recover)
    runs.forgetOutcomes()
    runs.begin(hasState: true)
    #expect(reason("viewer") == .launch)
  }

  @Test mutating func withoutStateThereIsNothingToRestoreUnlessTheArchiveWasDamaged() {
    #expect(reason(hasState: false) == .pristine)
    #expect(reason(isToRestore: true) == .restore)
    runs.load(nil, damage: "a page is missing")
    #expect(reason(hasState: false) == .recover)
    runs.sessionEnded(.clean, role: nil, isLast: true)
    #expect(reason(hasState: false) == .pristine)
  }

  @Test mutating func aRunIsRestoredOnceAndRemembersWhatTheArchiveDoes() throws {
    let event = try TurnFixture()
    let (first, second) = (runs.completeRestoration(), runs.completeRestoration())
    #expect((first, second) == (true, false))
    runs.write(withholdsAll: true, in: &event.turn)
    guard case .run(let record)? = event.written().last else { throw CancellationError() }
    #expect((record.run, record.restorations) == (1, 1))
    var loaded = RunHistory()
    loaded.load(record, damage: nil)
    #expect(loaded.facts == runs.facts)
    #expect(loaded.facts.withholdsAll && loaded.number == 1)
  }

  @Test mutating func aCopyIsDueOnceADay() throws {
    let event = try TurnFixture()
    let day: Int64 = 24 * 3_600 * 1_000
    var due: [Bool] = []
    // In the end the clock goes back: it was wrong when the last copy was made.
    for time in [day, day + 1, 2 * day - 1, 2 * day, day + 5] {
      event.context.now.wall = time
      due.append(runs.isBackupDue(in: event.turn))
    }
    #expect(due == [true, false, false, true, true])
  }

  @Test mutating func aCopyInAnEarlierFormatIsDueAfterThirtyDaysAndThreeRestorations() throws {
    let event = try TurnFixture()
    let day: Int64 = 24 * 3_600 * 1_000
    func due(after days: Int64) -> Bool {
      event.context.now.wall = days * day
      return runs.isFormerDue(in: event.turn)
    }
    func restore() {
      runs.begin(hasState: true)
      _ = runs.completeRestoration()
    }
    restore()
    event.context.now.wall = 100 * day
    #expect(!due(after: 900))
    event.context.now.wall = 100 * day
    runs.keepFormer(true, in: event.turn)
    for _ in 1...2 { restore() }
    #expect(!due(after: 900))
    restore()
    #expect(!due(after: 129) && due(after: 130))
    // It is known over restarts, until the copy has gone.
    runs.keepFormer(true, in: event.turn)
    #expect(due(after: 130))
    // The clock had been ahead when the archive was migrated.
    #expect(!due(after: 50) && !due(after: 79) && due(after: 80))
    runs.keepFormer(false, in: event.turn)
    #expect(runs.facts.former == nil && !due(after: 900))
  }

  @Test mutating func unitsOfRunsBeforeAreForgottenWhenOneWasRestored() {
    runs.begin(hasState: true)
    runs.units = [1, 2].map { run in RunFacts.Unit().with { ($0.name, $0.run) = ("unit\(run)", run) } }
    runs.forgetOldUnits()
    #expect(runs.units.map(\.name) == ["unit2"])
  }

  /// The record is written with each object that somebody registers after a restoration (R29).
  @Test mutating func r29HoweverMuchIsDueTheRecordIsShortAndIsReadBack() {
    runs.driven(after: 1, leaving: (1...16_000).map { NodeID($0) })
    let were = [runs.forgetDue([1, 7, 16_000]), runs.forgetDue([1]), runs.addDue(2), runs.addDue(7)]
    #expect(were == [true, false, false, true])
    let stored = runs.facts.stored
    #expect(stored.utf8.count < 400, "\(stored)")
    let read = RunFacts(stored: stored)
    #expect(read.due == runs.facts.due)
    #expect(read.due.contains(2) && read.due.contains(15_999) && !read.due.contains(1) && !read.due.contains(16_000))
  }

  @Test func whatFormerBrokersListedAsDueIsReadAndWhatIsNoRangeIsNot() {
    #expect(RunFacts(stored: #"{"due":[3,4,9]}"#).due == RangeSet([3..<5, 9..<10]))
    let broken = #"{"dueRanges":[5,2,-1,3,7,-2,9223372036854775807,9,4]}"#
    #expect(RunFacts(stored: broken).due == RangeSet([5..<7]))
  }
}
