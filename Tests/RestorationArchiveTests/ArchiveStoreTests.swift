// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import TestSupport
internal import Testing

@Suite(.passesTurnstile) struct ArchiveStoreTests {
  // MARK: Transactions

  @Test(arguments: ArchiveEngine.allCases)
  func aNewArchiveIsEmptyAndHasANameOfItsOwn(engine: ArchiveEngine) async throws {
    let fixture = try ArchiveFixture(engine)
    let first = try await fixture.author("first").opening
    let second = try await fixture.author("second@2").opening
    #expect(first.sequence == 0)
    #expect(first.reachableBytes == 0)
    #expect(first.nodes.isEmpty)
    #expect(first.damage == nil)
    #expect(first.archive.utf8.count == 36)
    #expect(first.archive != second.archive)
  }

  @Test(arguments: ArchiveEngine.allCases)
  func everyChangeTakesTheNextSequence(engine: ArchiveEngine) async throws {
    var author = try await ArchiveFixture(engine).author()
    let first = try await author.apply(.node(1, "a"), .state(1, "{}"), .removeState(9), .settle([]))
    #expect(first.sequence == 4)
    let second = try await author.apply(.state(1, #"{"a":1}"#))
    #expect(second.sequence == 5)
    let summary = try await author.scan()[0].state
    #expect(summary?.sequence == 5)
  }

  @Test(arguments: ArchiveEngine.allCases)
  func aRefusedChangeLeavesNothingOfItsTransaction(engine: ArchiveEngine) async throws {
    var fixture = try ArchiveFixture(engine)
    var author = try await fixture.author()
    try await author.apply(.node(1, "a"), .state(1, "{}"), .context(1, text: "x"), .seal(3))
    for refused in [.context(1, text: "again"), .seal(3), .pin(generation: 2)] as [ArchiveChange] {
      let changes = [.state(1, "lost"), .node(2, "lost"), .removeAll, refused] as [ArchiveChange]
      let attempt = author
      let kind = await failure { () async throws(ArchiveError) in
        var author = attempt
        try await author.apply(changes)
      }
      #expect(kind == .definite)
    }
    #expect(try await author.text(of: 1) == "{}")
    try await author.apply(.state(1, "[]"))
    #expect(author.sequence == 5)
    try await fixture.restart(author)
    let opening = try await fixture.author().opening
    #expect(opening.sequence == 5)
    #expect(opening.nodes.map(\.node.node) == [1])
  }

  @Test(arguments: ArchiveEngine.allCases)
  func theSameChangeIDIsAppliedOnce(engine: ArchiveEngine) async throws {
    var fixture = try ArchiveFixture(engine)
    let author = try await fixture.author()
    let changeID = ChangeID(high: .max, low: 1)
    let changes = [.node(1, "a"), .state(1, "{}")] as [ArchiveChange]
    let first = try await fixture.store.apply(changes, lease: author.lease, expecting: 0, changeID: changeID)
    let again = try await fixture.store.apply(changes, lease: author.lease, expecting: 0, changeID: changeID)
    #expect(first == again)
    try await fixture.restart(author)
    let reopened = try await fixture.author()
    #expect(reopened.sequence == 2)
    let later = try await fixture.store.apply(changes, lease: reopened.lease, expecting: 0, changeID: changeID)
    #expect(later == first)
  }

  @Test(arguments: ArchiveEngine.allCases)
  func anotherSequenceThanExpectedIsFenced(engine: ArchiveEngine) async throws {
    let fixture = try ArchiveFixture(engine)
    var author = try await fixture.author()
    try await author.apply(.node(1, "a"))
    for expected in [0, 2] as [SequenceNumber] {
      let kind = await failure { [author] () async throws(ArchiveError) in
        _ = try await fixture.store.apply([], lease: author.lease, expecting: expected, changeID: .random())
      }
      #expect(kind == .fenced)
    }
  }

  @Test(arguments: ArchiveEngine.allCases)
  func aLaterOpeningFencesTheEarlierLease(engine: ArchiveEngine) async throws {
    let fixture = try ArchiveFixture(engine)
    let earlier = try await fixture.author()
    var later = try await fixture.author()
    #expect(earlier.opening.archive == later.opening.archive)
    await fixture.store.close(earlier.lease)
    try await later.apply(.node(1, "a"))
    let store = fixture.store
    let lease = earlier.lease
    let failures = [
      await failure { () async throws(ArchiveError) in
        _ = try await store.apply([.removeAll], lease: lease, expecting: 1, changeID: .random())
      },
      await failure { () async throws(ArchiveError) in _ = try await store.read([1], at: .head, lease: lease) },
      await failure { () async throws(ArchiveError) in _ = try await store.maintain(lease, holding: []) },
      await failure { () async throws(ArchiveError) in try await store.backUp(lease, replacingFormer: false) },
    ]
    #expect(failures == [.fenced, .fenced, .fenced, .fenced])
    await store.close(later.lease)
    let closed = await failure { [later] () async throws(ArchiveError) in _ = try await later.scan() }
    #expect(closed == .fenced)
  }

  @Test(arguments: ArchiveEngine.allCases)
  func whatIsNoApplicationHasNoArchive(engine: ArchiveEngine) async throws {
    let fixture = try ArchiveFixture(engine)
    let long = String(repeating: "x", count: 129)
    for name in ["", ".", "..", "../x", "a/b", "-a", "a@", "@a", "a@b@c", "a b", "a+backup", "ä", long] {
      let kind = await failure { () async throws(ArchiveError) in _ = try await fixture.store.open(name) }
      #expect(kind == .definite, "\(name)")
    }
    _ = try await fixture.store.open(String(long.dropLast()) + "@" + String(long.prefix(48)))
  }

  @Test(arguments: ArchiveEngine.allCases)
  func openingWithoutCreatingLeavesNothingBehind(engine: ArchiveEngine) async throws {
    let fixture = try ArchiveFixture(engine)
    let store = fixture.store
    let kind = await failure { () async throws(ArchiveError) in _ = try await store.open("x", for: .reading) }
    #expect(kind == .absent)
    #expect(try await store.list().isEmpty)
    #expect(fixture.directory.names.isEmpty)
    var author = try await fixture.author("x")
    try await author.apply(.node(1, "a"))
    await store.close(author.lease)
    #expect(try await store.open("x", for: .reading).sequence == 1)
  }

  // MARK: Points

  @Test(arguments: ArchiveEngine.allCases)
  func earlyStatesHideNothingFromTheOwner(engine: ArchiveEngine) async throws {
    var fixture = try ArchiveFixture(engine)
    var author = try await fixture.author()
    try await author.apply(.node(1, "a"), .state(1, "good"))
    try await author.apply(.state(1, "blank", early: true))
    try await author.apply(.state(1, "blanker", early: true))
    #expect(try await author.text(of: 1) == "blanker")
    #expect(try await author.text(of: 1, at: .beforeClaim) == "good")
    let reading = try await author.scan()[0]
    #expect(reading.state?.isEarly == true)
    #expect(reading.beforeClaim?.sequence == 2)
    try await author.maintain()
    try await fixture.restart(author)
    author = try await fixture.author()
    #expect(try await author.text(of: 1, at: .beforeClaim) == "good")
    try await author.apply(.settle([1, 7]))
    #expect(try await author.text(of: 1, at: .beforeClaim) == "blanker")
    #expect(try await author.scan()[0].beforeClaim == nil)
    #expect(author.reachableBytes == 1 + 7)
    try await author.maintain()
    try await fixture.restart(author)
    author = try await fixture.author()
    #expect(author.opening.nodes[0].state?.isEarly == false)
    #expect(try await author.text(of: 1, at: .beforeClaim) == "blanker")
  }

  @Test(arguments: ArchiveEngine.allCases)
  func anEarlyStateAloneLeavesTheOwnerNothingToDecode(engine: ArchiveEngine) async throws {
    var author = try await ArchiveFixture(engine).author()
    try await author.apply(.node(1, "a"), .state(1, "first", early: true))
    #expect(try await author.text(of: 1, at: .beforeClaim) == nil)
    try await author.apply(.state(1, "good"), .removeState(1), .state(1, "later", early: true))
    #expect(try await author.text(of: 1, at: .beforeClaim) == nil)
    #expect(try await author.text(of: 1) == "later")
  }

  @Test(arguments: ArchiveEngine.allCases)
  func aSequenceShowsWhatWasThereThen(engine: ArchiveEngine) async throws {
    var author = try await ArchiveFixture(engine).author()
    try await author.apply(.node(1, "a"), .state(1, "one"), .state(1, "two"), .removeState(1), .state(1, "three"))
    var texts: [String?] = []
    for sequence in 1...6 as ClosedRange<SequenceNumber> {
      texts.append(try await author.text(of: 1, at: .sequence(sequence)))
    }
    #expect(texts == [nil, "one", "two", nil, "three", "three"])
    #expect(try await author.scan(at: .sequence(0)).isEmpty)
  }

  @Test(arguments: ArchiveEngine.allCases)
  func scanningGoesPageByPageInOrder(engine: ArchiveEngine) async throws {
    var author = try await ArchiveFixture(engine).author()
    try await author.apply([3, 1, 9, 4, 7, 2].map { .node($0, "n\($0)") })
    try await author.apply(.removed(4))
    var pages: [[NodeID]] = []
    while true {
      let page = try await author.store.scan(after: pages.last?.last, limit: 2, at: .head, lease: author.lease)
      if page.isEmpty { break }
      pages.append(page.map(\.node.node))
    }
    #expect(pages == [[1, 2], [3, 7], [9]])
  }

  @Test(arguments: ArchiveEngine.allCases)
  func readingKeepsTheOrderAskedFor(engine: ArchiveEngine) async throws {
    var author = try await ArchiveFixture(engine).author()
    try await author.apply(.node(1, "a"), .node(2, "b"), .state(2, "two"), .state(1, "one"))
    let readings = try await author.store.read([2, 5, 1, 2], at: .head, lease: author.lease)
    let sequences = readings.map { reading -> SequenceNumber? in
      if case .state(_, let sequence)? = reading { sequence } else { nil }
    }
    #expect(sequences == [3, nil, 4, 3])
  }

  // MARK: Generations

  @Test(arguments: ArchiveEngine.allCases)
  func aGenerationKeepsItsStatesUntilItIsDropped(engine: ArchiveEngine) async throws {
    var fixture = try ArchiveFixture(engine)
    var author = try await fixture.author()
    try await author.apply(.node(1, "a"), .state(1, "old"), .seal(1), .pin(generation: 1))
    let sealed = author.sequence - 1
    try await author.apply(.state(1, "newer"), .state(1, "newest"))
    try await author.maintain()
    #expect(author.reachableBytes == 1 + 3 + 6)
    #expect(try await author.text(of: 1, at: .sequence(sealed)) == "old")
    try await fixture.restart(author)
    author = try await fixture.author()
    #expect(author.opening.generations.map(\.sequence) == [sealed])
    #expect(author.opening.generations.map(\.isPinned) == [true])
    #expect(try await author.text(of: 1, at: .sequence(sealed)) == "old")
    try await author.apply(.dropGeneration(1))
    #expect(author.reachableBytes == 1 + 6)
    try await author.maintain()
    let kind = await failure { [author] () async throws(ArchiveError) in
      var author = author
      try await author.apply(.seal(1))
    }
    #expect(kind == .definite)
    try await fixture.restart(author)
    author = try await fixture.author()
    #expect(author.opening.generations.isEmpty)
    #expect(author.opening.lastGeneration == 1)
    #expect(author.opening.reachableBytes == 1 + 6)
  }

  @Test(arguments: ArchiveEngine.allCases)
  func emptyingTheHeadLeavesGenerationsAlone(engine: ArchiveEngine) async throws {
    var fixture = try ArchiveFixture(engine)
    var author = try await fixture.author()
    try await author.apply(.node(1, "a"), .node(2, "b", parent: 1), .state(1, "one"), .state(2, "two", early: true))
    try await author.apply(.seal(1))
    let sealed = author.sequence
    try await author.apply(.state(2, "three"), .removeAll)
    #expect(author.reachableBytes == 2 + 6)
    for _ in 0..<2 {
      #expect(try await author.scan().isEmpty)
      #expect(try await author.text(of: 1) == nil)
      #expect(try await author.text(of: 2, at: .beforeClaim) == nil)
      #expect(try await author.scan(at: .sequence(sealed)).map(\.node.component) == ["a", "b"])
      #expect(try await author.text(of: 2, at: .sequence(sealed)) == "two")
      try await author.maintain()
      try await fixture.restart(author)
      author = try await fixture.author()
    }
    try await author.apply(.node(2, "again"), .state(2, "four"))
    #expect(try await author.scan().map(\.node.component) == ["again"])
    try await author.apply(.dropGeneration(1))
    #expect(author.reachableBytes == 5 + 4)
    try await author.maintain()
    try await fixture.restart(author)
    #expect(try await fixture.author().opening.nodes.map(\.node.node) == [2])
  }

  @Test(arguments: ArchiveEngine.allCases)
  func oldGenerationsShowThePathsTheyHad(engine: ArchiveEngine) async throws {
    var fixture = try ArchiveFixture(engine)
    var author = try await fixture.author()
    try await author.apply(.node(1, "Main"), .node(2, "Editor", parent: 1), .node(3, "Text", parent: 2))
    try await author.apply(.seal(1))
    let sealed = author.sequence
    try await author.apply(.node(2, "Editor#2"), .removed(1, successor: 2), .removed(3))
    try await author.maintain()
    try await fixture.restart(author)
    author = try await fixture.author()
    #expect(author.opening.nodes.map(\.node.node) == [1, 2])
    #expect(author.opening.nodes[0].node.successor == 2)
    #expect(author.opening.nodes[1].node.component == "Editor#2")
    #expect(author.opening.nodes[1].node.parent == nil)
    let old = try await author.scan(at: .sequence(sealed))
    #expect(old.map(\.node.component) == ["Main", "Editor", "Text"])
    #expect(old.map(\.node.parent) == [nil, 1, 2])
  }

  @Test(arguments: ArchiveEngine.allCases)
  func aRemovedNodeNoLongerHasAState(engine: ArchiveEngine) async throws {
    var fixture = try ArchiveFixture(engine)
    var author = try await fixture.author()
    try await author.apply(.node(1, "a"), .state(1, "one"), .node(2, "b"), .state(2, "two"))
    try await author.apply(.removed(1, successor: 2), .removed(2))
    #expect(author.reachableBytes == 0)
    #expect(try await author.text(of: 1) == nil)
    try await author.apply(.node(2, "again"))
    #expect(try await author.text(of: 2) == nil)
    try await fixture.restart(author)
    author = try await fixture.author()
    #expect(try await author.text(of: 2) == nil)
    #expect(author.opening.lastNode == 2)
  }

  @Test(arguments: ArchiveEngine.allCases)
  func aHeldSequenceStaysReadableWhileItIsHeld(engine: ArchiveEngine) async throws {
    let upkeep = ArchiveUpkeep(deadBytesMax: 0, deadPerReachable: 0, ballastBytes: 0)
    var author = try await ArchiveFixture(engine, upkeep: upkeep).author()
    try await author.apply(.node(1, "a"), .state(1, "one"))
    let held = author.sequence
    for number in 0..<20 { try await author.apply(.state(1, "\(number)"), holding: [held + 1_000, held, 1]) }
    try await author.maintain(holding: [held + 1_000, held, 1])
    #expect(try await author.text(of: 1, at: .sequence(held)) == "one")
    #expect(author.reachableBytes == 1 + 2)
    try await author.maintain()
    #expect(try await author.text(of: 1, at: .sequence(held)) == nil)
    #expect(try await author.text(of: 1) == "19")
  }

  // MARK: Contents

  @Test(arguments: ArchiveEngine.allCases)
  func everythingComesBackAsItWasWritten(engine: ArchiveEngine) async throws {
    var fixture = try ArchiveFixture(engine)
    var author = try await fixture.author()
    try await author.apply(
      .node(1, "Main"),
      .node(Sample.node),
      .context(2, text: #"{"class":"Editor"}"#),
      .state(Sample.state),
      .session(Sample.session),
      .session(SessionRecord(session: 8, token: "x", facts: "x")),
      .session(Sample.ended),
      .claim(ClaimRecord(node: 4, session: 6, handle: 1)),
      .claim(Sample.claim),
      .seal(Sample.generation),
      .run(RunRecord(run: 1, restorations: 0, facts: "")),
      .run(Sample.run)
    )
    try await fixture.restart(author)
    author = try await fixture.author()
    let opening = author.opening
    #expect(opening.nodes.map(\.node).last == Sample.node)
    #expect(opening.contexts == [2: #"{"class":"Editor"}"#])
    #expect(opening.sessions == [Sample.session, Sample.ended])
    #expect(opening.claims == [Sample.claim])
    #expect(opening.generations == [SealedGeneration(record: Sample.generation, sequence: 10, isPinned: false)])
    #expect(opening.run == Sample.run)
    #expect(opening.contentSequence == 4)
    #expect(opening.lastNode == 4)
    #expect(opening.lastSession == 8)
    #expect(opening.lastContext == 2)
    #expect(opening.reachableBytes == 4 + Sample.node.textBytes + 18 + Sample.state.bytes)
    let reading = try await author.store.read([4], at: .head, lease: author.lease)[0]
    #expect(reading == .state(Sample.state, sequence: 4))
    try await author.apply(.forgetSessions([8, 99]))
    try await fixture.restart(author)
    #expect(try await fixture.author().opening.sessions == [Sample.session])
  }

  @Test(arguments: ArchiveEngine.allCases)
  func aReopenedArchiveLooksTheSame(engine: ArchiveEngine) async throws {
    var fixture = try ArchiveFixture(engine)
    var author = try await fixture.author()
    let run = RunRecord(run: 1, restorations: 0, facts: "{}")
    try await author.apply(.node(1, "a"), .context(1, text: "c"), .state(1, "{}"), .seal(1), .run(run))
    try await fixture.restart(author)
    var first = try await fixture.author().opening
    let again = try await fixture.author().opening
    first.lease = again.lease
    #expect(String(describing: first) == String(describing: again))
  }

  @Test(arguments: ArchiveEngine.allCases)
  func textsComeBackByteForByte(engine: ArchiveEngine) async throws {
    var fixture = try ArchiveFixture(engine)
    var author = try await fixture.author()
    let texts = [
      "", "{}", "-0.0", "1e400",
      #"{"n":"\u0000"}"#, "{\"n\":\"\u{0}\"}", #"{"e":"é😀\ud83d\ude00"}"#,
      "[\(String(repeating: "9", count: 5000))]", String(repeating: #"{"x":"日本"}"#, count: 300_000),
    ]
    try await author.apply(texts.indices.map { .node(NodeID($0 + 1), "n\($0)") })
    try await author.apply(texts.enumerated().map { .state(NodeID($0.offset + 1), $0.element) })
    try await fixture.restart(author)
    author = try await fixture.author()
    for (offset, text) in texts.enumerated() {
      let read = try await author.text(of: NodeID(offset + 1))
      #expect(read == text, "text \(offset)")
    }
    #expect(author.reachableBytes == texts.reduce(2 * texts.count) { $0 + $1.utf8.count })
  }

  @Test(arguments: ArchiveEngine.allCases)
  func contextsNobodyUsesAreForgottenAtTheNextOpening(engine: ArchiveEngine) async throws {
    var fixture = try ArchiveFixture(engine)
    var author = try await fixture.author()
    try await author.apply(.context(1, text: "one"), .context(2, text: "two"), .node(1, "a"))
    try await author.maintain()
    let late = StateRecord(node: 1, context: 2, written: 0, text: [][...])
    try await author.apply(.state(late))
    try await fixture.restart(author)
    author = try await fixture.author()
    #expect(author.opening.contexts == [2: "two"])
    #expect(author.opening.lastContext == 2)
    #expect(try await author.maintain() > 0)
    try await fixture.restart(author)
    #expect(try await fixture.author().opening.contexts == [2: "two"])
  }

  @Test(arguments: ArchiveEngine.allCases)
  func theContextOfARowThatIsStillReadOutlivesAReopening(engine: ArchiveEngine) async throws {
    let fixture = try ArchiveFixture(engine)
    var author = try await fixture.author()
    func state(_ context: ContextID) -> ArchiveChange {
      .state(StateRecord(node: 1, context: context, written: 0, text: Array("{}".utf8)[...]))
    }
    let contexts: [ContextID: String] = [1: "one", 2: "two"]
    try await author.apply(.node(1, "a"), .context(1, text: "one"), .context(2, text: "two"), state(1))
    let read = author.sequence
    try await author.apply(state(2))
    for _ in 1...2 {
      author = try await fixture.author()
      #expect(author.opening.contexts == contexts && author.opening.buriedContexts == [1])
      _ = try await author.store.maintain(author.lease, holding: [read])
    }
    try await author.maintain()
    try await author.apply(.node(2, "b"))
    #expect(author.unnamedContexts == [1])
  }

  @Test(arguments: ArchiveEngine.allCases)
  func contextsThatNoRowNamesAreToldAndForgotten(engine: ArchiveEngine) async throws {
    var fixture = try ArchiveFixture(engine)
    var author = try await fixture.author()
    func state(_ context: ContextID) -> ArchiveChange {
      .state(StateRecord(node: 1, context: context, written: 0, text: Array("{}".utf8)[...]))
    }
    try await author.apply(.node(1, "a"), .context(1, text: "one"), .context(2, text: "second"), state(1))
    #expect(author.unnamedContexts == [2] && author.reachableBytes == 1 + 3 + 2)
    try await author.apply(state(2))
    // A dead row has it.
    #expect(author.unnamedContexts == [] && author.reachableBytes == 1 + 6 + 2)
    try await author.apply(.forgetContexts([1, 2, 9]))
    try await author.maintain()
    try await author.apply(.node(2, "b"))
    #expect(author.unnamedContexts == [1])
    try await author.apply(.forgetContexts([1, 2]))
    #expect(author.unnamedContexts == [])
    // Its number may be used for the same text again.
    try await author.apply(.context(1, text: "one"), state(1))
    try await fixture.restart(author)
    // A dead row may have the other one.
    #expect(try await fixture.author().opening.contexts[1] == "one")
  }

  @Test(arguments: ArchiveEngine.allCases)
  func claimsGoWithTheLastContentsThatShowTheirNode(engine: ArchiveEngine) async throws {
    var fixture = try ArchiveFixture(engine)
    var author = try await fixture.author()
    let claim = ClaimRecord(node: 1, session: 1, handle: 1)
    try await author.apply(.node(1, "a"), .claim(claim), .seal(1), .removed(1))
    try await author.maintain()
    try await fixture.restart(author)
    author = try await fixture.author()
    #expect(author.opening.claims == [claim])
    try await author.apply(.dropGeneration(1))
    try await author.maintain()
    try await fixture.restart(author)
    #expect(try await fixture.author().opening.claims.isEmpty)
  }

  // MARK: Upkeep

  @Test(arguments: ArchiveEngine.allCases)
  func upkeepEndsAndHasNothingToDoAfterwards(engine: ArchiveEngine) async throws {
    var author = try await ArchiveFixture(engine).author()
    for round in 0..<50 {
      try await author.apply((1...40).map { .state($0, String(repeating: "\(round)", count: 200)) })
    }
    #expect(try await author.maintain() > 1)
    #expect(try await author.maintain() == 1)
    #expect(try await author.text(of: 40)?.utf8.count == 400)
  }

  @Test(arguments: ArchiveEngine.allCases)
  func everyArchiveIsListed(engine: ArchiveEngine) async throws {
    var fixture = try ArchiveFixture(engine)
    var author = try await fixture.author("b")
    let run = RunRecord(run: 1, restorations: 1, facts: "{}")
    try await author.apply(.node(1, "x"), .node(2, "y"), .node(3, "z"), .seal(4), .run(run))
    try await author.apply(.removed(2), .removed(3, successor: 1))
    try await author.apply(.state(StateRecord(node: 1, context: 0, written: 77, text: Array("{}".utf8)[...])))
    let other = try await fixture.author("a.backup.sqlite@1")
    var lists = [try await fixture.store.list()]
    await fixture.store.close(other.lease)
    lists.append(try await fixture.store.list())
    try await fixture.restart(author)
    lists.append(try await fixture.store.list())
    lists.append(try await fixture.store.list())
    for list in lists {
      #expect(list.map(\.application) == ["a.backup.sqlite@1", "b"])
      #expect(list.map(\.objects) == [0, 1])
      #expect(list.map(\.generation) == [0, 4])
      #expect(list.map(\.modified) == [0, 77])
      #expect(list.map(\.run) == [nil, run])
      #expect(list.map(\.state) == [.available, .available])
      #expect(list[1].bytes > 0)
    }
  }

  @Test(arguments: ArchiveEngine.allCases)
  func nothingNewIsOpenedBeyondTheQuota(engine: ArchiveEngine) async throws {
    var fixture = try ArchiveFixture(engine, quota: ArchiveQuota(applicationsMax: 2))
    var author = try await fixture.author("a")
    _ = try await fixture.author("b")
    let kind = await failure { [fixture] () async throws(ArchiveError) in _ = try await fixture.store.open("c") }
    #expect(kind == .limit(name: "applicationsMax", max: 2, value: 3))
    try await fixture.restart(author)
    author = try await fixture.author("a")
    #expect(try await fixture.store.list().map(\.application) == ["a", "b"])
    fixture = try ArchiveFixture(engine, quota: ArchiveQuota(allArchivesBytesMax: 200_000))
    author = try await fixture.author("a")
    _ = try await fixture.author("b")
    try await author.apply(.state(1, String(repeating: "x", count: 200_001)))
    let full = await failure { [fixture] () async throws(ArchiveError) in _ = try await fixture.store.open("c") }
    guard case .limit(name: "allArchivesBytesMax", max: 200_000, value: 200_001...) = full else {
      Issue.record("not refused for the bytes: \(String(describing: full))")
      return
    }
  }
}

/// A record of each kind, with every member set.
private enum Sample {
  static let node = NodeRecord(
    node: 4,
    parent: 1,
    component: "Übersicht#3",
    kind: .viewController,
    classes: #"["Editor","Base"]"#,
    restorationClass: "Factory",
    storyboard: "main.service",
    keepsForever: true,
    isConfidential: true
  )
  static let state = StateRecord(
    node: 4,
    context: 2,
    session: 7,
    revision: .max,
    written: 1_795_000_000_123,
    text: Array(#"{"a":1}"#.utf8)[...],
    references: "[[1,2,3]]",
    elements: "[]"
  )
  static let session = SessionRecord(session: 7, token: "00ff", facts: #"{"process":"editor"}"#)
  static let ended = SessionRecord(session: 8, token: "", facts: "{}", ending: "closed", ended: 5, restorationsAtEnd: 6)
  static let generation = GenerationRecord(
    generation: 5,
    kind: "startup",
    committed: 9,
    objects: 1,
    bytes: 7,
    omitted: [1, 30, 2]
  )
  static let claim = ClaimRecord(node: 4, session: 7, handle: 1 << 53 - 1, released: 11, restorationsAtRelease: 12)
  static let run = RunRecord(run: 3, restorations: 2, facts: #"{"editor":"crash"}"#)
}
