// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Wakes tasks that wait until something has changed, whatever it is.
final class Signal: Sendable {
  private struct State {
    var count = 0
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  /// How often it was raised. Read it before looking at what may change: nothing is missed then.
  var count: Int { state.withLock { $0.count } }

  func raise() {
    let waiting = state.withLock { state in
      state.count += 1
      defer { state.waiting = [] }
      return state.waiting
    }
    for task in waiting { task.resume() }
  }

  /// Raises it at that time, or when the task is cancelled.
  func raise(at time: ContinuousClock.Instant) async {
    try? await Task.sleep(until: time, clock: .continuous)
    raise()
  }

  /// Returns when it is raised, at once if it was raised since its count was this.
  func wait(past count: Int) async {
    await withCheckedContinuation { task in
      let isRaised = state.withLock { state in
        if state.count == count { state.waiting.append(task) }
        return state.count != count
      }
      if isRaised { task.resume() }
    }
  }
}
