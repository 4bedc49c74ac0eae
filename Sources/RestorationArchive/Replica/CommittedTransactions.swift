// SPDX-License-Identifier: Apache-2.0

/// A transaction that is on this host's disk.
package struct CommittedTransaction: Sendable {
  package let upto: SequenceNumber
  package let change: ChangeID
  package fileprivate(set) var changes: [ArchiveChange]

  package init(upto: SequenceNumber, change: ChangeID, changes: [ArchiveChange]) {
    (self.upto, self.change, self.changes) = (upto, change, changes)
  }

  package var after: SequenceNumber { upto - SequenceNumber(changes.count) }

  func encoded(shared: @escaping @Sendable (SessionRecord) -> SessionRecord) -> ReplicaTransaction {
    let batch = ChangeBatch(after: after, [ChangeBatch.Transaction(change, changes)])
    return ReplicaTransaction(after: after, upto: upto, change: change, changes: batch.encoded(shared: shared))
  }
}

/// What is on this host's disk and not in the `ShippingQueue` yet. It is taken from here together: so writers wake no
/// other thread for each transaction, and of a state that is written again and again the newest is sent.
///
/// Invariant: behind the last of what is taken together, no reader can reach a state that is left out. A later one of
/// the same node, which is not early (R19), has replaced it, and all between the two are states: it is not sealed and
/// not withheld. What an archive counts, sessions and time, the later one has as well.
package struct CommittedTransactions: Sendable {
  package enum Step: Equatable {
    case none
    /// Take them now.
    case take
    /// Tell `timePassed` in so many milliseconds.
    case takeLater(Int64)
  }

  private struct Place {
    let transaction: Int
    let change: Int
  }

  private let settings: ReplicaSettings
  private var transactions: [CommittedTransaction] = []
  private var memory = 0
  /// Each node's newest state behind the last change that is something else.
  private var newest: [NodeID: Place] = [:]
  private var isAwaited = false
  /// Before that nothing is taken unless it is much.
  private var earliest: Int64 = 0

  package init(_ settings: ReplicaSettings) { self.settings = settings }

  package mutating func add(_ transaction: CommittedTransaction, at now: Int64) -> Step {
    let former = memory
    // Answers of the disk may come in another order.
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
