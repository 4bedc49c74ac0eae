// SPDX-License-Identifier: Apache-2.0

internal import Testing
internal import restoration_bench

@Suite struct HistogramTests {
  @Test func quantilesAreWithinAPercent() {
    var histogram = Histogram()
    for value in 1...100_000 { histogram.note(UInt64(value) * 1_000) }
    #expect(histogram.count == 100_000)
    for part in [0.01, 0.5, 0.99, 0.999] {
      let exact = part * 1e8
      #expect(abs(Double(histogram.quantile(part)) - exact) <= exact / 100, "\(part)")
    }
    #expect(histogram.quantile(1) == 100_000_000)
    #expect(histogram.maximum == 100_000_000)
  }

  @Test func everySpanHasAPlace() {
    for value in [0, 1, 127, 128, 129, 255, 256, 1 << 40, UInt64.max] {
      var histogram = Histogram()
      histogram.note(value)
      #expect(histogram.quantile(0.5) == value)
    }
  }

  @Test func aSpreadHasTheMedianOfItsTurns() throws {
    #expect(Spread([]) == nil)
    let odd = try #require(Spread([3, 1, 2]))
    #expect((odd.least, odd.median, odd.most) == (1, 2, 3))
    #expect(Spread([4, 1, 2, 3])?.median == 2.5)
  }

  @Test func numbersHaveAsManyDigitsAsAReaderNeeds() {
    #expect(
      [0, 0.004, 9.996, 12.34, 999.96, 1_234.5].map { Number.text($0) } == [
        "0.00", "0.00", "10.00", "12.3", "1000.0", "1235",
      ]
    )
    #expect(Number.text(1.005, 1) == "1.0")
    #expect(Number.text(2.06, 2) == "2.06")
  }
}
