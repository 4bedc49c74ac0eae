// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// Rounds that nobody asked for: after changes (R18), and before the broker ends (R33).
extension Application {
  /// Something changed that no generation holds. No timer is set while nothing does.
  func noteChange() {
    guard isPulled, changes.change(at: turn.now.monotonic) else { return }
    watchChanges()
  }

  func forgetChanges() {
    guard changes.hasChanges else { return }
    changes.forget()
    turn.ask(.cancelTimer(.changes(id)))
  }

  /// Only states that can be asked for are: without a session that serves encode everything is in the head already.
  func updatePulling() {
    isPulled = sessions.values.contains { !$0.isDiscarded && $0.serves(.encodeRestorableStateWithCoder) }
    if !isPulled {
      forgetChanges()
    } else if hasUnsealedContent {
      // Also what changed before the broker was restarted.
      noteChange()
    }
  }

  /// Sets the timer for what is unsaved; without any there is none.
  func watchChanges() {
    guard changes.hasChanges else { return }
    let limits = turn.limits
    guard
      let due = changes.due(quiet: limits.roundQuietMilliseconds, interval: limits.roundIntervalMilliseconds)
    else { return changes.forget() }
    turn.ask(.setTimer(.changes(id), milliseconds: max(1, due - turn.now.monotonic)))
  }

  func changeTimerFired() {
    let limits = turn.limits
    let due = changes.due(quiet: limits.roundQuietMilliseconds, interval: limits.roundIntervalMilliseconds)
    guard let due, case .open = phase else { return }
    guard due <= turn.now.monotonic else { return watchChanges() }
    if isRestoring {
      // It is looked after again when there has been as much quiet once more (R12).
      changes.forget()
      return noteChange()
    }
    guard round == nil else { return }
    beginRound(deadline: SaveApplicationState.deadlineDefault)
  }

  /// The broker is to end: what is not saved yet is, within this time (R33).
  func saveBeforeEnd(milliseconds: Int64) {
    if let round {
      round.isWanted = true
      advanceRound { $0.hurry(until: turn.now.monotonic + milliseconds) }
    } else if milliseconds > 0, isPulled || hasUnsealedContent,
      case .open = phase, sessions.values.contains(where: { !$0.isDiscarded })
    {
      beginRound(deadline: milliseconds)
    }
  }
}

extension BrokerCore {
  /// Whether a save round is under way.
  package var isSaving: Bool { applications.values.contains { $0.round != nil } }

  /// The broker is to end: saves what its clients have (R33). They are done when `isSaving` is false.
  package mutating func saveBeforeEnd(at now: Moment) {
    context.now = now
    let milliseconds = Int64(context.limits.stopRoundMilliseconds)
    context.roundsEnd = now.monotonic + milliseconds
    for application in applications.values.sorted(by: { $0.id < $1.id }) {
      application.saveBeforeEnd(milliseconds: milliseconds)
    }
  }
}

/// When changes make a save round begin by itself: when it has been quiet, at the latest after an interval (R18).
struct RoundSchedule: Hashable {
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

  mutating func forget() { first = nil }

  /// When a round is due; nil where none is to begin by itself. 0 milliseconds mean never.
  func due(quiet: Int, interval: Int) -> Int64? {
    guard let first else { return nil }
    let dues = [quiet > 0 ? last + Int64(quiet) : nil, interval > 0 ? first + Int64(interval) : nil]
    return dues.compactMap { $0 }.min()
  }
}
