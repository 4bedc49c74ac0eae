// SPDX-License-Identifier: Apache-2.0

/// What a JSON value is, as its text shows.
package enum JSONKind: UInt8, Sendable {
  case object, array, string
  /// A number without `.`, `e` and `E`.
  case integer
  /// Any other number.
  case real
  case bool, null

  package var isContainer: Bool { self == .object || self == .array }
}
