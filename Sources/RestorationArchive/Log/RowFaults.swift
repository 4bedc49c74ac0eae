// SPDX-License-Identifier: Apache-2.0

/// Rows of nodes and contexts that are damaged or missing, and their substitutes.
struct RowFaults {
  /// Rows of nodes with a wrong checksum, and the nodes they name. They are dropped: an older row of the node applies.
  var nodes: [StateRow] = []
  /// Nodes of which the head shows a state or a child, but not themselves; each with the sequence of that row.
  var orphans: [StateRow] = []
  /// Contexts with a wrong checksum, and those that are missing although a state names them: they become empty.
  var contexts: [ContextID] = []
  /// Rows of nodes of which no older one applies: the next newer one, or one with a name that tells the node.
  var substitutes: [(sequence: SequenceNumber, record: NodeRecord)] = []

  var isEmpty: Bool { nodes.isEmpty && orphans.isEmpty && contexts.isEmpty }

  /// As a part of a sentence; `nil` if nothing was found.
  var finding: String? {
    let numbers = [("node", Set((nodes + orphans).map(\.node))), ("context", Set(contexts))]
    let kinds = numbers.filter { !$0.1.isEmpty }.map { kind, numbers in
      "\(kind) \(Self.list(numbers.sorted().map(String.init)))"
    }
    return kinds.isEmpty ? nil : "rows are damaged or missing: \(kinds.joined(separator: ", and "))"
  }

  /// Says how to find the objects again; empty if all have a path.
  var remedy: String {
    let names = substitutes.map(\.record).filter { $0.component == Self.name(of: $0.node) }.compactMap(\.component)
    return names.isEmpty ? "" : "; objects that have lost their path are called \(Self.list(names))"
  }

  private static func list(_ words: [String]) -> String {
    let most = 8
    let rest = words.count > most ? " and \(words.count - most) more" : ""
    return words.prefix(most).joined(separator: ", ") + rest
  }

  private static func name(of node: NodeID) -> String { "damaged-\(node)" }

  /// A description of a node of which nothing is known; so its state counts as confidential.
  static func unknown(_ node: NodeID) -> NodeRecord {
    NodeRecord(node: node, parent: nil, component: name(of: node), kind: .object, isConfidential: true)
  }
}

extension ArchiveIndex {
  func gaps(in faults: RowFaults) -> [StateRow] {
    var gaps: [StateRow] = []
    var taken = nodeSequences
    func fill(_ row: StateRow, at place: SequenceNumber?) {
      guard let place, taken.insert(place).inserted else { return }
      gaps.append(StateRow(node: row.node, sequence: place))
    }
    func isFilled(_ row: StateRow) -> Bool {
      gaps.contains { gap in
        gap.node == row.node && gap.sequence <= row.sequence && horizon.firstCut(after: gap.sequence) > row.sequence
      }
    }
    // First the head's needs. Each missing row has left a sequence free before the row that needs it.
    for row in faults.orphans.sorted(by: { $0.sequence < $1.sequence }) where !isFilled(row) {
      let cut = horizon.lastCut(upTo: .sequence(row.sequence))
      fill(row, at: stride(from: row.sequence, to: cut, by: -1).first { !taken.contains($0) })
    }
    for row in faults.nodes where tip.sequence.hasGivenOut(row.sequence) && !isFilled(row) {
      let isNeeded = nodeRows(of: row.node) != nil || gaps.contains { $0.node == row.node }
      if isNeeded, description(of: row.node, at: .sequence(row.sequence)) == nil { fill(row, at: row.sequence) }
    }
    return gaps
  }
}

extension ArchiveIndex {
  /// States at the head whose node the head does not show.
  func statesWithoutNode() -> [StateRow] {
    rowsOfNodes.compactMap { log in
      guard let state = log.state(at: .head, under: horizon), log.description(at: .head, under: horizon) == nil else {
        return nil
      }
      return StateRow(node: log.node, sequence: state.sequence)
    }
  }

  /// Parents that the head does not show although it shows children of them, each once, with a row that names it.
  func missingParents(among parents: [(child: StateRow, parent: NodeID)]) -> [StateRow] {
    var missing: [NodeID: SequenceNumber] = [:]
    var present: NodeID?
    for (child, parent) in parents where parent != present && tip.lastNode.hasGivenOut(parent) {
      guard description(of: parent, at: .head) == nil else {
        present = parent
        continue
      }
      guard let shown = description(of: child.node, at: .head), shown.sequence == child.sequence, !shown.isRemoved
      else {
        continue
      }
      missing[parent] = missing[parent] ?? child.sequence
    }
    return missing.map { StateRow(node: $0.key, sequence: $0.value) }
  }

  /// Contexts that are not stored although states at the head name them, each with such a state.
  func statesWithoutContext() -> [(context: ContextID, row: StateRow)] {
    let missing = totals.missing(upTo: tip.lastContext)
    guard !missing.isEmpty else { return [] }
    return rowsOfNodes.compactMap { log in
      guard let state = log.state(at: .head, under: horizon), missing.contains(state.summary.context) else {
        return nil
      }
      return (state.summary.context, StateRow(node: log.node, sequence: state.sequence))
    }
  }

  /// The next row of a node that does not remove it.
  func nextDescription(of node: NodeID, after sequence: SequenceNumber) -> SequenceNumber? {
    nodeRows(of: node)?.descriptions.first { $0.sequence > sequence && !$0.isRemoved }?.sequence
  }

  private var nodeSequences: Set<SequenceNumber> { Set(rowsOfNodes.flatMap { $0.descriptions.map(\.sequence) }) }
}

extension Int64 {
  /// Whether a number can have been given out if this is the last that was; 0 never is.
  func hasGivenOut(_ number: Int64) -> Bool { number > 0 && number <= self }
}
