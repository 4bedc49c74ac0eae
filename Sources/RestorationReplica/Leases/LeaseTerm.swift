// SPDX-License-Identifier: Apache-2.0

/// Durations of a lease, in milliseconds.
package struct LeaseTerm: Hashable, Sendable {
  /// After this time without a renewal another broker may take the lease.
  package let milliseconds: Int64

  package init(milliseconds: Int64) { self.milliseconds = milliseconds }

  /// How much earlier its holder stops.
  package var margin: Int64 { max(1_000, milliseconds / 10) }
  package var renewal: Int64 { min(10_000, milliseconds / 3) }
  /// How long a lease is reliable, counted from the request.
  package var reliable: Int64 { milliseconds - margin }
  /// The pause before an unanswered request is repeated.
  package static let retry: Int64 = 500
}
