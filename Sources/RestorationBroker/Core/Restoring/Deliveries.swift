// SPDX-License-Identifier: Apache-2.0

internal import HeapModule
package import RestorationArchive
package import RestorationWire

/// Saved states on their way to the sessions that have registered their objects (R21, R28, R29).
///
/// Invariants:
/// 1. A session has at most one batch that it has not answered.
/// 2. No object is delivered before one above it that is due to the same session.
package struct Deliveries {
  private static let batchMax = 64

  /// How the state of an object can be delivered now.
  package enum Manner: Equatable {
    /// With the state, or without it if it is deferred: too large to be sent unasked.
    case state(bytes: Int, deferred: Int = 0)
    /// By itself, because it is suspected of a crash (R31).
    case alone(bytes: Int)
    /// Not before states that were delivered earlier are proven (R31).
    case afterTrials
    case none(Restoration.Outcome, because: RestoringStep? = nil)
  }

  fileprivate struct Entry: Comparable, Hashable {
    let depth: Int
    let node: NodeID

    static func < (one: Self, other: Self) -> Bool { (one.depth, one.node) < (other.depth, other.node) }
  }

  /// States for one message: read, then with their elements found in today's data, then sent.
  package struct Batch {
    let number: Int
    fileprivate var entries: [Entry] = []
    /// Objects whose owner has to fetch the state itself.
    package fileprivate(set) var deferred: Set<NodeID> = []
    fileprivate(set) var records: [NodeID: StateRecord] = [:]
    /// Elements as they are delivered, once a data source was asked.
    fileprivate(set) var elements: [NodeID: [RestorableElement]] = [:]
    fileprivate(set) var isSent = false

    fileprivate init(_ number: Int) { self.number = number }

    /// Parents first.
    package var nodes: [NodeID] { entries.map(\.node) }

    /// The next state whose elements are still to be found (R28).
    var unresolved: StateRecord? {
      // Nearly all have no elements, and are asked nothing else.
      entries.lazy.compactMap { records[$0.node] }.first { $0.elements != nil && elements[$0.node] == nil }
    }
  }

  fileprivate struct Line {
    /// Parents first; entries that are no longer due are passed over.
    var queue: Heap<Entry> = []
    var due: [NodeID: Entry] = [:]
    var batch: Batch?
    /// Nothing can be sent to it until it comes back.
    var isUnreachable = false
    /// It has refused a batch, without saying which state it could not decode.
    var isGivenOneByOne = false
  }

  private var lines: [SessionID: Line] = [:]
  /// Sessions to which something can perhaps be delivered.
  private var ready: Set<SessionID> = []
  private var counter = 0

  package init() {}

  /// Zero when every client has left and nothing is under way.
  package var held: Int { lines.count }

  package var isReady: Bool { !ready.isEmpty }

  package func batch(of session: SessionID) -> Batch? { lines[session]?.batch }

  package func isDelivering(_ node: NodeID, to session: SessionID) -> Bool {
    lines[session]?.batch?.entries.contains { $0.node == node } == true
  }

  // MARK: Due deliveries

  /// The session has registered an object with `depth` ancestors: its saved state is due.
  package mutating func add(_ node: NodeID, depth: Int, for session: SessionID) {
    guard lines[session]?.due[node] == nil, !isDelivering(node, to: session) else { return }
    put(Entry(depth: depth, node: node), for: session)
  }

  private mutating func put(_ entry: Entry, for session: SessionID, isReady: Bool = true) {
    lines[session, default: Line()].due[entry.node] = entry
    lines[session]?.queue.insert(entry)
    if isReady { ready.insert(session) }
  }

  /// The owner has fetched the state, or lost the object. `isLost`: the answer to a sent batch does not count for it.
  package mutating func cancel(_ node: NodeID, for session: SessionID, isLost: Bool = false) {
    guard var line = lines[session] else { return }
    line.due[node] = nil
    if line.batch?.isSent == false || isLost { line.batch?.entries.removeAll { $0.node == node } }
    lines[session] = line
    tidy(session)
  }

  /// States that were delivered earlier are proven, so that others may go.
  package mutating func retry() { if !lines.isEmpty { ready = Set(lines.keys) } }

  /// - Returns: a session to which something can be delivered now; choose its batch.
  package mutating func nextReady() -> SessionID? {
    while let session = ready.min() {
      ready.remove(session)
      if let line = lines[session], !line.due.isEmpty, line.batch == nil, !line.isUnreachable { return session }
    }
    return nil
  }

  // MARK: Choosing

  /// A batch that is being chosen, object by object: `next`, then `take`, until there is none or the batch is full.
  package struct Choice {
    let session: SessionID
    fileprivate var line: Line
    fileprivate var batch: Batch
    fileprivate var later: [NodeID: Entry] = [:]
    private let bytesMax: Int
    private var bytes = 0
    private var isFull = false
    private var current: Entry?
    /// Something waits until states that were delivered earlier are proven.
    package private(set) var isOnTrial = false

    fileprivate init(_ session: SessionID, _ line: Line, _ batch: Batch, bytesMax: Int) {
      (self.session, self.line, self.batch, self.bytesMax) = (session, line, batch, bytesMax)
    }

    package var number: Int { batch.number }
    package var nodes: [NodeID] { batch.nodes }

    package mutating func next() -> NodeID? {
      while !isFull, let entry = line.queue.popMin() {
        guard line.due[entry.node] == entry else { continue }
        line.due[entry.node] = nil
        current = entry
        return entry.node
      }
      return nil
    }

    /// Whether one of these is put off; objects below it then wait as well.
    func isLater(_ nodes: some Sequence<Node>) -> Bool { !later.isEmpty && nodes.contains { later[$0.id] != nil } }

    /// - Parameter manner: how the object that `next` gave can be delivered; nil puts it off.
    package mutating func take(_ manner: Manner?) {
      guard let entry = current else { return }
      switch manner {
      case .state(let whole, let deferred)?: add(entry, whole, deferred)
      case .alone(let whole)?:
        if batch.entries.isEmpty { add(entry, whole, 0) } else { later[entry.node] = entry }
        isFull = true
      case .afterTrials?:
        isOnTrial = true
        later[entry.node] = entry
      case nil: later[entry.node] = entry
      case .none?: break
      }
    }

    private mutating func add(_ entry: Entry, _ whole: Int, _ deferred: Int) {
      let isDeferred = whole > bytesMax
      let size = isDeferred ? deferred : whole
      guard batch.entries.isEmpty || bytes + size <= bytesMax else {
        isFull = true
        return later[entry.node] = entry
      }
      batch.entries.append(entry)
      if isDeferred { batch.deferred.insert(entry.node) }
      bytes += size
      isFull = batch.entries.count == (line.isGivenOneByOne ? 1 : Deliveries.batchMax)
    }
  }

  /// Begins to choose the session's next batch; `begin` ends that, before anything else is asked for.
  package mutating func choose(for session: SessionID, bytesMax: Int) -> Choice? {
    counter += 1
    return lines.removeValue(forKey: session).map { Choice(session, $0, Batch(counter), bytesMax: bytesMax) }
  }

  package mutating func begin(_ choice: Choice) {
    lines[choice.session] = choice.line
    for entry in choice.later.values { put(entry, for: choice.session, isReady: false) }
    if !choice.batch.entries.isEmpty { lines[choice.session]?.batch = choice.batch }
    tidy(choice.session)
  }

  /// Drops a batch of which nothing is left to send.
  private mutating func tidy(_ session: SessionID) {
    if let batch = lines[session]?.batch, batch.entries.isEmpty, !batch.isSent {
      lines[session]?.batch = nil
      ready.insert(session)
    }
    if let line = lines[session], line.due.isEmpty, line.batch == nil { lines[session] = nil }
  }

  // MARK: Batches

  mutating func add(_ record: StateRecord, to session: SessionID) {
    lines[session]?.batch?.records[record.node] = record
  }

  mutating func add(_ elements: [RestorableElement], of node: NodeID, to session: SessionID) {
    lines[session]?.batch?.elements[node] = elements
  }

  /// The state is not delivered after all.
  package mutating func withhold(_ node: NodeID, from session: SessionID) {
    lines[session]?.batch?.entries.removeAll { $0.node == node }
    tidy(session)
  }

  /// - Parameter deferred: the objects that were sent without their state.
  package mutating func sent(to session: SessionID, deferred: Set<NodeID>) {
    lines[session]?.batch?.isSent = true
    lines[session]?.batch?.deferred = deferred
  }

  package enum End {
    case done
    /// The session refuses the batch. A batch of several is delivered again, one by one.
    case failed
    /// The session may not have received the batch, and gets it again when it is back.
    case lost
  }

  /// - Returns: the objects that have been delivered, or refused.
  package mutating func end(_ end: End, to session: SessionID) -> [NodeID] {
    guard let batch = lines[session]?.batch else { return [] }
    lines[session]?.batch = nil
    let isRepeated = end == .lost || end == .failed && batch.entries.count > 1
    if isRepeated { for entry in batch.entries { put(entry, for: session) } }
    if end == .failed { lines[session]?.isGivenOneByOne = true }
    if end == .lost { lines[session]?.isUnreachable = true }
    ready.insert(session)
    tidy(session)
    return isRepeated ? [] : batch.nodes
  }

  // MARK: Sessions

  package mutating func returned(_ session: SessionID) {
    lines[session]?.isUnreachable = false
    ready.insert(session)
  }

  package mutating func forget(_ session: SessionID) { lines[session] = nil }

  /// The head was replaced, or the delegate has declined: nothing is due any longer.
  package mutating func forgetAll() { lines = [:] }

  /// The archive is reopened: batches that were on their way are delivered after that.
  package mutating func archiveReopened() {
    for session in lines.keys {
      _ = end(.lost, to: session)
      returned(session)
    }
  }
}
