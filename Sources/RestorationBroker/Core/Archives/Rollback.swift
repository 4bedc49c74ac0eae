// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// A generation that is about to become the head, as far as it was read (R16).
///
/// Only texts that the head lacks are read. Writes meanwhile may require others, so reading ends when a whole pass over
/// the generation finds nothing missing.
package struct Rollback {
  /// The limits of one piece: about this many bytes of texts, and this many texts.
  private static let pieceBytes = 1 << 20
  private static let pieceRowsMax = 1_024

  let request: RollBack
  let generation: SealedGeneration
  /// Nodes whose states the generation does not hold (R4, R7).
  private let omitted: Set<NodeID>
  var call: LongCall
  /// The generation, with summaries of its states; their texts are in `texts`.
  private var past = NodeTree()
  /// Its nodes, as soon as all are there.
  private var nodes: [Node] = []
  /// The position of the pass over the generation.
  private var place = 0
  private var texts: [NodeID: StateRecord] = [:]
  /// Nodes whose state in the generation is damaged (R32).
  private(set) var unreadable: Set<NodeID> = []
  /// The nodes to bring back, parents first; nil for all.
  private(set) var chosen: [Node]?
  private var chosenNumbers: Set<NodeID>?

  init(_ request: RollBack, _ generation: SealedGeneration, _ call: LongCall) {
    (self.request, self.generation) = (request, generation)
    self.omitted = Set(generation.record.omitted)
    self.call = call
  }

  var progress: (done: Int, total: Int) { (place, nodes.count) }

  mutating func take(_ readings: [NodeReading]) { past.load(readings) }

  /// All nodes are there: chooses what the call names, by paths in the generation.
  mutating func choose() throws(ErrorObject) {
    past.indexAll()
    nodes = past.byAge()
    guard let paths = request.objects else { return }
    var (nodes, seen): ([Node], Set<NodeID>) = ([], [])
    for path in paths {
      guard let top = past.node(at: path), !omitted.contains(top.id) else {
        throw .restoration(
          .unknownObject,
          "generation \(generation.record.generation) has no \(path)",
          hint: "See readArchive with that generation.",
          path: path
        )
      }
      for node in past.subtree(of: top) where !omitted.contains(node.id) && seen.insert(node.id).inserted {
        nodes.append(node)
      }
    }
    (chosen, chosenNumbers) = (nodes, seen)
  }

  mutating func take(_ states: [StateReading?], of rows: [StateRequest.Row]) {
    for (row, state) in zip(rows, states) {
      if case .state(let record, _) = state { texts[row.node] = record } else { unreadable.insert(row.node) }
    }
  }

  /// The next rows whose texts are needed; empty if there are none.
  mutating func nextPiece(beside head: NodeTree) -> [StateRequest.Row] {
    var piece: [StateRequest.Row] = []
    var bytes = 0
    // A second pass from the beginning, because more texts may be needed now.
    for _ in 0..<2 {
      while place < nodes.count {
        if let row = missing(nodes[place], beside: head) {
          bytes += row.bytes
          if bytes > Self.pieceBytes || piece.count == Self.pieceRowsMax, !piece.isEmpty { return piece }
          piece.append(row)
        }
        place += 1
      }
      if !piece.isEmpty { return piece }
      place = 0
    }
    place = nodes.count
    return []
  }

  /// By how many bytes of states the head grows.
  func growth(of head: NodeTree) -> Int {
    var growth = 0
    for node in nodes { growth += held(node)?.bytes ?? 0 }
    if let chosen {
      for node in chosen { growth -= head.nodes[node.id]?.state?.bytes ?? 0 }
    } else {
      for node in head.nodes.values { growth -= node.state?.bytes ?? 0 }
    }
    return growth
  }

  var contexts: Set<ContextID> { Set(nodes.lazy.compactMap { held($0)?.context }) }

  /// The row of a node's state, if its text has yet to be read.
  private func missing(_ node: Node, beside head: NodeTree) -> StateRequest.Row? {
    guard let state = held(node), state.sequence != head.nodes[node.id]?.state?.sequence, texts[node.id] == nil,
      !unreadable.contains(node.id)
    else { return nil }
    return StateRequest.Row(node: node.id, sequence: state.sequence, bytes: state.bytes)
  }

  /// The state the generation holds of a node.
  private func held(_ node: Node) -> StateSummary? {
    omitted.contains(node.id) || chosenNumbers?.contains(node.id) == false ? nil : node.state
  }

  // MARK: The new head

  /// How a node gets the generation's state.
  enum Restored {
    case nothing
    /// The head has the same row.
    case same
    /// A copy of this row.
    case text(StateRecord, of: SequenceNumber)
  }

  /// `node` has the generation's state; `today` is the same node at the head.
  func restored(_ node: Node, beside today: Node?) -> Restored {
    guard let state = held(node) else { return .nothing }
    if state.sequence == today?.state?.sequence { return .same }
    return texts[node.id].map { .text($0, of: state.sequence) } ?? .nothing
  }

  /// The texts that the head gains.
  func newTexts(beside head: NodeTree) -> some Sequence<StateRecord> {
    texts.lazy.filter { node, _ in
      past.nodes[node].flatMap { held($0) }.map { $0.sequence != head.nodes[node]?.state?.sequence } ?? false
    }
    .map(\.value)
  }

  /// The generation's tree and states with the live objects. Call it once: its nodes become those of the head.
  func tree(beside head: NodeTree, living: Set<NodeID>) -> RolledBackTree {
    // References in the generation's states lead where they led then.
    var tree = past
    for (gone, successor) in head.successors where past.nodes[gone] == nil && past.successors[gone] == nil {
      tree.load(.removal(of: gone, successor: successor))
    }
    for node in past.unnamedNodes(omitting: omitted, keeping: living) { tree.forget(node) }
    for node in tree.nodes.values {
      if node.record.parent != node.parent?.id { node.record.parent = node.parent?.id }
      if let today = head.nodes[node.id], today.claim != nil { node.record.describe(as: today.record) }
    }
    return RolledBackTree(tree, beside: head, living: living)
  }
}

/// The tree of a generation with the objects that live now (R16).
///
/// An object of the generation returns to its place there. A later one stays where it is, unless the generation has
/// another node at its path: then it becomes that node, as if it claimed the path (R3).
struct RolledBackTree {
  private(set) var tree: NodeTree
  /// Nodes of the generation that live nodes have become.
  private(set) var successors: [NodeID: NodeID] = [:]

  fileprivate init(_ tree: NodeTree, beside head: NodeTree, living: Set<NodeID>) {
    self.tree = tree
    let later = living.filter { tree.nodes[$0] == nil }
    for node in later.isEmpty ? [] : head.namedNodes(keeping: living) where later.contains(node.id) {
      var record = node.record
      record.parent = node.parent.flatMap { self.node($0.id)?.id }
      let parent = record.parent.flatMap { self.tree.nodes[$0] }
      if let component = record.component, let there = self.tree.node(component, below: parent, kind: record.kind) {
        successors[node.id] = there.id
      } else {
        _ = self.tree.insert(record)
      }
    }
    for (gone, successor) in successors { self.tree.load(.removal(of: gone, successor: successor)) }
  }

  func node(_ id: NodeID) -> Node? { tree.nodes[id] ?? successors[id].flatMap { tree.nodes[$0] } }
}

extension NodeRecord {
  static func removal(of node: NodeID, successor: NodeID?) -> NodeRecord {
    NodeRecord(node: node, parent: nil, component: nil, kind: .object, isRemoved: true, successor: successor)
  }

  /// Its present owner's description; a confidential object stays confidential.
  fileprivate mutating func describe(as today: NodeRecord) {
    classes = today.classes
    restorationClass = today.restorationClass
    storyboard = today.storyboard
    keepsForever = today.keepsForever
    isConfidential = isConfidential || today.isConfidential
  }
}
