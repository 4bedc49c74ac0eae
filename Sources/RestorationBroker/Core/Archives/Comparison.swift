// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Compares two contents of an archive path by path, for one page of differences.
///
/// Texts are read only if states may differ: the same row on both sides is the same state, unless a referenced object
/// has another path.
package struct Comparison {
  /// The limits of one piece: about this many bytes of texts, and this many objects.
  private static let pieceBytes = 1 << 20
  private static let pieceObjectsMax = 512

  /// One of the two contents.
  struct Side {
    let sequence: SequenceNumber
    let omitted: Set<NodeID>
    fileprivate var readings: [NodeReading] = []
    fileprivate var tree = NodeTree()
    /// By node, of the current piece.
    fileprivate var texts: [NodeID: StateReading] = [:]

    init(sequence: SequenceNumber, omitted: [NodeID] = []) {
      self.sequence = sequence
      self.omitted = Set(omitted)
    }
  }

  /// An object by its path, with its nodes on both sides.
  private struct Entry {
    let path: IdentifierPath
    var from: Node?
    var to: Node?
  }

  /// What must be read next.
  enum Need {
    case nodes(after: NodeID, at: SequenceNumber)
    case states([NodeID], at: SequenceNumber)
    /// The page is complete; `next` is the beginning of the next one, `nil` after the last.
    case nothing(next: Int?)
  }

  private enum Stage {
    case nodesOfFrom, nodesOfTo
    case texts
  }

  let reveals: Bool
  let bytesMax: Int
  var call: LongCall
  private(set) var reply = DiffGenerations.Reply()
  private(set) var from: Side
  private(set) var to: Side
  private var stage = Stage.nodesOfFrom
  private var entries: [Entry] = []
  /// Entries before it are on this page or earlier ones.
  private var place: Int
  /// The end of the piece being read.
  private var pieceEnd: Int
  /// The nodes of the piece that must still be read.
  private var reads: [(isFrom: Bool, nodes: [NodeID])] = []
  private var bytes = 0

  init(_ from: Side, _ to: Side, at place: Int, reveals: Bool, bytesMax: Int, _ call: LongCall) {
    (self.from, self.to, self.place, self.pieceEnd, self.reveals) = (from, to, place, place, reveals)
    (self.bytesMax, self.call) = (bytesMax, call)
  }

  var holds: [SequenceNumber] { [from.sequence, to.sequence] }

  var progress: (done: Int, total: Int) { (place, entries.count) }

  /// The first reading.
  var first: StoreJob.Step { .nodes(after: 0, at: from.sequence) }

  // MARK: Reading

  /// Adds nodes, and returns what is needed next.
  mutating func take(_ nodes: [NodeReading]) -> Need {
    let isLast = nodes.count < StoreJob.nodesMax
    if case .nodesOfFrom = stage {
      from.readings += nodes
      if !isLast, let last = nodes.last { return .nodes(after: last.node.node, at: from.sequence) }
      stage = .nodesOfTo
      return .nodes(after: 0, at: to.sequence)
    }
    to.readings += nodes
    if !isLast, let last = nodes.last { return .nodes(after: last.node.node, at: to.sequence) }
    stage = .texts
    from.makeTree()
    to.makeTree()
    entries = Comparison.entries(from, to)
    return nextPiece()
  }

  /// Adds the requested states, and returns what is needed next.
  mutating func take(_ states: [StateReading?]) -> Need {
    guard !reads.isEmpty else { return nextPiece() }
    let (isFrom, nodes) = reads.removeFirst()
    for (node, state) in zip(nodes, states) {
      if isFrom { from.texts[node] = state } else { to.texts[node] = state }
    }
    return nextRead() ?? (compare() ?? nextPiece())
  }

  private func nextRead() -> Need? {
    reads.first.map { .states($0.nodes, at: $0.isFrom ? from.sequence : to.sequence) }
  }

  /// Finds the objects whose texts fit into the next piece.
  private mutating func nextPiece() -> Need {
    while place < entries.count {
      var nodes: (from: [NodeID], to: [NodeID]) = ([], [])
      var bytes = 0
      pieceEnd = place
      while pieceEnd < entries.count, pieceEnd - place < Self.pieceObjectsMax {
        let entry = entries[pieceEnd]
        if mayDiffer(entry) {
          bytes += (entry.from?.state?.bytes ?? 0) + (entry.to?.state?.bytes ?? 0)
          if bytes > Self.pieceBytes, pieceEnd > place { break }
          if entry.from?.hasState == true, let node = entry.from { nodes.from.append(node.id) }
          if entry.to?.hasState == true, let node = entry.to { nodes.to.append(node.id) }
        }
        pieceEnd += 1
      }
      reads = [(true, nodes.from), (false, nodes.to)].filter { !$0.1.isEmpty }
      if let need = nextRead() ?? compare() { return need }
    }
    return .nothing(next: nil)
  }

  // MARK: Comparing

  /// All paths of both sides, in order.
  private static func entries(_ from: Side, _ to: Side) -> [Entry] {
    var entries: [IdentifierPath: Entry] = [:]
    for node in from.tree.nodes.values where !from.omitted.contains(node.id) {
      if let path = from.tree.path(of: node) { entries[path] = Entry(path: path, from: node) }
    }
    for node in to.tree.nodes.values where !to.omitted.contains(node.id) {
      if let path = to.tree.path(of: node) { entries[path, default: Entry(path: path)].to = node }
    }
    return entries.values.sorted { left, right in
      left.path.components.lexicographicallyPrecedes(right.path.components) {
        $0.utf8.lexicographicallyPrecedes($1.utf8)
      }
    }
  }

  /// Whether the texts must be compared.
  private func mayDiffer(_ entry: Entry) -> Bool {
    guard let from = entry.from, let to = entry.to else { return false }
    guard let old = from.state, let new = to.state else { return from.hasState || to.hasState }
    guard old.sequence == new.sequence else { return true }
    return old.referencedNodes.contains { self.from.tree.path(of: $0) != self.to.tree.path(of: $0) }
  }

  /// Adds the differences of the piece to the page; returns where the next page begins if the page is full.
  private mutating func compare() -> Need? {
    while place < pieceEnd {
      let entry = entries[place]
      let found = finding(for: entry)
      bytes += found.bytes(at: entry.path)
      // A page has at least one object.
      if bytes > bytesMax, !reply.isEmpty { return .nothing(next: place) }
      switch found {
      case .nothing: break
      case .added: reply.added.append(entry.path)
      case .removed: reply.removed.append(entry.path)
      case .changed(let difference): reply.changed.append(difference)
      }
      place += 1
    }
    from.texts = [:]
    to.texts = [:]
    return nil
  }

  private enum Finding {
    case nothing, added, removed
    case changed(ObjectDifference)

    /// Its approximate size on the page.
    func bytes(at path: IdentifierPath) -> Int {
      switch self {
      case .nothing: 0
      case .added, .removed: path.bytes + 8 * path.components.count
      case .changed(let difference):
        difference.keys.reduce(path.bytes + 8 * path.components.count + 64) { $0 + $1.utf8.count + 4 }
      }
    }
  }

  private func finding(for entry: Entry) -> Finding {
    guard let old = entry.from else { return .added }
    guard let new = entry.to else { return .removed }
    guard mayDiffer(entry), let difference = difference(of: old, new, at: entry.path) else { return .nothing }
    return .changed(difference)
  }

  /// `nil` if both states are equal.
  private func difference(of old: Node, _ new: Node, at path: IdentifierPath) -> ObjectDifference? {
    var difference = ObjectDifference().with { $0.path = path }
    if old.hasState && from.record(of: old) == nil || new.hasState && to.record(of: new) == nil {
      difference.unreadable = true
      return difference
    }
    let before = from.members(of: old) { write($0, of: from, to: &$1) }
    let after = to.members(of: new) { write($0, of: to, to: &$1) }
    let keys = Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }
    difference.elements = from.record(of: old)?.elements != to.record(of: new)?.elements
    guard !keys.isEmpty || difference.elements || old.hasState != new.hasState else { return nil }
    if old.record.isConfidential || new.record.isConfidential, !reveals {
      return ObjectDifference().with {
        $0.path = path
        $0.redacted = true
      }
    }
    difference.keys = keys.sorted { $0.lexicographicallyPrecedes($1) }.map { String(decoding: $0, as: UTF8.self) }
    return difference
  }

  /// A reference as it is compared. If both sides have its target, it is that, so that a move of the target is no
  /// difference (R6).
  private func write(_ target: NodeID, of side: Side, to writer: inout JSONWriter) {
    let target = side.tree.node(target)
    if let target, let there = to.tree.node(target.id), from.tree.nodes[there.id] != nil {
      writer.object { $0.member("$restorable", there.id) }
    } else {
      ArchiveReferences.write(target.flatMap { side.tree.path(of: $0) }, to: &writer)
    }
  }
}

extension Comparison.Side {
  fileprivate mutating func makeTree() {
    tree = NodeTree(readings)
    readings = []
    for node in omitted { tree.nodes[node]?.state = nil }
  }

  /// `nil` if there is none, or it is damaged.
  fileprivate func record(of node: Node) -> StateRecord? {
    guard case .state(let record, node.state?.sequence) = texts[node.id] else { return nil }
    return record
  }

  /// The texts of all top-level members, with references as `write` has them.
  fileprivate func members(of node: Node, _ write: (NodeID, inout JSONWriter) -> Void) -> [[UInt8]: [UInt8]] {
    guard let record = record(of: node) else { return [:] }
    let text = record.spliced(write)
    let slice = try? JSONSlice.scan(Array(text.bytes), vocabulary: EncodedState.vocabulary, limits: .unframed)
    var members: [[UInt8]: [UInt8]] = [:]
    for (name, value) in slice?.members ?? [] { members[Array(name.utf8)] = Array(value.text) }
    return members
  }
}
