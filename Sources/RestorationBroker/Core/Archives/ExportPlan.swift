// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import RestorationWire

/// What an export holds, in the order of its document, fixed when it began; texts are read page by page.
package struct ExportPlan {
  package struct Entry {
    let record: NodeRecord
    let path: IdentifierPath?
    /// The parent's place, where the path does not tell.
    let parent: Int?
    /// The state everybody sees, and what an owner that decodes is given where that one is early (R19).
    let state: StateSummary?
    let beforeClaim: StateSummary?
    let isEarly: Bool
    let isRedacted: Bool
  }

  /// A cursor is good for so long after it was last used.
  package static let idleMilliseconds: Int64 = 60_000
  /// Exports of one application that wait for their next page; beyond that the longest idle one is given up.
  static let countMax = 8
  /// Rows before early ones that are kept from upkeep one by one.
  private static let holdsMax = 64

  let client: ClientID
  let sequence: SequenceNumber
  /// Whether any state is left out.
  let isRedacted: Bool
  package let entries: [Entry]
  /// Places of what references lead to, by the node they name.
  let targets: [NodeID: Int]
  var lastUsed: Int64 = 0

  /// - Parameters:
  ///   - tree: nodes with their states.
  ///   - omitted: nodes whose states a generation does not hold (R4, R7).
  ///   - showsEarly: whether the tree tells what early states hide.
  package init(
    _ tree: NodeTree,
    at sequence: SequenceNumber,
    omitting omitted: Set<NodeID> = [],
    showsEarly: Bool,
    reveals: Bool,
    for client: ClientID
  ) {
    let order = tree.namedNodes(omitting: omitted)
    var places: [NodeID: Int] = [:]
    for (place, node) in order.enumerated() { places[node.id] = place }
    var targets: [NodeID: Int] = [:]
    var isRedacted = false
    entries = order.map { node in
      let path = tree.path(of: node)
      let isKept = path != nil || node.record.kind == .application
      let state = !isKept || omitted.contains(node.id) ? nil : node.state
      let isHidden = node.record.isConfidential && !reveals && state != nil
      if isHidden { isRedacted = true }
      for summary in [state, node.beforeClaim] {
        for id in summary?.referencedNodes ?? [] {
          if let target = tree.node(id), target.record.component != nil { targets[id] = places[target.id] }
        }
      }
      // The path tells the parent, unless it begins anew below one.
      let isTold = (path?.components.count ?? 1) > 1 || node.parent == nil
      return Entry(
        record: node.record,
        path: path,
        parent: isTold ? nil : node.parent.flatMap { places[$0.id] },
        state: state,
        beforeClaim: showsEarly && state?.isEarly == true ? node.beforeClaim : nil,
        isEarly: showsEarly && state?.isEarly == true,
        isRedacted: isHidden
      )
    }
    (self.client, self.sequence, self.isRedacted, self.targets) = (client, sequence, isRedacted, targets)
  }

  /// Sequences that must be readable until the last page: the moment itself, and what early states hide.
  var holds: [SequenceNumber] {
    let hidden = Set(entries.compactMap { $0.beforeClaim?.sequence })
    return [sequence] + hidden.sorted().suffix(ExportPlan.holdsMax)
  }
}

/// One page of an export: which entries it may hold.
package struct ExportPage: Sendable {
  /// The export it is of.
  package var export: Int
  /// Places of its entries, as far as their texts were asked for.
  package var range: Range<Int>
  package var bytesMax: Int
  var call: LongCall
  /// Sequences to be kept readable for the next page.
  package var holds: [SequenceNumber]
}

/// An export whose nodes are being found, of a generation.
package struct ExportPlanning {
  let request: ExportArchive
  let generation: SealedGeneration
  let bytesMax: Int
  let call: LongCall
  var readings: [NodeReading] = []
}
