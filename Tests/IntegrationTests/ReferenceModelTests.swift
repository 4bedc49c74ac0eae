// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// The service does what the reference model says, whatever clients do (`Tests/Simulation/Reference`).
/// `RESTORATIOND_LONG=1` plays 100,000 histories, `RESTORATIOND_HISTORIES=17-20` those.
@Suite(.passesTurnstile) struct ReferenceModelTests {
  private static let histories: ClosedRange<Int> = {
    let bounds = (Environment.variable("RESTORATIOND_HISTORIES") ?? "").split(separator: "-").compactMap { Int($0) }
    return bounds.count == 2 ? bounds[0]...max(bounds[0], bounds[1]) : 1...(Environment.isLong ? 100_000 : 2_500)
  }()
  /// Histories a process plays: what a broker still waited for at its end is never released.
  private static let portion = 500

  /// A branch whose name begins with the number of a rule is one that the rules are about.
  @Test func randomHistoriesAreWhatTheRulesSay() throws {
    var counts: [Substring: Int] = [:]
    for start in stride(from: Self.histories.lowerBound, through: Self.histories.upperBound, by: Self.portion) {
      let seeds = start...min(start + Self.portion - 1, Self.histories.upperBound)
      for line in try SimulationTests.play(seeds, command: "model").split(separator: "\n") {
        let words = line.split(separator: " ", maxSplits: 1)
        if let count = Int(words[0]), words.count == 2, line.first != " " { counts[words[1], default: 0] += count }
      }
    }
    for (branch, count) in counts.sorted(by: { $0.key < $1.key }) {
      print("\(count) \(branch)")
      let isRare = count < 100 && branch.first == "R" && Self.histories.count >= 2_000
      #expect(!isRare, "\(branch) was taken too rarely")
    }
  }
}
