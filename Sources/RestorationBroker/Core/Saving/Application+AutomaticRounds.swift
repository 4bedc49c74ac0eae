// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// Rounds that nobody asked for: after changes (R18), and before the broker ends (R33).
extension Application {
  /// Sessions have come, gone, or serve something else.
  func updatePulling() {
    let isPulled = sessions.values.contains { !$0.isDiscarded && $0.serves(.encodeRestorableStateWithCoder) }
    schedule.setPulled(isPulled, hasUnsealedContent: hasUnsealedContent, in: &turn)
  }

  func changeTimerFired() {
    guard case .open = phase, schedule.isDue(in: &turn) else { return }
    // It is looked after again when there has been as much quiet once more (R12).
    guard !isRestoring else { return schedule.postpone(in: &turn) }
    guard round == nil else { return }
    beginRound(deadline: SaveApplicationState.deadlineDefault)
  }

  /// The broker is to end: what is not saved yet is, within this time (R33).
  func saveBeforeEnd(milliseconds: Int64) {
    if let round {
      round.isWanted = true
      advanceRound { $0.hurry(until: turn.now.monotonic + milliseconds) }
    } else if milliseconds > 0, schedule.isPulled || hasUnsealedContent,
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
