// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Wakes tasks that wait for any change.
final class Signal: Sendable {
  private struct State {
    var count = 0
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  /// How often it was raised. Read it before the values that may change, to miss nothing.
  var count: Int { state.withLock { $0.count } }

  func raise() {
    let waiting = state.withLock { state in
      state.count += 1
      defer { state.waiting = [] }
      return state.waiting
    }
    for task in waiting { task.resume() }
  }

  func raise(at time: ContinuousClock.Instant) async {
    try? await Task.sleep(until: time, clock: .continuous)
    raise()
  }

  /// Returns when it is raised, at once if that was after `count`.
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
