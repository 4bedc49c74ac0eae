// SPDX-License-Identifier: Apache-2.0

/// Why something that was to go to the replica did not, for people: nothing is decided by it.
package struct ReplicaFailure: Hashable, Sendable {
  /// The words of `ReplicaError.Kind`, and one more.
  package enum Cause: String, CaseIterable, Hashable, Sendable {
    case away, elsewhere, fenced, gap, key, quota, refused, tooNew, uncovered, unknown, voided
    /// This host could not make the copy that is to go there.
    case disk

    /// It does not end by itself, as one does that comes from a connection or from the end of a lease, and those are
    /// told otherwise.
    var needsSomebody: Bool {
      switch self {
      case .disk, .key, .quota, .refused, .tooNew, .uncovered: true
      case .away, .elsewhere, .fenced, .gap, .unknown, .voided: false
      }
    }
  }

  package let cause: Cause
  package let message: String

  package init(_ cause: Cause, _ message: String) { (self.cause, self.message) = (cause, message) }

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

/// What has become of one archive's way to the replica, for people: events in, what is to be told out. However often
/// something is tried, its failure is told once for each cause, and its end once.
struct ReplicaJournal: Hashable {
  /// Since the replica had everything last.
  private(set) var failure: ReplicaFailure?
  private var told: ReplicaFailure.Cause?

  /// Whoever has asked is told.
  mutating func refused(_ failure: ReplicaFailure) { self.failure = failure }

  /// Returns whether it is to be told.
  mutating func failed(_ failure: ReplicaFailure) -> Bool {
    self.failure = failure
    guard failure.cause.needsSomebody, failure.cause != told else { return false }
    told = failure.cause
    return true
  }

  /// The replica has everything. Returns whether that is to be told.
  mutating func caughtUp() -> Bool {
    defer { self = ReplicaJournal() }
    return told != nil
  }
}
