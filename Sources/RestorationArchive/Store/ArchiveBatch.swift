// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Changes that share one transaction. More can be added until the store begins to write them, so that the store never
/// waits for a batch between two transactions.
package final class ArchiveBatch: Sendable {
  private struct Content {
    var changes: [ArchiveChange]
    var isTaken = false
    var isKept = false
  }

  private let state: Mutex<Content>

  package init(_ changes: [ArchiveChange]) { state = Mutex(Content(changes: changes)) }

  /// Appends changes; returns false and adds nothing if the store has begun to write.
  package func add(_ changes: [ArchiveChange]) -> Bool {
    state.withLock { state in
      guard !state.isTaken else { return false }
      state.changes += changes
      return true
    }
  }

  /// Makes `takeKept` return the changes that the store has taken.
  package func keep() { state.withLock { $0.isKept = true } }

  /// Hands all changes over to the store; afterwards no more can be added.
  package func take() -> [ArchiveChange] {
    state.withLock { state in
      state.isTaken = true
      defer { if !state.isKept { state.changes = [] } }
      return state.changes
    }
  }

  /// The changes that the store has taken; once.
  package func takeKept() -> [ArchiveChange] {
    state.withLock { state in
      defer { state.changes = [] }
      return state.changes
    }
  }
}
