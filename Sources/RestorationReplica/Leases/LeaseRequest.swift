// SPDX-License-Identifier: Apache-2.0

/// How long a broker requests an archive that another one holds before it fails its caller. The holder is told at the
/// first request and needs a moment to save and ship. Times in milliseconds.
package struct LeaseRequest: Hashable, Sendable {
  package enum Action: Hashable, Sendable {
    case ask(at: Int64)
    case giveUp(ReplicaError.Kind)
  }

  package static let interval: Int64 = 250
  package static let patience: Int64 = 5_000

  private let deadline: Int64
  private let wants: Bool

  /// - Parameters:
  ///   - now: the time of the first request.
  ///   - wants: whether the holder is told; otherwise it is not waited for.
  package init(at now: Int64, wants: Bool) { (deadline, self.wants) = (now + Self.patience, wants) }

  package func refused(_ kind: ReplicaError.Kind, at now: Int64) -> Action {
    switch kind {
    case .elsewhere where !wants: .giveUp(kind)
    // The holder may leave, and a grant whose answer was lost may prove ours.
    case .elsewhere, .unknown: now + Self.interval <= deadline ? .ask(at: now + Self.interval) : .giveUp(kind)
    case .fenced, .voided, .away, .gap, .uncovered, .tooNew, .key, .quota, .refused: .giveUp(kind)
    }
  }
}
