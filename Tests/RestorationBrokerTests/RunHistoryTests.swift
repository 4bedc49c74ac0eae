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
    runs.write(withheld: 2, withholdsAll: true, in: &event.turn)
    guard case .run(let record)? = event.written().last else { throw CancellationError() }
    #expect((record.run, record.restorations) == (1, 1))
    var loaded = RunHistory()
    loaded.load(record, damage: nil)
    #expect(loaded.facts == runs.facts)
    #expect(loaded.facts.withheld == 2 && loaded.facts.withholdsAll && loaded.number == 1)
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

  @Test func aDecisionOfAFormerBrokerIsRead() {
    #expect(RunFacts(stored: #"{"declined":true,"firstLate":3}"#).decision == .declined)
    #expect(RunFacts(stored: #"{"firstLate":3,"dueRanges":[5,2]}"#).decision == .restoring)
    #expect(RunFacts(stored: "{}").decision == .undecided)
    var facts = RunFacts()
    facts.decision = .declined
    #expect(RunFacts(stored: facts.stored).decision == .declined)
  }
}
