// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import Testing

/// Due deliveries and their batches, without an application (R21, R29, R31). Nodes are as deep as their number.
@Suite struct DeliveriesTests {
  private var deliveries = Deliveries()

  private mutating func add(_ nodes: NodeID..., for session: SessionID = 7) {
    for node in nodes { deliveries.add(node, depth: Int(node), for: session) }
  }

  /// Chooses the next batch of a session that is ready, and sends it.
  private mutating func send(
    _ manner: (NodeID) -> Deliveries.Manner? = { _ in .state(bytes: 10) }
  ) -> [NodeID] {
    guard let session = deliveries.nextReady(), var choice = deliveries.choose(for: session, bytesMax: 100) else {
      return []
    }
    while let node = choice.next() { choice.take(manner(node)) }
    deliveries.begin(choice)
    deliveries.sent(to: session, deferred: deliveries.batch(of: session)?.deferred ?? [])
    return choice.nodes
  }

  private mutating func end(_ end: Deliveries.End, to session: SessionID = 7) -> [NodeID] {
    deliveries.end(end, to: session)
  }

  @Test mutating func aSessionIsGivenItsStatesParentsFirstAndOneBatchAtATime() {
    add(3, 1, 2)
    let first = send()
    #expect(first == [1, 2, 3])
    add(1, 4)
    let early = send()
    #expect(early == [])
    let done = end(.done)
    #expect(done == [1, 2, 3])
    let second = send()
    #expect(second == [4])
    _ = end(.done)
    #expect(deliveries.held == 0)
  }

  @Test mutating func aBatchEndsWhereItIsFullAndSuspectsGoAlone() {
    add(1, 2, 3, 4, 5)
    let manners: [NodeID: Deliveries.Manner] = [
      1: .state(bytes: 60), 2: .state(bytes: 40), 3: .alone(bytes: 5), 4: .none(.restored),
      5: .state(bytes: 101, deferred: 5),
    ]
    var batches: [[NodeID]] = []
    for _ in 1...3 {
      batches.append(send { manners[$0] })
      if batches.count == 3 { #expect(deliveries.batch(of: 7)?.deferred == [5]) }
      _ = end(.done)
    }
    #expect(batches == [[1, 2], [3], [5]])
    #expect(deliveries.held == 0)
  }

  @Test mutating func aStateThatWaitsForATrialIsTriedAgainWhenThatIsOver() {
    add(1, 2)
    let none = send { $0 == 1 ? .afterTrials : nil }
    #expect(none == [])
    #expect(deliveries.nextReady() == nil)
    deliveries.retry()
    let both = send()
    #expect(both == [1, 2])
  }

  @Test mutating func aSessionThatIsLostIsGivenTheSameAgainWhenItComesBack() {
    add(1, 2)
    _ = send()
    let lost = end(.lost)
    #expect(lost == [])
    let none = send()
    #expect(none == [])
    deliveries.returned(7)
    let again = send()
    #expect(again == [1, 2])
  }

  @Test mutating func aBatchOfSeveralThatIsRefusedIsGivenOneByOne() {
    add(1, 2, 3)
    _ = send()
    let undecided = end(.failed)
    #expect(undecided == [])
    var given: [[NodeID]] = []
    var refused: [NodeID] = []
    for _ in 1...3 {
      given.append(send())
      let ended = given.last == [2] ? end(.failed) : end(.done)
      if given.last == [2] { refused += ended }
    }
    #expect(given == [[1], [2], [3]])
    #expect(refused == [2])
    #expect(deliveries.held == 0)
  }

  @Test mutating func aStateThatItsOwnerFetchesIsNotSentAndOneThatWasSentIsStillAnswered() {
    add(1, 2)
    deliveries.cancel(1, for: 7)
    let batch = send()
    #expect(batch == [2])
    deliveries.cancel(2, for: 7)
    let answered = end(.done)
    #expect(answered == [2])
  }

  @Test mutating func anAnswerSaysNothingOfAnObjectThatItsOwnerHasLostMeanwhile() {
    add(1, 2)
    _ = send()
    deliveries.cancel(1, for: 7, isLost: true)
    add(1)
    let answered = end(.done)
    #expect(answered == [2])
    let again = send()
    #expect(again == [1])
  }

  @Test mutating func aSessionThatHasEndedIsGivenNothing() {
    add(1)
    add(2, for: 8)
    _ = send()
    deliveries.forget(7)
    let others = send()
    #expect(others == [2])
    deliveries.forgetAll()
    #expect(deliveries.held == 0)
  }
}
