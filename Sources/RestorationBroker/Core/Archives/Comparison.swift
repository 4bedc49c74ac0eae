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
  /// How many paths are looked at before others have their turn, and about how many bytes of references.
  private static let pathsMax = 2_048
  private static let tableBytesMax = 1 << 20

  /// One of the two contents.
  struct Side {
    let sequence: SequenceNumber
    let omitted: Set<NodeID>
    fileprivate var tree = NodeTree()
    /// Nodes with a path in order, by the node that it is below; 0 stands for none.
    fileprivate var nodesByPathParent: [NodeID: [Node]] = [:]
    /// By node, of the current piece.
    fileprivate var texts: [NodeID: StateReading] = [:]

    init(sequence: SequenceNumber, omitted: [NodeID] = []) {
      self.sequence = sequence
      self.omitted = Set(omitted)
    }
  }

  /// A path, by its nodes on both sides.
  private struct Entry {
    var from: Node?
    var to: Node?
  }

  /// What must be read next.
  enum Need {
    case read(StoreJob.Step)
    /// The page is complete; `next` is the beginning of the next one, `nil` after the last.
    case nothing(next: Int?)
  }

  private enum Stage {
    case nodesOfFrom, nodesOfTo
    /// Both sides are prepared.
    case sides
    case paths
    case texts
  }

  let reveals: Bool
  let bytesMax: Int
  var call: LongCall
  private(set) var reply = DiffGenerations.Reply()
  private(set) var from: Side
  private(set) var to: Side
  private var stage = Stage.nodesOfFrom
  /// What is still to be done with the sides, the last one first.
  private var preparations: [(side: WritableKeyPath<Self, Side>, step: Side.Preparation)] =
    Side.Preparation.allCases.reversed().flatMap { [(\.from, $0), (\.to, $0)] }
  private var entries: [Entry] = []
  /// Paths that are not among the entries yet, the last one first.
  private var paths: [Entry] = []
  /// Nodes that have the same path on both sides.
  private var unmoved: Set<NodeID> = []
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
    if case .nodesOfFrom = stage {
      from.tree.load(nodes)
      if let next = StoreJob.Step.nodes(following: nodes, at: from.sequence) { return .read(next) }
      stage = .nodesOfTo
      return .read(.nodes(after: 0, at: to.sequence))
    }
    to.tree.load(nodes)
    if let next = StoreJob.Step.nodes(following: nodes, at: to.sequence) { return .read(next) }
    stage = .sides
    return prepare()
  }

  /// Adds the requested states, and returns what is needed next.
  mutating func take(_ states: [StateReading?]) -> Need {
    guard case .texts = stage else { return prepare() }
    guard !reads.isEmpty else { return nextPiece() }
    let (isFrom, nodes) = reads.removeFirst()
    for (node, state) in zip(nodes, states) {
      if isFrom { from.texts[node] = state } else { to.texts[node] = state }
    }
    return nextRead() ?? (compare() ?? nextPiece())
  }

  private var pause: Need { .read(.pause(at: to.sequence)) }

  /// Finds out what is to be compared, in pieces if it is much.
  private mutating func prepare() -> Need {
    let isMuch = from.tree.count + to.tree.count > Self.pathsMax
    while let (side, step) = preparations.popLast() {
      self[keyPath: side].prepare(step)
      if isMuch { return pause }
    }
    if case .sides = stage {
      paths = Comparison.entries(from.nodesByPathParent[0], to.nodesByPathParent[0])
      stage = .paths
      if isMuch { return pause }
    }
    findEntries()
    if !paths.isEmpty { return pause }
    stage = .texts
    return entries.count > Self.pathsMax ? pause : nextPiece()
  }

  private func nextRead() -> Need? {
    reads.first.map { .read(.states($0.nodes, at: $0.isFrom ? from.sequence : to.sequence)) }
  }

  /// Finds the objects whose texts fit into the next piece.
  private mutating func nextPiece() -> Need {
    let end = min(place + Self.pathsMax, entries.count)
    var tableBytes = 0
    while place < end, tableBytes < Self.tableBytesMax {
      var nodes: (from: [NodeID], to: [NodeID]) = ([], [])
      var bytes = 0
      pieceEnd = place
      while pieceEnd < entries.count, pieceEnd - place < Self.pieceObjectsMax, tableBytes < Self.tableBytesMax {
        let entry = entries[pieceEnd]
        tableBytes += entry.to?.state?.references?.utf8.count ?? 0
        if mayDiffer(entry) {
          bytes += (entry.from?.state?.work ?? 0) + (entry.to?.state?.work ?? 0)
          if bytes > Self.pieceBytes, pieceEnd > place { break }
          if entry.from?.hasState == true, let node = entry.from { nodes.from.append(node.id) }
          if entry.to?.hasState == true, let node = entry.to { nodes.to.append(node.id) }
        }
        pieceEnd += 1
      }
      reads = [(true, nodes.from), (false, nodes.to)].filter { !$0.1.isEmpty }
      if let need = nextRead() ?? compare() { return need }
    }
    return place < entries.count ? pause : .nothing(next: nil)
  }

  // MARK: Comparing

  /// Finds paths of both sides, in order: each below that of its parent, so that deep ones cost no more.
  private mutating func findEntries() {
    let end = entries.count + Self.pathsMax
    while entries.count < end, let entry = paths.popLast() {
      if let node = entry.from, node.id == entry.to?.id { unmoved.insert(node.id) }
      let shown = Entry(from: from.shown(entry.from), to: to.shown(entry.to))
      if shown.from != nil || shown.to != nil { entries.append(shown) }
      paths += Comparison.entries(
        entry.from.flatMap { from.nodesByPathParent[$0.id] },
        entry.to.flatMap { to.nodesByPathParent[$0.id] }
      )
    }
  }

  /// The paths of nodes below one path, the last one first.
  private static func entries(_ before: [Node]?, _ after: [Node]?) -> [Entry] {
    var (before, after) = ((before ?? [])[...], (after ?? [])[...])
    var found: [Entry] = []
    while let entry = nextEntry(before.last, after.last) {
      if entry.from != nil { before.removeLast() }
      if entry.to != nil { after.removeLast() }
      found.append(entry)
    }
    return found
  }

  private static func nextEntry(_ from: Node?, _ to: Node?) -> Entry? {
    guard let from, let to else { return from == nil && to == nil ? nil : Entry(from: from, to: to) }
    return from.precedes(to) ? Entry(to: to) : to.precedes(from) ? Entry(from: from) : Entry(from: from, to: to)
  }

  /// Whether the texts must be compared.
  private func mayDiffer(_ entry: Entry) -> Bool {
    guard let from = entry.from, let to = entry.to else { return false }
    guard let old = from.state, let new = to.state else { return from.hasState || to.hasState }
    guard old.sequence == new.sequence else { return true }
    return old.referencedNodes.contains { target in
      !unmoved.contains(target) && self.from.tree.path(of: target) != self.to.tree.path(of: target)
    }
  }

  /// Adds the differences of the piece to the page; returns where the next page begins if the page is full.
  private mutating func compare() -> Need? {
    while place < pieceEnd {
      let entry = entries[place]
      let found = finding(for: entry)
      bytes += found.bytes
      // A page has at least one object.
      if bytes > bytesMax, !reply.isEmpty { return .nothing(next: place) }
      switch found {
      case .nothing: break
      case .added(let path): reply.added.append(path)
      case .removed(let path): reply.removed.append(path)
      case .changed(let difference): reply.changed.append(difference)
      }
      place += 1
    }
    from.texts = [:]
    to.texts = [:]
    return nil
  }

  private enum Finding {
    case nothing
    case added(IdentifierPath)
    case removed(IdentifierPath)
    case changed(ObjectDifference)

    /// Its approximate size on the page.
    var bytes: Int {
      switch self {
      case .nothing: 0
      case .added(let path), .removed(let path): Self.bytes(of: path)
      case .changed(let difference):
        difference.keys.reduce(Self.bytes(of: difference.path) + 64) { $0 + $1.utf8.count + 4 }
      }
    }

    private static func bytes(of path: IdentifierPath) -> Int { path.bytes + 8 * path.components.count }
  }

  private func finding(for entry: Entry) -> Finding {
    guard let old = entry.from else { return .added(to.path(of: entry.to)) }
    guard let new = entry.to else { return .removed(from.path(of: old)) }
    guard mayDiffer(entry), let difference = difference(of: old, new, at: from.path(of: old)) else { return .nothing }
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
  /// What is done before paths are compared, piece by piece.
  fileprivate enum Preparation: CaseIterable { case link, group, order }

  fileprivate mutating func prepare(_ step: Preparation) {
    switch step {
    case .link:
      for node in omitted { tree.nodes[node]?.state = nil }
      tree.indexAll()
    case .group:
      var ancestry = Ancestry()
      for node in tree.nodes.values where node.record.component != nil {
        nodesByPathParent[ancestry.pathParent(of: node)?.id ?? 0, default: []].append(node)
      }
    case .order:
      for parent in nodesByPathParent.keys { nodesByPathParent[parent]?.sort { $0.precedes($1) } }
    }
  }

  /// `nil` for a node that the generation does not hold.
  fileprivate func shown(_ node: Node?) -> Node? { node.flatMap { omitted.contains($0.id) ? nil : $0 } }

  fileprivate func path(of node: Node?) -> IdentifierPath { node.flatMap { tree.path(of: $0) } ?? [] }

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

extension Node {
  /// The order of what is below the same path: that of the identifiers' bytes.
  fileprivate func precedes(_ other: Node) -> Bool {
    (record.component ?? "").utf8.lexicographicallyPrecedes((other.record.component ?? "").utf8)
  }
}

extension StateSummary {
  /// The bytes of plain text that take as long to be compared: each reference is written as the path of its target.
  fileprivate var work: Int { bytes + 8 * (references?.utf8.count ?? 0) }
}
