// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationPostgres
internal import RestorationReplica
internal import Testing

/// What is decided without a server.
@Suite struct PostgresDecisionTests {
  // MARK: Who may have a lease

  private static let term = LeaseTerm(milliseconds: 3_000)
  private static let last = ReplicaHolder(host: "A", since: 7)

  private func archive(renewal: Int64 = 0, silence: Int64 = 0) -> LeaseJudge.Archive {
    let holder = LeaseJudge.Archive.Holder(id: "a", term: Self.term, renewal: .numbered(renewal), silence: silence)
    return LeaseJudge.Archive(number: 1, lease: .numbered(2), holder: holder, last: Self.last)
  }

  private final class Asking {
    private var judge = LeaseJudge()

    func callAsFunction(
      _ archive: LeaseJudge.Archive,
      _ claim: ReplicaClaim = ReplicaClaim(reader: 1),
      at now: Int64
    ) -> LeaseJudge.Verdict { judge.judge(archive, claim, from: "b", at: now) }
  }

  @Test func eachRenewalThatIsSeenBeginsTheWaitAnew() {
    let ask = Asking()
    #expect(ask(archive(), at: 0) == .refused(Self.last))
    #expect(ask(archive(renewal: 1), at: 4_000) == .refused(Self.last))
    #expect(ask(archive(renewal: 1), at: 7_999) == .refused(Self.last))
    #expect(ask(archive(renewal: 1), at: 8_000) == .lapsed(renewal: .numbered(1)))
  }

  @Test func aHolderThatIsLongDeadByTheServersClockIsNotWaitedFor() {
    let ask = Asking()
    #expect(ask(archive(silence: 66_000), at: 0) == .refused(Self.last))
    #expect(ask(archive(renewal: 5, silence: 66_001), at: 0) == .lapsed(renewal: .numbered(5)))
  }

  /// After the server was put back, the row may name a holder whose lease has long ended.
  @Test func whoHasHadTheLeaseOrALaterOneIsNotRefusedForItUnlessItGaveThatVeryLeaseBack() {
    let ask = Asking()
    func claim(_ leases: Int64..., phase: ReplicaStanding.Phase) -> ReplicaClaim {
      let reigns = leases.map { ReplicaReign(LeaseID(.numbered($0)), end: 4) }
      let standing = ReplicaStanding(history: "h", reigns: reigns, phase: phase, archive: "copy")
      return ReplicaClaim(standing: standing, reader: 1)
    }
    #expect(ask(archive(), claim(1, 2, phase: .held), at: 0) == .granted)
    #expect(ask(archive(), claim(1, 2, phase: .catchingUp), at: 0) == .granted)
    #expect(ask(archive(), claim(1, 2, phase: .released), at: 0) == .refused(Self.last))
    #expect(ask(archive(), claim(2, 3, phase: .released), at: 0) == .granted)
    #expect(ask(archive(), claim(1, 3, phase: .held), at: 0) == .refused(Self.last))
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
