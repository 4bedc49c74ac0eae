// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

@Suite struct SessionTableTests {
  private let event: TurnFixture
  private var sessions = SessionTable()

  init() throws {
    var limits = Limits()
    limits.connectionsPerApplicationMax = 2
    event = try TurnFixture(limits)
  }

  private mutating func begin() -> Session { sessions.begin(SessionFacts(), in: event.turn) }

  @Test mutating func aSessionIsFoundByNumberAndTokenUntilItEnds() {
    let (first, second) = (begin(), begin())
    #expect(first.token == "00000000000000010000000000000002")
    #expect(sessions[first.id] === first)
    #expect(sessions.inOrder.map(\.id) == [1, 2])
    sessions.end(first, .crashed, restorations: 3, in: &event.turn)
    #expect(sessions[first.id] == nil)
    #expect(sessions.inOrder.map(\.id) == [second.id])
    let record = sessions.ended(first.id)
    #expect(record?.ending == "crashed")
    #expect(record?.restorationsAtEnd == 3)
    #expect(event.written() == record.map { [.session($0)] })
    #expect(begin().id == 3)
  }

  @Test mutating func endedSessionsAreRememberedWhileANodeWasLastClaimedByThem() {
    for _ in 1...3 { sessions.end(begin(), .closed, restorations: 0, in: &event.turn) }
    _ = event.written()
    sessions.forgetEnded(besides: [2], in: &event.turn)
    #expect(event.written() == [.forgetSessions([1, 3])])
    #expect((1...3).map { sessions.ended($0) != nil } == [false, true, false])
    sessions.forgetEnded(besides: [2], in: &event.turn)
    #expect(event.written() == [])
  }

  @Test mutating func ofAnEndedSessionOnlyWhatIsNeededLaterIsKept() throws {
    var facts = SessionFacts()
    (facts.role, facts.bundleVersion, facts.storyboard) = ("editor", String(repeating: "1", count: 9_000), "a.service")
    let session = sessions.begin(facts, in: event.turn)
    sessions.end(session, .crashed, restorations: 0, in: &event.turn)
    let kept = SessionFacts(stored: try #require(sessions.ended(session.id)).facts)
    #expect((kept.role, kept.unit, kept.bundleVersion) == ("editor", "a.service", nil))
  }

  @Test mutating func aSessionRemembersTheNewestObjectsThatItHasLost() {
    let session = begin()
    for number in Int64(1)...2_000 { session.lose(number + 10_000, at: number) }
    #expect(session.replaced == Set(10_977...12_000))
    #expect(session.replacedNodes == Set(977...2_000))
    #expect(!session.regain(976) && session.regain(2_000) && !session.regain(2_000))
  }

  @Test mutating func whatIsKnownOfASessionOutlivesAnArchiveOpenedAnewIfItsTokenIsTheSame() {
    let (same, other) = (begin(), begin())
    for session in [same, other] { (session.client, session.lastUsed) = (9, 500) }
    let ended = SessionRecord(session: 5, token: "t", facts: "{}", ending: "closed")
    let stranger = SessionRecord(session: other.id, token: "another", facts: other.record.facts)
    sessions.load([same.record, stranger, ended], last: 7, former: sessions.byNumber, lastUsed: 100)
    #expect(sessions[same.id]?.client == 9)
    #expect(sessions[same.id]?.lastUsed == 500)
    #expect(sessions[token: "another"]?.client == nil)
    #expect(sessions[token: "another"]?.lastUsed == 100)
    #expect(sessions.count == 2)
    #expect(sessions.ended(5) == ended)
    #expect(begin().id == 8)
  }

  @Test mutating func sessionsAreAliveWhileTheCallThatAskedForThemGoesOn() {
    let session = begin()
    #expect(sessions.isIdle)
    let caller = Caller(client: 1, call: nil)
    sessions.probe([1], for: .registration(caller, 1, RegisterObjectForStateRestoration()), in: &event.turn)
    #expect(event.asked() == ["probe"])
    #expect(!sessions.isIdle)
    sessions.probed([1])
    #expect(sessions.isVerified(session))
    sessions.endVerification()
    #expect(!sessions.isVerifying)
    #expect(sessions.isIdle)
    session.client = 4
    #expect(!sessions.isIdle)
  }

  @Test mutating func thereIsRoomForSoManyConnections() {
    let connected = (1...3).map { (try? sessions.connect($0, in: event.turn)) != nil }
    #expect(connected == [true, true, false])
    sessions.disconnect(1)
    #expect([1, 2, 3].map { sessions.isConnected($0) } == [false, true, false])
  }
}
