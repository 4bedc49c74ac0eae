// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Which applications are forgotten because nobody uses them, if that is set (R13).
@Suite struct RetentionTests {
  // MARK: The days

  private static let day: Int64 = 24 * 3_600 * 1_000
  /// The beginning of 2023-11-14, the day on which brokers in memory begin.
  private static let firstDay: Int64 = 1_699_920_000_000

  /// What is known when a broker has run on these days, counted from the first.
  private func retention(limit: Int, _ days: Int64...) -> Retention {
    var retention = Retention(limit: limit)
    for day in days { _ = retention.note(Self.firstDay + day * Self.day + 5) }
    return retention
  }

  @Test func unusedIsWhatWasNotWrittenOnSoManyDaysOfTheBroker() {
    #expect(retention(limit: 3, 0, 100).cutoff == nil)
    #expect(retention(limit: 3, 0, 100, 200).cutoff == Self.firstDay)
    #expect(retention(limit: 3, 0, 100, 200, 201).cutoff == Self.firstDay + 100 * Self.day)
  }

  @Test func aDayIsNotedOnceAndKeptAsLongAsItCounts() {
    var days = retention(limit: 3, 0, 1, 1, 2, 3)
    #expect(days.text == "2023-11-15\n2023-11-16\n2023-11-17\n")
    let isNew = days.note(Self.firstDay + 4 * Self.day - 1)
    #expect(!isNew)
    #expect(Retention(limit: 3, days.text) == days)
  }

  @Test func aShorterLimitForgetsDaysWhenTheNextIsNoted() {
    var days = Retention(limit: 2, "2023-11-14\n2023-11-15\n2023-11-16\n")
    let isNew = days?.note(Self.firstDay + 2 * Self.day)
    #expect(isNew == true && days?.text == "2023-11-15\n2023-11-16\n")
  }

  @Test func daysOfAClockThatWasAheadDoNotCount() {
    #expect(retention(limit: 3, 0, 1, 9_000, 2).text == "2023-11-14\n2023-11-15\n2023-11-16\n")
  }

  @Test(arguments: [
    "", "\n", "2023-11-14", "2023-11-14\r\n", "2023-02-29\n", "2023-11-14\n\n", "2023-11-14 \n", "yesterday\n",
    "2023-11-15\n2023-11-14\n", "2023-11-14\n2023-11-14\n",
  ])
  func aTextThatIsNoListOfDaysIsNotRead(_ text: String) { #expect(Retention(limit: 3, text) == nil) }

  // MARK: The broker

  /// Leaves an application with a state and a closed archive.
  private func save(_ names: String..., in broker: MemoryBroker) throws {
    let peer = broker.connect(pid: 1)
    for name in names { try peer.encode(#"["A"]"#, "{}", #""application":"\#(name)""#) }
    broker.disconnect(peer)
    broker.restart()
  }

  /// The calendar moves, and the broker looks at it.
  private func pass(days: Int64 = 1, _ broker: MemoryBroker) {
    broker.advance(days: days)
    broker.advance(milliseconds: 3_600_000)
  }

  /// However long the broker did not run in between.
  @Test(arguments: [1, 300] as [Int64])
  func r13AnApplicationIsForgottenAfterSoManyDaysOfTheBroker(_ days: Int64) throws {
    let broker = MemoryBroker(unusedDays: 2)
    try save("App", "App@2", in: broker)
    let monitor = broker.connect(pid: 9)
    try monitor.call("subscribe", #"{"events":["applicationDiscarded"]}"#)
    pass(days: days, broker)
    #expect(broker.removed.isEmpty && broker.disk.archive("App") != nil)
    let peer = broker.connect(pid: 1)
    try peer.encode(#"["A"]"#, "{}", #""application":"App@2""#)
    pass(broker)
    #expect(broker.removed == ["App"] && broker.disk.archive("App") == nil)
    let events = monitor.takeNotifications("event")
    #expect(events.map { $0["application"] } == ["App"] && events.first?["generations"] == true)
    let why = "it was not used on the last 2 days on which the broker ran"
    #expect(broker.logged.contains("forgetting an application: \(why) application=App"))
  }

  @Test func r13UseByTheBrokersClockCountsIfThatOfTheFilesIsBehind() throws {
    let broker = MemoryBroker(unusedDays: 2)
    broker.disk.wallMilliseconds = { 0 }
    try save("App", in: broker)
    pass(broker)
    #expect(broker.removed.isEmpty)
    // It saves nothing.
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    try peer.goodbye("restart")
    broker.restart()
    pass(broker)
    #expect(broker.removed.isEmpty)
    pass(broker)
    #expect(broker.removed == ["App"])
  }

  @Test func r13WhatLivesStays() throws {
    let broker = MemoryBroker(unusedDays: 2)
    let worker = broker.connect(pid: 1)
    try worker.initialize()
    let main = try worker.register("Main")
    try worker.encode("\(main)", "{}")
    for _ in 0..<3 { pass(broker) }
    #expect(broker.disk.archive("App") != nil)
    // Only its archive knows of the process then.
    broker.disconnect(worker)
    broker.restart()
    for _ in 0..<3 { pass(broker) }
    #expect(broker.disk.archive("App") != nil)
    #expect(broker.logged.contains("forgetApplication as a notification failed: needsForce application=App"))
    broker.inspect()
    broker.kill(worker)
    broker.restart()
    for _ in 0..<3 { pass(broker) }
    #expect(broker.removed == ["App"])
  }

  @Test func r13WhatIsDamagedOrCannotBeReadStays() throws {
    let broker = MemoryBroker(unusedDays: 2)
    try save("Damaged", "Unreadable", in: broker)
    broker.openingDamage["Damaged"] = "a page is missing"
    broker.openingFailures["Unreadable"] = ArchiveError(.unreadable, "permission denied")
    for _ in 0..<3 { pass(broker) }
    #expect(broker.removed.isEmpty)
    for name in ["Damaged", "Unreadable"] {
      let refusal = "forgetApplication as a notification failed: archiveUnreadable application=\(name)"
      #expect(broker.logged.contains(refusal), "\(broker.logged)")
    }
    broker.openingFailures = [:]
    pass(broker)
    #expect(broker.removed == ["Unreadable"])
  }

  @Test func r13WhatSomebodyIsAboutToUseStays() throws {
    let broker = MemoryBroker(unusedDays: 2)
    try save("App", in: broker)
    pass(broker)
    broker.disk.holdsOpenings = true
    pass(broker)
    let peer = broker.connect(pid: 1)
    let call = peer.start("decodeRestorableState", #"{"application":"App","object":["A"]}"#)
    broker.openHeld()
    #expect(try peer.result(of: call)["state"] == [:])
    #expect(broker.removed.isEmpty)
    // An open archive stays as well.
    broker.disconnect(peer)
    for _ in 0..<3 { pass(broker) }
    #expect(broker.removed.isEmpty)
  }

  @Test func oneIsForgottenAfterTheOther() throws {
    var limits = Limits()
    limits.openArchivesMax = 1
    let broker = MemoryBroker(limits: limits, unusedDays: 2)
    try save("A", "B", "C", in: broker)
    pass(broker)
    broker.advance(days: 1)
    for _ in 0..<3_600 where broker.removed.isEmpty { broker.advance(milliseconds: 1_000) }
    #expect(broker.removed == ["A"])
    broker.advance(milliseconds: 10_000)
    #expect(broker.removed == ["A", "B"])
    broker.advance(milliseconds: 10_000)
    #expect(broker.removed == ["A", "B", "C"])
  }

  @Test func withoutTheSettingNothingIsReadWrittenOrForgotten() throws {
    for broker in [MemoryBroker(), MemoryBroker(isDeveloperMode: true, unusedDays: 2)] {
      try save("App", in: broker)
      for _ in 0..<4 { pass(broker) }
      #expect(broker.removed.isEmpty && broker.daysText == nil && broker.agingCount == 0)
    }
  }

  @Test func theSettingChangesAtOnce() throws {
    let broker = MemoryBroker(unusedDays: 2)
    try save("App", in: broker)
    broker.service.assumeIsolated { $0.forgetUnused(days: 0) }
    for _ in 0..<4 { pass(broker) }
    #expect(broker.removed.isEmpty && broker.daysText == "2023-11-14\n")
    broker.service.assumeIsolated { $0.forgetUnused(days: 2) }
    pass(broker)
    #expect(broker.removed == ["App"])
  }

  @Test(arguments: [nil, "", "2023-11-01\nyesterday\n"] as [String?])
  func theDaysAreCountedFromTodayIfTheirListIsMissingOrDamaged(_ text: String?) {
    let broker = MemoryBroker(unusedDays: 2)
    broker.daysText = text
    broker.run()
    #expect(broker.daysText == "2023-11-14\n")
    #expect(broker.logged.contains { $0.hasPrefix("the days on which the broker ran are counted from today") })
  }

  @Test func theDaysAreCountedFromTodayIfTheirListCannotBeRead() {
    let broker = MemoryBroker(unusedDays: 2)
    broker.daysText = "2023-11-01\n"
    broker.daysFailure = ArchiveError(.definite, "input/output error")
    broker.run()
    #expect(broker.daysText == "2023-11-14\n")
    #expect(broker.logged.contains { $0.hasSuffix("input/output error") })
  }
}
