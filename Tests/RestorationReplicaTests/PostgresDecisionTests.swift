// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationPostgres
internal import Testing

/// What is decided without a server.
@Suite struct PostgresDecisionTests {
  // MARK: Who may have a lease

  private static let term = LeaseTerm(milliseconds: 3_000)
  private static let last = ReplicaHolder(host: "A", since: 7)

  private func archive(renewals: Int64 = 0, silence: Int64 = 0, timeline: UInt32 = 1) -> LeaseJudge.Archive {
    LeaseJudge.Archive(
      number: 1,
      history: "h",
      epoch: ReplicaEpoch(timeline: timeline, number: 2),
      holder: LeaseJudge.Archive.Holder(id: "a", term: Self.term, renewals: renewals, silence: silence),
      last: Self.last
    )
  }

  /// As one gateway, which has seen the first timeline from the beginning.
  private final class Asking {
    private var judge = LeaseJudge()

    init() { judge.note(timeline: 1, at: 0) }

    func note(timeline: Int64, at now: Int64) { judge.note(timeline: timeline, at: now) }

    func callAsFunction(_ archive: LeaseJudge.Archive, at now: Int64) -> LeaseJudge.Verdict {
      judge.judge(archive, ReplicaClaim(reader: 1), from: "b", at: now)
    }
  }

  @Test func eachRenewalThatIsSeenBeginsTheWaitAnew() {
    let ask = Asking()
    #expect(ask(archive(), at: 0) == .refused(Self.last))
    #expect(ask(archive(renewals: 1), at: 4_000) == .refused(Self.last))
    #expect(ask(archive(renewals: 1), at: 7_999) == .refused(Self.last))
    #expect(ask(archive(renewals: 1), at: 8_000) == .lapsed(renewals: 1))
  }

  @Test func aHolderThatIsLongDeadByTheServersClockIsNotWaitedFor() {
    let ask = Asking()
    #expect(ask(archive(silence: 66_000), at: 0) == .refused(Self.last))
    #expect(ask(archive(renewals: 5, silence: 66_001), at: 0) == .lapsed(renewals: 5))
  }

  @Test func aVoidLeaseIsGivenToOthersWhenItsHolderHasHadItsTerm() {
    let ask = Asking()
    ask.note(timeline: 2, at: 100)
    ask.note(timeline: 2, at: 3_000)
    #expect(ask(archive(), at: 3_099) == .refused(Self.last))
    #expect(ask(archive(), at: 3_100) == .granted)
    var released = archive()
    released.holder = nil
    #expect(ask(released, at: 30_099) == .refused(Self.last))
    #expect(ask(released, at: 30_100) == .granted)
  }

  @Test func anUnknownApplicationBeginsWhenWhoeverMayHaveItHasHadItsTime() {
    let standing = ReplicaStanding(
      history: "h",
      lease: ReplicaEpoch(timeline: 1, number: 1),
      epoch: ReplicaEpoch(timeline: 1, number: 1),
      phase: .held,
      archive: "copy"
    )
    var released = standing
    released.phase = .released
    var judge = LeaseJudge()
    judge.note(timeline: 1, at: 0)
    #expect(judge.mayBegin(ReplicaClaim(reader: 1), age: nil, at: 0))
    judge.note(timeline: 2, at: 100)
    #expect(!judge.mayBegin(ReplicaClaim(reader: 1), age: nil, at: 30_099))
    #expect(judge.mayBegin(ReplicaClaim(reader: 1), age: nil, at: 30_100))
    #expect(!judge.mayBegin(ReplicaClaim(standing: released, reader: 1), age: 120_000, at: 100))
    #expect(judge.mayBegin(ReplicaClaim(standing: standing, reader: 1), age: nil, at: 100))
    #expect(judge.mayBegin(ReplicaClaim(reader: 1, isForced: true), age: nil, at: 100))
    #expect(judge.mayBegin(ReplicaClaim(reader: 1), age: 120_001, at: 100), "it has long been the server")
  }

  // MARK: Whose turn it is

  @Test func usersTakeTurnsHoweverManyCallsOneHas() {
    var queue = FairQueue<String>(max: 3)
    let elements = ["a1", "a2", "a3", "b1", "c1", "b2", "a4"]
    let taken = elements.filter { queue.append($0, for: String($0.prefix(1))) }
    #expect(taken == elements.dropLast(), "only so many of one user may wait")
    #expect(queue.count == 6)
    var order: [String] = []
    while let element = queue.popFirst() { order.append(element) }
    #expect(order == ["a1", "b1", "c1", "a2", "b2", "a3"])
    #expect(queue.count == 0)
    let isTakenAgain = queue.append("a5", for: "a")
    #expect(isTakenAgain)
  }

  // MARK: What users have

  @Test func theDatabaseIsAskedOnceAMinuteAndAfterASnapshot() {
    var book = UsageBook()
    book.add(5, to: "ada")
    #expect(book.bytes(of: "ada", at: 0) == nil)
    book.learn(100, of: "ada", at: 0)
    book.add(5, to: "ada")
    #expect(book.bytes(of: "ada", at: 59_999) == 105)
    #expect(book.bytes(of: "ada", at: 60_000) == nil)
    book.forget("ada")
    #expect(book.bytes(of: "ada", at: 0) == nil)
  }
}
