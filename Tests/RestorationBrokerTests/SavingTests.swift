// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Save rounds and pulls of an application that has no broker.
@Suite struct SavingTests {
  private let event: TurnFixture
  private var saving = Saving()

  init() throws {
    var limits = Limits()
    (limits.roundQuietMilliseconds, limits.roundIntervalMilliseconds) = (100, 250)
    event = try TurnFixture(limits)
  }

  private static func target(_ node: NodeID, of session: SessionID = 1) -> EncodeTarget {
    EncodeTarget(node: node, handle: 100 + node, session: session, bytes: 10, batchBytesMax: 1_000)
  }

  private func caller(_ client: ClientID) -> SaveRound.Waiting {
    (LongCall(Caller(client: client, call: nil), by: nil, token: nil, at: Moment()), 1_000)
  }

  private mutating func join(_ client: ClientID) -> Bool { saving.join(caller(client)) }

  private mutating func begin(for client: ClientID? = nil) {
    saving.begin(deadline: 1_000, for: client.map { caller($0) }, isRestoring: false, in: event.turn)
  }

  /// What there is to do, each done without leading to anything.
  private mutating func actions() -> [Saving.Action] {
    var actions: [Saving.Action] = []
    while let action = saving.next() {
      actions.append(action)
      saving.performed()
    }
    return actions
  }

  private mutating func answered(
    _ session: SessionID = 1,
    isPull: Bool,
    _ fates: [NodeID: EncodeBatcher.Fate]
  ) -> [EncodeBatcher.Stale] {
    saving.answered(session, fates, isPull: isPull, NodeTree(), SessionTable(), Providers())
  }

  // MARK: Actions

  @Test mutating func oneActionIsCarriedOutAtATime() {
    begin()
    #expect(saving.next() == .round(.wait(until: 500)))
    saving.advance { $0.machine.decided(true) }
    #expect(saving.next() == nil)
    saving.performed()
    #expect(actions() == [.round(.decide), .round(.prepare)])
  }

  @Test mutating func whatARoundThatIsOverWantedIsNotDoneButPullsAre() {
    saving.invalidate([1], in: &event.turn)
    begin()
    saving.pullInvalidated { node, _ in Self.target(node) }
    #expect(saving.end(in: &event.turn).isEmpty)
    #expect(actions() == [.pull(1, [Self.target(1)])])
    #expect(saving.isIdle)
  }

  // MARK: Callers

  @Test mutating func whoCallsDuringARoundWaitsForItAndAllAreTold() {
    #expect(!join(1))
    begin(for: 1)
    #expect(join(2))
    #expect(saving.waiting(of: 2) == 1)
    #expect(saving.leave(Caller(client: 3, call: nil), in: &event.turn) == nil)
    #expect(event.asked() == [])
    #expect(saving.end(in: &event.turn).map(\.call.caller.client) == [1, 2])
    #expect(event.asked() == ["cancelTimer", "unpark", "unpark"])
    #expect(saving.end(in: &event.turn).isEmpty)
  }

  @Test mutating func aRoundIsWantedUntilItsLastCallerLeavesUnlessOneOfThemIsGone() {
    begin(for: 1)
    _ = join(2)
    #expect(saving.leave(Caller(client: 1, call: nil), in: &event.turn) == true)
    #expect(saving.leave(Caller(client: 2, call: nil), in: &event.turn) == false)
    _ = join(3)
    _ = join(4)
    saving.forget(3)
    #expect(saving.leave(Caller(client: 4, call: nil), in: &event.turn) == true)
    _ = saving.end(in: &event.turn)
    begin()
    _ = join(1)
    #expect(saving.leave(Caller(client: 1, call: nil), in: &event.turn) == true, "it began by itself")
  }

  // MARK: Rounds that begin by themselves

  @Test mutating func aRoundIsDueAfterAChangeUnlessOneIsUnderWay() throws {
    var sessions = SessionTable()
    let session = sessions.begin(SessionFacts(), in: event.turn)
    saving.update(sessions, hasUnsealedContent: true, in: &event.turn)
    #expect(event.asked() == [])
    session.facts.serves = [.encodeRestorableStateWithCoder]
    saving.update(sessions, hasUnsealedContent: true, in: &event.turn)
    #expect(event.timer() == 100)
    event.context.now.monotonic = 100
    #expect(!saving.isRoundDue(isRestoring: true, in: &event.turn))
    #expect(event.timer() == 100)
    event.context.now.monotonic = 200
    #expect(saving.isRoundDue(isRestoring: false, in: &event.turn))
    begin()
    #expect(!saving.isRoundDue(isRestoring: false, in: &event.turn))
    // What the round did not save is looked after when it is over.
    _ = event.asked()
    _ = saving.end(in: &event.turn)
    #expect(event.asked() == ["setTimer", "cancelTimer"])
    saving.forgetChanges(in: &event.turn)
    #expect(!saving.isRoundDue(isRestoring: false, in: &event.turn))
  }

  private mutating func hurry(milliseconds: Int64, hasUnsealedContent: Bool = true) -> Bool {
    saving.hurry(milliseconds: milliseconds, hasUnsealedContent: hasUnsealedContent, in: event.turn)
  }

  @Test mutating func r33ABrokerThatEndsHurriesARoundOrBeginsOne() {
    #expect(!hurry(milliseconds: 300, hasUnsealedContent: false))
    #expect(!hurry(milliseconds: 0))
    #expect(hurry(milliseconds: 300))
    begin(for: 1)
    _ = actions()
    #expect(!hurry(milliseconds: 300))
    #expect(actions() == [.round(.wait(until: 300))])
    #expect(saving.leave(Caller(client: 1, call: nil), in: &event.turn) == true, "it is wanted whoever leaves")
  }

  // MARK: Pulls

  /// Both are invalidated and asked for.
  private mutating func pull(_ nodes: [NodeID], of session: @escaping (NodeID) -> SessionID = { _ in 1 }) {
    saving.invalidate(nodes, in: &event.turn)
    saving.pullInvalidated { node, _ in Self.target(node, of: session(node)) }
    for action in actions() { if case .pull(let session, _) = action { saving.pullAsked(session, in: &event.turn) } }
  }

  @Test mutating func whatIsInvalidatedSoonAfterIsPulledTogether() {
    saving.invalidate([2], in: &event.turn)
    #expect(event.timer() == 100)
    saving.invalidate([1, 2], in: &event.turn)
    #expect(event.asked() == [])
    #expect(!saving.isIdle)
    saving.pullInvalidated { node, _ in node == 3 ? nil : Self.target(node) }
    #expect(actions() == [.pull(1, [Self.target(1), Self.target(2)])])
    #expect(saving.asked(of: 1, isPull: true).map(\.node) == [1, 2])
    #expect(saving.asked(of: 1, isPull: false) == [])
  }

  @Test mutating func whatASessionIsAskedNextWaitsForItsAnswer() {
    pull([1, 2])
    saving.invalidate([1], in: &event.turn)
    saving.pullInvalidated { node, _ in Self.target(node) }
    #expect(actions() == [])
    let stale = answered(isPull: true, [1: .encoded])
    #expect(stale.map(\.target.node) == [2])
    #expect(stale.map(\.refusal?.why) == ["missing"])
    #expect(actions() == [.pull(1, [Self.target(1)])])
    #expect(answered(isPull: true, [1: .later]) == [])
    #expect(actions() == [.pull(1, [Self.target(1)])], "it is asked again")
    #expect(answered(isPull: true, [1: .encoded]) == [])
    #expect(saving.pulled == [])
  }

  @Test mutating func aLostSessionIsAskedAgainWhenItIsBack() {
    pull([1])
    saving.lost(1, isBack: false, isPull: true, NodeTree(), SessionTable())
    #expect(actions() == [])
    #expect(saving.pulled == [1])
    saving.resumed(1)
    #expect(actions() == [.pull(1, [Self.target(1)])])
    saving.lost(1, isBack: true, isPull: true, NodeTree(), SessionTable())
    #expect(actions() == [.pull(1, [Self.target(1)])])
    saving.ended(1)
    #expect(saving.pulled == [])
  }

  @Test mutating func whatIsNotAnsweredInTimeIsGivenUp() {
    pull([1, 2]) { $0 }
    #expect(event.timer() == 5_000)
    event.context.now.monotonic = 1_000
    _ = answered(2, isPull: true, [2: .encoded])
    pull([2]) { $0 }
    event.context.now.monotonic = 5_000
    let late = saving.givePullsUp(in: &event.turn)
    #expect(late == [.init(target: Self.target(1), EncodeRefusal(.late))])
    #expect(event.timer() == 1_000)
    #expect(saving.pulled == [2])
  }

  // MARK: The walk

  @Test mutating func aWalkMakesOneListOfStepsForObjectsThatHaveTheSame() {
    var tree = NodeTree()
    for id in 1...2_000 as ClosedRange<NodeID> {
      _ = tree.insert(NodeRecord(node: id, parent: nil, component: "n\(id)", kind: .viewController))
    }
    begin()
    saving.advance { $0.machine.decided(true) + $0.machine.prepared() }
    saving.advance { [event] in $0.walk(tree, SessionTable(), in: event.turn) }
    #expect(actions().last == .round(.rest))
    let steps = tree.nodes.values.map(\.savingSteps)
    #expect(steps.first?.map(\.step) == [.included, .orphaned])
    #expect(Set(steps.map { $0.withUnsafeBufferPointer(\.baseAddress) }).count == 1)
  }

  @Test mutating func r7ARoundWithoutOwnersExplainsEveryNodeAndCommits() {
    var tree = NodeTree()
    let parent = tree.insert(NodeRecord(node: 1, parent: nil, component: "a", kind: .viewController))
    let below = tree.insert(NodeRecord(node: 2, parent: 1, component: nil, kind: .view))
    let state = StateRecord(node: 1, context: 1, written: 0, text: [], references: "[[0,0,2]]")
    parent.state = StateSummary(state, at: 1)
    begin()
    saving.advance { $0.machine.decided(true) + $0.machine.prepared() }
    saving.advance { [event] in $0.walk(tree, SessionTable(), in: event.turn) }
    #expect(actions().last == .round(.commit))
    #expect(parent.savingSteps.map(\.step) == [.included, .orphaned])
    #expect(below.savingSteps.map(\.step) == [.excluded(by: nil), .referenced(by: ["a"]), .orphaned])
  }
}
