// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import RestorationArchive
internal import RestorationReplica
internal import Synchronization
internal import Testing

/// Archives that follow their user, in memory.
@Suite struct ReplicatedStoreTests {
  private let fleet = ReplicaFleet()
  private let diskA = CarriedDisk("A")
  private let diskB = CarriedDisk("B")

  private func phase(_ disk: CarriedDisk) -> ReplicaStanding.Phase? {
    disk.state.withLock { $0.notes[ReplicaFleet.application]?.standing?.phase }
  }

  // MARK: Writing

  @Test func anAcknowledgementOfTheReplicaComesWhenItHasTheTransaction() throws {
    let a = try fleet.broker(on: diskA, .replica)
    a.open()
    #expect(a.write("1").value?.sequence == 1)
    fleet.replica.cut("A")
    let second = a.write("2")
    fleet.pass(1_000)
    #expect(diskA.texts == ["1", "2"])
    #expect(second.result == nil)
    fleet.replica.mend("A")
    fleet.pass(500)
    #expect(second.value?.sequence == 2)
    #expect(fleet.batches == ["1", "2"])
  }

  @Test func transactionsOfFiftyMillisecondsShareABatchUnlessTheyAreLarge() throws {
    let a = try fleet.broker(on: diskA)
    a.open()
    _ = a.write("1")
    fleet.pass(30)
    _ = a.write("2")
    fleet.pass(19)
    #expect(fleet.batches.isEmpty)
    fleet.pass(1)
    #expect(fleet.batches == ["1", "2"])
    #expect(fleet.replica.contents(of: ReplicaFleet.application).batches.count == 1)
    _ = a.write("3")
    _ = a.write(String(repeating: "4", count: 3 << 20))
    fleet.pass(0)
    #expect(fleet.batches.count == 4)
    #expect(fleet.replica.contents(of: ReplicaFleet.application).batches.count == 2)
  }

  /// What is much makes what comes next wait longer, unless somebody waits for it.
  @Test func ofAStateThatIsWrittenAgainAndAgainTheNewestIsSent() throws {
    let a = try fleet.broker(on: diskA)
    a.open()
    func sent() throws -> [ArchiveChange] {
      try fleet.replica.contents(of: ReplicaFleet.application).batches.flatMap { batch in
        try ChangeBatch(decoding: batch.body).transactions.flatMap(\.changes)
      }
    }
    _ = a.write([.state(1, "1"), .state(2, "2")])
    _ = a.write([.state(1, "3")])
    _ = a.write([.state(1, "4", early: true), .state(2, "5")])
    _ = a.write([.seal(1), .state(2, "6")])
    fleet.pass(50)
    let rest: [ArchiveChange] = [.superseded, .superseded, .state(1, "3"), .state(1, "4", early: true), .state(2, "5")]
    #expect(try sent() == rest + [.seal(1), .state(2, "6")])
    _ = a.write([.state(1, String(repeating: "7", count: 1 << 20))])
    fleet.pass(50)
    _ = a.write([.state(1, "8")])
    fleet.pass(150)
    #expect(try sent().count == 8)
    fleet.pass(100)
    #expect(try sent().last == .state(1, "8"))
    _ = a.write([.state(1, String(repeating: "9", count: 1 << 20))])
    fleet.pass(50)
    _ = a.write([.state(1, "10")])
    #expect(a.close().value == true)
    #expect(try sent().last == .state(1, "10"))
  }

  @Test func writesAreUnconfirmedOnceAndThenRefusedUntilTheReplicaAnswers() throws {
    let a = try fleet.broker(on: diskA, .replica)
    a.open()
    fleet.replica.cut("A")
    let first = a.write("1")
    fleet.pass(1_999)
    #expect(first.result == nil)
    fleet.pass(1)
    #expect(first.failure == .unconfirmed)
    #expect(a.write("2").failure == .definite)
    #expect(diskA.texts == ["1"])
    fleet.replica.mend("A")
    fleet.pass(500)
    #expect(a.write("3").value?.sequence == 2)
    #expect(fleet.batches == ["1", "3"])
  }

  /// A process that was frozen in between takes in what has come since.
  @Test func aTransactionThatEndsAfterTheLeaseIsUnconfirmed() throws {
    let (a, hold) = (try fleet.broker(on: diskA), HeldCall<Void>(on: fleet.loop))
    a.open()
    fleet.replica.cut("A")
    diskA.state.withLock { $0.hold = hold }
    let write = a.write("1")
    fleet.pass(15_000)
    #expect(write.result == nil)
    fleet.replica.mend("A")
    hold.letGo()
    fleet.pass()
    #expect(write.failure == .unconfirmed)
    #expect(diskA.texts == ["1"])
    // It has asked by itself whether it still has the archive.
    #expect(a.write("2").value?.sequence == 2)
    fleet.pass(1_000)
    #expect(fleet.batches == ["1", "2"])
  }

  @Test func aBacklogBeyondItsLimitBecomesOneSnapshot() throws {
    let a = try fleet.broker(on: diskA)
    a.open()
    fleet.replica.cut("A")
    for text in ["1", "2", "3"] { #expect(a.write(String(repeating: text, count: 3_000_000)).value != nil) }
    fleet.pass(100)
    #expect(fleet.snapshotParts == 0)
    fleet.replica.mend("A")
    fleet.pass(600)
    #expect(fleet.snapshotParts == 35)
    #expect(fleet.batches.isEmpty)
    _ = a.write("4")
    fleet.pass(1_000)
    #expect(fleet.batches == ["4"])
  }

  @Test func longBatchesBecomeASnapshotWhenNobodyWrites() throws {
    let a = try fleet.broker(on: diskA)
    let lease = try #require(a.open()?.lease)
    func tidy() { _ = a.call { store async throws(ArchiveError) in try await store.maintain(lease, holding: []) } }
    for text in ["1", "2"] {
      _ = a.write(String(repeating: text, count: 600_000))
      fleet.pass(200)
      if text == "1" { tidy() }
    }
    #expect(fleet.snapshotParts == 0 && fleet.batches.count == 2)
    tidy()
    fleet.pass(50)
    #expect(fleet.snapshotParts == 5 && fleet.batches.isEmpty)
    _ = a.write("3")
    fleet.pass(50)
    tidy()
    fleet.pass(50)
    #expect(fleet.batches == ["3"])
  }

  @Test func tenThousandChangesSucceedWhileTheReplicaIsAway() throws {
    let a = try fleet.broker(on: diskA)
    a.open()
    fleet.replica.cut("A")
    for number in 0..<100 {
      let changes = (0..<100).map { ArchiveChange.run(RunRecord(run: $0, restorations: 0, facts: "\(number)")) }
      #expect(a.write(changes).value?.sequence == SequenceNumber(number + 1) * 100)
      fleet.pass(50)
    }
    fleet.replica.mend("A")
    fleet.pass(1_000)
    #expect(fleet.batches.count == 10_000)
    #expect(fleet.snapshotParts == 0)
  }

  @Test func aLapsedLeaseRefusesTheFirstWrite() throws {
    let a = try fleet.broker(on: diskA)
    a.open()
    fleet.replica.cut("A")
    fleet.pass(13_499)
    #expect(a.write("1").value != nil)
    fleet.pass(1)
    #expect(a.write("2").failure == .definite)
    #expect(diskA.texts == ["1"])
    fleet.replica.mend("A")
    fleet.pass(5_000)
    #expect(a.write("3").value?.sequence == 2)
  }

  @Test func aBatchKeepsWhatWasTakenOnlyIfAskedTo() {
    let changes = [ArchiveChange.removeAll]
    let (one, other) = (ArchiveBatch(changes), ArchiveBatch(changes))
    other.keep()
    #expect([one.take(), other.take()] == [changes, changes])
    #expect([one.takeKept(), other.takeKept(), other.takeKept()] == [[], changes, []])
  }

  // MARK: From host to host

  @Test func aHostThatIsWaitedForLeavesWithEverythingAndTheOtherOneOpens() throws {
    let (a, b) = (try fleet.broker(on: diskA), try fleet.broker(on: diskB))
    let lease = try #require(a.open()?.lease)
    _ = a.write("1")
    let opening = b.call { store async throws(ArchiveError) in
      try await store.open(ReplicaFleet.application, for: .writing)
    }
    #expect(a.events == [.wanted(lease, host: "B")])
    #expect(a.write("2").value != nil)
    #expect(a.close().value == true)
    #expect(phase(diskA) == .released)
    #expect(opening.result == nil)
    fleet.pass(250)
    #expect(opening.value?.sequence == 2)
    #expect(diskB.texts == ["1", "2"])
    #expect(phase(diskB) == .held)
    #expect(b.events.isEmpty)
  }

  /// What its last transaction has replaced, the first ones may lack.
  @Test func aHostThatEndsWhileItCatchesUpHasAllOfABatchOrNothing() throws {
    var found: Set<[String]> = []
    for steps in 0..<12 {
      let fleet = ReplicaFleet()
      let (diskA, diskB) = (CarriedDisk("A"), CarriedDisk("B"))
      let a = try fleet.broker(on: diskA)
      a.open()
      for text in ["1", "2", "3"] { _ = a.write(text) }
      #expect(a.close().value == true)
      #expect(fleet.batches == ["1", "2", "3"])
      let b = try fleet.broker(on: diskB)
      diskB.state.withLock { $0.crashAfter = steps }
      b.open()
      found.insert(diskB.texts)
    }
    #expect(found == [[], ["1", "2", "3"]])
  }

  @Test func anArchiveThatAnotherHostKeepsIsToldAfterFiveSeconds() throws {
    let (a, b) = (try fleet.broker(on: diskA), try fleet.broker(on: diskB))
    a.open()
    let opening = b.call { store async throws(ArchiveError) in
      try await store.open(ReplicaFleet.application, for: .writing)
    }
    fleet.pass(4_999)
    #expect(opening.result == nil)
    fleet.pass(1)
    #expect(opening.failure == .elsewhere(host: "A", since: 0))
    let others = b.call { store in await store.others(within: nil).archives }
    #expect(others.value?.filter(\.isElsewhere).map(\.application) == [ReplicaFleet.application])
    // Its own are not elsewhere.
    #expect(a.call { store in await store.others(within: nil).archives }.value?.isEmpty == true)
  }

  @Test func anArchiveThatAnotherHostHasIsNeitherReadNorRemovedAndItsHolderHearsNothing() throws {
    let (a, b) = (try fleet.broker(on: diskA), try fleet.broker(on: diskB))
    a.open()
    _ = a.write("1")
    let opening = b.call { store async throws(ArchiveError) in
      try await store.open(ReplicaFleet.application, for: .reading)
    }
    #expect(opening.failure == .elsewhere(host: "A", since: 0), "at once")
    let removal = b.call { store async throws(ArchiveError) in
      try await store.remove(ReplicaFleet.application, damaged: false)
    }
    #expect(removal.failure == .elsewhere(host: "A", since: 0))
    fleet.pass(10_000)
    #expect(a.events.isEmpty)
    #expect(a.write("2").value != nil)
  }

  @Test func anArchiveIsResumedOnlyIfNoOtherHostHasIt() throws {
    let (a, b) = (try fleet.broker(on: diskA), try fleet.broker(on: diskB))
    func resume(_ broker: FleetBroker) -> PendingCall<ArchiveOpening> {
      broker.call { store async throws(ArchiveError) in try await store.open(ReplicaFleet.application, for: .resuming) }
    }
    let made = try #require(resume(a).value)
    #expect(resume(b).failure == .elsewhere(host: "A", since: 0), "at once")
    fleet.pass(10_000)
    #expect(a.events.isEmpty)
    _ = a.call { store in
      await store.close(made.lease)
      return true
    }
    #expect(resume(b).value?.sequence == 0)
  }

  @Test func aHostThatIsTakenOverHearsOfItBeforeItsWritesFail() throws {
    let (a, b) = (try fleet.broker(on: diskA), try fleet.broker(on: diskB))
    let lease = try #require(a.open()?.lease)
    _ = a.write("1")
    fleet.pass(50)
    #expect(b.open(takingOver: true)?.sequence == 1)
    fleet.replica.cut("A")
    #expect(a.write("2").value != nil)
    fleet.replica.mend("A")
    fleet.pass(5_000)
    #expect(a.events == [.lost(lease, ArchiveLoss(host: "B", unshipped: 1))])
    #expect(a.write("3").failure == .lost(host: "B"))
  }

  /// A broker opens an archive again whose last transaction has failed: that is not what makes another host leave.
  @Test func whoOpensALostArchiveAgainWithoutClosingItHearsOfTheLoss() throws {
    let (a, b) = (try fleet.broker(on: diskA), try fleet.broker(on: diskB))
    a.open()
    b.open(takingOver: true)
    fleet.pass(5_000)
    let reopening = a.call { store async throws(ArchiveError) in
      try await store.open(ReplicaFleet.application, for: .writing)
    }
    #expect(reopening.failure == .lost(host: "B"))
    #expect(b.events.isEmpty)
    // Later somebody asks for it.
    _ = a.call { store async throws(ArchiveError) in try await store.open(ReplicaFleet.application, for: .writing) }
    #expect(b.events.count == 1)
  }

  @Test func whatOnlyOneHostHasIsSetAsideAndTold() throws {
    let (a, b) = (try fleet.broker(on: diskA), try fleet.broker(on: diskB))
    a.open()
    _ = a.write("1")
    fleet.pass(50)
    fleet.replica.cut("A")
    _ = a.write("mine")
    #expect(b.open(takingOver: true)?.sequence == 1)
    _ = b.write("theirs")
    _ = b.close()
    fleet.replica.mend("A")
    fleet.pass(5_000)
    _ = a.close()
    #expect(a.open()?.sequence == 2)
    #expect(diskA.texts == ["1", "theirs"])
    let file = "\(ReplicaFleet.application)+conflict-1"
    #expect(diskA.textsSetAside == [["1", "mine"]])
    let conflict = ArchiveConflict(host: nil, changes: 1, file: file)
    #expect(a.events.last == .conflict(application: ReplicaFleet.application, conflict))
  }

  @Test func aServerThatTakesOverWithEverythingIsWrittenToUnderTheSameLease() throws {
    let a = try fleet.broker(on: diskA)
    a.open()
    _ = a.write("1")
    fleet.pass(50)
    fleet.replica.promote()
    #expect(a.write("2").value != nil)
    fleet.pass(1_000)
    #expect(fleet.batches == ["1", "2"])
    #expect(a.events.isEmpty)
  }

  @Test func aLeaseWhoseGrantWasNotHeardOfIsGivenBack() throws {
    let (a, b) = (try fleet.broker(on: diskA), try fleet.broker(on: diskB))
    a.open("org.example.Other")
    fleet.replica.loseAnswer(to: "A")
    let opening = a.call { store async throws(ArchiveError) in
      try await store.open(ReplicaFleet.application, for: .reading)
    }
    #expect(opening.failure == .definite)
    fleet.replica.loseAnswer(to: "A")
    let other = a.call { store async throws(ArchiveError) in
      try await store.open(ReplicaFleet.application, for: .writing)
    }
    fleet.replica.cut("A")
    fleet.pass(250)
    #expect(other.failure == .definite)
    fleet.replica.mend("A")
    fleet.pass(5_000)
    #expect(b.open()?.sequence == 0)
  }

  // MARK: What is told

  @Test func whatTheReplicaDoesNotTakeIsToldOnceAndSoIsItsEnd() throws {
    let a = try fleet.broker(on: diskA)
    a.open()
    fleet.replica.cut("A")
    _ = a.write("1")
    fleet.pass(2_000)
    #expect(a.events.isEmpty, "the connection is to blame")
    fleet.replica.mend("A")
    fleet.replica.setCovered(false)
    fleet.pass(2_000)
    _ = a.write("2")
    fleet.pass(2_000)
    let failure = ReplicaFailure(.uncovered, "no other server has it; configure one")
    let lag = ArchiveLag(failure, changes: 1)
    #expect(a.events == [.behind(application: ReplicaFleet.application, lag)])
    fleet.replica.setCovered(true)
    fleet.pass(1_000)
    #expect(a.events.dropFirst() == [.caughtUp(application: ReplicaFleet.application)])
    _ = a.write("3")
    fleet.pass(50)
    #expect(fleet.batches == ["1", "2", "3"])
    #expect(a.events.count == 2)
  }

  // MARK: What a person asks for

  @Test func aPersonSeesWhatTheReplicaHasAndWhatItLacks() throws {
    let (a, b) = (try fleet.broker(on: diskA), try fleet.broker(on: diskB))
    b.open("org.example.Other")
    a.open()
    _ = a.write("1")
    fleet.pass(50)
    fleet.replica.setCovered(false)
    _ = a.write("2")
    fleet.pass(2_000)
    let shown = try #require(a.call { store in await store.states(of: nil) }.value)
    #expect(shown.failure == nil && shown.states.map(\.application) == [ReplicaFleet.application, "org.example.Other"])
    let (own, other) = (shown.states[0], shown.states[1])
    #expect((own.lease, own.holder?.host, own.sequence, own.stored, own.changes) == (.held, "A", 2, 1, 1))
    #expect(own.bytes > 0 && own.milliseconds == 1_950 && !own.isSnapshotDue)
    #expect(own.failure?.cause == .uncovered)
    #expect((other.lease, other.holder?.host, other.sequence, other.changes) == (.elsewhere, "B", nil, 0))
    fleet.replica.setCovered(true)
    fleet.replica.cut("A")
    let next = try fleet.broker(on: diskA)
    let left = try #require(next.call { store in await store.states(of: ReplicaFleet.application) }.value)
    #expect(left.failure == ReplicaFailure(.away, "A is cut off; mend it"))
    #expect(left.states.map(\.changes) == [nil], "a former broker may have left something")
    #expect(left.states.map(\.lease) == [.unknown])
  }

  @Test func aPersonSeesNoArchiveThatSomebodyHasOnlyAskedFor() throws {
    let a = try fleet.broker(on: diskA)
    for (name, failure) in [("org.example.None", .absent), ("org.example.New", .definite)]
      as [(String, ArchiveError.Kind)]
    {
      let opening = a.call { store async throws(ArchiveError) in try await store.open(name, for: .reading) }
      #expect(opening.failure == failure)
      fleet.replica.cut("A")
    }
    #expect(a.call { store in await store.states(of: nil) }.value?.states == [])
  }

  @Test func aPersonSeesNoCauseThatIsGone() throws {
    let a = try fleet.broker(on: diskA)
    a.open()
    _ = a.write("1")
    _ = a.close()
    fleet.replica.cut("A")
    #expect(a.open() == nil)
    let away = try #require(a.call { store in await store.states(of: nil) }.value)
    #expect(away.failure?.cause == .away)
    fleet.replica.mend("A")
    let shown = try #require(a.call { store in await store.states(of: nil) }.value)
    #expect(shown.failure == nil && shown.states.map(\.lease) == [.free] && shown.states.map(\.failure) == [nil])
  }

  @Test func aHostSeesWhatOtherHostsHaveLeftWithoutOpeningIt() throws {
    let (a, b) = (try fleet.broker(on: diskA), try fleet.broker(on: diskB))
    a.open()
    _ = a.write("1")
    _ = a.write("2")
    _ = a.close()
    let seen = try #require(b.call { store in await store.others(within: 1_000) }.value)
    let archive = try #require(seen.archives.first)
    #expect(seen.isComplete && seen.archives.count == 1)
    #expect((archive.application, archive.objects, archive.modified) == (ReplicaFleet.application, 2, 2))
    #expect(!archive.isElsewhere && !archive.isHere)
    fleet.replica.cut("B")
    let former = b.call { store in await store.others(within: 1_000) }
    fleet.pass(1_000)
    #expect(former.value?.isComplete == false && former.value?.archives == seen.archives)
  }

  @Test func aSummaryIsReadAsItWasLeft() {
    var summary = ArchiveSummary(application: "App", state: .available, objects: 3, generation: 2, bytes: 4_096)
    summary.modified = 1_700_000_000_000
    for facts in [#"{"a":"b\tc"}"#, String(repeating: "x", count: 5_000), nil] {
      summary.run = facts.map { RunRecord(run: 7, restorations: 4, facts: $0) }
      #expect(summary.text.count <= 4_000)
      let left = ReplicaSummary(application: "App", holder: nil, sequence: 1, summary: summary.text)
      var expected = summary
      if (facts?.count ?? 0) > 4_000 { expected.run = nil }
      expected.isHere = false
      #expect(ArchiveSummary(of: left, at: "A") == expected)
    }
    let text: [UInt8] = [0xFF, 10, 9]
    let strange = ReplicaSummary(application: "App", holder: nil, sequence: 1, summary: text)
    #expect(ArchiveSummary(of: strange, at: "A").objects == 0)
  }

  @Test func whatIsKnownOfACopyIsTheNewerOfTheTwo() {
    func summary(_ name: String, _ modified: Int64, on host: String? = nil) -> ArchiveSummary {
      var summary = ArchiveSummary(application: name, state: .available, bytes: Int(modified), modified: modified)
      (summary.holder, summary.isHere) = (host.map { ReplicaHolder(host: $0, since: 0) }, false)
      return summary
    }
    func own(_ name: String, _ modified: Int64) -> ArchiveSummary {
      ArchiveSummary(application: name, state: .available, bytes: 1, modified: modified)
    }
    var all = [own("A", 5), own("B", 5), own("C", 5)]
    all.merge([summary("A", 6, on: "B"), summary("B", 4, on: "B"), summary("D", 1)])
    #expect(all.map(\.application) == ["A", "B", "C", "D"])
    #expect(all.map(\.modified) == [6, 5, 5, 1])
    #expect(all.map(\.bytes) == [1, 1, 1, 1] && all.map(\.isHere) == [true, true, true, false])
    #expect(all.map(\.isElsewhere) == [true, true, false, false])
  }

  @Test func whatIsSentAndWhatIsNotIsCounted() throws {
    let a = try fleet.broker(on: diskA)
    a.open()
    _ = a.write("1")
    fleet.pass(50)
    fleet.replica.cut("A")
    _ = a.write("2")
    fleet.pass(1_000)
    let figures = a.store.figures
    #expect((figures.appends, figures.snapshots, figures.conflicts) == (1, 0, 0))
    #expect((figures.changes, figures.leases) == (1, [.held: 1]))
    #expect(figures.bytes > 0 && figures.milliseconds == 950)
    #expect(Set(figures.failures.keys) == [.away] && figures.failures[.away] ?? 0 >= 2)
    fleet.pass(15_000)
    #expect(a.store.figures.leases == [.lapsed: 1])
    fleet.replica.mend("A")
    fleet.pass(1_000)
    #expect((a.store.figures.changes, a.store.figures.bytes, a.store.figures.milliseconds) == (0, 0, 0))
  }

  @Test func whoWaitsForTheReplicaIsToldWhatItLacksThen() throws {
    let a = try fleet.broker(on: diskA)
    a.open()
    _ = a.write("1")
    let sent = a.call { store in await store.flush(nil, milliseconds: 1_000) }
    fleet.pass(50)
    #expect(sent.value == [:])
    fleet.replica.cut("A")
    _ = a.write("2")
    let unsent = a.call { store in await store.flush(ReplicaFleet.application, milliseconds: 1_000) }
    fleet.pass(999)
    #expect(unsent.result == nil)
    fleet.pass(1)
    #expect(unsent.value == [ReplicaFleet.application: 1])
    let next = try fleet.broker(on: diskA)
    let left = next.call { store in await store.flush(nil, milliseconds: 1_000) }
    fleet.pass(1_000)
    #expect(left.value == [ReplicaFleet.application: nil], "how much a former broker has left is unknown")
    fleet.replica.mend("A")
    let late = next.call { store in await store.flush(nil, milliseconds: 1_000) }
    fleet.pass(1_000)
    #expect(late.value == [:])
  }

  @Test func anArchiveThatIsNotInUseIsSentAnew() throws {
    let a = try fleet.broker(on: diskA)
    a.open()
    _ = a.write("1")
    let refused = a.call { store in await store.migrate(ReplicaFleet.application, milliseconds: 1_000) }
    #expect(throws: ArchiveError.self, "it is in use") { try refused.value?.get() }
    _ = a.close()
    for parts in 1...2 {
      let sent = a.call { store in await store.migrate(ReplicaFleet.application, milliseconds: 1_000) }
      fleet.pass(1_000)
      try #require(sent.value).get()
      #expect(fleet.batches.isEmpty && fleet.snapshotParts == 1, "\(parts)")
    }
    #expect(phase(diskA) == .released)
    #expect(a.open()?.sequence == 3)
    _ = a.close()
    let absent = a.call { store in await store.migrate("org.example.None", milliseconds: 1_000) }
    fleet.pass(1_000)
    #expect(throws: ArchiveError.self) { try absent.value?.get() }
  }

  // MARK: Ending

  @Test func closingsOfABrokerThatEndsHaveOneDeadline() throws {
    let a = try fleet.broker(on: diskA)
    let first = try #require(a.open("org.example.First")?.lease)
    let second = try #require(a.open("org.example.Second")?.lease)
    fleet.replica.cut("A")
    for lease in [first, second] {
      let write = a.call { store async throws(ArchiveError) in
        try await store.apply([.removeAll], lease: lease, expecting: 0, changeID: ChangeID(high: 0, low: 1))
      }
      #expect(write.value?.sequence == 1)
    }
    a.store.drain()
    let closing = a.call { store in
      await store.close(first)
      await store.close(second)
      return true
    }
    fleet.pass(4_999)
    #expect(closing.result == nil)
    fleet.pass(1)
    #expect(closing.value == true)
  }

  @Test func whatIsLeftAtTheEndIsSentByTheNextBroker() throws {
    let a = try fleet.broker(on: diskA)
    a.open()
    fleet.replica.cut("A")
    _ = a.write("1")
    let closing = a.close()
    fleet.pass(5_000)
    #expect(closing.value == true)
    #expect(phase(diskA) == .held)
    let next = try fleet.broker(on: diskA)
    fleet.replica.mend("A")
    #expect(next.open()?.sequence == 1)
    fleet.pass(50)
    #expect(fleet.snapshotParts == 1)
  }

  @Test func whatIsLeftAtTheEndIsSentByTheNextBrokerThoughNobodyOpensIt() throws {
    do {
      let a = try fleet.broker(on: diskA)
      a.open("org.example.Other")
      a.open()
      fleet.replica.cut("A")
      _ = a.write("1")
      let closing = a.close()
      fleet.pass(5_000)
      #expect(closing.value == true)
    }
    let next = try fleet.broker(on: diskA)
    next.store.sendLeft()
    fleet.pass(60_000)
    #expect(!next.store.isShipping, "the replica does not answer")
    fleet.replica.mend("A")
    fleet.pass(30_000)
    #expect(fleet.snapshotParts == 1)
    #expect(phase(diskA) == .released)
    let notes = diskA.state.withLock { $0.notes.values.map { $0.standing?.phase } }
    #expect(notes == [.released, .released], "also of what a broker has only held")
    #expect(!next.store.isShipping)
    let b = try fleet.broker(on: diskB)
    #expect(b.open()?.sequence == 1)
  }

  /// And not asked for.
  @Test func whatAnotherHostHasIsLeftToIt() throws {
    let (a, b) = (try fleet.broker(on: diskA), try fleet.broker(on: diskB))
    a.open()
    _ = a.write("1")
    fleet.pass(50)
    fleet.replica.cut("A")
    _ = a.write("2")
    b.open(takingOver: true)
    fleet.replica.mend("A")
    let next = try fleet.broker(on: diskA)
    next.store.sendLeft()
    fleet.pass(60_000)
    #expect(b.events.isEmpty)
    #expect(diskA.texts == ["1", "2"])
    #expect(phase(diskA) == .held)
  }

  /// Host A closes with "2" unsent, because it does not reach the replica; "1" was sent, if it was written.
  private func leaveUnsent(_ a: FleetBroker, afterWriting: Bool = true) {
    a.open()
    if afterWriting { _ = a.write("1") }
    fleet.pass(50)
    fleet.replica.cut("A")
    _ = a.write("2")
    _ = a.close()
    fleet.pass(5_000)
  }

  /// It was kept for what was left, so that nobody was here to be told. Of a lease under which nothing was stored the
  /// replica knows no end.
  @Test(arguments: [false, true])
  func aLeaseThatWasKeptIsConfirmedBeforeTheArchiveIsOpenedAgain(isOfNothingStored: Bool) throws {
    let (a, b) = (try fleet.broker(on: diskA), try fleet.broker(on: diskB))
    if isOfNothingStored {
      a.open()
      _ = a.write("0")
      _ = a.close()
    }
    leaveUnsent(a, afterWriting: !isOfNothingStored)
    let lease = try #require(b.open(takingOver: true)).lease
    fleet.replica.mend("A")
    #expect(a.open() == nil, "the other host is asked first")
    fleet.pass(250)
    #expect(b.events == [.wanted(lease, host: "A")])
  }

  @Test func aHostThatHasClosedAnArchiveHearsThatAnotherOneHasContinuedItWithoutItsChanges() throws {
    let (a, b) = (try fleet.broker(on: diskA), try fleet.broker(on: diskB))
    leaveUnsent(a)
    b.open(takingOver: true)
    fleet.replica.mend("A")
    fleet.pass(5_000)
    let text = "B has taken over \(ReplicaFleet.application), which is set aside when it is opened here"
    let lag = ArchiveLag(ReplicaFailure(.fenced, text), changes: 1)
    #expect(a.events == [.behind(application: ReplicaFleet.application, lag)])
    let shown = try #require(a.call { store in await store.states(of: nil) }.value?.states.first)
    #expect((shown.lease, shown.changes, shown.failure?.cause) == (.elsewhere, nil, .fenced))
  }

  /// The kept lease and the queue continue the file as it was closed.
  @Test(arguments: [false, true]) func aFileThatWasRepairedUnderAKeptLeaseIsSetAside(isMigrated: Bool) throws {
    let a = try fleet.broker(on: diskA)
    leaveUnsent(a)
    let repaired = diskA.newName()
    diskA.state.withLock { $0.archives[ReplicaFleet.application]?.name = repaired }
    fleet.replica.mend("A")
    if isMigrated {
      let sent = a.call { store in await store.migrate(ReplicaFleet.application, milliseconds: 1_000) }
      fleet.pass(1_000)
      try #require(sent.value).get()
    } else {
      #expect(a.open()?.sequence == 1)
    }
    #expect(fleet.stored == ["1"] && diskA.texts == ["1"])
    #expect(diskA.textsSetAside == [["1", "2"]])
    #expect(a.events.count == 1, "it is told")
  }

  @Test func whatIsSentCountsAsWorkForAMinuteAfterTheLastOfItHasArrived() throws {
    let a = try fleet.broker(on: diskA)
    a.open()
    #expect(!a.store.isShipping)
    fleet.replica.cut("A")
    _ = a.write("1")
    fleet.pass(60_049)
    #expect(a.store.isShipping)
    fleet.pass(1)
    #expect(!a.store.isShipping)
  }

  @Test func aBrokerThatEndsIsToldWhatWasNotSent() throws {
    let a = try fleet.broker(on: diskA)
    a.open()
    fleet.replica.cut("A")
    _ = a.write("1")
    _ = a.close()
    fleet.pass(6_000)
    a.store.drain()
    let unsent = a.call { store in await store.drained() }
    fleet.pass(4_999)
    #expect(unsent.result == nil)
    fleet.pass(1)
    #expect(unsent.value == [ReplicaFleet.application: 1])
    fleet.replica.mend("A")
    fleet.pass(500)
    #expect(phase(diskA) == .held, "there is no time left to give it back")
    a.store.drain()
    #expect(a.call { store in await store.drained() }.value == [:])
  }

  @Test func whatIsLeftWhenAnArchiveIsClosedIsSentLaterAndThenItIsGivenBack() throws {
    let (a, b) = (try fleet.broker(on: diskA), try fleet.broker(on: diskB))
    a.open()
    fleet.replica.cut("A")
    _ = a.write("1")
    _ = a.close()
    fleet.pass(6_000)
    fleet.replica.mend("A")
    fleet.pass(500)
    #expect(fleet.batches == ["1"])
    #expect(phase(diskA) == .released)
    #expect(b.open()?.sequence == 1)
  }

  @Test func aRemovedArchiveDoesNotComeBackFromAnOlderCopy() throws {
    let (a, b) = (try fleet.broker(on: diskA), try fleet.broker(on: diskB))
    b.open()
    _ = b.write("1")
    _ = b.close()
    #expect(a.open()?.sequence == 1)
    _ = a.close()
    let removal = a.call { store async throws(ArchiveError) in
      try await store.remove(ReplicaFleet.application, damaged: false)
      return true
    }
    #expect(removal.value == true)
    #expect(diskA.state.withLock { $0.archives.isEmpty && $0.notes.isEmpty })
    #expect(fleet.batches.isEmpty)
    #expect(b.open()?.sequence == 0)
    let file = "\(ReplicaFleet.application)+conflict-1"
    let conflict = ArchiveConflict(host: nil, changes: nil, file: file, isRemoval: true)
    #expect(b.events == [.conflict(application: ReplicaFleet.application, conflict)])
    #expect(diskB.texts.isEmpty && diskB.state.withLock { $0.conflicts[file] != nil })
  }
}

extension ArchiveChange {
  fileprivate static func state(_ node: NodeID, _ text: String, early: Bool = false) -> ArchiveChange {
    .state(StateRecord(node: node, context: 0, isEarly: early, written: 0, text: Array(text.utf8)[...]))
  }

  fileprivate static func seal(_ generation: Int64) -> ArchiveChange {
    .seal(GenerationRecord(generation: generation, kind: "round", committed: 0, objects: 0, bytes: 0))
  }
}
