// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// Schedules automatic save rounds: after a quiet time, at the latest after an interval (R18).
///
/// Invariants:
/// 1. While no live session serves encode, nothing is scheduled.
/// 2. No timer is set while nothing is unsaved.
package struct RoundSchedule {
  /// Since when something is unsaved, and when the last change was; nil if nothing changed.
  private var first: Int64?
  private var last: Int64 = 0
  /// A live session serves encode.
  package private(set) var isPulled = false

  package init() {}

  /// Something changed that no generation holds.
  package mutating func noteChange(in turn: inout Turn) {
    guard isPulled else { return }
    last = turn.now.monotonic
    guard first == nil else { return }
    first = last
    watch(in: &turn)
  }

  package mutating func forget(in turn: inout Turn) {
    guard first != nil else { return }
    first = nil
    turn.ask(.cancelTimer(.changes(turn.application)))
  }

  /// - Parameter hasUnsealedContent: changes from before a restart of the broker are saved as well.
  package mutating func setPulled(_ isPulled: Bool, hasUnsealedContent: Bool, in turn: inout Turn) {
    self.isPulled = isPulled
    if !isPulled { forget(in: &turn) } else if hasUnsealedContent { noteChange(in: &turn) }
  }

  /// Sets the timer for what is unsaved.
  package mutating func watch(in turn: inout Turn) {
    guard first != nil else { return }
    guard let due = due(in: turn) else { return first = nil }
    turn.ask(.setTimer(.changes(turn.application), milliseconds: max(1, due - turn.now.monotonic)))
  }

  /// The timer has fired. Returns whether a round is due; if not, the timer is set anew.
  package mutating func isDue(in turn: inout Turn) -> Bool {
    guard let due = due(in: turn) else { return false }
    guard due > turn.now.monotonic else { return true }
    watch(in: &turn)
    return false
  }

  /// The round waits until it has been quiet once more.
  package mutating func postpone(in turn: inout Turn) {
    first = nil
    noteChange(in: &turn)
  }

  /// When a round is due; nil if none is. An interval of 0 milliseconds means never.
  private func due(in turn: borrowing Turn) -> Int64? {
    guard let first else { return nil }
    let (quiet, interval) = (turn.limits.roundQuietMilliseconds, turn.limits.roundIntervalMilliseconds)
    let dues = [quiet > 0 ? last + Int64(quiet) : nil, interval > 0 ? first + Int64(interval) : nil]
    return dues.compactMap { $0 }.min()
  }
}
