// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Changes on their way to a store, which share one transaction.
///
/// More can be added until the store begins to write them, so that whatever is there when the store is ready goes along
/// and the store need not wait between two transactions for somebody to put the next one together.
package final class ArchiveBatch: Sendable {
  private struct State {
    var changes: [ArchiveChange]
    var isTaken = false
  }

  private let state: Mutex<State>

  package init(_ changes: [ArchiveChange]) {
    state = Mutex(State(changes: changes))
  }

  /// Adds changes behind those that are there; false if the store has begun to write, and nothing was added.
  package func add(_ changes: [ArchiveChange]) -> Bool {
    state.withLock { state in
      guard !state.isTaken else { return false }
      state.changes += changes
      return true
    }
  }

  /// All the changes, which the batch no longer holds; from now on none can be added.
  package func take() -> [ArchiveChange] {
    state.withLock { state in
      state.isTaken = true
      defer { state.changes = [] }
      return state.changes
    }
  }
}
