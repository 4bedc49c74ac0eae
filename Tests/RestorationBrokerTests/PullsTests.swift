// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// States that are asked for outside of rounds, of an application that has no broker.
@Suite struct PullsTests {
  private let event: TurnFixture
  private var pulls = Pulls()

  init() throws { event = try TurnFixture() }

  private static func target(_ node: NodeID, of session: SessionID = 1) -> EncodeTarget {
    EncodeTarget(node: node, handle: 100 + node, session: session, bytes: 10, batchBytesMax: 1_000)
  }

  /// The batches, in words.
  private static func words(_ batches: [Pulls.Batch]) -> [String] {
    batches.map { session, batch in "\(session):" + batch.map { " \($0.node)" }.joined() }
  }

  /// They are invalidated and asked for.
  private mutating func pull(_ nodes: [NodeID], of session: (NodeID) -> SessionID = { _ in 1 }) -> [String] {
    pulls.invalidate(nodes, in: &event.turn)
    let batches = pulls.begin { node, _ in Self.target(node, of: session(node)) }
    for (session, _) in batches { pulls.begun(session, in: &event.turn) }
    return Self.words(batches)
  }

  @Test mutating func whatIsInvalidatedSoonAfterIsPulledTogether() {
    pulls.invalidate([2], in: &event.turn)
    #expect(event.timer() == 100)
    pulls.invalidate([1, 2], in: &event.turn)
    #expect(event.asked() == [])
    #expect(!pulls.isIdle)
    #expect(Self.words(pulls.begin { node, _ in node == 3 ? nil : Self.target(node) }) == ["1: 1 2"])
    #expect(pulls.asked(of: 1).map(\.node) == [1, 2])
  }

  @Test mutating func whatASessionIsAskedNextWaitsForItsAnswer() {
    #expect(pull([1, 2]) == ["1: 1 2"])
    #expect(pull([1]) == [])
    let stale = pulls.answered(1, [1: .encoded])
    #expect(stale.map(\.target.node) == [2] && stale.map(\.refusal?.why) == ["missing"])
    #expect(Self.words(pulls.next()) == ["1: 1"])
    #expect(pulls.answered(1, [1: .later]) == [])
    #expect(Self.words(pulls.next()) == ["1: 1"], "it is asked again")
    #expect(pulls.answered(1, [1: .encoded]) == [])
    #expect(pulls.next().isEmpty)
    #expect(pulls.nodes == [])
  }

  @Test mutating func aLostSessionIsAskedAgainWhenItIsBack() {
    _ = pull([1])
    #expect(pulls.lost(1, isBack: false).isEmpty)
    #expect(pulls.nodes == [1])
    #expect(Self.words(pulls.resumed(1)) == ["1: 1"])
    #expect(Self.words(pulls.lost(1, isBack: true)) == ["1: 1"])
    pulls.ended(1)
    #expect(pulls.nodes == [] && pulls.held == 0)
  }

  @Test mutating func whatIsNotAnsweredInTimeIsGivenUp() {
    _ = pull([1, 2]) { $0 }
    #expect(event.timer() == 5_000)
    event.context.now.monotonic = 1_000
    _ = pulls.answered(2, [2: .encoded])
    _ = pull([2]) { $0 }
    event.context.now.monotonic = 5_000
    #expect(pulls.timePassed(in: &event.turn) == [.init(target: Self.target(1), EncodeRefusal(.late))])
    #expect(event.timer() == 1_000)
    #expect(pulls.nodes == [2])
  }
}
