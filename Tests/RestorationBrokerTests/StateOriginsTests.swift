// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import Testing

@Suite struct StateOriginsTests {
  private static func origin(_ role: String) -> StateOrigin {
    var origin = StateOrigin()
    origin.role = role
    return origin
  }

  @Test func equalOriginsHaveOneNumberAndAreWrittenOnce() throws {
    let event = try TurnFixture()
    var origins = StateOrigins(last: 6)
    let (editor, viewer) = (Self.origin("editor"), Self.origin("viewer"))
    for (origin, number) in [(editor, 7), (viewer, 8), (editor, 7)] as [(StateOrigin, ContextID)] {
      #expect(origins.number(of: origin) == number)
      origins.write(number, in: &event.turn)
    }
    #expect(event.written() == [.context(7, text: editor.stored), .context(8, text: viewer.stored)])
    #expect(origins[8] == viewer)
    #expect(origins[6] == nil)
  }

  @Test func originsOfTheArchiveKeepTheirNumbers() throws {
    let event = try TurnFixture()
    var origins = StateOrigins(stored: [3: Self.origin("editor").stored], last: 9)
    #expect(origins.number(of: Self.origin("editor")) == 3)
    origins.write(3, in: &event.turn)
    #expect(event.written() == [])
    #expect(origins.number(of: Self.origin("viewer")) == 10)
  }

  /// Another host may have deleted what only such states name that nobody can reach.
  @Test func anOriginThatOnlyBuriedStatesHaveGetsANewNumber() throws {
    let event = try TurnFixture()
    let editor = Self.origin("editor")
    var origins = StateOrigins(stored: [3: editor.stored], buried: [3], last: 9)
    #expect(origins.number(of: editor) == 10)
    origins.write(10, in: &event.turn)
    #expect(event.written() == [.context(10, text: editor.stored)])
    #expect(origins[3] == editor, "it can be read still")
    origins.forget([3], upTo: 20, in: &event.turn)
    #expect(event.written() == [.forgetContexts([3])])
    #expect(origins.number(of: editor) == 10)
  }

  @Test func whatIsWrittenWithoutSessionHasOneOriginThatNamesOnlyTheSystem() throws {
    let event = try TurnFixture()
    var origins = StateOrigins()
    let number = origins.numberWithoutSession(in: event.turn)
    #expect(origins.numberWithoutSession(in: event.turn) == number)
    var expected = StateOrigin()
    expected.systemVersion = "Test 1"
    #expect(origins[number] == expected)
  }

  @Test func whatNoStateWasGivenIsForgottenWithTheNextNumber() throws {
    var origins = StateOrigins()
    for number in Int64(1)...3 { #expect(origins.number(of: Self.origin("\(number)")) == number) }
    #expect((1...3).map { origins[$0] != nil } == [false, false, true])
  }

  @Test func theArchiveForgetsWhatNoRowNamesUnlessAStateWasGivenItSince() throws {
    let event = try TurnFixture()
    var origins = StateOrigins()
    for number in Int64(1)...3 {
      _ = origins.number(of: Self.origin("\(number)"))
      origins.write(number, in: &event.turn)
    }
    _ = event.written()
    origins.exchange([], for: [2], at: 9)
    origins.forget([1, 2, 7], upTo: 8, in: &event.turn)
    #expect(event.written() == [.forgetContexts([1])])
    #expect((1...3).map { origins[$0] != nil } == [false, true, true])
    // It was told before the archive knew of that.
    origins.forget([1], upTo: 8, in: &event.turn)
    #expect(event.written() == [])
  }

  @Test func anOriginThatIsInUseStaysInTheArchive() throws {
    let event = try TurnFixture()
    var origins = StateOrigins()
    let editor = Self.origin("editor")
    _ = origins.number(of: editor)
    origins.write(1, in: &event.turn)
    origins.exchange([], for: [1], at: 1)
    origins.forget([1], upTo: 5, in: &event.turn)
    #expect(origins[1] == editor && origins.usedBytes == editor.stored.utf8.count)
    origins.write(1, in: &event.turn)
    #expect(event.written() == [.context(1, text: editor.stored)])
    origins.exchange([1], for: [], at: 9)
    #expect(origins.usedBytes == 0)
    origins.forget([1], upTo: 9, in: &event.turn)
    #expect(event.written() == [.forgetContexts([1])] && origins[1] == nil)
    #expect(origins.number(of: editor) == 2)
  }

  @Test func aStateIsStoredWithItsOriginIfOnlyReplacedStatesHadItAtTheOpening() throws {
    let broker = MemoryBroker()
    func encode(_ classes: String...) throws {
      let peer = broker.connect(pid: 1)
      try peer.initialize()
      for name in classes {
        try peer.register("A", below: nil, #""objectClass":["\#(name)"]"#)
        // So that what is encoded takes the place of what was there.
        _ = try peer.state(#"["A"]"#)
        try peer.encode(#"["A"]"#, #"{"class":"\#(name)"}"#)
      }
      broker.crash(peer)
    }
    try encode("One", "Two")
    broker.restart()
    try encode("One")
    let texts = try #require(broker.disk.archive("App")?.contexts).values
    #expect((texts.count, Set(texts).count) == (3, 2))
    broker.inspect()
  }
}
