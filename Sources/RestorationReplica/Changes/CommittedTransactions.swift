// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

package struct CommittedTransaction: Sendable {
  package let upto: SequenceNumber
  package let change: ChangeID
  package fileprivate(set) var changes: [ArchiveChange]

  package init(upto: SequenceNumber, change: ChangeID, changes: [ArchiveChange]) {
    (self.upto, self.change, self.changes) = (upto, change, changes)
  }

  package var after: SequenceNumber { upto - SequenceNumber(changes.count) }
}

/// Transactions on this host's disk that are not in the `ShippingQueue` yet. They are taken together, so that writers
/// do not wake another thread for each transaction, and only the newest of many states of an object is sent.
///
/// Invariant: a reader at the end of what is taken together can reach no state that was left out. A later state of the
/// same node has replaced it. That state is confirmed, and only states lie between the two, so the former one is
/// neither sealed nor withheld. The later state has the newer session and time as well.
package struct CommittedTransactions: Sendable {
  package enum Step: Equatable {
    case none
    case take
    /// Call `timePassed` after this many milliseconds.
    case takeLater(Int64)
  }

  private struct Place {
    let transaction: Int
    let change: Int
  }

  private let settings: ReplicaSettings
  private var transactions: [CommittedTransaction] = []
  private var memory = 0
  /// Each node's newest state since the last change of another kind.
  private var newest: [NodeID: Place] = [:]
  private var isAwaited = false
  /// The next regular take; before it only a large amount is taken.
  private var earliest: Int64 = 0

  package init(_ settings: ReplicaSettings) { self.settings = settings }

  package mutating func add(_ transaction: CommittedTransaction, at now: Int64) -> Step {
    let former = memory
    // The disk may answer in another order.
    if transaction.after != transactions.last?.upto { newest = [:] }
    transactions.append(transaction)
    for (index, change) in transaction.changes.enumerated() {
      memory += change.memory
      note(change, at: Place(transaction: transactions.count - 1, change: index))
    }
    if former < settings.eagerMemory, memory >= settings.eagerMemory { return .take }
    if isAwaited { return .none }
    isAwaited = true
    return .takeLater(max(settings.delay, earliest - now))
  }

  private mutating func note(_ change: ArchiveChange, at place: Place) {
    guard case .state(let record) = change else {
      newest = [:]
      return
    }
    guard let former = newest.updateValue(place, forKey: record.node) else { return }
    let change = transactions[former.transaction].changes[former.change]
    guard case .state(let state) = change, record.replaces(state) else { return }
    transactions[former.transaction].changes[former.change] = .superseded
    memory += ArchiveChange.superseded.memory - change.memory
  }

  package mutating func timePassed(at now: Int64) -> Step {
    // Some may have been taken early.
    isAwaited = now < earliest && !transactions.isEmpty
    return isAwaited ? .takeLater(earliest - now) : .take
  }

  package mutating func take(at now: Int64) -> [CommittedTransaction] {
    guard !transactions.isEmpty else { return [] }
    defer { (transactions, memory, newest) = ([], 0, [:]) }
    earliest = now + min(Int64(memory) * 1_000 / Int64(settings.pace), settings.delayMax)
    return transactions
  }
}

extension StateRecord {
  fileprivate func replaces(_ former: StateRecord) -> Bool {
    !isEarly && session >= former.session && written >= former.written
  }
}
