// SPDX-License-Identifier: Apache-2.0

internal import HeapModule
package import RestorationArchive
internal import RestorationWire

/// To whom states are given: in a restoration, or apart from one (R29).
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

/// What is saved, on its way to the sessions that have registered it: batches until they are sent, and what a session
/// is to be given apart from a restoration (R29).
///
/// Invariant: a session has at most one batch that it has not answered.
package struct Deliveries {
  fileprivate struct Entry: Comparable, Hashable {
    let depth: Int
    let node: NodeID

    static func < (one: Self, other: Self) -> Bool { (one.depth, one.node) < (other.depth, other.node) }
  }

  fileprivate struct Line {
    /// Parents first; what is no longer due is passed over.
    var queue: Heap<Entry> = []
    var due: [NodeID: Entry] = [:]
    var batch: [Entry] = []
    /// Those of the batch whose owner is to fetch the state by itself.
    var deferred: Set<NodeID> = []
    /// Nothing can be sent to it until it comes back.
    var isUnreachable = false
  }

  private var batches: [Addressee: OutgoingBatch] = [:]
  private var lines: [SessionID: Line] = [:]

  package init() {}

  /// Zero when every client has left and nothing is under way.
  package var held: Int { batches.count + lines.count }

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

  // MARK: Sessions

  /// Sessions that can be given something now.
  package var waiting: [SessionID] {
    let idle = lines.filter { session, line in
      !line.due.isEmpty && line.batch.isEmpty && !line.isUnreachable && batches[Addressee(session, isLate: true)] == nil
    }
    return idle.keys.sorted()
  }

  package func batch(of session: SessionID) -> [NodeID] { lines[session]?.batch.map(\.node) ?? [] }
  func isDeferred(_ node: NodeID, to session: SessionID) -> Bool { lines[session]?.deferred.contains(node) == true }
  package func isHanding(to session: SessionID) -> Bool { lines[session]?.batch.isEmpty == false }

  /// Whether the session is still to be given the node's state, or has not answered for it.
  private func isDue(_ node: NodeID, to session: SessionID) -> Bool {
    guard let line = lines[session] else { return false }
    return line.due[node] != nil || line.batch.contains { $0.node == node }
  }

  /// The session has registered the object, and is to be given what is saved of it.
  ///
  /// - Parameter depth: how many objects are above it.
  package mutating func add(_ node: NodeID, depth: Int, for session: SessionID) {
    guard !isDue(node, to: session) else { return }
    let entry = Entry(depth: depth, node: node)
    lines[session, default: Line()].due[node] = entry
    lines[session]?.queue.insert(entry)
  }

  /// Its owner fetches it by itself, before it is sent.
  package mutating func cancel(_ node: NodeID, for session: SessionID) {
    guard lines[session] != nil else { return }
    lines[session]?.due[node] = nil
    if batches[Addressee(session, isLate: true)] != nil { withhold(node, from: session) }
    tidy(session)
  }

  /// A batch that is being chosen, object by object: `next`, then `take`, until there is none or the batch is full.
  struct Choice {
    let session: SessionID
    fileprivate var line: Line
    private let bytesMax: Int
    private var batch = Restoration.Batch()
    private var current: Entry?
    fileprivate var later: [Entry] = []
    /// Something waits until states that were given before are proven.
    private(set) var isOnTrial = false

    fileprivate init(_ session: SessionID, _ line: Line, bytesMax: Int) {
      (self.session, self.line, self.bytesMax) = (session, line, bytesMax)
    }

    var handouts: [Restoration.Handout] {
      batch.entries.map { Restoration.Handout(node: line.batch[$0.number].node, isDeferred: $0.isDeferred) }
    }

    mutating func next() -> NodeID? {
      while !batch.isFull, let entry = line.queue.popMin() {
        guard line.due[entry.node] == entry else { continue }
        line.due[entry.node] = nil
        current = entry
        return entry.node
      }
      return nil
    }

    /// - Parameter handing: how the state of the object that `next` gave is given to it.
    mutating func take(_ handing: Restoration.Handing) {
      guard let entry = current else { return }
      let number = line.batch.count
      switch handing {
      case .nothing, .skip: break
      case .state(let bytes, let deferred) where batch.add(number, bytes, deferred, bytesMax, alone: false):
        line.batch.append(entry)
      case .alone(let bytes) where batch.add(number, bytes, 0, bytesMax, alone: true): line.batch.append(entry)
      case .afterTrials:
        isOnTrial = true
        later.append(entry)
      case .later, .state, .alone: later.append(entry)
      }
    }
  }

  /// Begins to choose the session's next batch; `begin` ends that, before anything else is asked for.
  mutating func choose(for session: SessionID, bytesMax: Int) -> Choice? {
    lines.removeValue(forKey: session).map { Choice(session, $0, bytesMax: bytesMax) }
  }

  mutating func begin(_ choice: Choice) {
    lines[choice.session] = choice.line
    for entry in choice.later { put(entry, back: choice.session) }
    tidy(choice.session)
  }

  private mutating func put(_ entry: Entry, back session: SessionID) {
    lines[session]?.due[entry.node] = entry
    lines[session]?.queue.insert(entry)
  }

  private mutating func tidy(_ session: SessionID) {
    if let line = lines[session], line.due.isEmpty, line.batch.isEmpty { lines[session] = nil }
  }

  mutating func noteDeferred(_ node: NodeID, for session: SessionID) { lines[session]?.deferred.insert(node) }

  /// It is not given after all.
  package mutating func withhold(_ node: NodeID, from session: SessionID) {
    lines[session]?.batch.removeAll { $0.node == node }
  }

  /// The session has answered for its batch, or did not get it.
  ///
  /// - Parameter isLost: it is to be given once more, when the session has come back.
  package mutating func end(_ session: SessionID, isLost: Bool = false) {
    guard let batch = lines[session]?.batch else { return }
    lines[session]?.batch = []
    lines[session]?.deferred = []
    if isLost {
      for entry in batch { put(entry, back: session) }
      lines[session]?.isUnreachable = true
    }
    tidy(session)
  }

  package mutating func returned(_ session: SessionID) { lines[session]?.isUnreachable = false }

  package mutating func forget(_ session: SessionID) {
    batches[Addressee(session, isLate: true)] = nil
    lines[session] = nil
  }

  /// The head was replaced, or the delegate has declined: nothing is to be given any longer.
  package mutating func forgetAll() {
    batches = batches.filter { !$0.key.isLate }
    lines = [:]
  }

  /// The archive is opened anew: what was on its way is given after that.
  package mutating func archiveReopened() {
    batches = [:]
    for session in lines.keys {
      end(session, isLost: true)
      returned(session)
    }
  }
}
