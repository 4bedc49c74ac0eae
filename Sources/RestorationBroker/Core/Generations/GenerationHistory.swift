// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import RestorationWire

/// The sealed generations of an application, oldest first (R16).
///
/// Invariants:
/// 1. Numbers rise and are never reused.
/// 2. At most one generation is pinned; besides it the newest three are retained.
package struct GenerationHistory {
  private static let kept = 3

  package private(set) var all: [SealedGeneration]
  private var last: Int64

  package init(_ all: [SealedGeneration] = [], last: Int64 = 0) { (self.all, self.last) = (all, last) }

  package var newest: GenerationRecord? { all.last?.record }
  /// Number of the change that sealed the newest one; 0 if there is none.
  package var sealedUpTo: SequenceNumber { all.last?.sequence ?? 0 }

  package subscript(number: Int64) -> SealedGeneration? { all.first { $0.record.generation == number } }

  package func hasUnsealedContent(in turn: borrowing Turn) -> Bool { turn.contentSequence > sealedUpTo }

  /// The record of the next generation, if the head is sealed now.
  ///
  /// - Parameter omitted: nodes whose states it does not hold (R4, R7).
  package func next(
    _ kind: String,
    of tree: NodeTree,
    omitting omitted: Set<NodeID>,
    in turn: borrowing Turn
  ) -> GenerationRecord {
    var (objects, bytes) = (0, 0)
    for node in tree.nodes.values where !omitted.contains(node.id) {
      guard let stored = node.state else { continue }
      if node.record.kind != .application { objects += 1 }
      bytes += stored.bytes
    }
    return GenerationRecord(
      generation: last + 1,
      kind: kind,
      committed: turn.now.wall,
      objects: objects,
      bytes: bytes,
      omitted: omitted.sorted()
    )
  }

  package mutating func seal(
    _ kind: String,
    of tree: NodeTree,
    omitting omitted: Set<NodeID>,
    in turn: inout Turn
  ) -> GenerationRecord {
    let record = next(kind, of: tree, omitting: omitted, in: turn)
    seal(record, in: &turn)
    return record
  }

  /// Ensures that a generation holds all of the head, which is about to be replaced. Returns its number, `nil` if there
  /// is no state.
  package mutating func sealHead(_ kind: String, of tree: NodeTree, in turn: inout Turn) -> Int64? {
    guard tree.nodes.values.contains(where: \.hasState) else { return nil }
    if hasUnsealedContent(in: turn) || newest?.omitted.contains(where: { tree.nodes[$0]?.hasState == true }) == true {
      // No save round runs here, and no other generation holds states that no walk reaches (R4).
      return seal(kind, of: tree, omitting: [], in: &turn).generation
    }
    return newest?.generation
  }

  /// Seals the head with a record from `next`, and drops surplus generations.
  package mutating func seal(_ record: GenerationRecord, in turn: inout Turn) {
    last = record.generation
    all.append(SealedGeneration(record: record, sequence: turn.write(.seal(record)), isPinned: false))
    turn.announce {
      GenerationSealed().with {
        $0.generation = record.generation
        $0.kind = record.kind
        $0.objects = record.objects
        $0.bytes = record.bytes
      }
    }
    while all.count(where: { !$0.isPinned }) > Self.kept, let oldest = all.firstIndex(where: { !$0.isPinned }) {
      turn.write(.dropGeneration(all.remove(at: oldest).record.generation))
    }
  }

  /// To free room, drops the oldest unpinned generation that was sealed by a change up to `sequence`, and returns
  /// whether there was one. A generation equal to the head is skipped, because it would free nothing.
  package mutating func giveUpOldest(upTo sequence: SequenceNumber, in turn: inout Turn) -> Bool {
    let last = min(sequence, turn.contentSequence - 1)
    guard let oldest = all.firstIndex(where: { !$0.isPinned && $0.sequence <= last }) else { return false }
    let generation = all.remove(at: oldest).record.generation
    turn.write(.dropGeneration(generation))
    turn.announce {
      GenerationDropped().with {
        $0.generation = generation
        $0.cause = .room
      }
    }
    return true
  }

  /// Pins the newest generation until the beginning run has restored it, unless an older one is pinned.
  package mutating func pinNewest(in turn: inout Turn) {
    guard let newest, !all.contains(where: \.isPinned) else { return }
    turn.write(.pin(generation: newest.generation))
    all[all.count - 1].isPinned = true
  }

  package mutating func unpin(in turn: inout Turn) {
    guard let index = all.firstIndex(where: \.isPinned) else { return }
    turn.write(.pin(generation: nil))
    all[index].isPinned = false
  }

  package mutating func removeAll(in turn: inout Turn) {
    unpin(in: &turn)
    for sealed in all { turn.write(.dropGeneration(sealed.record.generation)) }
    all = []
  }
}

extension NodeTree {
  /// Nodes that are neither included nor referred to by saved states, directly or indirectly (R7). Nearly always empty.
  package var unreachedNodes: Set<NodeID> { unreachedNodes(byHiddenStates: false) }

  /// Nodes whose states are not saved. References of confirmed states that provisional ones hide count, too (R19).
  package var unsavedNodes: Set<NodeID> { unreachedNodes(byHiddenStates: true) }

  /// Nodes that are saved only because saved states refer to them (R7).
  var reachedNodes: Set<NodeID> {
    var ancestry = Ancestry()
    let excluded = nodes.values.filter { !ancestry.isIncluded($0) }.map(\.id)
    return excluded.isEmpty ? [] : Set(excluded).subtracting(unsavedNodes)
  }

  private func unreachedNodes(byHiddenStates hidden: Bool) -> Set<NodeID> {
    var ancestry = Ancestry()
    var unreached: Set<NodeID> = []
    for node in nodes.values where !ancestry.isIncluded(node) { unreached.insert(node.id) }
    guard !unreached.isEmpty else { return [] }
    var next = nodes.values.filter { !unreached.contains($0.id) }
    func follow(_ state: StateSummary?) {
      for target in state?.referencedNodes ?? [] {
        if let node = self.node(target), unreached.remove(node.id) != nil { next.append(node) }
      }
    }
    // If all are reached, further references change nothing.
    while !unreached.isEmpty, let node = next.popLast() {
      follow(node.state)
      if hidden { follow(node.versions.hidden) }
    }
    return unreached
  }

  /// Vacant nodes to be dropped: no walk and no reference leads to them, or they have no path by which they could be
  /// claimed again (R4, R7). Placeholders stay.
  func unsaved(among nodes: some Sequence<Node>) -> [Node] {
    var ancestry = Ancestry()
    let excluded = nodes.filter { $0.isVacant && !$0.isPlaceholder && !ancestry.isIncluded($0) }
    guard !excluded.isEmpty else { return [] }
    let unsaved = unsavedNodes
    return excluded.filter { $0.record.component == nil || unsaved.contains($0.id) }.sorted { $0.id < $1.id }
  }
}
