// SPDX-License-Identifier: Apache-2.0

/// What the turns of a comparison have in common, and how far they lie apart.
package struct Spread: Equatable, Sendable {
  package let least: Double
  package let median: Double
  package let most: Double

  /// `nil` if there are no values.
  package init?(_ values: [Double]) {
    let sorted = values.sorted()
    guard let least = sorted.first, let most = sorted.last else { return nil }
    (self.least, self.most) = (least, most)
    let middle = sorted.count / 2
    median = sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
  }
}
