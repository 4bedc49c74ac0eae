// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import TestSupport
internal import Testing

/// `ReplicatedStore` on several hosts, over a replica in memory. `RESTORATIOND_LONG=1` plays 100,000 histories,
/// `RESTORATIOND_HISTORIES=17-20` those.
@Suite(.passesTurnstile) struct ReplicaHistoryTests {
  private static let histories: ClosedRange<UInt64> = {
    let bounds = (Environment.variable("RESTORATIOND_HISTORIES") ?? "").split(separator: "-").compactMap { UInt64($0) }
    return bounds.count == 2 ? bounds[0]...bounds[1] : 1...(Environment.isLong ? 100_000 : 60)
  }()

  @Test func nothingIsLostWithoutBeingToldAndNobodyShipsWhatDoesNotContinueTheReplica() throws {
    for seed in Self.histories {
      var history = try ReplicaHistory(seed: seed)
      guard let wrong = history.play() else { continue }
      Issue.record("history \(seed): \(wrong)\n\(history.trail.joined(separator: "\n"))")
      return
    }
  }

  /// The last two are rare, and left to the long form.
  @Test(arguments: ReplicaHistory.Fault.allCases.dropLast(Environment.isLong ? 0 : 2))
  func aPlantedFaultIsFound(fault: ReplicaHistory.Fault) throws {
    for seed in 1...20_000 as ClosedRange<UInt64> {
      var history = try ReplicaHistory(seed: seed, fault: fault)
      if history.play() != nil { return }
    }
    Issue.record("no history shows that \(fault) is wrong")
  }
}
