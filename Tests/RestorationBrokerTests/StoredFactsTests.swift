// SPDX-License-Identifier: Apache-2.0

internal import RestorationBroker
internal import Testing

@Suite struct StoredFactsTests {
  @Test func r31AnyNumberOfSuspectsIsReadAgain() {
    var facts = RunFacts()
    facts.outcome = .crashed
    _ = facts.blame.failed(DecodeTrials.Failure(unproven: Set(1...20_000)))
    #expect(RunFacts(stored: facts.stored) == facts)
  }

  @Test func whatIsInvalidCostsOnlyItself() {
    let facts = RunFacts(
      stored: #"""
        {"open":true,"outcome":"x","roles":{"a":"crashed","b":"x"},"backedUp":-1,"quarantined":9223372036854775807,
        "blame":{"strikes":"x","suspects":{"1":1,"x":2}},"units":[{"unit":"a.service","run":-1},{"run":2}]}
        """#
    )
    #expect(facts.isOpen && facts.outcome == .clean && facts.outcomeByRole == ["a": .crashed])
    #expect(facts.backedUp == 0 && facts.quarantined == 1 << 53)
    #expect(facts.blame.suspects == [1: 1] && facts.units.map(\.name) == ["a.service"])
  }

  @Test func aSessionThatReadsMessagesOfAnySizeStillDoes() {
    var facts = SessionFacts()
    facts.messageBytesMax = .max
    #expect(SessionFacts(stored: facts.stored).messageBytesMax == 1 << 53)
  }
}
