// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import Testing

/// Early marks of claimed nodes (R19).
@Suite struct EarlyMarksTests {
  private let event: TurnFixture
  private var trials = DecodeTrials()

  init() throws { event = try TurnFixture() }

  private func node(_ id: NodeID, claimed since: Int64, isEarly: Bool = true) -> Node {
    let node = Node(record: NodeRecord(node: id, parent: nil, component: "n\(id)", kind: .object))
    let record = StateRecord(node: id, context: 1, isEarly: isEarly, written: 0, text: [], references: nil)
    node.versions.write(StateSummary(record, at: id))
    node.claim = Node.Claim(session: 1, handle: id, since: since, classes: [])
    return node
  }

  @Test mutating func theTimerIsSetForTheFirstMarkAndMovedOnlyForAnEarlierOne() {
    trials.watchEarly(since: 0, in: &event.turn)
    #expect(event.timer() == EarlyMarks.milliseconds)
    trials.watchEarly(since: 10, in: &event.turn)
    #expect(event.asked() == [])
    trials.watchEarly(since: -10, in: &event.turn)
    #expect(event.timer() == EarlyMarks.milliseconds - 10)
  }

  @Test mutating func marksAreClearedInTimeTogetherAndTheOthersAreWatched() {
    let nodes = [node(3, claimed: 0), node(2, claimed: 0), node(4, claimed: 500), node(5, claimed: 0, isEarly: false)]
    event.context.now.monotonic = EarlyMarks.milliseconds
    trials.earlyTimerFired(nodes, in: &event.turn)
    #expect(event.written() == [.settle([2, 3])])
    #expect(nodes.map { $0.state?.isEarly } == [false, false, true, false])
    trials.earlyTimerFired(nodes, in: &event.turn)
    #expect(event.timer() == 500)
  }

  @Test func clearingIsWrittenOnce() {
    let node = node(2, claimed: 0)
    EarlyMarks.clear([node], in: &event.turn)
    #expect(event.written() == [.settle([2])])
    EarlyMarks.clear([node], in: &event.turn)
    #expect(event.written() == [])
  }
}
