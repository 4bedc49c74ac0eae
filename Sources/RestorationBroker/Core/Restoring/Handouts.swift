// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import RestorationWire

/// To whom states are handed: in a restoration, or because the session came after it (R29).
package struct Addressee: Sendable, Hashable {
  package let session: SessionID
  package let isLate: Bool

  package init(_ session: SessionID, isLate: Bool = false) { (self.session, self.isLate) = (session, isLate) }
}

/// States on their way to a session: read, then with their elements found in today's data, then sent (R21, R28).
struct OutgoingBatch {
  var handouts: [Restoration.Handout]
  var records: [NodeID: StateRecord] = [:]
  /// Elements as they are to be handed out, once a data source was asked.
  var elements: [NodeID: [RestorableElement]] = [:]
}

/// Batches until they are sent, and what sessions that came late are still to be handed (R29).
///
/// Invariant: a session that came late has at most one batch that it has not answered.
package struct Handouts {
  private struct Line {
    /// Registered, and not handed out.
    var due: [NodeID] = []
    var batch: [NodeID] = []
    /// Nothing can be sent to it until it comes back.
    var isUnreachable = false
  }

  private var batches: [Addressee: OutgoingBatch] = [:]
  private var late: [SessionID: Line] = [:]

  package init() {}

  /// Zero when every client has left and nothing is under way.
  package var held: Int { batches.count + late.count }

  // MARK: Batches

  mutating func begin(_ batch: OutgoingBatch, to addressee: Addressee) { batches[addressee] = batch }

  mutating func add(_ record: StateRecord, of node: NodeID, to addressee: Addressee) {
    batches[addressee]?.records[node] = record
  }

  mutating func add(_ elements: [RestorableElement], of node: NodeID, to addressee: Addressee) {
    batches[addressee]?.elements[node] = elements
  }

  /// The next state whose elements are still to be found in today's data (R28).
  func unresolved(
    of addressee: Addressee,
    where isHanding: (NodeID) -> Bool
  ) -> (handout: Restoration.Handout, record: StateRecord)? {
    guard let batch = batches[addressee] else { return nil }
    for handout in batch.handouts {
      // Nearly all have no elements, and are asked nothing else.
      guard let record = batch.records[handout.node], record.elements != nil else { continue }
      if batch.elements[handout.node] == nil, isHanding(handout.node) { return (handout, record) }
    }
    return nil
  }

  mutating func takeBatch(of addressee: Addressee) -> OutgoingBatch? { batches.removeValue(forKey: addressee) }

  /// A restoration is over.
  mutating func endRestoration() { batches = batches.filter { $0.key.isLate } }

  // MARK: Late sessions

  /// Sessions that can be handed something now.
  package var waiting: [SessionID] {
    let idle = late.filter { session, line in
      !line.due.isEmpty && line.batch.isEmpty && !line.isUnreachable && batches[Addressee(session, isLate: true)] == nil
    }
    return idle.keys.sorted()
  }

  package func due(of session: SessionID) -> [NodeID] { late[session]?.due ?? [] }
  package func batch(of session: SessionID) -> [NodeID] { late[session]?.batch ?? [] }
  package func isHanding(to session: SessionID) -> Bool { late[session]?.batch.isEmpty == false }

  /// The session has registered the object, and is to be handed what is saved of it.
  package mutating func add(_ node: NodeID, for session: SessionID) {
    let isThere = late[session].map { $0.due.contains(node) || $0.batch.contains(node) } ?? false
    if !isThere { late[session, default: Line()].due.append(node) }
  }

  /// Its owner fetches it by itself, before it is sent.
  package mutating func cancel(_ node: NodeID, for session: SessionID) {
    guard let line = late[session], line.due.contains(node) || line.batch.contains(node) else { return }
    late[session]?.due.removeAll { $0 == node }
    if batches[Addressee(session, isLate: true)] != nil { withhold(node, from: session) }
  }

  /// Begins a batch.
  ///
  /// - Parameters:
  ///   - due: what is still to be handed out, parents first, and how.
  ///   - bytesMax: the most that the batch may have.
  /// - Returns: the batch, and whether anything else waits until states that were handed out before are proven.
  mutating func next(
    _ due: [(node: NodeID, handing: Restoration.Handing)],
    for session: SessionID,
    bytesMax: Int
  ) -> (batch: [Restoration.Handout], isOnTrial: Bool) {
    var batch = Restoration.Batch()
    var (left, isOnTrial): ([NodeID], Bool) = ([], false)
    for (position, (node, handing)) in due.enumerated() {
      guard !batch.isFull else {
        left.append(node)
        continue
      }
      switch handing {
      case .nothing, .skip: break
      case .state(let bytes, let deferred) where batch.add(position, bytes, deferred, bytesMax, alone: false): break
      case .alone(let bytes) where batch.add(position, bytes, 0, bytesMax, alone: true): break
      case .afterTrials:
        left.append(node)
        isOnTrial = true
      case .later, .state, .alone: left.append(node)
      }
    }
    let handed = batch.entries.map { entry in
      Restoration.Handout(node: due[entry.number].node, object: due[entry.number].node, isDeferred: entry.isDeferred)
    }
    begin(handed.map(\.node), leaving: left, for: session)
    return (handed, isOnTrial)
  }

  private mutating func begin(_ batch: [NodeID], leaving rest: [NodeID], for session: SessionID) {
    late[session] = batch.isEmpty && rest.isEmpty ? nil : Line(due: rest, batch: batch)
  }

  /// It is not handed out after all.
  package mutating func withhold(_ node: NodeID, from session: SessionID) {
    late[session]?.batch.removeAll { $0 == node }
  }

  /// The session has answered for its batch, or did not get it.
  ///
  /// - Parameter isLost: it is to be handed out once more, when the session has come back.
  package mutating func end(_ session: SessionID, isLost: Bool = false) {
    guard let line = late[session] else { return }
    begin([], leaving: isLost ? line.batch + line.due : line.due, for: session)
    if isLost { late[session]?.isUnreachable = true }
  }

  package mutating func returned(_ session: SessionID) { late[session]?.isUnreachable = false }

  package mutating func forget(_ session: SessionID) {
    batches[Addressee(session, isLate: true)] = nil
    late[session] = nil
  }

  /// The head was replaced, or the delegate has declined: nothing is to be handed out any longer.
  package mutating func forgetLate() {
    batches = batches.filter { !$0.key.isLate }
    late = [:]
  }

  /// The archive is opened anew: what was on its way is handed out after that.
  package mutating func archiveReopened() {
    batches = [:]
    for session in late.keys {
      end(session, isLost: true)
      returned(session)
    }
  }
}
