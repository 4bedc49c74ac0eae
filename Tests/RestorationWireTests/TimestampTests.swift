// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire
internal import Testing

@Suite struct TimestampTests {
  @Test(
    arguments: [
      (0, "1970-01-01T00:00:00.000Z"),
      (-1, "1969-12-31T23:59:59.999Z"),
      (951_782_399_999, "2000-02-28T23:59:59.999Z"),
      (951_782_400_000, "2000-02-29T00:00:00.000Z"),
      (951_868_800_000, "2000-03-01T00:00:00.000Z"),
      (1_709_164_800_042, "2024-02-29T00:00:00.042Z"),
      (1_772_269_500_042, "2026-02-28T09:05:00.042Z"),
      (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
      (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
      (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
      (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
      (-62_162_035_200_000, "0000-03-01T00:00:00.000Z"),
    ] as [(Int64, String)]
  )
  func millisecondsAndTextAreTwoFormsOfOneTime(_ milliseconds: Int64, _ text: String) {
    #expect(Timestamp(milliseconds: milliseconds).description == text)
    #expect(Timestamp(text)?.milliseconds == milliseconds)
  }

  @Test func everyDayOfFourCenturiesIsReadAsItWasWritten() {
    for day in stride(from: Int64(-25_567), through: 120_530, by: 1) {
      let time = Timestamp(milliseconds: day * 86_400_000 + day.magnitude.timeOfDay)
      #expect(Timestamp(time.description) == time)
    }
  }

  @Test(arguments: [
    "", "2026-02-29T00:00:00.000Z", "2100-02-29T00:00:00.000Z", "2026-13-01T00:00:00.000Z", "2026-00-01T00:00:00.000Z",
    "2026-01-00T00:00:00.000Z", "2026-04-31T00:00:00.000Z", "2026-01-01T24:00:00.000Z", "2026-01-01T00:60:00.000Z",
    "2026-01-01T00:00:60.000Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000+00:00", "2026-01-01 00:00:00.000Z",
    "+026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.00١Z",
  ])
  func otherTextIsNoTime(_ text: String) { #expect(Timestamp(text) == nil) }

  @Test func timesBeyondFourDigitsOfAYearBecomeTheNearestThatFits() {
    #expect(Timestamp(milliseconds: .max).description == "9999-12-31T23:59:59.999Z")
    #expect(Timestamp(milliseconds: .min).description == "0000-01-01T00:00:00.000Z")
    #expect(Timestamp(milliseconds: 1) < Timestamp(milliseconds: 2))
  }
}

extension UInt64 {
  /// Some time of the day that differs from day to day.
  fileprivate var timeOfDay: Int64 { Int64(self &* 7_919_777 % 86_400_000) }
}
