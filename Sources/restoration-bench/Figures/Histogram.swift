// SPDX-License-Identifier: Apache-2.0

/// How often each span of time was measured, in nanoseconds. Spans that differ by less than 0.8 percent are one.
package struct Histogram: Sendable {
  private static let stepBits = 7
  private static let steps = 1 << stepBits

  package private(set) var count = 0
  package private(set) var maximum: UInt64 = 0
  private var counts = [UInt32](repeating: 0, count: (65 - stepBits) * steps)

  package init() {}

  package mutating func note(_ nanoseconds: UInt64) {
    counts[Self.index(nanoseconds)] += 1
    count += 1
    if nanoseconds > maximum { maximum = nanoseconds }
  }

  /// The span that this part of all spans does not exceed; 0 if there are none.
  ///
  /// - Parameter part: from 0 to 1; 0.5 is the median.
  package func quantile(_ part: Double) -> UInt64 {
    let rank = max(1, Int((part * Double(count)).rounded(.up)))
    var seen = 0
    for (index, count) in counts.enumerated() where count > 0 {
      seen += Int(count)
      if seen >= rank { return min(Self.last(index), maximum) }
    }
    return maximum
  }

  private static func index(_ value: UInt64) -> Int {
    guard value >= steps else { return Int(value) }
    let shift = 63 - value.leadingZeroBitCount - stepBits
    return (shift + 1) * steps + Int(value >> UInt64(shift)) - steps
  }

  /// The longest span of a count.
  private static func last(_ index: Int) -> UInt64 {
    guard index >= steps else { return UInt64(index) }
    let shift = UInt64(index / steps - 1)
    return (UInt64(index % steps + steps + 1) << shift) &- 1
  }
}
