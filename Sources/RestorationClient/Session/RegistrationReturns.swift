// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Answered calls of `register` that have not returned to the program. The broker's calls wait for them: until then the
/// program does not know the object.
final class RegistrationReturns: Sendable {
  private struct State {
    var count = 0
    var waiters: [@Sendable () -> Void] = []
  }

  private let state = Mutex(State())

  /// A registration is answered; `end` is to follow.
  func begin() { state.withLock { $0.count += 1 } }

  /// `register` returns. Called on the program's actor, so that no callback on it comes before.
  func end() {
    let waiters = state.withLock { state in
      state.count -= 1
      guard state.count == 0 else { return [] as [@Sendable () -> Void] }
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter() }
  }

  /// - Returns: whether `body` is called later, when all have returned.
  func wait(_ body: @escaping @Sendable () -> Void) -> Bool {
    state.withLock { state in
      if state.count > 0 { state.waiters.append(body) }
      return state.count > 0
    }
  }
}
