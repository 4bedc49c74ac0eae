// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

/// The objects of an application whose states are kept off the disk (R4).
///
/// Invariant: when an event has been handled, a claimed node is one of `nodes` exactly if it is neither included nor
/// reached.
struct KeptStates {
  typealias Leaving = (sequence: SequenceNumber, node: NodeID, records: KeptRecords)

  private(set) var nodes: Set<NodeID> = []
  /// Whether claimed nodes are saved only because others refer to them (R7).
  private var isAnyReached = false
  /// Something has changed that inclusion or reach may follow from.
  private(set) var isStale = false
  /// What was stored since, until that is durable.
  private(set) var leaving: [Leaving] = []

  /// Whether any reference matters.
  var isInUse: Bool { !nodes.isEmpty || isAnyReached }

  mutating func insert(_ node: NodeID) { nodes.insert(node) }

  mutating func remove(_ node: NodeID) { nodes.remove(node) }

  mutating func leave(_ records: KeptRecords, of node: NodeID, at sequence: SequenceNumber) {
    if !records.states.isEmpty { leaving.append((sequence, node, records)) }
  }

  /// Everything up to this sequence is durable.
  mutating func settle(_ sequence: SequenceNumber) {
    if !leaving.isEmpty { leaving.removeAll { $0.sequence <= sequence } }
  }

  // MARK: What is saved

  mutating func becomeStale() { isStale = true }

  /// What is saved was looked at.
  mutating func update(isAnyReached: Bool) { (self.isAnyReached, isStale) = (isAnyReached, false) }

  /// Nodes have moved: another place may include them, or include them no longer.
  mutating func noteMove(_ outcome: RelocationOutcome, in tree: NodeTree) {
    func matters(_ node: Node) -> Bool { node.kept != nil || node.isVacant && node.state?.references != nil }
    isStale =
      isStale || isInUse && !outcome.merged.isEmpty || outcome.movesExcluded || outcome.moved.contains(where: matters)
      || outcome.merged.contains { matters($0.into) || !tree.isIncluded($0.into) }
  }

  /// The state of a node is replaced or gone: what it referred to may be reached no longer, what the new one refers to
  /// is now.
  mutating func noteReferences(of node: Node, to new: String?, in tree: NodeTree) {
    let old = [node.state, node.beforeClaim].compactMap { $0 }
    guard isInUse, !isStale, new != nil || old.contains(where: { $0.references != nil }) else { return }
    isStale =
      ArchiveReferences.targets(ofTable: new).contains { tree.node($0)?.kept != nil }
      || old.contains { mayLose($0, in: tree) }
  }

  /// A state is no longer hidden by an early one, or is gone.
  mutating func noteEnd(of states: some Sequence<StateSummary>, in tree: NodeTree) {
    if !isStale, isAnyReached { isStale = states.contains { mayLose($0, in: tree) } }
  }

  /// Whether it may be the only one that leads to an object, perhaps by way of a vacant one.
  private func mayLose(_ state: StateSummary, in tree: NodeTree) -> Bool {
    isAnyReached && state.references != nil
      && state.referencedNodes.contains { tree.node($0).map { !tree.isIncluded($0) } ?? false }
  }
}
