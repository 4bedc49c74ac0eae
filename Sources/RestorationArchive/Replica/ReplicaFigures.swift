// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Counters of a `ReplicatedStore` since it was made, and its current values.
package struct ReplicaFigures: Hashable, Sendable {
  package var appends: Int64 = 0
  package var snapshots: Int64 = 0
  package var conflicts: Int64 = 0
  package var failures: [ReplicaFailure.Cause: Int64] = [:]

  /// Missing at the replica: changes, bytes that wait to be sent, and the longest delay in milliseconds.
  package var changes: Int64 = 0
  package var bytes = 0
  package var milliseconds: Int64 = 0
  package var leases: [Holding: Int] = [:]

  /// The state of an archive on this host.
  package enum Holding: String, CaseIterable, Hashable, Sendable {
    case held
    /// In use, but the replica has been silent for too long.
    case lapsed
    /// Another server has taken over, and the lease is requested again.
    case claiming
    /// No longer in use; the rest is being sent.
    case closing
  }
}

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
