// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Compares two contents of an archive path by path, for one page of differences.
///
/// Texts are read only if states may differ: the same row on both sides is the same state, unless a referenced object
/// has another path.
struct GenerationDiff {
  struct Side {
    let sequence: SequenceNumber
    let omitted: Set<NodeID>
    fileprivate var tree: NodeTree
    /// Nodes with a path in order, by the node that it is below; 0 stands for none.
    fileprivate var nodesByPathParent: [NodeID: [Node]] = [:]
    /// By node, of the current piece.
    fileprivate var texts: [NodeID: StateReading] = [:]

    static func load(
      _ contents: Comparison.Contents,
      _ archive: isolated ArchiveSnapshots
    ) async throws(ErrorObject) -> Side {
      let tree = try await archive.tree(at: contents.sequence)
      var side = Side(sequence: contents.sequence, omitted: Set(contents.omitted), tree: tree)
      for node in side.omitted { side.tree.nodes[node]?.versions.remove() }
      side.tree.indexAll()
      try await archive.did(tree.count)
      var ancestry = Ancestry()
      for node in side.tree.nodes.values where node.record.component != nil {
        side.nodesByPathParent[ancestry.pathParent(of: node)?.id ?? 0, default: []].append(node)
      }
      try await archive.did(tree.count)
      for parent in side.nodesByPathParent.keys { side.nodesByPathParent[parent]?.sort { $0.precedes($1) } }
      try await archive.did(tree.count)
      return side
    }
  }

  /// A path, by its nodes on both sides.
  private typealias Entry = (from: Node?, to: Node?)

  /// The limits of one piece: about this many bytes of texts and of references, and this many objects.
  private static let pieceBytes = 1 << 20
  private static let pieceObjectsMax = 512

  private(set) var reply = DiffGenerations.Reply()
  private var from: Side
  private var to: Side
  private let reveals: Bool
  private var entries: [Entry] = []
  /// Nodes that have the same path on both sides.
  private var unmoved: Set<NodeID> = []

  init(_ from: Side, _ to: Side, reveals: Bool) { (self.from, self.to, self.reveals) = (from, to, reveals) }

  /// Fills a page. Returns where the next page begins; `nil` after the last.
  mutating func page(
    from first: Int,
    bytesMax: Int,
    _ archive: isolated ArchiveSnapshots
  ) async throws(ErrorObject) -> Int? {
    try await findEntries(archive)
    var (place, bytes) = (first, 0)
    while place < entries.count {
      let piece = self.piece(from: place)
      from.texts = try await texts(of: piece.differing.compactMap(\.from), archive)
      to.texts = try await texts(of: piece.differing.compactMap(\.to), archive)
      for index in place..<piece.end {
        guard let finding = finding(for: entries[index]) else { continue }
        bytes += finding.bytes
        // A page has at least one object.
        if bytes > bytesMax, !reply.isEmpty {
          try await archive.tell(index, of: entries.count, isLast: true)
          return index
        }
        finding.add(&reply)
      }
      place = piece.end
      try await archive.did(piece.work)
      try await archive.tell(place, of: entries.count)
    }
    try await archive.tell(place, of: entries.count, isLast: true)
    return nil
  }

  // MARK: Reading

  /// The paths of both sides, in order: each below that of its parent, so that deep ones cost no more.
  private mutating func findEntries(_ archive: isolated ArchiveSnapshots) async throws(ErrorObject) {
    var paths = pairs(below: (nil, nil))
    while let entry = paths.popLast() {
      if let node = entry.from, node.id == entry.to?.id { unmoved.insert(node.id) }
      let shown = (from: from.shown(entry.from), to: to.shown(entry.to))
      if shown.from != nil || shown.to != nil { entries.append(shown) }
      paths += pairs(below: entry)
      try await archive.did(1)
    }
  }

  /// The paths below one path, or those of one component, the last one first.
  private func pairs(below entry: Entry) -> [Entry] {
    let isTop = entry.from == nil && entry.to == nil
    var before = isTop || entry.from != nil ? from.nodesByPathParent[entry.from?.id ?? 0] ?? [] : []
    var after = isTop || entry.to != nil ? to.nodesByPathParent[entry.to?.id ?? 0] ?? [] : []
    var found: [Entry] = []
    while let pair = Self.pair(before.last, after.last) {
      if pair.from != nil { before.removeLast() }
      if pair.to != nil { after.removeLast() }
      found.append(pair)
    }
    return found
  }

  private static func pair(_ from: Node?, _ to: Node?) -> Entry? {
    guard let from, let to else { return from == nil && to == nil ? nil : (from, to) }
    return from.precedes(to) ? (nil, to) : to.precedes(from) ? (from, nil) : (from, to)
  }

  /// The piece that begins at a place: its end, those whose texts are needed, and as how many objects it counts.
  private func piece(from place: Int) -> (end: Int, differing: [Entry], work: Int) {
    var (end, bytes, references) = (place, 0, 0)
    var differing: [Entry] = []
    while end < entries.count, end - place < Self.pieceObjectsMax, references < Self.pieceBytes {
      let entry = entries[end]
      references += entry.to?.state?.references?.utf8.count ?? 0
      if mayDiffer(entry) {
        bytes += (entry.from?.state?.work ?? 0) + (entry.to?.state?.work ?? 0)
        if bytes > Self.pieceBytes, end > place { break }
        differing.append(entry)
      }
      end += 1
    }
    return (end, differing, end - place + references / 512)
  }

  private func texts(
    of nodes: [Node],
    _ archive: isolated ArchiveSnapshots
  ) async throws(ErrorObject) -> [NodeID: StateReading] {
    let rows = nodes.compactMap { node in
      node.state.map { StateRequest.Row(node: node.id, sequence: $0.sequence) }
    }
    if rows.isEmpty { return [:] }
    let states = try await archive.states(in: rows)
    return zip(rows, states).reduce(into: [:]) { $0[$1.0.node] = $1.1 }
  }

  // MARK: Comparing

  /// Whether the texts must be compared.
  private func mayDiffer(_ entry: Entry) -> Bool {
    guard let from = entry.from, let to = entry.to else { return false }
    guard let old = from.state, let new = to.state else { return from.hasState || to.hasState }
    guard old.sequence == new.sequence else { return true }
    return old.referencedNodes.contains { target in
      !unmoved.contains(target) && self.from.tree.path(of: target) != self.to.tree.path(of: target)
    }
  }

  /// The difference at a path: how it is added to the page, and its approximate bytes there.
  private func finding(for entry: Entry) -> (bytes: Int, add: (inout DiffGenerations.Reply) -> Void)? {
    guard let old = entry.from else {
      let path = to.path(of: entry.to)
      return (path.diffBytes, { $0.added.append(path) })
    }
    guard let new = entry.to else {
      let path = from.path(of: old)
      return (path.diffBytes, { $0.removed.append(path) })
    }
    guard mayDiffer(entry), let difference = difference(of: old, new) else { return nil }
    let bytes = difference.keys.reduce(difference.path.diffBytes + 64) { $0 + $1.utf8.count + 4 }
    return (bytes, { $0.changed.append(difference) })
  }

  /// `nil` if both states are equal.
  private func difference(of old: Node, _ new: Node) -> ObjectDifference? {
    var difference = ObjectDifference().with { $0.path = from.path(of: old) }
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
      return ObjectDifference().with { ($0.path, $0.redacted) = (difference.path, true) }
    }
    difference.keys = keys.sorted { $0.lexicographicallyPrecedes($1) }.map { String(decoding: $0, as: UTF8.self) }
    return difference
  }

  /// Writes a reference for comparison: a target on both sides by its node, so that its move is no difference (R6).
  private func write(_ target: NodeID, of side: Side, to writer: inout JSONWriter) {
    let target = side.tree.node(target)
    if let target, let there = to.tree.node(target.id), from.tree.nodes[there.id] != nil {
      writer.object { $0.member("$restorable", there.id) }
    } else {
      ArchiveReferences.write(target.flatMap { side.tree.path(of: $0) }, to: &writer)
    }
  }
}

extension GenerationDiff.Side {
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
  /// Orders objects below the same path by the bytes of their identifiers.
  fileprivate func precedes(_ other: Node) -> Bool {
    (record.component ?? "").utf8.lexicographicallyPrecedes((other.record.component ?? "").utf8)
  }
}

extension IdentifierPath {
  /// About what it takes on a page.
  fileprivate var diffBytes: Int { bytes + 8 * components.count }
}

extension StateSummary {
  /// The bytes of plain text that take as long to be compared: each reference is written as the path of its target.
  fileprivate var work: Int { bytes + 8 * (references?.utf8.count ?? 0) }
}
