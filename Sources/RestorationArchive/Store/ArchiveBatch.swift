// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Changes on their way to a store, which share one transaction.
///
/// More can be added until the store begins to write them, so that the store need not wait for a new batch between two
/// transactions.
package final class ArchiveBatch: Sendable {
  private struct State {
    var changes: [ArchiveChange]
    var isTaken = false
  }

  private let state: Mutex<State>

  package init(_ changes: [ArchiveChange]) { state = Mutex(State(changes: changes)) }

  /// Appends changes; returns false and adds nothing if the store has begun to write.
  package func add(_ changes: [ArchiveChange]) -> Bool {
    state.withLock { state in
      guard !state.isTaken else { return false }
      state.changes += changes
      return true
    }
  }

  /// Hands all changes over to the store; afterwards no more can be added.
  package func take() -> [ArchiveChange] {
    state.withLock { state in
      state.isTaken = true
      defer { state.changes = [] }
      return state.changes
    }
  }
}
