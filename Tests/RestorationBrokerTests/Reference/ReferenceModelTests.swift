// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// The service does what the reference model says, whatever clients do. `RESTORATIOND_LONG=1` plays 100,000 histories,
/// `RESTORATIOND_HISTORIES=17-20` those.
@Suite struct ReferenceModelTests {
  private static let histories: ClosedRange<UInt64> = {
    let bounds = (Environment.variable("RESTORATIOND_HISTORIES") ?? "").split(separator: "-").compactMap { UInt64($0) }
    return bounds.count == 2 ? bounds[0]...bounds[1] : 1...(Environment.isLong ? 100_000 : 2_500)
  }()

  private struct Report {
    var counts: [String: Int] = [:]
    var different: [UInt64: String] = [:]
  }

  /// Differences of up to five histories are shown, each as the shortest history that leaving out operations finds. A
  /// branch whose name begins with a number is one of the decisions of revision 2.
  @Test func randomHistoriesAreWhatTheRulesSay() async {
    let report = await withTaskGroup(of: Report.self) { group in
      for shard in 0..<UInt64(4) { group.addTask { await Self.play(Self.histories.filter { $0 % 4 == shard }) } }
      return await group.reduce(into: Report()) { sum, report in
        sum.counts.merge(report.counts) { $0 + $1 }
        sum.different.merge(report.different) { one, _ in one }
      }
    }
    for (seed, text) in report.different.sorted(by: { $0.key < $1.key }).prefix(5) {
      Issue.record("history \(seed), one of \(report.different.count) that differ: \(text)")
    }
    for (branch, count) in report.counts.sorted(by: { $0.key < $1.key }) {
      print("\(count) \(branch)")
      let isRare = count < 100 && branch.first?.isNumber == true && Self.histories.count >= 2_000
      #expect(!isRare, "\(branch) was taken too rarely")
    }
  }

  private static func play(_ seeds: [UInt64]) async -> Report {
    var report = Report()
    for seed in seeds {
      // Other tests have their turn.
      await Task.yield()
      do throws(ReferenceHistory.Difference) {
        report.counts.merge(try ReferenceHistory.random(seed: seed).model.counts) { $0 + $1 }
      } catch {
        report.different[seed] = report.different.count < 2 ? ReferenceHistory.shrink(error).description : "not shrunk"
      }
    }
    return report
  }
}
