// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// Decides which failures of one archive's shipping are reported: each cause once, however often it recurs, and its end
/// once. Events in, decisions out.
struct ReplicaJournal: Hashable {
  /// The last failure since the replica had everything.
  private(set) var failure: ReplicaFailure?
  private var told: ReplicaFailure.Cause?

  /// The caller gets the error itself.
  mutating func refused(_ failure: ReplicaFailure) { self.failure = failure }

  /// - Parameter isFinal: nothing more is sent.
  mutating func failed(_ failure: ReplicaFailure, isFinal: Bool = false) -> Bool {
    self.failure = failure
    guard isFinal || failure.cause.needsSomebody, failure.cause != told else { return false }
    told = failure.cause
    return true
  }

  /// The replica has everything. Returns whether to report that.
  mutating func caughtUp() -> Bool {
    defer { self = ReplicaJournal() }
    return told != nil
  }
}

extension ReplicaFailure {
  package init(_ error: ReplicaError) {
    let cause: Cause =
      switch error.kind {
      case .away: .away
      case .elsewhere: .elsewhere
      case .fenced: .fenced
      case .gap: .gap
      case .key: .key
      case .quota: .quota
      case .refused: .refused
      case .tooNew: .tooNew
      case .uncovered: .uncovered
      case .unknown: .unknown
      case .voided: .voided
      }
    self.init(cause, error.message)
  }

  init(_ failure: ClaimFailure) {
    switch failure {
    case .replica(let error): self.init(error)
    case .archive(let error): self.init(.disk, error.message)
    }
  }
}

extension ReplicaFailure.Cause {
  /// Whether a person must act. Lost connections and ended leases resolve by themselves and are reported in other
  /// ways.
  var needsSomebody: Bool {
    switch self {
    case .disk, .key, .quota, .refused, .tooNew, .uncovered: true
    case .away, .elsewhere, .fenced, .gap, .unknown, .voided: false
    }
  }
}
