// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// A point in time as the broker records it, in milliseconds of UTC.
public struct SavedTime: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// Since 1970-01-01T00:00:00Z, without leap seconds.
  public let millisecondsSince1970: Int64

  init(_ wire: Timestamp) {
    millisecondsSince1970 = wire.milliseconds
  }

  /// RFC 3339, e.g. `2026-02-28T09:05:00.042Z`.
  public var description: String {
    Timestamp(milliseconds: millisecondsSince1970).description
  }

  /// Earlier is less.
  public static func < (left: SavedTime, right: SavedTime) -> Bool {
    left.millisecondsSince1970 < right.millisecondsSince1970
  }
}
