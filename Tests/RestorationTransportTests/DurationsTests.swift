// SPDX-License-Identifier: Apache-2.0

internal import RestorationTransport
internal import Testing

@Suite struct DurationsTests {
  @Test func aBoundIsInTheRangeThatItEndsAndLongerOnesAreInTheLast() {
    var durations = Durations()
    for bound in Durations.boundsMicroseconds {
      durations.add(nanoseconds: bound * 1_000)
      durations.add(nanoseconds: bound * 1_000 + 1)
    }
    #expect(durations.counts == [1] + Array(repeating: 2, count: Durations.boundsMicroseconds.count - 1) + [1])
    #expect(durations.sumMicroseconds == 2 * Durations.boundsMicroseconds.reduce(0, +))
  }

  @Test func whatTakesNoTimeIsInTheFirstRange() {
    var durations = Durations()
    durations.add(nanoseconds: 0)
    #expect(durations.counts.first == 1 && durations.sumMicroseconds == 0)
  }
}
