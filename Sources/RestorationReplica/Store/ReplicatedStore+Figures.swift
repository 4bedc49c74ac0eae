// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import Synchronization

extension ReplicatedStore {
  package nonisolated var meter: (any ReplicaMeter)? { context.settings.meter }

  package nonisolated var figures: ReplicaFigures {
    var figures = context.figures.withLock { $0 }
    figures.bytes = context.backlog.withLock { $0 }
    for archive in all { archive.add(to: &figures) }
    return figures
  }
}

extension ReplicatedArchive {
  fileprivate nonisolated func add(to figures: inout ReplicaFigures) {
    let (holding, progress) = gate.withLock { ($0.holding, $0.progress) }
    if let progress {
      figures.changes += progress.lag
      figures.milliseconds = max(figures.milliseconds, now - progress.since)
    }
    guard holding.lease != nil else { return }
    let word: ReplicaFigures.Holding =
      switch holding.permission(at: now) {
      case .granted: holding.isClaiming ? .claiming : .held
      case .lapsed: .lapsed
      case .closed, .lost: .closing
      }
    figures.leases[word, default: 0] += 1
  }
}
