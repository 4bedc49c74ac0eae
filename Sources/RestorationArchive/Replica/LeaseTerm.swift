// SPDX-License-Identifier: Apache-2.0

/// For how long a lease holds. Milliseconds.
package struct LeaseTerm: Hashable, Sendable {
  /// After this long without a renewal another broker may take it.
  package let milliseconds: Int64

  package init(milliseconds: Int64) { self.milliseconds = milliseconds }

  /// How much earlier its holder stops.
  package var margin: Int64 { max(1_000, milliseconds / 10) }
  /// How often it is renewed.
  package var renewal: Int64 { min(10_000, milliseconds / 3) }
  /// How long after the question a lease can be relied upon.
  package var reliable: Int64 { milliseconds - margin }
  /// After how long a question that was not answered is put again.
  package static let retry: Int64 = 500
}
