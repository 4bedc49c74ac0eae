// SPDX-License-Identifier: Apache-2.0

/// A histogram of durations. All counters are made at the start.
package struct Durations: Sendable {
  /// The longest duration of each range but the last, which has no end.
  package static let boundsMicroseconds: [Int64] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000,
  ]

  /// One more element than `boundsMicroseconds`.
  package private(set) var counts = [Int64](repeating: 0, count: boundsMicroseconds.count + 1)
  private var sumNanoseconds: Int64 = 0

  package init() {}

  package var sumMicroseconds: Int64 { sumNanoseconds / 1_000 }

  package mutating func add(nanoseconds: Int64) {
    sumNanoseconds += nanoseconds
    let range = Self.boundsMicroseconds.firstIndex { nanoseconds <= $0 * 1_000 } ?? Self.boundsMicroseconds.count
    counts[range] += 1
  }
}
