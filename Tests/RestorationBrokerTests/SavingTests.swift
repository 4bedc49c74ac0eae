// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Save rounds of an application that has no broker.
@Suite struct SavingTests {
  private let event: TurnFixture
  private var saving = Saving()

  init() throws {
    var limits = Limits()
    (limits.roundQuietMilliseconds, limits.roundIntervalMilliseconds) = (100, 250)
    event = try TurnFixture(limits)
  }

  private func caller(_ client: ClientID) -> SaveRound.Waiting {
    (LongCall(Caller(client: client, call: nil), by: nil, token: nil, at: Moment()), 1_000)
  }

  private mutating func join(_ client: ClientID) -> Bool { saving.join(caller(client)) }

  @discardableResult
  private mutating func begin(for client: ClientID? = nil) -> [SaveRound.Action] {
    saving.begin(deadline: 1_000, for: client.map { caller($0) }, isRestoring: false, in: event.turn)
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

  // MARK: The walk

  /// The round looks for what it is about.
  private mutating func walk(_ tree: NodeTree) -> SaveRound.Action? {
    begin()
    return saving.advance { [event] round in
      _ = round.machine.decided(true) + round.machine.prepared()
      return round.walk(tree, SessionTable(), in: event.turn).last
    } ?? nil
  }

  @Test mutating func aWalkMakesOneListOfStepsForObjectsThatHaveTheSame() {
    var tree = NodeTree()
    for id in 1...2_000 as ClosedRange<NodeID> {
      _ = tree.insert(NodeRecord(node: id, parent: nil, component: "n\(id)", kind: .viewController))
    }
    #expect(walk(tree) == .rest)
    let steps = tree.nodes.values.map(\.savingSteps)
    #expect(steps.first?.map(\.step) == [.included, .orphaned])
    #expect(Set(steps.map { $0.withUnsafeBufferPointer(\.baseAddress) }).count == 1)
  }

  @Test mutating func r7ARoundWithoutOwnersExplainsEveryNodeAndCommits() {
    var tree = NodeTree()
    let parent = tree.insert(NodeRecord(node: 1, parent: nil, component: "a", kind: .viewController))
    let below = tree.insert(NodeRecord(node: 2, parent: 1, component: nil, kind: .view))
    let state = StateRecord(node: 1, context: 1, written: 0, text: [], references: "[[0,0,2]]")
    parent.versions.write(StateSummary(state, at: 1))
    #expect(walk(tree) == .commit)
    #expect(parent.savingSteps.map(\.step) == [.included, .orphaned])
    #expect(below.savingSteps.map(\.step) == [.excluded(by: nil), .referenced(by: ["a"]), .orphaned])
  }
}
