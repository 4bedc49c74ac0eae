// SPDX-License-Identifier: Apache-2.0

/// Why data did not reach the replica, for people; no decision depends on it.
package struct ReplicaFailure: Hashable, Sendable {
  package enum Cause: String, CaseIterable, Hashable, Sendable {
    case away, elsewhere, fenced, gap, key, quota, refused, tooNew, uncovered, unknown, voided
    /// This host could not make the copy to be sent.
    case disk
  }

  package let cause: Cause
  package let message: String

  package init(_ cause: Cause, _ message: String) { (self.cause, self.message) = (cause, message) }
}
