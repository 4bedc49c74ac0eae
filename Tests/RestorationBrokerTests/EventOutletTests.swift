// SPDX-License-Identifier: Apache-2.0

internal import RestorationBroker
internal import Testing

/// Received and lost make up all that there was.
@Suite struct EventOutletTests {
  private let one = Subscriber(client: 1, number: 1)
  private let two = Subscriber(client: 1, number: 2)

  @Test func whatIsRefusedIsCountedUntilItIsTold() {
    var outlet = EventOutlet()
    outlet.send(to: one) { true }
    outlet.send(to: one) { false }
    outlet.send(to: one) {
      Issue.record("an event was offered before the loss was told")
      return true
    }
    outlet.send(to: two) { true }
    #expect(outlet.sent == 2 && outlet.lost == 2)
    var told: [Int64] = []
    outlet.tellLosses(to: 1) { number, lost in
      told += [number, lost]
      return true
    }
    #expect(told == [1, 2])
    outlet.send(to: one) { true }
    #expect(outlet.sent == 3 && outlet.lost == 2)
    outlet.tellLosses(to: 1) { _, _ in
      Issue.record("a loss was told twice")
      return true
    }
  }

  @Test func aLossThatCannotBeToldStays() {
    var outlet = EventOutlet()
    for subscriber in [one, two, two] { outlet.send(to: subscriber) { false } }
    outlet.tellLosses(to: 1) { number, _ in number == 1 }
    #expect(outlet.take(one) == nil)
    #expect(outlet.take(two) == 2)
    #expect(outlet.take(two) == nil)
  }

  @Test func aConnectionThatHasEndedIsForgotten() {
    var outlet = EventOutlet()
    outlet.send(to: one) { false }
    outlet.forget(1)
    #expect(outlet.take(one) == nil)
  }
}
