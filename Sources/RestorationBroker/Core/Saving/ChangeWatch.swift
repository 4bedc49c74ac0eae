// SPDX-License-Identifier: Apache-2.0

/// When changes make a save round begin by itself: when it has been quiet, at the latest after an interval (R18).
struct ChangeWatch: Hashable {
  /// Since when something is unsaved, and when the last change was; nil where nothing changed.
  private var first: Int64?
  private var last: Int64 = 0

  var hasChanges: Bool { first != nil }

  /// - Returns: whether it is the first one.
  mutating func change(at now: Int64) -> Bool {
    last = now
    guard first == nil else { return false }
    first = now
    return true
  }

  mutating func forget() {
    first = nil
  }

  /// When a round is due; nil where none is to begin by itself. 0 milliseconds mean never.
  func due(quiet: Int, interval: Int) -> Int64? {
    guard let first else { return nil }
    let dues = [quiet > 0 ? last + Int64(quiet) : nil, interval > 0 ? first + Int64(interval) : nil]
    return dues.compactMap { $0 }.min()
  }
}
